"""What a block asks of those above it."""

from typing import Protocol

from app.protocol.asks import Remember
from app.window.blocks.branch_actions import BranchActions
from app.window.blocks.context_actions import ContextActions


class BlockActions(Protocol):
    """Intents of the blocks; what comes of them comes back as changed rows."""

    @property
    def branches(self) -> BranchActions: ...

    @property
    def context(self) -> ContextActions: ...

    def open_link(self, url: str) -> None: ...

    def copy(self, text: str) -> None: ...

    def answer(
        self, ask_id: str, *, text: str, allow: bool | None, remember: Remember, amount: float | None = None
    ) -> None: ...

    def load_older(self) -> None: ...
