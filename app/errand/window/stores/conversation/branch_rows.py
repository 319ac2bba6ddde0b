"""The rows of a loaded branch as a row source, kept current while its nodes change."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from PySide6.QtCore import QObject, Signal

from errand.protocol.asks import Ask
from errand.protocol.events import TextDelta, ToolOutput
from errand.window.rows.row import ReplyRow, Row, ThinkingRow
from errand.window.stores.conversation.branch import LoadedBranch
from errand.window.stores.conversation.row_list import RowList, RowSection

StreamedText: TypeAlias = Literal["none", "thinking", "reply"]


class BranchRows(QObject):
    """The rows of a branch.

    Emits `reset` when all rows are new; `inserted`, `changed`, `removed` right after each change.

    While `is_current` is False the branch is being loaded, and its rows stay unchanged.
    """

    reset = Signal()
    inserted = Signal(int, int)
    changed = Signal(int)
    removed = Signal(int, int)

    def __init__(self, *, is_current: bool) -> None:
        super().__init__()
        self.branch = LoadedBranch()
        self.rows = RowList(self.inserted.emit, self.changed.emit, self.removed.emit)
        self.is_current = is_current

    @property
    def has_older(self) -> bool:
        return self.branch.has_older

    @property
    def streams(self) -> StreamedText:
        """What the last row streams at the moment."""
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
        self.reset.emit()

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
