"""`errand personalities`: list, show, make, edit, delete, export and import them."""

import asyncio
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated
from uuid import uuid4

from errand.cli.arguments import UsageError, wrong_arguments
from errand.cli.command import Command
from errand.cli.commands.personality_text import (
    as_text,
    changed,
    check_tools,
    edit_text,
    from_text,
    keep_text,
    names_in,
    number,
)
from errand.cli.commands.run import find_personality
from errand.cli.options import Action, Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import columns, one_line, plain
from errand.client import personality_file
from errand.client.connection import Connection
from errand.client.errors import CallError
from errand.client.launch import connect
from errand.client.personality_file import NewPersonality, NotAPersonality, new_personality
from errand.protocol.agents import (
    PERSONALITY_DELETE,
    PERSONALITY_LIST,
    PERSONALITY_SAVE,
    Personality,
    PersonalityDeleteParams,
    PersonalityListResult,
    PersonalitySaveParams,
    ThinkingLevel,
)
from errand.protocol.base import EmptyParams
from errand.system.paths import Paths
from errand.system.regular_file import read_regular
from errand.text.translation import tr

_ACTIONS = (
    Action("list", "list all of them (the default)"),
    Action("show NAME", "show one with its system prompt", first="personality"),
    Action("new NAME", "create one in your editor, or from options"),
    Action("edit NAME", "change one in your editor, or with options", first="personality"),
    Action("delete NAME", "delete one; its agents use `assistant` from their next task on", first="personality"),
    Action("export NAME --to FILE", "export one to a file", first="personality"),
    Action("import FILE", "import one from a file", first="file"),
)
_EPILOG = tr(
    "The editor is taken from VISUAL or EDITOR. Without a terminal and without options, "
    "the text is read from standard input: errand personalities edit NAME < FILE. errand "
    "personalities show NAME prints it."
)
_MAX_TEXT_LENGTH = 1_000_000


class PersonalitiesOptions(CommandOptions, frozen=True, kw_only=True):
    arguments: Annotated[
        tuple[str, ...], Argument("WHAT", "list (the default), or another action and a personality")
    ] = ()
    rename: Annotated[str | None, Option("--name", "with edit: a new name", "NAME")] = None
    prompt: Annotated[str | None, Option("--prompt", "with new and edit: its system prompt", "TEXT")] = None
    prompt_file: Annotated[
        str | None, Option("--prompt-file", "with new and edit: a file with its system prompt", "FILE")
    ] = None
    model: Annotated[str | None, Option("--model", "with new and edit: its model; '' for the default", "M")] = None
    tools: Annotated[
        str | None, Option("--tools", "with new and edit: tool names, separated by commas; '' for all", "NAMES")
    ] = None
    thinking: Annotated[ThinkingLevel | None, Option("--thinking", "with new and edit: its thinking level")] = None
    temperature: Annotated[
        str | None, Option("--temperature", "with new and edit: from 0 to 2; '' for the model's default", "T")
    ] = None
    color: Annotated[str | None, Option("--color", "with new and edit: blue, teal, green, …; '' for none", "C")] = None
    to: Annotated[str, Option("--to", "with export: the file to write", "FILE")] = ""
    overwrite: Annotated[bool, Flag("--overwrite", "with export: overwrite an existing file")] = False
    yes: Annotated[bool, Flag("--yes", "with delete: do not ask for confirmation")] = False


