"""The stores under test, each on a place of its own that can be opened again."""

from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from errand.engine.memory.vectors.base import VectorStore
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.engine.memory.vectors.server import ServerVectors
from tests.support.qdrant_server import QdrantServer, qdrant_server
from tests.support.vectors import DIMENSIONS

_KEY = "key-of-the-server"


class _LocalClient(ServerVectors):
    """The store of a server whose client keeps its vectors in a folder: all of the client's code but the network."""

    def __init__(self, folder: Path, dimensions: int, model: str) -> None:
        super().__init__("http://127.0.0.1", dimensions, model)
        self._folder = folder

    def opening_request(self) -> dict[str, object]:
        return {**super().opening_request(), "folder": str(self._folder)}


@contextmanager
def _memory_folder() -> Generator[Path]:
    """A folder without a disk, where there is such a thing: the client's local mode commits each point."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@dataclass
class StoreBackend:
    """The folder of a store, or the server if there is one."""

    folder: Path
    server: QdrantServer | None = None
    is_local: bool = False
    opened: list[VectorStore] = field(default_factory=list[VectorStore])

    def open(self, dimensions: int = DIMENSIONS, model: str = "minilm") -> VectorStore:
        if self.is_local:
            store: VectorStore = _LocalClient(self.folder, dimensions, model)
        elif self.server is None:
            store = EmbeddedVectors(self.folder, dimensions, model)
        else:
            store = ServerVectors(self.server.url, dimensions, model, api_key=_KEY)
        self.opened.append(store)
        return store

    async def close(self) -> None:
        for store in self.opened:
            await store.close()


@pytest.fixture(params=["embedded", "server", "client in its local mode"])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[StoreBackend]:
    if request.param != "embedded" and find_spec("qdrant_client") is None:
        pytest.skip("needs qdrant-client: make setup")
    if request.param != "server":
        is_local = request.param != "embedded"
        with _memory_folder() if is_local else nullcontext(tmp_path) as folder:
            store_backend = StoreBackend(folder / "vectors", is_local=is_local)
            yield store_backend
            await store_backend.close()
        return
    async with qdrant_server(_KEY) as server:
        store_backend = StoreBackend(tmp_path, server)
        yield store_backend
        await store_backend.close()
