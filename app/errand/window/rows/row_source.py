"""The protocol of a source of rows, as the transcript uses it."""

from typing import Protocol

from PySide6.QtCore import Signal, SignalInstance

from errand.client.conversation.rows import Row


class RowSource(Protocol):
    """Rows, oldest first.

    Emits `reset()` when all rows are new; `inserted(first, count)`, `changed(index)` and `removed(first, count)` after
    each single change.
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


def as_signal(signal: Signal) -> SignalInstance:
    """Return a source's signal as SignalInstance: it is one on an instance, but a protocol cannot express that for
    pyright.
    """
    assert isinstance(signal, SignalInstance)
    return signal
