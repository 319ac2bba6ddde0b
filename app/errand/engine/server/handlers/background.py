"""Handlers of background commands."""

from errand.engine.core.errors import NotFound
from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.engine.tools.shell.background import Background, BackgroundCommands
from errand.engine.tools.shell.terminal import typed
from errand.protocol.background import (
    BACKGROUND_INPUT,
    BACKGROUND_LIST,
    BACKGROUND_OUTPUT,
    BACKGROUND_STOP,
    BackgroundCommandResult,
    BackgroundInputParams,
    BackgroundListParams,
    BackgroundListResult,
    BackgroundOutputParams,
    BackgroundOutputResult,
    BackgroundStopParams,
)


async def list_commands(
    services: Services, session: ClientSession, params: BackgroundListParams
) -> BackgroundListResult:
    if params.conversation_id is None:
        lists = services.tools.sessions.all_of(BackgroundCommands)
    else:
        own = services.tools.sessions.find(params.conversation_id, BackgroundCommands)
        lists = (own,) if own is not None else ()
    return BackgroundListResult(commands=tuple(command for commands in lists for command in commands.commands()))


async def output(services: Services, session: ClientSession, params: BackgroundOutputParams) -> BackgroundOutputResult:
    commands, command = _found(services, params.conversation_id, params.id)
    text, size, next_offset = commands.piece(command, params.offset)
    return BackgroundOutputResult(text=text, size=size, next_offset=next_offset)


async def stop(services: Services, session: ClientSession, params: BackgroundStopParams) -> BackgroundCommandResult:
    commands, command = _found(services, params.conversation_id, params.id)
    return BackgroundCommandResult(command=await commands.stop(command, session.client_name))


async def type_input(
    services: Services, session: ClientSession, params: BackgroundInputParams
) -> BackgroundCommandResult:
    commands, command = _found(services, params.conversation_id, params.id)
    commands.type(command, typed(params.text, params.keys))
    return BackgroundCommandResult(command=commands.describe(command))


def _found(services: Services, conversation_id: str, number: str) -> tuple[BackgroundCommands, Background]:
    commands = services.tools.sessions.find(conversation_id, BackgroundCommands)
    if commands is None:
        raise NotFound("This conversation has no background commands.")
    return commands, commands.get(number)


HANDLERS = (
    Route(BACKGROUND_LIST, list_commands),
    Route(BACKGROUND_OUTPUT, output),
    Route(BACKGROUND_STOP, stop),
    Route(BACKGROUND_INPUT, type_input),
)
