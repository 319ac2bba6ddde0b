"""`errand background`: list the commands that run in the background of conversations, read, stop and type into them."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from errand.cli.arguments import UsageError, wrong_arguments
from errand.cli.command import Command
from errand.cli.lookup import find_conversation
from errand.cli.options import Action, Argument, CommandOptions, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
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
    arguments: Annotated[
        tuple[str, ...],
        Argument("WHAT", "list (the default), output ID, stop ID, stop all, input ID TEXT, keys ID KEY"),
    ] = ()
    conversation: Annotated[str | None, Option("--conversation", "only those of this conversation", "ID")] = None


async def background(options: BackgroundOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand background") as connection:
        part = options.conversation
        conversation_id = (await find_conversation(connection, part)).id if part else None
        commands = await _listed(connection, conversation_id)
        match options.arguments or ("list",):
            case ["list"]:
                _show(commands, output)
            case ["output", number]:
                await _output(connection, _matching(commands, number), output)
            case ["stop", "all"]:
                running = [command for command in commands if command.ended_at is None]
                _show([await _stop(connection, command) for command in running], output)
            case ["stop", number]:
                _show([await _stop(connection, _matching(commands, number))], output)
            case ["input", number, *words]:
                _show(await _type(connection, _matching(commands, number), " ".join(words), ("enter",)), output)
            case ["keys", number, key, *keys]:
                _show(await _type(connection, _matching(commands, number), "", (key, *keys)), output)
            case _:
                raise wrong_arguments("background", _ACTIONS, options.arguments)
    return 0


BACKGROUND = Command(BackgroundOptions, background, actions=_ACTIONS)


async def _listed(connection: Connection, conversation: str | None) -> tuple[BackgroundCommand, ...]:
    commands = (await connection.call(BACKGROUND_LIST, BackgroundListParams())).commands
    return tuple(command for command in commands if conversation in (None, command.conversation_id))


async def _stop(connection: Connection, command: BackgroundCommand) -> BackgroundCommand:
    params = BackgroundStopParams(conversation_id=command.conversation_id, id=command.id)
    return (await connection.call(BACKGROUND_STOP, params)).command


async def _type(
    connection: Connection, command: BackgroundCommand, text: str, keys: tuple[str, ...]
) -> list[BackgroundCommand]:
    """Type into its terminal; returns the command after its first answer, if it is still listed."""
    params = BackgroundInputParams(conversation_id=command.conversation_id, id=command.id, text=text, keys=keys)
    await connection.call(BACKGROUND_INPUT, params)
    await asyncio.sleep(_ANSWER_S)
    return [listed for listed in await _listed(connection, command.conversation_id) if listed.id == command.id]


async def _output(connection: Connection, command: BackgroundCommand, output: CommandOutput) -> None:
    """Print what the command has printed, as it is read; for a program each part is an object."""
    offset, has_more = 0, True
    while has_more:
        params = BackgroundOutputParams(conversation_id=command.conversation_id, id=command.id, offset=offset)
        part = await connection.call(BACKGROUND_OUTPUT, params)
        output.result(part, *([escape_hidden(part.text.rstrip("\n"))] if part.text else []))
        has_more, offset = offset < part.next_offset < part.size, part.next_offset


def _show(commands: Sequence[BackgroundCommand], output: CommandOutput) -> None:
    empty = tr("No commands are running in the background.")
    output.each(commands, lambda command: _lines(command, output.style, output.width), empty=empty)


def _lines(command: BackgroundCommand, style: Style, width: int) -> list[str]:
    number, state = command.id.ljust(4), _state(command)
    colored = style.amber(state) if command.waits_for_input and command.ended_at is None else state
    text = one_line(escape_hidden_line(command.command), max(20, width - len(number) - len(state) - 3))
    conversation = tr("conversation {conversation_id}").format(conversation_id=short_id(command.conversation_id))
    details = (conversation, *command.last_lines.splitlines())
    room = max(20, width - 5)
    return [
        f"{style.bold(number)} {colored}  {text}",
        *(f"     {style.dim(cut(escape_hidden(line), room))}" for line in details),
    ]


def _state(command: BackgroundCommand) -> str:
    seconds = ((command.ended_at or datetime.now(UTC)) - command.started_at).total_seconds()
    if command.ended_at is None:
        return tr("running for {seconds}{waiting}").format(
            seconds=duration(seconds), waiting=tr(", waiting for input") if command.waits_for_input else ""
        )
    how = (
        tr("stopped by {stopped_by}").format(stopped_by=command.stopped_by)
        if command.stopped_by
        else short_exit_text(command.exit_code or 0)
    )
    return tr("{how} after {seconds}").format(how=how, seconds=duration(seconds))


def _matching(commands: tuple[BackgroundCommand, ...], number: str) -> BackgroundCommand:
    matching = [command for command in commands if command.id == number]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise UsageError(
            tr("There is no background command {number!r}. List them: errand background").format(number=number)
        )
    names = ", ".join(short_id(command.conversation_id) for command in matching)
    raise UsageError(
        tr("Several conversations have a command {number} ({names}). Choose one with --conversation.").format(
            number=number, names=names
        )
    )
