"""Find in one conversation: hits row by row, the current one, hits on other branches."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal

from errand.client.conversation.rows import Row
from errand.client.conversation.tree_layout import branch_parent
from errand.protocol.conversations import (
    CONVERSATION_SEARCH,
    CONVERSATION_TREE,
    ConversationSearchParams,
    ConversationTreeParams,
    SearchHit,
    TreeNode,
)
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.session import EngineSession

_THROTTLE_MS = 120  # interval at which streamed text is searched
_MAX_HITS = 200


@dataclass(frozen=True, slots=True)
class FindHit:
    """The hit with this number in a row."""

    key: str
    number: int


@dataclass(frozen=True, slots=True)
class _CountedRow:
    """The number of hits in a row, valid while the row is the same object."""

    row: Row
    count: int


class FindStore(QObject):
    """Emits `changed` when the hits or the current one change, and `failed` with a text.

    `earlier` are messages of this branch that are not loaded, newest first; `elsewhere` are those of other branches.
    """

    changed = Signal()
    failed = Signal(str)

    def __init__(self, store: ConversationStore, session: EngineSession, text_of: Callable[[Row], str]) -> None:
        """`text_of` returns the plain text of a row."""
        super().__init__()
        self._text_of = text_of
        self._store = store
        self._session = session
        self._counted: dict[str, _CountedRow] = {}
        self._is_seeking = False
        self._visited = 0
        self._search_number = 0
        self._stored_hits: tuple[SearchHit, ...] = ()
        self._off_branch: frozenset[str] = frozenset()
        self._recount_timer = QTimer(self, singleShot=True, interval=_THROTTLE_MS)
        self._recount_timer.timeout.connect(self._recount)
        self.pattern: re.Pattern[str] | None = None
        self.current: FindHit | None = None
        self.total = 0
        for signal in (store.reset, store.inserted, store.changed, store.removed):
            signal.connect(self._on_rows_changed)
        store.reached.connect(self._on_reached)
        store.missed.connect(self._on_missed)

    @property
    def counts(self) -> dict[str, int]:
        """The number of hits by row key, without zeros."""
        return {key: seen.count for key, seen in self._counted.items() if seen.count}

    @property
    def current_number(self) -> int:
        """The number of the current hit, from 1 to `total`; 0 without one."""
        for number, (_, hit) in enumerate(self._hits(), 1):
            if hit == self.current:
                return number
        return 0

    @property
    def row(self) -> int | None:
        """The row of the current hit."""
        return next((index for index, hit in self._hits() if hit == self.current), None)

    @property
    def earlier(self) -> tuple[SearchHit, ...]:
        return (
            tuple(hit for hit in self._hits_not_loaded() if hit.node_id not in self._off_branch)
            if self._store.has_older
            else ()
        )

    @property
    def elsewhere(self) -> tuple[SearchHit, ...]:
        away = self._off_branch
        return tuple(hit for hit in self._hits_not_loaded() if not self._store.has_older or hit.node_id in away)

    def search(self, text: str, first_row: int) -> None:
        """Search for this exact text, ignoring case. The first hit at or after the row becomes current."""
        self.clear()
        if not text.strip():
            self.changed.emit()
            return
        self.pattern = re.compile(re.escape(text), re.IGNORECASE)
        self._count_hits()
        hits = list(self._hits())
        self.current = next((hit for index, hit in hits if index >= first_row), hits[-1][1] if hits else None)
        if self._store.conversation_id is not None:
            self._session.spawn(
                self._search_engine(text, self._store.conversation_id, self._search_number), self.failed.emit
            )
        self.changed.emit()

    def clear(self) -> None:
        self._search_number += 1
        self._visited = 0
        self._is_seeking = False
        self._recount_timer.stop()
        self._counted.clear()
        self._stored_hits, self._off_branch = (), frozenset()
        self.pattern = self.current = None
        self.total = 0

    def next(self) -> None:
        """Go to the next hit; wraps around."""
        self._step(1)

    def previous(self) -> None:
        """Go to the previous hit. Before the first one, load earlier hits, then wrap around."""
        if self.earlier and self.current_number <= 1:
            self._is_seeking = True
            self._store.seeker.seek(self.earlier[0].node_id)
        else:
            self._step(-1)

    def go_elsewhere(self) -> None:
        """Go to a hit on another branch; each call goes to the next one."""
        hits = self.elsewhere
        if hits:
            self._is_seeking = True
            self._visited += 1
            self._store.seeker.seek(hits[(self._visited - 1) % len(hits)].node_id, switches=True)

    def _step(self, by: int) -> None:
        hits = [hit for _, hit in self._hits()]
        if hits:
            here = hits.index(self.current) if self.current in hits else -1
            self.current = hits[(here + by) % len(hits)]
            self.changed.emit()
        elif self.earlier:
            self.previous()

    def _hits(self) -> Iterator[tuple[int, FindHit]]:
        if self.total:
            for index in range(self._store.count()):
                key = self._store.row(index).key
                seen = self._counted.get(key)
                for number in range(seen.count if seen is not None else 0):
                    yield index, FindHit(key, number)

    def _count_hits(self) -> None:
        """Search new and changed rows only."""
        pattern, before = self.pattern, self._counted
        if pattern is None:
            return
        self._counted = {}
        for index in range(self._store.count()):
            row = self._store.row(index)
            counted = before.get(row.key)
            if counted is None or counted.row is not row:
                counted = _CountedRow(row, sum(1 for _ in pattern.finditer(self._text_of(row))))
            self._counted[row.key] = counted
        self.total = sum(seen.count for seen in self._counted.values())
        if self.current is not None and self.current.number >= self.counts.get(self.current.key, 0):
            self.current = next((hit for _, hit in self._hits()), None)

    def _hits_not_loaded(self) -> Iterator[SearchHit]:
        return (hit for hit in self._stored_hits if not self._store.branch.holds(hit.node_id))

    async def _search_engine(self, text: str, conversation_id: str, search_number: int) -> None:
        """The engine matches words, so its hits are used only for messages that are not loaded."""
        # The text is searched literally: a colon would make the word before it an operator.
        literal = text.replace(":", " ")
        params = ConversationSearchParams(text=literal, limit=_MAX_HITS, conversation_id=conversation_id)
        hits = (await self._session.call(CONVERSATION_SEARCH, params)).hits
        off_branch: frozenset[str] = frozenset()
        if self._store.has_older and any(not self._store.branch.holds(hit.node_id) for hit in hits):
            tree = await self._session.call(CONVERSATION_TREE, ConversationTreeParams(conversation_id=conversation_id))
            off_branch = _nodes_off_branch(tree.nodes, tuple(self._store.branch.ids))
        if search_number == self._search_number:
            self._stored_hits, self._off_branch = hits, off_branch
            self.changed.emit()

    def _on_rows_changed(self) -> None:
        if self.pattern is not None and not self._recount_timer.isActive():
            self._recount_timer.start()

    def _recount(self) -> None:
        self._count_hits()
        self.changed.emit()

    def _on_reached(self, index: int) -> None:
        if not self._is_seeking or self.pattern is None:
            return
        self._is_seeking = False
        self._count_hits()
        near = [hit for row, hit in self._hits() if row >= index]
        self.current = near[0] if near else self.current
        self.changed.emit()

    def _on_missed(self) -> None:
        self._is_seeking = False
        self.changed.emit()


def _nodes_off_branch(nodes: tuple[TreeNode, ...], here: tuple[str, ...]) -> frozenset[str]:
    """Nodes of the tree that are not on the branch whose newer part is `here`."""
    parents = {node.id: branch_parent(node) for node in nodes}
    branch = set(here)
    node_id = next((node_id for node_id in here if node_id in parents), None)
    while node_id is not None:
        branch.add(node_id)
        node_id = parents.get(node_id)
    return frozenset(parents) - branch
