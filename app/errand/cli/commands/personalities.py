"""`errand personalities`: list, export, import."""

import os
from pathlib import Path
from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError
from errand.cli.command import Command
from errand.cli.commands.run import find_personality
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.terminal.style import Style
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import columns, one_line
from errand.client import personality_file
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.personality_file import NewPersonality, NotAPersonality, new_personality
from errand.paths import Paths
from errand.protocol.agents import (
    PERSONALITY_LIST,
    PERSONALITY_SAVE,
    Personality,
    PersonalityListResult,
    PersonalitySaveParams,
)
from errand.protocol.base import EmptyParams


class PersonalitiesOptions(CommandOptions, frozen=True, kw_only=True):
    words: Annotated[
        tuple[str, ...], Argument("WHAT", "list (the default), export NAME --to FILE, or import FILE")
    ] = ()
    to: Annotated[str, Option("--to", "with export: where to", "FILE")] = ""
    overwrite: Annotated[bool, Flag("--overwrite", "with export: replace what is there")] = False
    json: Annotated[bool, Flag("--json", "with list: one JSON object a line")] = False


async def personalities(options: PersonalitiesOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand personalities") as connection:
        match options.words or ("list",):
            case ["list"]:
                await _list(connection, options, terminal)
            case ["export", name]:
                await _export(connection, name, options, terminal)
            case ["import", file]:
                await _import(connection, file, terminal)
            case _:
                raise UsageError("Say what to do: errand personalities list, export NAME --to FILE, or import FILE")
    return 0


PERSONALITIES = Command(PersonalitiesOptions, personalities)


async def _list(connection: Connection, options: PersonalitiesOptions, terminal: Terminal) -> None:
    for personality in (await connection.call(PERSONALITY_LIST, EmptyParams())).personalities:
        if options.json:
            terminal.line(msgspec.json.encode(personality).decode())
        else:
            terminal.line(format_personality(personality, terminal.width, terminal.style))


def format_personality(personality: Personality, width: int, style: Style) -> str:
    """One line: id, name, non-default settings, and the beginning of its prompt."""
    thinking = f"thinking {personality.thinking_level}" if personality.thinking_level != "off" else ""
    warmth = f"temperature {personality.temperature:g}" if personality.temperature is not None else ""
    tools = ", ".join(personality.tools)
    prompt = " ".join(personality.system_prompt.split()) or "the engine's own prompt"
    about = " · ".join(part for part in (personality.model, tools, thinking, warmth, personality.color, prompt) if part)
    head = f"{one_line(personality.id, 12):<12}  {one_line(personality.name, 20):<20}  "
    return f"{style.bold(head)}{style.dim(one_line(about, max(12, width - columns(head))))}"


async def _export(connection: Connection, name: str, options: PersonalitiesOptions, terminal: Terminal) -> None:
    personality = await find_personality(connection, name)
    if not options.to:
        raise UsageError("Say where to: errand personalities export NAME --to FILE")
    file = _write(personality, options)
    terminal.line(f"{personality.name} was written to {file}.")


def _write(personality: Personality, options: PersonalitiesOptions) -> Path:
    file = Path(os.path.expanduser(options.to))
    if file.exists() and not options.overwrite:
        raise UsageError(f"{file} is there already. Name another, or replace it with --overwrite.")
    try:
        personality_file.write(file, personality, overwrite=options.overwrite)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.") from error
    return file


async def _import(connection: Connection, file: str, terminal: Terminal) -> None:
    """Import as a new personality, replacing none."""
    taken = _read(file, await connection.call(PERSONALITY_LIST, EmptyParams()))
    personality = taken.personality
    await connection.call(PERSONALITY_SAVE, PersonalitySaveParams(personality=personality))
    terminal.line(f"{personality.name} was imported; its id is {personality.id}.")
    if taken.left_out:
        terminal.note(f"errand: unknown tools were left out: {', '.join(taken.left_out)}")


def _read(file: str, existing: PersonalityListResult) -> NewPersonality:
    try:
        return new_personality(
            personality_file.read(Path(os.path.expanduser(file))), existing.personalities, existing.tools
        )
    except NotAPersonality as error:
        raise UsageError(str(error)) from error
