"""From a frame to its answer: decode, find the route, serve it, turn errors into failures."""

import logging
from collections.abc import Iterable

import msgspec

from app.engine.errors import EngineError
from app.engine.server import failure
from app.engine.server.commands import Command, Commands
from app.engine.server.frame import BadFrame, check_depth, id_of, read_request
from app.engine.server.route import Served
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.engine.tools.environment import client_environment
from app.protocol.wire import CHALLENGE, INITIALIZE, Failure, Request, Response

_log = logging.getLogger(__name__)
_FIRST = (CHALLENGE.name, INITIALIZE.name)
_ENCODER = msgspec.json.Encoder()


class Dispatcher:
    def __init__(self, services: Services, routes: Iterable[Served], commands: Commands) -> None:
        self._services = services
        self._routes = {route.name: route for route in routes}
        self._commands = commands

    async def answer(self, session: Session, frame: bytes) -> bytes:
        """The encoded response; never raises for what a client sent or a handler did."""
        try:
            request = read_request(frame)
            if session.client_id:  # the two calls of a stranger have a fixed form
                check_depth(frame, request.id)
        except BadFrame as error:
            return refusal(failure.bad_frame(error), error.request_id)
        route = self._routes.get(request.method)
        if route is None:
            return refusal(failure.unknown_method(request.method, self._routes), request.id)
        if not session.client_id and route.name not in _FIRST:
            return refusal(failure.not_initialized(request.method), request.id)
        return await self._serve(session, route, request)

    def busy(self, frame: bytes) -> bytes:
        """The answer to a request that comes too soon after too many others."""
        return refusal(failure.busy("Too many requests at once. Try again in a second."), id_of(frame))

    async def _serve(self, session: Session, route: Served, request: Request) -> bytes:
        client_environment.set(session.environment)
        try:
            result = await self._result(session, route, request)
            return _ENCODER.encode(Response(id=request.id, result=msgspec.Raw(result)))
        except EngineError as error:
            return refusal(failure.engine_error(error), request.id)
        except Exception:  # noqa: BLE001 -- one of the four places: a bug in a handler must not end the engine
            _log.exception("%s failed", request.method)
            return refusal(failure.internal(request.method), request.id)

    async def _result(self, session: Session, route: Served, request: Request) -> bytes:
        if not route.changes:
            return await route.serve(self._services, session, request.params, "")
        command = Command(session.client_id, request.id, request.method)
        return await self._commands.once(
            command, lambda: route.serve(self._services, session, request.params, command.name)
        )


def refusal(what: Failure, request_id: str | int | None) -> bytes:
    return _ENCODER.encode(Response(id=request_id, error=what))
