"""Vectors on a Qdrant server: its REST interface by aiohttp. The engine needs ten of its calls."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Literal, TypeVar
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from errand.engine.core.addresses import check_address, display_address, is_in_the_clear
from errand.engine.core.errors import ConfigurationError, InvalidParams
from errand.engine.core.outgoing import proxy_of
from errand.engine.memory.vectors.base import (
    VectorFilter,
    VectorHit,
    VectorPoint,
    VectorsDamaged,
    VectorsMismatch,
    VectorsUnavailable,
    VectorsUntrusted,
    check_point,
    check_vector,
    conditions,
    id_of,
    ids_of,
    nearest_entries,
    numbers_of,
    surplus_ids,
)
from errand.engine.models.http_pool import BodyTooLong, HttpPool, read_body
from errand.engine.tools.context import Vector

CALL_S = 10.0
_BATCH = 64
_IDS = 10_000
_MAX_ANSWER_BYTES = 16 * 1024 * 1024
_INDEXES = (("conversation", "keyword"), ("folder", "keyword"), ("kind", "keyword"), ("at", "float"))


_Result = TypeVar("_Result")


class _Params(msgspec.Struct, frozen=True):
    """The parameters of a collection. With several kinds of vectors it has no size: it is not ours."""

    size: int = 0
    distance: str = ""


class _Vectors(msgspec.Struct, frozen=True):
    vectors: _Params | None = None


class _Metadata(msgspec.Struct, frozen=True):
    model: str = ""


class _Config(msgspec.Struct, frozen=True):
    params: _Vectors
    metadata: _Metadata | None = None


class _Collection(msgspec.Struct, frozen=True):
    config: _Config


class _Point(msgspec.Struct, frozen=True):
    id: int
    score: float = 0.0


class _Points(msgspec.Struct, frozen=True):
    points: tuple[_Point, ...]
    next_page_offset: int | None = None


class _Count(msgspec.Struct, frozen=True):
    count: int


class ServerVectors:
    """A `VectorStore` in a collection of the server at `url`, which is made if it is missing.

    Needs Qdrant 1.16, which keeps the name of the model with the collection. Raises `ConfigurationError` for an invalid
    URL, and for a key that would travel unencrypted; each call takes at most `call_s`.
    """

    def __init__(
        self,
        pool: HttpPool,
        url: str,
        dimensions: int,
        model: str,
        *,
        api_key: str = "",
        collection: str = "errand",
        call_s: float = CALL_S,
    ) -> None:
        _check_url(url, api_key)
        self._pool = pool
        self._url = url.rstrip("/")
        self._dimensions = dimensions
        self._model = model
        self._headers = {"api-key": api_key} if api_key else {}
        self._path = f"/collections/{quote(collection, safe='')}"
        self._call_s = call_s
        self._lock = asyncio.Lock()
        self._is_open = False
        self._closed = False

    async def upsert(self, points: Sequence[VectorPoint]) -> None:
        for point in points:
            check_point(point, self._dimensions)
        remaining = iter(points)
        while batch := tuple(islice(remaining, _BATCH)):
            await self._ask("PUT", "/points?wait=true", {"points": [_stored(point) for point in batch]})
        await self._delete(surplus_ids(points))

    async def search(self, vector: Vector, limit: int, where: VectorFilter | None = None) -> tuple[VectorHit, ...]:
        check_vector(vector, self._dimensions)
        query: dict[str, object] = {"query": vector, "filter": conditions(where) or None}

        async def nearest(amount: int) -> Sequence[tuple[int, float]]:
            page = _decoded(await self._ask("POST", "/points/query", {**query, "limit": amount}), _Points)
            return [(point.id, point.score) for point in page.points]

        return await nearest_entries(limit, nearest)

    async def delete(self, numbers: Collection[int]) -> None:
        await self._delete(ids_of(numbers))

    async def numbers(self) -> frozenset[int]:
        entry_numbers: set[int] = set()
        following: int | None = 0
        while following is not None:
            page_request: dict[str, object] = {
                "offset": following,
                "limit": _IDS,
                "with_payload": False,
                "with_vector": False,
            }
            page = _decoded(await self._ask("POST", "/points/scroll", page_request), _Points)
            entry_numbers.update(numbers_of(point.id for point in page.points))
            following = page.next_page_offset
        return frozenset(entry_numbers)

    async def count(self) -> int:
        return _decoded(await self._ask("POST", "/points/count", {"exact": True}), _Count).count

    async def optimise(self) -> None:
        """Check that the server answers: it optimises by itself."""
        await self.count()

    async def has_remains(self) -> bool:
        return False

    async def purge(self) -> None:
        """Do nothing: the server removes deleted vectors from its disk when it next cleans up."""

    async def clear(self) -> None:
        async with self._lock:
            self._is_open = False
            if await self._about() is not None:
                await self._request("DELETE", "", None)
            await self._open()
            self._is_open = True

    async def close(self) -> None:
        self._closed = True

    async def _delete(self, ids: Iterable[int]) -> None:
        remaining = iter(ids)
        while batch := tuple(islice(remaining, _IDS)):
            await self._ask("POST", "/points/delete?wait=true", {"points": batch})

    async def _ask(self, method: Literal["POST", "PUT"], path: str, body: dict[str, object]) -> bytes:
        async with self._lock:
            if not self._is_open:
                await self._open()
                self._is_open = True
        status, data = await self._request(method, path, body)
        if status == 404:  # somebody deleted the collection: the next call makes it
            self._is_open = False
            raise VectorsDamaged("The collection of vectors is gone from the server. Rebuild the index.")
        return data

    async def _open(self) -> None:
        existing = await self._about()
        if existing is None:
            about: dict[str, object] = {
                "vectors": {"size": self._dimensions, "distance": "Cosine"},
                "metadata": {"model": self._model},
            }
            await self._request("PUT", "", about)
        elif existing != (self._model, _Params(self._dimensions, "Cosine")):
            raise VectorsMismatch(
                f"The collection of vectors is of another model: {existing[0]} with {existing[1].size} numbers. "
                "Rebuild it."
            )
        for name, kind in _INDEXES:  # those that exist are left alone
            await self._request("PUT", "/index?wait=true", {"field_name": name, "field_schema": kind})

    async def _about(self) -> tuple[str, _Params] | None:
        """Return the model and the vectors of the collection; None if there is none.

        Raises `VectorsUntrusted` for a collection that is not ours.
        """
        status, data = await self._request("GET", "", None)
        if status == 404:
            return None
        config = _decoded(data, _Collection).config
        if config.metadata is None or not config.metadata.model or config.params.vectors is None:
            raise VectorsUntrusted(f"{self._server_name} has a collection of this name that Errand did not make.")
        return config.metadata.model, config.params.vectors

    async def _request(self, method: str, path: str, body: dict[str, object] | None) -> tuple[int, bytes]:
        """Return the status, 200 or 404, and the body. A redirect is refused: it would take the key elsewhere."""
        if self._closed:
            raise VectorsUnavailable("The index of vectors has been closed.")
        url = self._url + self._path + path
        try:
            async with (
                asyncio.timeout(self._call_s),
                self._pool.session.request(
                    method,
                    url,
                    data=None if body is None else msgspec.json.encode(body),
                    headers={**self._headers, "Content-Type": "application/json"},
                    proxy=proxy_of(self._url),
                    allow_redirects=False,
                ) as response,
            ):
                data = await read_body(response, _MAX_ANSWER_BYTES)
                status = response.status
        except TimeoutError as error:
            raise VectorsUnavailable(f"{self._server_name} did not answer in {self._call_s:g} s.") from error
        except (aiohttp.ClientError, OSError, BodyTooLong) as error:
            raise VectorsUnavailable(f"{self._server_name} cannot be reached: {error}") from error
        if status in (401, 403):
            raise VectorsUnavailable(
                f"{self._server_name} refuses the key (HTTP {status}). Set another in the settings."
            )
        if status not in (200, 404):
            raise VectorsUnavailable(
                f"{self._server_name} answered HTTP {status}: {data[:300].decode(errors='replace')}"
            )
        return status, data

    @property
    def _server_name(self) -> str:
        return f"The Qdrant server {display_address(self._url)}"


def _check_url(url: str, api_key: str) -> None:
    try:
        check_address(url)
    except InvalidParams as error:
        raise ConfigurationError(f"The address of the Qdrant server: {error}") from error
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigurationError("The address of the Qdrant server must begin with http:// or https://.")
    if api_key and is_in_the_clear(url):
        raise ConfigurationError("The key of the Qdrant server would travel unencrypted: use an https address.")


def _decoded(data: bytes, kind: type[_Result]) -> _Result:
    """Return the field `result` of an answer."""
    try:
        result = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("result", msgspec.Raw(b"null"))
        return msgspec.json.decode(result, type=kind)
    except msgspec.DecodeError as error:
        raise VectorsUnavailable("The program at the address of the Qdrant server is not Qdrant.") from error


def _stored(point: VectorPoint) -> dict[str, object]:
    payload = {"conversation": point.conversation_id, "folder": point.folder, "kind": point.kind, "at": point.at}
    return {"id": id_of(point), "vector": point.vector, "payload": payload}
