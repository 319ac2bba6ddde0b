"""The rows of a branch as a source of rows with Qt signals."""

from PySide6.QtCore import QObject, Signal

from errand.client.conversation.branch_rows import BranchRows, RowListeners


class RowStore(BranchRows, QObject):
    """Emits `reset` when all rows are new; `inserted`, `changed`, `removed` right after each change."""

    reset = Signal()
    inserted = Signal(int, int)
    changed = Signal(int)
    removed = Signal(int, int)

    def __init__(self, *, is_current: bool) -> None:
        QObject.__init__(self)
        listeners = RowListeners(self.reset.emit, self.inserted.emit, self.changed.emit, self.removed.emit)
        BranchRows.__init__(self, listeners, is_current=is_current)
