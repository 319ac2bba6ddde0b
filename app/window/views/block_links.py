"""What blocks of a transcript ask for, done for one conversation."""

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QClipboard, QDesktopServices

from app.protocol.asks import Remember
from app.window.stores.conversation import ConversationStore
from app.window.views.branch_links import BranchLinks

_SAFE_SCHEMES = ("http", "https", "mailto")


class ConversationActions:
    """A link of a model's may only lead to the web or to a folder or plain file that exists, never start a program."""

    def __init__(self, store: ConversationStore, clipboard: QClipboard) -> None:
        self.branches = BranchLinks(store)
        self._store = store
        self._clipboard = clipboard

    def open_link(self, url: str) -> None:
        target = QUrl(url)
        if target.scheme() in _SAFE_SCHEMES:
            QDesktopServices.openUrl(target)
        elif target.isLocalFile() and Path(target.toLocalFile()).exists():
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(target.toLocalFile()).parent)))

    def copy(self, text: str) -> None:
        self._clipboard.setText(text)

    def answer(self, ask_id: str, *, text: str, allow: bool | None, remember: Remember) -> None:
        self._store.requests.answer(ask_id, text=text, allow=allow, remember=remember)

    def load_older(self) -> None:
        self._store.load_older()
