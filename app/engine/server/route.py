"""One served method: from raw params to the raw result."""

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from app.engine.errors import InvalidParams
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.struct import Wire
from app.protocol.wire import Method

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)

_ENCODER = msgspec.json.Encoder()


class Served(Protocol):
    """A route without its types: what the dispatcher sees."""

    @property
    def name(self) -> str: ...
    @property
    def changes(self) -> bool: ...
    async def serve(self, services: Services, session: Session, params: msgspec.Raw, name: str) -> bytes: ...


class Route(Generic[P, R]):
    """A row of the protocol with the function that answers it.

    An engine may die between doing a command and storing its answer. So `named` gives what a command makes an id that
    comes from the command itself, where the client chose none: sent again, it finds what is there.
    """

    def __init__(
        self,
        method: Method[P, R],
        handle: Callable[[Services, Session, P], Awaitable[R]],
        named: Callable[[P, str], P] | None = None,
    ) -> None:
        self._method = method
        self._handle = handle
        self._named = named
        self._decoder = msgspec.json.Decoder(method.params)

    @property
    def name(self) -> str:
        return self._method.name

    @property
    def changes(self) -> bool:
        return self._method.changes

    async def serve(self, services: Services, session: Session, params: msgspec.Raw, name: str) -> bytes:
        try:
            decoded = self._decoder.decode(params)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidParams(f"Wrong params for {self.name}: {error}.") from error
        if self._named is not None:
            decoded = self._named(decoded, name)
        return _ENCODER.encode(await self._handle(services, session, decoded))
