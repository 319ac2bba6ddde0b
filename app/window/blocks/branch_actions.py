"""What blocks ask of a conversation's branches, and where they keep what was typed in them."""

from typing import Protocol

from PySide6.QtCore import SignalInstance

from app.protocol.conversations import Node


class BranchActions(Protocol):
    """Intents; what comes of them comes back as changed rows."""

    @property
    def lock_changed(self) -> SignalInstance:
        """Emitted when `locked` says otherwise."""
        ...

    def locked(self) -> str:
        """Why nothing can be branched now, in words; empty when it can."""
        ...

    def switch(self, node_id: str) -> None: ...

    def fork(self, node_id: str) -> None: ...

    def models(self) -> tuple[str, ...]:
        """Those that can be used now."""
        ...

    def retry(self, node_id: str, model: str | None = None) -> None: ...

    def edit(self, node_id: str) -> None: ...

    def end_edit(self) -> None: ...

    def resend(self, node: Node, text: str) -> None: ...

    def draft(self, key: str, otherwise: str = "") -> str: ...

    def keep_draft(self, key: str, text: str) -> None: ...
