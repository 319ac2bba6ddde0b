"""Decodes a frame, runs the handler of its method and encodes the answer."""

import logging
from collections.abc import Iterable

import msgspec

from errand.engine.core.errors import EngineError
from errand.engine.server import json_rpc
from errand.engine.server.handlers import (
    agents,
    asks,
    background,
    changes,
    comparisons,
    context,
    conversations,
    data,
    engine,
    executions,
    local_models,
    memory,
    pictures,
    servers,
    settings,
    skills,
    tasks,
    usage,
)
from errand.engine.server.idempotent_commands import ClientCommand, IdempotentCommands
from errand.engine.server.json_rpc import BadFrame, check_depth, id_of, read_request
from errand.engine.server.route import ServedMethod
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.engine.tools.shell.environment import client_environment
from errand.protocol.comparisons import TASK_COMPARE_MODELS
from errand.protocol.conversations import AGENT_CHAT
from errand.protocol.engine import CHALLENGE, INITIALIZE
from errand.protocol.methods import FailureObject, Response
from errand.protocol.tasks.methods import TASK_RESUME, TASK_RETRY, TASK_START

ROUTES: tuple[ServedMethod, ...] = (
    *engine.HANDLERS,
    *tasks.HANDLERS,
    *asks.HANDLERS,
    *conversations.HANDLERS,
    *agents.HANDLERS,
    *executions.HANDLERS,
    *changes.HANDLERS,
    *background.HANDLERS,
    *data.HANDLERS,
    *usage.HANDLERS,
    *memory.HANDLERS,
    *context.HANDLERS,
    *comparisons.HANDLERS,
    *settings.HANDLERS,
    *local_models.HANDLERS,
    *skills.HANDLERS,
    *pictures.HANDLERS,
    *servers.HANDLERS,
)

_log = logging.getLogger(__name__)
_LOGGED = 300
_FIRST = (CHALLENGE.name, INITIALIZE.name)
# Those that start work: its environment should be complete.
_STARTING = frozenset(method.name for method in (TASK_START, TASK_RETRY, TASK_RESUME, AGENT_CHAT, TASK_COMPARE_MODELS))
_ENCODER = msgspec.json.Encoder()


class Dispatcher:
    def __init__(self, services: Services, routes: Iterable[ServedMethod], commands: IdempotentCommands) -> None:
        self._services = services
        self._routes = {route.name: route for route in routes}
        self._commands = commands

    async def answer(self, session: ClientSession, frame: bytes) -> bytes:
        """Return the encoded response; never raises for client input or handler errors."""
        try:
            request = read_request(frame)
            if session.client_id:  # the two calls before authentication have a fixed structure
                check_depth(frame, request.id)
        except BadFrame as error:
            return _refused(session, "a message", json_rpc.bad_frame(error), error.request_id)
        route = self._routes.get(request.method)
        if route is None:
            return _refused(session, "a request", json_rpc.unknown_method(request.method, self._routes), request.id)
        if not session.client_id and route.name not in _FIRST:
            return _refused(session, "a request", json_rpc.not_initialized(request.method), request.id)
        if session.client_id and not session.handshake.holds:
            return _refused(session, request.method, json_rpc.token_replaced(), request.id)
        starts = route.name in _STARTING
        client_environment.set(await session.environment_of_commands(self._services.tools.login, wait=starts))
        command = ClientCommand(session.client_id, request.id, request.method)
        try:
            if route.changes:
                result = await self._commands.once(
                    command, lambda: route.serve(self._services, session, request.params, command.name)
                )
            else:
                result = await route.serve(self._services, session, request.params, "")
        except EngineError as error:
            return _refused(session, request.method, json_rpc.engine_error(error), request.id)
        except Exception:  # noqa: BLE001 -- a bug in a handler must not end the engine
            _log.exception("%s failed", request.method)
            return refusal(json_rpc.internal(request.method), request.id)
        return _ENCODER.encode(Response(id=request.id, result=msgspec.Raw(result)))

    def busy(self, frame: bytes) -> bytes:
        """Return the answer to a request above the rate limit."""
        return refusal(json_rpc.busy("Too many requests at once. Try again in a second."), id_of(frame))


def _refused(session: ClientSession, what: str, why: FailureObject, request_id: str | int | None) -> bytes:
    """Return a refusal with a line in the log; the log limits how many it keeps of a kind."""
    _log.warning("refused %s of %r: %s", what, session.client_name or "an unknown client", why.message[:_LOGGED])
    return refusal(why, request_id)


def refusal(what: FailureObject, request_id: str | int | None) -> bytes:
    return _ENCODER.encode(Response(id=request_id, error=what))
