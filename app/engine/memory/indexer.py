"""Fills the index of words from the record, in the background, and follows what is said and deleted."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from app.engine.core.errors import EngineError
from app.engine.memory.entries import entry_of
from app.engine.memory.index import Transaction, WordIndex
from app.engine.memory.index_thread import IndexThread, IndexUnavailable
from app.engine.storage.database import Database
from app.engine.storage.records.nodes import NumberedNode
from app.protocol.conversations import Conversation
from app.protocol.events import ConversationDeleted, ConversationUpdate, Event, TaskMessage

_logger = logging.getLogger(__name__)

# A slice takes some milliseconds of a thread.
_NODES = 25
# What is said within this time is indexed together.
_GATHER_S = 0.3
# While tasks run, indexing the past gets a quarter of the time.
_REST = 3.0
_AGAIN_S = 30.0
_AT_ONCE = 500
_MARK = "mark"
_MOST_AGENTS = 1_000


class Indexer:
    """`remembers` says whether a conversation is remembered, `redact` hides secrets, `is_busy` that tasks run.

    Its mark, the newest node below which all are indexed, is stored in the index itself: a killed engine goes on
    there. If the node of the mark is no longer that node (another database, a restored copy), all is made again.
    """

    def __init__(
        self,
        database: Database,
        index: IndexThread,
        remembers: Callable[[Conversation], bool],
        redact: Callable[[str], str],
        is_busy: Callable[[], bool],
    ) -> None:
        self.problem = ""
        self.on_added: Callable[[], None] = lambda: None
        self.on_removed: Callable[[Sequence[int]], None] = lambda numbers: None
        self._database = database
        self._index = index
        self._remembers = remembers
        self._redact = redact
        self._is_busy = is_busy
        self._position = 0
        self._generation = -1
        self._wake = asyncio.Event()
        self._finished: dict[str, None] = {}
        self._streaming: set[str] = set()
        self._deleted: dict[str, None] = {}
        self._from_start = False
        self._turn = asyncio.Lock()

    async def to_index(self) -> int:
        """How many nodes are not looked at yet."""
        return await self._database.nodes.count_after(0 if self._begins_anew else self._position)

    async def is_current(self) -> bool:
        """True if nothing waits: not said, finished or deleted."""
        return not self._has_waiting and not await self.to_index()

    def follow(self, event: Event) -> None:
        """Called with each event once it is stored."""
        if isinstance(event, TaskMessage) and event.node.status != "streaming":
            self._finished[event.node.id] = None
        elif isinstance(event, ConversationDeleted):
            self._deleted[event.conversation_id] = None
        elif not isinstance(event, ConversationUpdate):  # which an import ends with, whose nodes have no events
            return
        self._wake.set()

    def read_again(self) -> None:
        """Look at everything again, since what is remembered has changed. What is indexed is passed over."""
        self._from_start = True
        self._wake.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            began = time.monotonic()
            try:
                async with self._turn:
                    has_more = await self._round()
                self.problem = ""
            except IndexUnavailable as error:
                self.problem = str(error)
                await asyncio.sleep(_AGAIN_S)
                continue
            except EngineError as error:  # the database cannot be read now
                _logger.warning("memory waits: %s", error)
                await asyncio.sleep(_AGAIN_S)
                continue
            if has_more:
                await asyncio.sleep(_REST * (time.monotonic() - began) if self._is_busy() else 0)
            elif not self._has_waiting:  # checked and cleared in one step: nothing that is told meanwhile is missed
                self._wake.clear()
                await self._wake.wait()
                await asyncio.sleep(_GATHER_S)

    async def forget(self, node_ids: Sequence[str]) -> int:
        """Remove the entries of these nodes; returns how many. What the nodes still say is indexed anew."""
        removed = 0
        async with self._turn:  # a slice under way may have read what they said before
            for at in range(0, len(node_ids), _AT_ONCE):
                ids = node_ids[at : at + _AT_ONCE]
                removed += await self.remove(f"id IN ({', '.join('?' * len(ids))})", ids)
        self._finished.update(dict.fromkeys(node_ids))
        self._wake.set()
        return removed

    async def remove(self, condition: str, values: Sequence[str]) -> int:
        """Remove the entries for which an SQL condition holds; returns how many."""
        numbers = await self._index.run(partial(_remove, condition, values))
        if numbers:
            self.on_removed(numbers)
        return len(numbers)

    @property
    def _has_waiting(self) -> bool:
        return bool(self._finished or self._deleted or self._begins_anew)

    @property
    def _begins_anew(self) -> bool:
        return self._from_start or self._generation != self._index.generation

    async def _round(self) -> bool:
        """One slice; True if there is more to read."""
        if self._generation != self._index.generation:
            await self._resume()
        if self._from_start:
            self._from_start = False
            self._position = 0
            await self._find_unwanted()
        for conversation_id in tuple(self._deleted):
            await self.remove("conversation_id = ?", (conversation_id,))
            del self._deleted[conversation_id]
            # Numbers of deleted nodes are given again.
            newest = await self._database.nodes.newest_up_to(self._position)
            self._position = newest[0] if newest else 0
        finished = tuple(self._finished)[:_NODES]
        earlier = await self._database.nodes.numbered(finished) if finished else ()
        later = await self._database.nodes.after(self._position, _NODES)
        position = later[-1].number if later else self._position
        await self._add([one for one in earlier if one.number <= self._position], later, position)
        for node_id in finished:
            del self._finished[node_id]
        self._position = position
        return bool(later) or len(finished) == _NODES

    async def _resume(self) -> None:
        generation = self._index.generation
        mark = await self._index.run(_mark)
        if mark is not None and await self._database.nodes.newest_up_to(mark[0]) != mark:
            await self._index.clear()
            generation, mark = self._index.generation, None
        self._generation = generation  # an older one than now if a damaged file was just thrown away: once more then
        self._position = mark[0] if mark is not None else 0
        await self._find_unwanted()

    async def _find_unwanted(self) -> None:
        """The conversations that were deleted while no engine looked, and those that are not remembered any more."""
        for conversation_id in await self._index.run(_conversations):
            conversation = await self._database.conversations.get(conversation_id)
            if conversation is None or not self._remembers(conversation):
                self._deleted[conversation_id] = None

    async def _add(self, earlier: Sequence[NumberedNode], later: Sequence[NumberedNode], position: int) -> None:
        nodes = [one.node for one in (*earlier, *later)]
        self._streaming = {one.id for one in nodes if one.status == "streaming"} | (
            self._streaming - {one.id for one in nodes}
        )
        finished = [one for one in nodes if one.status != "streaming"]
        folders: dict[str, str] = {}
        names: dict[str, str] = {}
        for conversation_id in {one.conversation_id for one in finished}:
            conversation = await self._database.conversations.get(conversation_id)
            if conversation is not None and self._remembers(conversation):
                folders[conversation_id] = conversation.workspace
                names |= await self._names(conversation)
        mark = later[-1] if later and not self._streaming else None
        generation = self._generation
        wanted = [one for one in finished if one.conversation_id in folders]

        def add(index: WordIndex) -> int:
            if self._index.generation != generation:  # thrown away meanwhile: all is read again
                return 0
            known = index.known([one.id for one in wanted])
            number = index.next_number()
            entries = [
                entry
                for at, one in enumerate(wanted)
                if one.id not in known
                and (entry := entry_of(one, number + at, folders[one.conversation_id], names, self._redact))
            ]
            index.add(entries)
            if mark is not None:
                with Transaction(index.connection):
                    index.connection.execute(
                        "INSERT OR REPLACE INTO state VALUES (?, ?)", (_MARK, f"{mark.number} {mark.node.id}")
                    )
            return len(entries)

        if (wanted or mark is not None) and await self._index.run(add):
            self.on_added()

    async def _names(self, conversation: Conversation) -> Mapping[str, str]:
        agents = await self._database.agents.list(conversation.id, _MOST_AGENTS)
        return {one.id: one.name for one in (*conversation.former, *agents)}


def _remove(condition: str, values: Sequence[str], index: WordIndex) -> tuple[int, ...]:
    numbers = tuple(one.entry.number for one in index.select(condition, values))
    index.remove(numbers)
    return numbers


def _mark(index: WordIndex) -> tuple[int, str] | None:
    row = index.connection.execute("SELECT value FROM state WHERE name = ?", (_MARK,)).fetchone()
    number, _, node_id = row[0].partition(" ") if row else ("", "", "")
    return (int(number), node_id) if number.isdecimal() else None


def _conversations(index: WordIndex) -> tuple[str, ...]:
    return tuple(row[0] for row in index.connection.execute("SELECT DISTINCT conversation_id FROM entries"))
