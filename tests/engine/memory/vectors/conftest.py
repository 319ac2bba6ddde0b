"""The stores under test, each on a place of its own that can be opened again."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from errand.engine.memory.vectors.base import VectorStore
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.engine.memory.vectors.server import ServerVectors
from errand.engine.models.http_pool import HttpPool
from tests.support.qdrant_server import QdrantServer, qdrant_server
from tests.support.vectors import DIMENSIONS

_KEY = "key-of-the-server"


@dataclass
class StoreBackend:
    """The folder of a store, or the server if there is one."""

    folder: Path
    pool: HttpPool
    server: QdrantServer | None = None
    opened: list[VectorStore] = field(default_factory=list[VectorStore])

    def open(self, dimensions: int = DIMENSIONS, model: str = "minilm") -> VectorStore:
        if self.server is None:
            store: VectorStore = EmbeddedVectors(self.folder, dimensions, model)
        else:
            store = ServerVectors(self.pool, self.server.url, dimensions, model, api_key=_KEY)
        self.opened.append(store)
        return store

    async def close(self) -> None:
        for store in self.opened:
            await store.close()
        await self.pool.close()


@pytest.fixture(params=["embedded", "server"])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[StoreBackend]:
    if request.param == "embedded":
        store_backend = StoreBackend(tmp_path / "vectors", HttpPool())
        yield store_backend
        await store_backend.close()
        return
    async with qdrant_server(_KEY) as server:
        store_backend = StoreBackend(tmp_path, HttpPool(), server)
        yield store_backend
        await store_backend.close()
