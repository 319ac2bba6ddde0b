"""A conversation list signals each change so that a view can follow, and matches the engine's state."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from errand.protocol.conversations import Conversation
from errand.protocol.events import ConversationDeleted, ConversationUpdate
from errand.window.stores.conversation_list import PagedListStore
from errand.window.stores.stores import Stores
from tests.support.engine_server import EngineServer, engine_server
from tests.support.processes import until
from tests.support.records import NOW, conversation
from tests.support.store_engine import stores_on


class Mirror:
    """Mirrors the ids by a list's signals, as a view does; after each change both must be equal."""

    def __init__(self, listing: PagedListStore) -> None:
        self.listing = listing
        self.ids: list[str] = self.theirs()
        self.told: list[str] = []
        listing.reset.connect(self._on_reset)
        listing.inserted.connect(self._on_inserted)
        listing.removed.connect(self._on_removed)
        listing.moved.connect(self._on_moved)
        listing.updated.connect(self._on_updated)

    def theirs(self) -> list[str]:
        return [self.listing.at(index).id for index in range(self.listing.count())]

    def _on_reset(self) -> None:
        self.ids = self.theirs()

    def _on_inserted(self, first: int, count: int) -> None:
        self.ids[first:first] = self.theirs()[first : first + count]
        self._tell(f"inserted {first} {count}")

    def _on_removed(self, index: int) -> None:
        del self.ids[index]
        self._tell(f"removed {index}")

    def _on_moved(self, old: int, new: int) -> None:
        self.ids.insert(new, self.ids.pop(old))
        self._tell(f"moved {old} {new}")

    def _on_updated(self, index: int) -> None:
        self._tell(f"updated {index}")

    def _tell(self, text: str) -> None:
        self.told.append(text)
        assert self.ids == self.theirs()
        assert [self.listing.index_of(row_id) for row_id in self.ids] == list(range(len(self.ids)))


def numbered(number: int, *, pinned: bool = False, archived: bool = False, later: int = 0) -> Conversation:
    base = conversation(f"c{number}", at=NOW + timedelta(seconds=number + later), archived=archived)
    return msgspec.structs.replace(base, pinned=pinned)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    """An engine with conversations 0 to 149, of which 140 and 3 are pinned and 149 is archived."""
    async with engine_server(tmp_path / "home") as running:
        for number in range(150):
            entry = numbered(number, pinned=number in (3, 140), archived=number == 149)
            running.log.publish(ConversationUpdate(conversation=entry))
        await running.log.flush()
        yield running


@pytest.fixture
async def stores(engine: EngineServer) -> AsyncGenerator[Stores]:
    async with stores_on(engine.endpoint) as connected:
        await until(lambda: connected.conversations.is_loaded)
        yield connected


async def test_pinned_conversations_come_first_and_the_rest_is_paged(stores: Stores) -> None:
    mirror = Mirror(stores.conversations)
    assert mirror.ids[:4] == ["c140", "c3", "c148", "c147"]
    assert len(mirror.ids) == 102
    stores.conversations.fetch_more()
    stores.conversations.fetch_more()
    await until(lambda: not stores.conversations.has_more)
    assert mirror.told == ["inserted 102 47"]
    assert mirror.ids[-1] == "c0"


@pytest.mark.parametrize(
    ("change", "operations"),
    [
        (numbered(148, pinned=True), ["moved 2 0", "updated 0"]),
        (numbered(140, later=500), ["moved 0 1", "updated 1"]),
        (numbered(147, later=500), ["moved 3 2", "updated 2"]),
        (msgspec.structs.replace(numbered(147), title="New"), ["updated 3"]),
        (numbered(147, archived=True), ["removed 3"]),
        (numbered(900), ["inserted 2 1"]),
        (numbered(3), ["removed 1"]),  # it belongs to a page that is not loaded
    ],
)
async def test_each_change_is_emitted_as_row_operations(
    engine: EngineServer, stores: Stores, change: Conversation, operations: list[str]
) -> None:
    mirror = Mirror(stores.conversations)
    engine.log.publish(ConversationUpdate(conversation=change))
    await until(lambda: bool(mirror.told))
    assert mirror.told == operations


async def test_an_event_received_during_a_page_load_wins_over_the_page(engine: EngineServer, stores: Stores) -> None:
    mirror = Mirror(stores.conversations)
    stores.conversations.load()
    stores.conversations.fetch_more()
    await asyncio.sleep(0)  # both are sent
    for number in (120, 20):  # one of the first page, one of the next
        stores.conversations.put(numbered(number, archived=True))
    stores.conversations.put(numbered(500))
    reset: list[bool] = []
    stores.conversations.reset.connect(lambda: reset.append(True))
    await until(lambda: bool(reset))
    while stores.conversations.has_more:
        stores.conversations.fetch_more()
        await until(lambda: not stores.conversations.has_more)
    assert "c120" not in mirror.ids
    assert mirror.ids[2] == "c500"


async def test_archived_conversations_have_a_separate_list_that_is_loaded_on_demand(
    engine: EngineServer, stores: Stores
) -> None:
    archived = stores.conversations.archived
    assert not archived.is_loaded
    archived.load()
    await until(lambda: archived.is_loaded)
    mirror = Mirror(archived)
    assert mirror.ids == ["c149"]
    stores.conversations.archive("c147")
    await until(lambda: mirror.told == ["inserted 0 1"])
    dropped: list[str] = []
    stores.conversations.dropped.connect(dropped.append)
    engine.log.publish(ConversationDeleted(conversation_id="c149"))
    await until(lambda: mirror.ids == ["c147"])
    assert dropped == ["c149"]
