"""What blocks of a transcript ask for, done for one conversation."""

from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QClipboard, QDesktopServices
from PySide6.QtWidgets import QMessageBox, QWidget

from app.protocol.asks import Remember
from app.window.models import ModelStore
from app.window.stores.conversation import ConversationStore
from app.window.views.branch_links import BranchLinks
from app.window.views.link_target import link_target
from app.window.widgets.question_box import QuestionBox


class ConversationActions:
    """Links of a model's lead to the web or to a file that exists, and never start a program.

    A file outside of the workspace is opened only after asking; `over` is the widget that the question stands over.
    """

    def __init__(self, store: ConversationStore, models: ModelStore, clipboard: QClipboard, over: QWidget) -> None:
        self.branches = BranchLinks(store, models)
        self.context = store.context
        self._store = store
        self._clipboard = clipboard
        self._over = over

    def open_link(self, url: str) -> None:
        target = link_target(url, self._workspace)
        match target.kind:
            case "web":
                QDesktopServices.openUrl(QUrl(url))
            case "inside":
                self._open(target.path)
            case "outside":
                self._ask_to_open(target.path)
            case "refused":
                self._store.failed.emit(target.why)

    def copy(self, text: str) -> None:
        self._clipboard.setText(text)

    def answer(
        self, ask_id: str, *, text: str, allow: bool | None, remember: Remember, amount: float | None = None
    ) -> None:
        self._store.requests.answer(ask_id, text=text, allow=allow, remember=remember, amount=amount)

    def load_older(self) -> None:
        self._store.load_older()

    @property
    def _workspace(self) -> str:
        task, conversation = self._store.task, self._store.conversation
        return (conversation.workspace if conversation is not None else "") or (task.workspace if task else "")

    def _open(self, path: Path | None) -> None:
        if path is not None and not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
            self._store.failed.emit(f"Nothing on this computer opens {path}.")

    def _ask_to_open(self, path: Path | None) -> None:
        question = QuestionBox(self._over)
        question.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        question.setTextFormat(Qt.TextFormat.PlainText)
        question.setText(f"Open {path}?")
        question.setInformativeText("It is not in this conversation's workspace.")
        opening = question.addButton("Open", QMessageBox.ButtonRole.AcceptRole)
        question.set_default(question.addButton(QMessageBox.StandardButton.Cancel))
        opening.clicked.connect(lambda: self._open(path))
        question.open()
