"""What blocks ask of a conversation's branches, passed on to its store."""

from PySide6.QtCore import SignalInstance

from app.protocol.blocks import FileBlock, ImageBlock
from app.protocol.conversations import Node
from app.window.models import ModelStore
from app.window.stores.conversation import ConversationStore


class BranchLinks:
    def __init__(self, store: ConversationStore, models: ModelStore) -> None:
        self._store = store
        self._models = models

    @property
    def lock_changed(self) -> SignalInstance:
        return self._store.branches.lock_changed

    def locked(self) -> str:
        return self._store.branches.locked

    def switch(self, node_id: str) -> None:
        self._store.branches.switch(node_id)

    def fork(self, node_id: str) -> None:
        self._store.branches.fork(node_id)

    def models(self) -> tuple[str, ...]:
        return self._models.ready

    def retry(self, node_id: str, model: str | None = None) -> None:
        self._store.branches.retry(node_id, model)

    def edit(self, node_id: str) -> None:
        self._store.edit(node_id)

    def end_edit(self) -> None:
        self._store.end_edit()

    def resend(self, node: Node, text: str) -> None:
        """With the files that came with it."""
        files = [block.path for block in node.blocks if isinstance(block, FileBlock | ImageBlock) and block.path]
        self._store.branches.resend(node.id, text, tuple(files))

    def draft(self, key: str, otherwise: str = "") -> str:
        return self._store.drafts.get(key, otherwise)

    def keep_draft(self, key: str, text: str) -> None:
        self._store.drafts.put(key, text)
