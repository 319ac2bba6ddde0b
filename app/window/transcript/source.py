"""Where the transcript gets its rows: the conversation store, or a list in memory in tests."""

from typing import Protocol

from PySide6.QtCore import Signal, SignalInstance

from app.window.rows import Row


class RowSource(Protocol):
    """Rows, oldest first. `reset()` says that all are new, `inserted(first, count)`, `changed(index)` and
    `removed(first, count)` come after the change, one by one.
    """

    @property
    def reset(self) -> Signal: ...
    @property
    def inserted(self) -> Signal: ...
    @property
    def changed(self) -> Signal: ...
    @property
    def removed(self) -> Signal: ...

    @property
    def has_older(self) -> bool: ...

    def count(self) -> int: ...

    def row(self, index: int) -> Row: ...


def bound(signal: Signal) -> SignalInstance:
    """A source's signal, to connect to: on an instance it is a SignalInstance, which protocols cannot tell pyright."""
    assert isinstance(signal, SignalInstance)
    return signal
