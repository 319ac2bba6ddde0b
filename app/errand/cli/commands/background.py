"""`errand background`: list the commands that run in the background of conversations, read, stop and type into them."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError, wrong_words
from errand.cli.command import Command
from errand.cli.lookup import find_conversation
from errand.cli.options import Action, Argument, CommandOptions, Flag, Option
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import cut, one_line, short_id
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.number_format import duration
from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.protocol.background import (
    BACKGROUND_INPUT,
    BACKGROUND_LIST,
    BACKGROUND_OUTPUT,
    BACKGROUND_STOP,
    BackgroundCommand,
    BackgroundInputParams,
    BackgroundListParams,
    BackgroundOutputParams,
    BackgroundStopParams,
)
from errand.system.paths import Paths
from errand.text.notice_text import short_exit_text
from errand.text.translation import tr

_ACTIONS = (
    Action("list", "list those of all conversations (the default)"),
    Action("output ID", "show everything that a command printed", first="background"),
    Action("stop ID", "stop a command and all its processes; `all` stops every command", first="background"),
    Action("input ID TEXT", "type a line, if the command has a terminal", first="background"),
    Action("keys ID KEY ...", "press keys, such as ctrl-c, up, enter", first="background"),
)

# For the echo of what was typed, and a quick answer to it.
_ANSWER_S = 0.4


class BackgroundOptions(CommandOptions, frozen=True, kw_only=True):
    words: Annotated[
        tuple[str, ...],
        Argument("WHAT", "list (the default), output ID, stop ID, stop all, input ID TEXT, keys ID KEY"),
    ] = ()
    conversation: Annotated[str | None, Option("--conversation", "only those of this conversation", "ID")] = None
    json: Annotated[bool, Flag("--json", "print JSON lines")] = False


async def background(options: BackgroundOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand background") as connection:
        named = await find_conversation(connection, options.conversation) if options.conversation else None
        found = await _listed(connection, named.id if named is not None else None)
        match options.words or ("list",):
            case ["list"]:
                if not found and not options.json:
                    terminal.note(tr("No commands are running in the background."))
                for one in found:
                    _show(one, options, terminal)
            case ["output", number]:
                await _output(connection, _matching(found, number), terminal)
            case ["stop", "all"]:
                running = [one for one in found if one.ended_at is None]
                if not running and not options.json:
                    terminal.note(tr("No commands are running in the background."))
                for one in running:
                    await _stop(connection, one, options, terminal)
            case ["stop", number]:
                await _stop(connection, _matching(found, number), options, terminal)
            case ["input", number, *words]:
                for answered in await _type(connection, _matching(found, number), " ".join(words), ("enter",)):
                    _show(answered, options, terminal)
            case ["keys", number, key, *keys]:
                for answered in await _type(connection, _matching(found, number), "", (key, *keys)):
                    _show(answered, options, terminal)
            case _:
                raise wrong_words("background", _ACTIONS, options.words)
    return 0


BACKGROUND = Command(BackgroundOptions, background, actions=_ACTIONS)


async def _listed(connection: Connection, conversation: str | None) -> tuple[BackgroundCommand, ...]:
    found = (await connection.call(BACKGROUND_LIST, BackgroundListParams())).commands
    if conversation is None:
        return found
    return tuple(one for one in found if one.conversation_id == conversation)


async def _stop(connection: Connection, one: BackgroundCommand, options: BackgroundOptions, terminal: Terminal) -> None:
    params = BackgroundStopParams(conversation_id=one.conversation_id, id=one.id)
    _show((await connection.call(BACKGROUND_STOP, params)).command, options, terminal)


async def _type(
    connection: Connection, one: BackgroundCommand, text: str, keys: tuple[str, ...]
) -> list[BackgroundCommand]:
    """Type into its terminal; returns the command after its first answer, if it is still known."""
    params = BackgroundInputParams(conversation_id=one.conversation_id, id=one.id, text=text, keys=keys)
    await connection.call(BACKGROUND_INPUT, params)
    await asyncio.sleep(_ANSWER_S)
    return [found for found in await _listed(connection, one.conversation_id) if found.id == one.id]


async def _output(connection: Connection, one: BackgroundCommand, terminal: Terminal) -> None:
    offset, has_more = 0, True
    while has_more:
        params = BackgroundOutputParams(conversation_id=one.conversation_id, id=one.id, offset=offset)
        piece = await connection.call(BACKGROUND_OUTPUT, params)
        if piece.text:
            terminal.line(escape_hidden(piece.text.rstrip("\n")))
        has_more, offset = offset < piece.next_offset < piece.size, piece.next_offset


def _show(one: BackgroundCommand, options: BackgroundOptions, terminal: Terminal) -> None:
    if options.json:
        terminal.line(msgspec.json.encode(one).decode())
        return
    style = terminal.style
    number, state = one.id.ljust(4), _state(one)
    colored = style.amber(state) if one.waits_for_input and one.ended_at is None else state
    command = one_line(escape_hidden_line(one.command), max(20, terminal.width - len(number) - len(state) - 3))
    terminal.line(f"{style.bold(number)} {colored}  {command}")
    for line in (
        tr("conversation {conversation_id}").format(conversation_id=short_id(one.conversation_id)),
        *one.last_lines.splitlines(),
    ):
        terminal.line(f"     {style.dim(cut(escape_hidden(line), max(20, terminal.width - 5)))}")


def _state(one: BackgroundCommand) -> str:
    seconds = ((one.ended_at or datetime.now(UTC)) - one.started_at).total_seconds()
    if one.ended_at is None:
        return tr("running for {seconds}{waiting}").format(
            seconds=duration(seconds), waiting=tr(", waiting for input") if one.waits_for_input else ""
        )
    how = (
        tr("stopped by {stopped_by}").format(stopped_by=one.stopped_by)
        if one.stopped_by
        else short_exit_text(one.exit_code or 0)
    )
    return tr("{how} after {seconds}").format(how=how, seconds=duration(seconds))


def _matching(found: tuple[BackgroundCommand, ...], number: str) -> BackgroundCommand:
    matching = [one for one in found if one.id == number]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise UsageError(
            tr("There is no background command {number!r}. List them: errand background").format(number=number)
        )
    names = ", ".join(short_id(one.conversation_id) for one in matching)
    raise UsageError(
        tr("Several conversations have a command {number} ({names}). Choose one with --conversation.").format(
            number=number, names=names
        )
    )
