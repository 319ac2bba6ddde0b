"""Fills the index of words from the record, in the background, and follows what is said and deleted."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import ClassVar

from errand.engine.core.errors import EngineError
from errand.engine.memory.entries import entry_of
from errand.engine.memory.futile_tasks import FutileTasks
from errand.engine.memory.index import WordIndex
from errand.engine.memory.index_thread import IndexThread, IndexUnavailable
from errand.engine.memory.rules import MemoryRules
from errand.engine.storage.database import Database
from errand.engine.storage.records.nodes import NumberedNode
from errand.protocol.conversations import Conversation, Node
from errand.protocol.events import ConversationDeleted, ConversationUpdate, Event, TaskMessage

_logger = logging.getLogger(__name__)

# A slice takes some milliseconds of a thread.
_NODES = 50
# While tasks run, indexing the past gets a quarter of the time.
_REST = 3.0
_AGAIN_S = 30.0
_AT_ONCE = 500
# Of more conversations it is not kept how they were: a change of one is followed even if nothing of it concerns memory.
_MAX_KNOWN_CONVERSATIONS = 1_000
_MARK = "mark"


class Indexer:
    """`rules` say what is remembered, `redact` hides secrets, `is_busy` says that tasks run.

    Its mark, the newest node below which all are indexed, is stored in the index itself: a killed engine goes on
    there. If the node of the mark is no longer that node (another database, a restored copy), all is made again.
    """

    gather_s: ClassVar = 0.3
    gather_busy_s: ClassVar = 1.0
    """What is said within this time is indexed together; more while tasks run."""

    def __init__(
        self,
        database: Database,
        index: IndexThread,
        rules: MemoryRules,
        redact: Callable[[str], str],
        is_busy: Callable[[], bool],
    ) -> None:
        self.problem = ""
        # True while there is more to read than what was said just now.
        self.is_behind = False
        self.on_added: Callable[[], None] = lambda: None
        self.on_removed: Callable[[Sequence[int]], None] = lambda numbers: None
        self._database = database
        self._index = index
        self._rules = rules
        self._redact = redact
        self._is_busy = is_busy
        self._futile_tasks = FutileTasks(database, index)
        # The nodes up to here were looked at; `_reached` is the highest that this ever was.
        self._position = self._reached = 0
        self._generation = -1
        self._wake = asyncio.Event()
        # Nodes that an event called finished. Those beyond `_position` are soon dropped again.
        self._finished: dict[str, None] = {}
        self._streaming: set[str] = set()
        self._deleted: dict[str, None] = {}
        self._changed: dict[str, Conversation] = {}
        # Whether conversations are remembered, as of the last event.
        self._followed: dict[str, bool] = {}
        # The first nodes of imports that are not complete yet: their nodes come without events.
        self._held: dict[str, int] = {}
        self._from_start = False
        self._turn = asyncio.Lock()

    async def to_index(self) -> int:
        """Return how many nodes, deleted or changed conversations and ended tasks are not indexed yet."""
        # Counted before the nodes: while these are, a change may be followed by going back to its first node.
        finished, others = len(self._finished), len(self._deleted) + len(self._changed) + self._futile_tasks.waiting
        ahead = await self._database.nodes.count_after(0 if self._begins_anew else self._position)
        return max(ahead, finished) + others

    async def progress(self) -> float:
        """Return which part of the nodes is indexed, 0 to 1."""
        total = await self._database.nodes.count_after(0)
        return 1 - min(total, await self.to_index()) / total if total else 1.0

    def follow(self, event: Event) -> None:
        """Take an event, once it is stored."""
        if isinstance(event, TaskMessage) and event.node.status != "streaming":
            self._finished[event.node.id] = None
        elif isinstance(event, ConversationDeleted):
            self._deleted[event.conversation_id] = None
        elif isinstance(event, ConversationUpdate):
            conversation = event.conversation
            is_same = self._followed.get(conversation.id) == self._rules.remembers(conversation)
            if is_same and conversation.id not in self._held:
                return
            self._changed[conversation.id] = conversation
        elif not self._futile_tasks.follow(event):
            return
        self._wake.set()

    def read_again(self) -> None:
        """Read everything again, since the rules have changed. Indexed nodes are skipped."""
        self._from_start = self.is_behind = True
        self._wake.set()

    async def run(self) -> None:
        """Index until it is cancelled."""
        while True:
            began = time.monotonic()
            try:
                async with self._turn:
                    self.is_behind = has_more = await self._round()
                self.problem = ""
            except IndexUnavailable as error:
                self.problem = str(error)
                await asyncio.sleep(_AGAIN_S)
                continue
            except EngineError as error:  # the database cannot be read now
                self.problem = str(error)
                _logger.warning("memory waits: %s", error)
                await asyncio.sleep(_AGAIN_S)
                continue
            if has_more:
                await asyncio.sleep(_REST * (time.monotonic() - began) if self._is_busy() else 0)
                continue
            if not self._has_waiting:  # checked and cleared in one step: nothing that is told meanwhile is missed
                self._wake.clear()
                if not self._is_busy():
                    await self._compact()
                await self._wake.wait()
            await asyncio.sleep(self.gather_busy_s if self._is_busy() else self.gather_s)

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

    async def _compact(self) -> None:
        """Compact the file, in which removed entries leave their words until then."""
        try:
            await self._index.run(WordIndex.compact_if_loose)
        except IndexUnavailable as error:
            _logger.warning("the index of memory was not made compact: %s", error)

    async def remove(self, condition: str, values: Sequence[str]) -> int:
        """Remove the entries for which an SQL condition holds; returns how many."""
        numbers = await self._index.run(partial(_remove, condition, values))
        if numbers:
            self.on_removed(numbers)
        return len(numbers)

    @property
    def _has_waiting(self) -> bool:
        others = self._begins_anew or self._futile_tasks.waiting > 0
        return bool(self._finished or self._deleted or self._changed or others)

    @property
    def _begins_anew(self) -> bool:
        return self._from_start or self._generation != self._index.generation

    async def _round(self) -> bool:
        """Index one slice; return True if there is more to read."""
        if self._generation != self._index.generation:
            await self._resume()
        if self._from_start:
            self._from_start = False
            self._position = 0
            await self._find_unwanted()
        await self._follow_changes()
        for conversation_id in tuple(self._deleted):
            await self._remove_conversation(conversation_id)
            del self._deleted[conversation_id]
        finished = tuple(self._finished)[:_AT_ONCE]
        position, later, has_more = await self._database.nodes.after(self._position, _NODES)
        others = set(finished).difference(numbered.node.id for numbered in later)
        passed = await self._database.nodes.ids_up_to(self._reached, others)
        earlier = await self._database.nodes.numbered(passed[:_NODES])
        looked_at = set(finished).difference(passed[_NODES:])
        self._streaming -= looked_at
        await self._add(earlier, later)
        for node_id in looked_at:
            del self._finished[node_id]
        self._position, self._reached = position, max(self._reached, position)
        await self._futile_tasks.settle()
        return has_more or len(finished) == _AT_ONCE or len(passed) > _NODES or len(self._changed) > _NODES

    async def _follow_changes(self) -> None:
        """Follow conversations that were switched or are new, and imports that are whole."""
        changed = dict(islice(self._changed.items(), _NODES))
        await self._follow(changed)
        for conversation_id, conversation in changed.items():
            if self._changed[conversation_id] is conversation:  # it did not change again meanwhile
                del self._changed[conversation_id]

    async def _follow(self, conversation_ids: Collection[str]) -> None:
        remembered: list[str] = []
        for conversation in await self._database.conversations.named(conversation_ids):
            self._know(conversation)
            if self._rules.remembers(conversation):
                remembered.append(conversation.id)
            else:
                self._deleted[conversation.id] = None
        if not remembered:
            return
        without_entries = await self._index.run(partial(_without_entries, remembered))
        held = {key: self._held[key] for key in remembered if key in self._held}
        firsts = await self._database.nodes.first_numbers([key for key in without_entries if key not in held])
        for conversation_id in held:
            del self._held[conversation_id]
        for number in (*held.values(), *firsts):
            self._position = min(self._position, number - 1)
        self.on_added()

    def _know(self, conversation: Conversation) -> None:
        self._followed.pop(conversation.id, None)
        self._followed[conversation.id] = self._rules.remembers(conversation)
        if len(self._followed) > _MAX_KNOWN_CONVERSATIONS:
            del self._followed[next(iter(self._followed))]

    async def _remove_conversation(self, conversation_id: str) -> None:
        await self.remove("conversation_id = ?", (conversation_id,))
        self._followed.pop(conversation_id, None)
        self._held.pop(conversation_id, None)
        # Numbers of deleted nodes are given again.
        newest = await self._database.nodes.newest_up_to(self._position)
        self._position = newest[0] if newest else 0
        self._reached = min(self._reached, self._position)
        mark = newest if newest is not None and not self._streaming and not self._held else None
        await self._index.run(partial(_lower_mark, self._position, mark))

    async def _resume(self) -> None:
        generation = self._index.generation
        mark = await self._index.run(_mark)
        if mark is not None and await self._database.nodes.newest_up_to(mark[0]) != mark:
            await self._index.clear()
            generation, mark = self._index.generation, None
        self._generation = generation  # an older one than now if a damaged file was just thrown away: once more then
        self._position = self._reached = mark[0] if mark is not None else 0
        await self._find_unwanted()

    async def _find_unwanted(self) -> None:
        """Find what was deleted while no engine ran, and conversations and folders that are no longer remembered."""
        for folder in await self._index.run(WordIndex.folders):
            if not self._rules.remembers_folder(folder):
                await self.remove("folder = ?", (folder,))
        for conversation_id in await self._index.run(_conversations):
            conversation = await self._database.conversations.get(conversation_id)
            if conversation is None or not self._rules.remembers(conversation):
                self._deleted[conversation_id] = None

    async def _add(self, earlier: Sequence[NumberedNode], later: Sequence[NumberedNode]) -> None:
        both = (*earlier, *later)
        self._streaming.difference_update(numbered.node.id for numbered in both)
        self._streaming.update(numbered.node.id for numbered in both if numbered.node.status == "streaming")
        finished = [numbered for numbered in both if numbered.node.status != "streaming"]
        names: dict[str, str] = {}
        conversations = await self._database.conversations.named(
            {numbered.node.conversation_id for numbered in finished}
        )
        complete_ids = {conversation.id for conversation in conversations}
        for numbered in finished:
            conversation_id = numbered.node.conversation_id
            if conversation_id not in complete_ids:  # it is being imported, or deleted
                self._held[conversation_id] = min(numbered.number, self._held.get(conversation_id, numbered.number))
        remembered = {key.id: key for key in conversations if self._rules.remembers(key)}
        for conversation in remembered.values():
            names |= await self._names(conversation)
        folders = await self._folders(
            [numbered.node for numbered in finished if numbered.node.conversation_id in remembered], remembered
        )
        nodes = [numbered.node for numbered in finished if numbered.node.id in folders]
        self._futile_tasks.look_at({node.task_id for node in nodes if node.task_id})
        mark = later[-1] if later and not self._streaming and not self._held else None
        if nodes or mark is not None:
            added = await self._index.run(partial(self._write, self._generation, nodes, folders, names, mark))
            if added:
                self.on_added()

    def _write(
        self,
        generation: int,
        nodes: Sequence[Node],
        folders: Mapping[str, str],
        names: Mapping[str, str],
        mark: NumberedNode | None,
        index: WordIndex,
    ) -> int:
        """Add the entries of these nodes, in the thread of the index; returns how many are new."""
        if self._index.generation != generation:  # thrown away meanwhile: all is read again
            return 0
        stored_ids = index.stored_ids([node.id for node in nodes])
        number = index.next_number()
        new_entries = (
            entry_of(node, number + at, folders[node.id], names, self._redact)
            for at, node in enumerate(nodes)
            if node.id not in stored_ids
        )
        entries = [entry for entry in new_entries if entry is not None]
        index.add(entries)
        if mark is not None:
            index.set_state(_MARK, f"{mark.number} {mark.node.id}")
        return len(entries)

    async def _folders(self, nodes: Sequence[Node], conversations: Mapping[str, Conversation]) -> Mapping[str, str]:
        """Return the folder of each node, by its id, without nodes of folders that are not remembered."""
        workspaces = await self._database.tasks.workspaces({node.task_id for node in nodes if node.task_id})
        folders = {
            node.id: self._rules.folder_of(conversations[node.conversation_id], workspaces.get(node.task_id or "", ""))
            for node in nodes
        }
        return {node_id: folder for node_id, folder in folders.items() if self._rules.remembers_folder(folder)}

    async def _names(self, conversation: Conversation) -> Mapping[str, str]:
        agents = await self._database.agents.list(conversation.id)
        return {agent.id: agent.name for agent in (*conversation.former, *agents)}


def _remove(condition: str, values: Sequence[str], index: WordIndex) -> tuple[int, ...]:
    numbers = tuple(indexed.entry.number for indexed in index.select(condition, values))
    index.remove(numbers)
    return numbers


def _without_entries(conversation_ids: Sequence[str], index: WordIndex) -> tuple[str, ...]:
    return tuple(key for key in conversation_ids if not index.select("conversation_id = ? LIMIT 1", (key,)))


def _mark(index: WordIndex) -> tuple[int, str] | None:
    number, _, node_id = index.state(_MARK).partition(" ")
    return (int(number), node_id) if number.isdecimal() else None


def _lower_mark(position: int, mark: tuple[int, str] | None, index: WordIndex) -> None:
    """Replace a mark whose node may be gone; without a new one, all nodes are read again after a restart."""
    stored = _mark(index)
    if stored is not None and stored[0] >= position:
        index.set_state(_MARK, f"{mark[0]} {mark[1]}" if mark is not None else "")


def _conversations(index: WordIndex) -> tuple[str, ...]:
    return tuple(row[0] for row in index.connection.execute("SELECT DISTINCT conversation_id FROM entries"))
