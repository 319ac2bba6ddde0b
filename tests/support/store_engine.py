"""A whole engine behind a real socket with a window's stores on it, and the rows as a view would keep them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from errand.client.connection import Connection
from errand.client.conversation.rows import Row
from errand.engine.server.authentication import AccessToken
from errand.engine.server.dispatcher import ROUTES
from errand.engine.server.services import Services
from errand.engine.server.websocket_server import Server, bind_loopback
from errand.protocol.engine import PROTOCOL_VERSION, Endpoint
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.stores import Stores, make_stores
from tests.support.connections import Cable, cable_to
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import ModelServer
from tests.support.processes import until

TOKEN = "the-token-of-the-test"


@dataclass(frozen=True, slots=True)
class StoreEngine:
    """An engine with stores; `cable` is their connection."""

    parts: EngineParts
    stores: Stores
    cable: Cable

    async def open(self, conversation_id: str) -> tuple[ConversationStore, "Mirror"]:
        """An open conversation whose first rows are loaded."""
        store = self.stores.open(conversation_id)
        mirror = Mirror(store)
        await until(lambda: store.is_loaded)
        return store, mirror


class Mirror:
    """Mirrors the rows by a store's signals, as a view does; after each change both must be equal."""

    def __init__(self, store: ConversationStore) -> None:
        self.store = store
        self.rows: list[Row] = []
        self.changes: list[tuple[str, int, int]] = []
        store.reset.connect(self._on_reset)
        store.inserted.connect(self._on_inserted)
        store.changed.connect(self._on_changed)
        store.removed.connect(self._on_removed)

    @property
    def kinds(self) -> list[str]:
        return [type(row).__name__.removesuffix("Row") for row in self.rows]

    async def until(self, kind: str) -> None:
        """Wait until the last row is of this kind."""
        await until(lambda: self.kinds[-1:] == [kind])

    def _on_reset(self) -> None:
        self.rows = [self.store.row(index) for index in range(self.store.count())]
        self._changed("reset", 0, len(self.rows))

    def _on_inserted(self, first: int, count: int) -> None:
        self.rows[first:first] = [self.store.row(index) for index in range(first, first + count)]
        self._changed("inserted", first, count)

    def _on_changed(self, index: int) -> None:
        assert self.rows[index].key == self.store.row(index).key
        self.rows[index] = self.store.row(index)
        self._changed("changed", index, 1)

    def _on_removed(self, first: int, count: int) -> None:
        del self.rows[first : first + count]
        self._changed("removed", first, count)

    def _changed(self, how: str, first: int, count: int) -> None:
        self.changes.append((how, first, count))
        assert self.rows == [self.store.row(index) for index in range(self.store.count())]
        keys = [row.key for row in self.rows]
        assert len(set(keys)) == len(keys)


@asynccontextmanager
async def stores_on(find: Callable[[], Endpoint]) -> AsyncGenerator[Stores]:
    """Started stores on an engine that `find` finds."""

    async def connect() -> Connection:
        connection = Connection(find, "the window", patience_s=0.2)
        await connection.open()
        return connection

    stores = make_stores(connect)
    await stores.session.start()
    try:
        yield stores
    finally:
        await stores.session.close()


@asynccontextmanager
async def store_engine(home: Path, model: ModelServer) -> AsyncGenerator[StoreEngine]:
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(engine_parts(home, model))
        endpoint = await stack.enter_async_context(_socket(parts.services))
        cable = await stack.enter_async_context(cable_to(endpoint))
        yield StoreEngine(parts, await stack.enter_async_context(stores_on(cable.find)), cable)


@asynccontextmanager
async def _socket(services: Services) -> AsyncGenerator[Endpoint]:
    server = Server(services, AccessToken(TOKEN, lambda _: None), bind_loopback(0), ROUTES)
    await server.start()
    try:
        yield Endpoint(
            url=server.url,
            port=server.port,
            pid=1,
            token=TOKEN,
            instance_id=services.instance.id,
            protocol_version=PROTOCOL_VERSION,
        )
    finally:
        await server.close()
