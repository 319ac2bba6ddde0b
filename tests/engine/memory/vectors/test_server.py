"""Vectors on a server that vanishes, hangs, refuses the key or is none."""

import asyncio
from collections.abc import AsyncGenerator
from importlib.util import find_spec

import pytest
from aiohttp import web

from errand.engine.core.errors import ConfigurationError
from errand.engine.memory.vectors.base import VectorsDamaged, VectorsUnavailable, VectorsUntrusted
from errand.engine.memory.vectors.server import ServerVectors
from tests.support.processes import until
from tests.support.qdrant_server import QdrantServer, qdrant_server
from tests.support.vectors import DIMENSIONS, Clusters, point
from tests.support.web_site import web_site

pytestmark = pytest.mark.skipif(find_spec("qdrant_client") is None, reason="needs qdrant-client: make setup")

_OPENED: list[ServerVectors] = []


@pytest.fixture(autouse=True)
async def stores() -> AsyncGenerator[list[ServerVectors]]:
    yield _OPENED
    for store in _OPENED:
        await store.close()
    _OPENED.clear()


@pytest.fixture
async def server() -> AsyncGenerator[QdrantServer]:
    async with qdrant_server() as qdrant:
        yield qdrant


def _store(url: str, call_s: float = 10.0, api_key: str = "") -> ServerVectors:
    store = ServerVectors(url, DIMENSIONS, "minilm", api_key=api_key, call_s=call_s)
    _OPENED.append(store)
    return store


async def test_the_collection_is_made_with_the_model_and_an_index_of_each_field(server: QdrantServer) -> None:
    assert await _store(server.url + "/").count() == 0
    collection = server.collections["errand"]
    assert (collection["about"].vectors.size, collection["about"].vectors.distance) == (DIMENSIONS, "Cosine")
    assert collection["about"].metadata == {"model": "minilm"}
    assert collection["indexes"] == {"conversation": "keyword", "folder": "keyword", "kind": "keyword", "at": "float"}


async def test_a_server_that_vanishes_is_told_and_is_used_again_when_it_is_back() -> None:
    async with qdrant_server() as server:
        store = _store(server.url)
        await store.upsert(list(Clusters(1).points(3)))
        port, stored_collections = int(server.url.rpartition(":")[2]), server.collections
    for _ in range(2):
        with pytest.raises(VectorsUnavailable, match="cannot be reached"):
            await store.count()
    async with qdrant_server(port=port) as server:
        server.collections = stored_collections
        assert await store.count() == 3


async def test_a_server_that_hangs_is_given_up_in_time(server: QdrantServer) -> None:
    store = _store(server.url, call_s=0.1)
    server.hangs = True
    with pytest.raises(VectorsUnavailable, match="did not answer in 1 s"):
        await store.search((1.0,) * DIMENSIONS, 10)
    server.hangs = False
    assert await store.search((1.0,) * DIMENSIONS, 10) == ()


async def test_a_call_to_a_server_that_hangs_can_be_cancelled(server: QdrantServer) -> None:
    store = _store(server.url)
    server.hangs = True
    counting = asyncio.get_running_loop().create_task(store.count())
    await until(lambda: bool(server.calls))
    counting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await counting


async def test_a_wrong_key_is_told_without_the_key() -> None:
    async with qdrant_server("right") as server:
        with pytest.raises(VectorsUnavailable, match="refuses the key") as raised:
            await _store(server.url, api_key="wrong-key").count()
        assert "wrong-key" not in str(raised.value)


async def test_a_collection_that_is_deleted_is_told_and_made_again(server: QdrantServer) -> None:
    store = _store(server.url)
    await store.upsert([point(1, (1.0,) * DIMENSIONS)])
    server.collections.clear()
    with pytest.raises(VectorsDamaged, match="Rebuild"):
        await store.count()
    assert await store.count() == 0


async def test_a_collection_of_another_program_is_neither_used_nor_cleared(server: QdrantServer) -> None:
    store = _store(server.url)
    await store.count()
    server.collections["errand"]["about"].metadata = None
    other = _store(server.url)
    for call in (other.count, other.clear):
        with pytest.raises(VectorsUntrusted, match="did not make"):
            await call()
    assert "errand" in server.collections


async def test_a_server_of_another_kind_is_told() -> None:
    async with web_site({"/collections/errand": "<h1>hello</h1>"}) as site:
        with pytest.raises(VectorsUnavailable, match="is not Qdrant"):
            await _store(f"http://127.0.0.1:{site.port}").count()


async def test_a_redirect_is_not_followed(server: QdrantServer) -> None:
    async def elsewhere(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": f"{server.url}/collections/errand"})

    async with web_site({"/collections/errand": elsewhere}) as site:
        with pytest.raises(VectorsUnavailable, match="HTTP 307"):
            await _store(f"http://127.0.0.1:{site.port}", api_key="k").count()
    assert server.calls == []


@pytest.mark.parametrize("url", ["", "localhost:6333", "ftp://host/", "http://user:secret@host/", "file:///etc/passwd"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="address of the Qdrant server") as raised:
        _store(url)
    assert "secret" not in str(raised.value)


def test_a_key_is_never_sent_unencrypted_to_another_machine() -> None:
    with pytest.raises(ConfigurationError, match="unencrypted"):
        _store("http://vectors.example:6333", api_key="k")
    _store("http://127.0.0.1:6333", api_key="k")
    _store("https://vectors.example", api_key="k")
