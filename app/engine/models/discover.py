"""Looks for model servers on this machine's usual ports and asks their model names. Only when asked to."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from app.engine.models.catalog import PROVIDERS, Provider
from app.engine.models.connections import read_whole

if TYPE_CHECKING:
    import aiohttp

_LIMIT_S = 0.7
_MODELS_LIMIT = 500
_MOST_BYTES = 4 * 1024 * 1024


class _Entry(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_Entry] | None = None


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answered, and its models."""

    provider: Provider
    base_url: str
    models: tuple[str, ...]


async def local_servers(session: "aiohttp.ClientSession", bases: dict[str, str]) -> tuple[LocalServer, ...]:
    """Ask all local providers at once; `bases` gives the address of each by its name."""
    local = [row for row in PROVIDERS if row.is_local]
    found = await asyncio.gather(*(_ask(session, row, bases[row.name]) for row in local))
    return tuple(server for server in found if server is not None)


async def _ask(session: "aiohttp.ClientSession", provider: Provider, base_url: str) -> LocalServer | None:
    import aiohttp

    try:
        async with asyncio.timeout(_LIMIT_S), session.get(f"{base_url}/models", allow_redirects=False) as response:
            if response.status != 200:
                return None
            listing = msgspec.json.decode(await read_whole(response, _MOST_BYTES), type=_Listing)
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
        return None
    if listing.data is None:
        return None
    return LocalServer(provider, base_url, tuple(entry.id for entry in listing.data[:_MODELS_LIMIT]))