async def personalities(options: PersonalitiesOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand personalities") as connection:
        match options.arguments or ("list",):
            case ["list"]:
                personalities = (await connection.call(PERSONALITY_LIST, EmptyParams())).personalities
                output.each(
                    personalities, lambda personality: [format_personality(personality, output.width, output.style)]
                )
            case ["show", name]:
                personality = await find_personality(connection, name)
                output.result(personality, plain(as_text(personality).rstrip("\n")))
            case ["new", name]:
                await _new(connection, name, options, output)
            case ["edit", name]:
                await _edit(connection, await find_personality(connection, name), options, output)
            case ["delete", name]:
                await _delete(connection, await find_personality(connection, name), options, output)
            case ["export", name]:
                await _export(connection, name, options, output)
            case ["import", file]:
                await _import(connection, file, output)
            case _:
                raise wrong_arguments("personalities", _ACTIONS, options.arguments)
    return 0


PERSONALITIES = Command(PersonalitiesOptions, personalities, epilog=_EPILOG, actions=_ACTIONS)


async def _new(connection: Connection, name: str, options: PersonalitiesOptions, output: CommandOutput) -> None:
    listing = await connection.call(PERSONALITY_LIST, EmptyParams())
    if any(name.casefold() == personality.name.casefold() for personality in listing.personalities):
        raise UsageError(
            tr("The personality {name!r} already exists. Change it: errand personalities edit {name}").format(name=name)
        )
    draft = Personality(id=uuid4().hex, name=name, system_prompt="")
    await _write_and_save(connection, draft, listing.tools, options, output)


async def _edit(
    connection: Connection, before: Personality, options: PersonalitiesOptions, output: CommandOutput
) -> None:
    tools = (await connection.call(PERSONALITY_LIST, EmptyParams())).tools
    await _write_and_save(connection, before, tools, options, output)


async def _write_and_save(
    connection: Connection,
    before: Personality,
    tools: Collection[str],
    options: PersonalitiesOptions,
    output: CommandOutput,
) -> None:
    """Change it by the options, or by what the person writes in an editor."""
    changes = _changes(options)
    if changes:
        await _save(connection, changed(before, changes), tools, options, output)
    elif output.interactive:
        text = as_text(before)
        written = await asyncio.to_thread(edit_text, text)  # for minutes: the connection must stay alive
        if written == text:
            output.result(before, tr("Nothing was changed."))
            return
        try:
            await _save(connection, from_text(written, before), tools, options, output)
        except (UsageError, CallError) as error:
            raise UsageError(
                tr("{error} Your text is kept in {written}.").format(error=error, written=keep_text(written))
            ) from error
    else:
        written = sys.stdin.buffer.read(_MAX_TEXT_LENGTH).decode("utf-8", "replace")
        if not written.strip():
            raise UsageError(
                tr("There is no terminal for an editor. Use options, or standard input: errand personalities --help")
            )
        await _save(connection, from_text(written, before), tools, options, output)


def _changes(options: PersonalitiesOptions) -> dict[str, object]:
    if options.prompt is not None and options.prompt_file is not None:
        raise UsageError(tr("--prompt and --prompt-file cannot be used together."))
    prompt = options.prompt if options.prompt_file is None else _prompt_in(options.prompt_file)
    values: dict[str, object] = {
        "name": options.rename,
        "system_prompt": prompt,
        "model": options.model,
        "tools": None if options.tools is None else names_in(options.tools),
        "thinking_level": options.thinking,
        "color": options.color,
    }
    changes = {name: value for name, value in values.items() if value is not None}
    if options.temperature is not None:
        changes["temperature"] = number(options.temperature) if options.temperature else None
    return changes


def _prompt_in(file: str) -> str:
    try:
        return read_regular(Path(os.path.expanduser(file)), _MAX_TEXT_LENGTH).decode("utf-8", "replace").strip("\n")
    except OSError as error:
        raise UsageError(tr("{file} cannot be read: {strerror}.").format(file=file, strerror=error.strerror)) from error


async def _save(
    connection: Connection,
    personality: Personality,
    tools: Collection[str],
    options: PersonalitiesOptions,
    output: CommandOutput,
) -> None:
    check_tools(personality, tools)
    saved = (await connection.call(PERSONALITY_SAVE, PersonalitySaveParams(personality=personality))).personality
    output.result(saved, tr("Saved {name}.").format(name=plain(saved.name)))


async def _delete(
    connection: Connection, personality: Personality, options: PersonalitiesOptions, output: CommandOutput
) -> None:
    question = tr("Delete {name}? Its agents use assistant from their next task on.")
    await output.confirm(
        plain(question.format(name=personality.name)), yes=options.yes, unchanged=tr("Nothing was deleted.")
    )
    await connection.call(PERSONALITY_DELETE, PersonalityDeleteParams(personality_id=personality.id))
    output.result(personality, tr("Deleted {name}.").format(name=plain(personality.name)))


def format_personality(personality: Personality, width: int, style: Style) -> str:
    """Return a line with id, name, settings that are not the default, and the beginning of its prompt."""
    thinking = (
        tr("thinking {thinking_level}").format(thinking_level=personality.thinking_level)
        if personality.thinking_level != "off"
        else ""
    )
    warmth = (
        tr("temperature {temperature:g}").format(temperature=personality.temperature)
        if personality.temperature is not None
        else ""
    )
    tools = ", ".join(personality.tools)
    prompt = " ".join(personality.system_prompt.split()) or tr("the default prompt")
    about = " · ".join(part for part in (personality.model, tools, thinking, warmth, personality.color, prompt) if part)
    head = f"{one_line(personality.id, 12):<12}  {one_line(personality.name, 20):<20}  "
    return f"{style.bold(head)}{style.dim(one_line(about, max(12, width - columns(head))))}"


async def _export(connection: Connection, name: str, options: PersonalitiesOptions, output: CommandOutput) -> None:
    personality = await find_personality(connection, name)
    if not options.to:
        raise UsageError(tr("Give a file: errand personalities export NAME --to FILE"))
    file = _write(personality, options)
    text = tr("Exported {name} to {file}.").format(name=personality.name, file=file)
    output.result({"file": str(file), "personality": personality}, text)


def _write(personality: Personality, options: PersonalitiesOptions) -> Path:
    file = Path(os.path.expanduser(options.to))
    if file.exists() and not options.overwrite:
        raise UsageError(tr("{file} already exists. Use another file, or --overwrite.").format(file=file))
    try:
        personality_file.write(file, personality, overwrite=options.overwrite)
    except OSError as error:
        raise UsageError(
            tr("{file} cannot be written: {strerror}.").format(file=file, strerror=error.strerror)
        ) from error
    return file


async def _import(connection: Connection, file: str, output: CommandOutput) -> None:
    """Import as a new personality, replacing none."""
    imported = _read(file, await connection.call(PERSONALITY_LIST, EmptyParams()))
    personality = imported.personality
    await connection.call(PERSONALITY_SAVE, PersonalitySaveParams(personality=personality))
    text = tr("Imported {name}; its id is {id}.").format(name=personality.name, id=personality.id)
    output.result(personality, text)
    if imported.left_out:
        output.note(tr("errand: unknown tools were left out: {names}").format(names=", ".join(imported.left_out)))


def _read(file: str, existing: PersonalityListResult) -> NewPersonality:
    try:
        return new_personality(
            personality_file.read(Path(os.path.expanduser(file))), existing.personalities, existing.tools
        )
    except NotAPersonality as error:
        raise UsageError(str(error)) from error
