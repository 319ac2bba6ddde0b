"""Where the transcript gets its rows: the conversation store, or a list in memory in tests."""

from typing import Protocol

from PySide6.QtCore import SignalInstance

from app.window.rows import Row


class RowSource(Protocol):
    """Rows, oldest first. `reset()` says that all are new, `inserted(first, count)`, `changed(index)` and
    `removed(first, count)` come after the change, one by one.
    """

    @property
    def reset(self) -> SignalInstance: ...
    @property
    def inserted(self) -> SignalInstance: ...
    @property
    def changed(self) -> SignalInstance: ...
    @property
    def removed(self) -> SignalInstance: ...

    @property
    def has_older(self) -> bool: ...

    def count(self) -> int: ...

    def row(self, index: int) -> Row: ...
