"""A method bound to its handler, and checks of parameters that several handlers share."""

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.base import Method, Wire

_MAX_PAGE_ITEMS = 500
_MAX_PART_LENGTH = 200

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)
W = TypeVar("W", bound=Wire)

_ENCODER = msgspec.json.Encoder()


def checked_part(name: str, text: str) -> str:
    """Return a part of an id or a title to look for; raises `InvalidParams` if it is too long."""
    if len(text) > _MAX_PART_LENGTH:
        raise InvalidParams(f"{name}: a text of at most {_MAX_PART_LENGTH} characters.")
    return text


def checked_limit(limit: int) -> int:
    """Return the limit; `InvalidParams` if it is not from 1 to 500."""
    if not 1 <= limit <= _MAX_PAGE_ITEMS:
        raise InvalidParams(f"limit: {limit}; a page holds from 1 to {_MAX_PAGE_ITEMS}.")
    return limit


def check_count(name: str, count: int) -> None:
    """Raises `InvalidParams` for more than 500 items in one request."""
    if count > _MAX_PAGE_ITEMS:
        raise InvalidParams(f"{name}: {count}; at most {_MAX_PAGE_ITEMS} at once.")


def _with_id(params: W, path: str, derived: str) -> W:
    """Return the params with the id in the field at `path`, unless the client chose one."""
    field, _, inner = path.partition(".")
    value = getattr(params, field)
    if inner:
        return msgspec.structs.replace(params, **{field: _with_id(value, inner, derived)})
    return params if value is not None else msgspec.structs.replace(params, **{field: derived})


class ServedMethod(Protocol):
    """A route without its type parameters, for the dispatcher."""

    @property
    def name(self) -> str: ...
    @property
    def changes(self) -> bool: ...
    async def serve(self, services: Services, session: ClientSession, params: msgspec.Raw, name: str) -> bytes: ...


class Route(Generic[P, R]):
    """A protocol method with its handler."""

    def __init__(self, method: Method[P, R], handle: Callable[[Services, ClientSession, P], Awaitable[R]]) -> None:
        self._method = method
        self._handle = handle
        self._decoder = msgspec.json.Decoder(method.params)

    @property
    def name(self) -> str:
        return self._method.name

    @property
    def changes(self) -> bool:
        return self._method.changes

    async def serve(self, services: Services, session: ClientSession, params: msgspec.Raw, name: str) -> bytes:
        try:
            decoded = self._decoder.decode(params)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidParams(f"Wrong params for {self.name}: {error}.") from error
        if (makes := self._method.makes) is not None:
            decoded = _with_id(decoded, makes.field, f"{makes.prefix}_{name}")
        return _ENCODER.encode(await self._handle(services, session, decoded))
