"""The rows of a loaded branch, kept current while its nodes change."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from errand.client.conversation.branch import LoadedBranch
from errand.client.conversation.row_list import RowList, RowSection
from errand.client.conversation.rows import ReplyRow, Row, ThinkingRow
from errand.protocol.asks import Ask
from errand.protocol.conversations import ConversationNodesResult
from errand.protocol.events import TextDelta, ToolOutput

StreamingKind: TypeAlias = Literal["none", "thinking", "reply"]


@dataclass(frozen=True, slots=True)
class RowListeners:
    """Functions that are called right after each change of the rows.

    `reset` when all rows are new; `inserted(first, count)`, `changed(index)` and `removed(first, count)`.
    """

    reset: Callable[[], None]
    inserted: Callable[[int, int], None]
    changed: Callable[[int], None]
    removed: Callable[[int, int], None]


class BranchRows:
    """The rows of a branch.

    While `is_current` is False the branch is being loaded, and its rows stay unchanged.
    """

    def __init__(self, listeners: RowListeners, *, is_current: bool) -> None:
        self.branch = LoadedBranch()
        self.rows = RowList(listeners.inserted, listeners.changed, listeners.removed)
        self.is_current = is_current
        self._on_reset = listeners.reset

    @property
    def has_older(self) -> bool:
        return self.branch.has_older

    @property
    def streams(self) -> StreamingKind:
        """The kind of text that the last row streams at the moment."""
        match self.row(self.count() - 1) if self.count() else None:
            case ThinkingRow(streaming=True):
                return "thinking"
            case ReplyRow(streaming=True):
                return "reply"
            case _:
                return "none"

    def count(self) -> int:
        return len(self.rows)

    def row(self, index: int) -> Row:
        return self.rows[index]

    def touch(self, node_ids: Iterable[str]) -> None:
        """Rebuild the rows of these nodes."""
        if self.is_current:
            for node_id in node_ids:
                self.rows.put(node_id, self.branch.rows(node_id))

    def fill(self, sections: Sequence[RowSection]) -> None:
        """Show all rows of the branch for the first time."""
        self.rows.fill(sections)
        self.is_current = True
        self._on_reset()

    def replace(self) -> None:
        """Show the branch as it is now; rows that were shown before stay."""
        self.rows.replace(self.sections(self.branch.ids))
        self.is_current = True

    def prepend(self, page: ConversationNodesResult) -> None:
        """Insert the rows of an older page."""
        touched = self.branch.prepend(page.nodes, page.has_more, page.forks)
        self.rows.prepend(self.sections(touched[: len(page.nodes)]))
        self.touch(touched[len(page.nodes) :])

    def sections(self, node_ids: Iterable[str]) -> list[RowSection]:
        """Return the rows of these nodes, a section for each."""
        return [(node_id, self.branch.rows(node_id)) for node_id in node_ids]

    def put_ask(self, ask: Ask) -> None:
        self.touch(self.branch.asks.put(ask))

    def put_delta(self, delta: TextDelta | ToolOutput) -> None:
        """Add streamed text, which the engine has coalesced."""
        if isinstance(delta, ToolOutput):
            self.touch(self.branch.add_output(delta))
            return
        draft = self.branch.drafts.get(delta.node_id)
        if draft is None:
            return
        had_rows = draft.has_rows
        tail = draft.add(delta)
        if not had_rows:
            self.touch([delta.node_id])  # the first text brings the headings above it
        elif tail is not None and self.is_current:
            self.rows.replace_tail(delta.node_id, tail.first, tail.rows)
