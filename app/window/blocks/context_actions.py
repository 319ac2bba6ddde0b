"""What blocks ask of a model's context."""

from typing import Protocol

from PySide6.QtCore import SignalInstance


class ContextActions(Protocol):
    """Intents; what comes of them comes back as changed rows, or by `kept_changed`."""

    @property
    def kept_changed(self) -> SignalInstance:
        """Emitted when `is_kept` says otherwise of some message."""
        ...

    def is_kept(self, node_id: str) -> bool: ...

    def keep(self, node_id: str) -> None: ...

    def release(self, node_id: str) -> None: ...

    def change_summary(self, node_id: str, text: str) -> None: ...
