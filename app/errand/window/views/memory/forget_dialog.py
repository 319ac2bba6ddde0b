"""The dialog that forgets one message of a conversation: what would go, the question, and what went."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QWidget

from errand.protocol.memory import MemoryForgetResult, MemoryPreviewForgetResult
from errand.text.translation import tr
from errand.window.stores.memory.entries import ForgetStore
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.memory.texts import forget_question, forget_result
from errand.window.widgets.boxes import STRETCH, hbox, set_vbox
from errand.window.widgets.labels import TextLabel, one_line

_WIDTH = 460
_MAX_QUOTE_LENGTH = 200  # characters of the message


class ForgetDialog(QDialog):
    """Asks the engine what would go as soon as it is made. Esc keeps the message, until it was confirmed."""

    def __init__(self, store: ForgetStore, theme: Theme, node_id: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._store = store
        self._node_ids = (node_id,)
        self.setWindowTitle(tr("Forget message"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setMinimumWidth(theme.pixels(_WIDTH))
        self._text = TextLabel(theme, tr("Checking what will be removed…"), wrap=True)
        self._quote = TextLabel(theme, tone="muted", wrap=True)
        self._quote.hide()
        self._confirm, self._keep = push_button(tr("Forget permanently"), "danger"), push_button(tr("Cancel"))
        self._confirm.hide()
        tokens = theme.tokens
        buttons = hbox(STRETCH, self._confirm, self._keep, spacing=tokens.space_close)
        set_vbox(
            self,
            self._quote,
            self._text,
            STRETCH,
            buttons,
            spacing=tokens.space_wide,
            margins=(tokens.space_far, tokens.space_far, tokens.space_far, tokens.space_wide),
        )
        self._confirm.clicked.connect(self._on_confirmed)
        self._keep.clicked.connect(self.reject)
        store.previewed.connect(self._on_previewed)
        store.forgotten.connect(self._on_forgotten)
        store.failed.connect(self._on_failed)
        store.preview(self._node_ids)

    def _on_previewed(self, node_ids: tuple[str, ...], found: MemoryPreviewForgetResult) -> None:
        if found.nodes:
            self._quote.setText(tr("“{title}”").format(title=one_line(found.nodes[0].text, _MAX_QUOTE_LENGTH)))
            self._quote.show()
        self._say(forget_question(found, node_ids))
        self._confirm.show()
        self._keep.setFocus()

    def _on_confirmed(self) -> None:
        self._end()
        self._say(tr("Forgetting…"))
        self._store.forget(self._node_ids)

    def _on_forgotten(self, node_ids: tuple[str, ...], gone: MemoryForgetResult) -> None:
        self._quote.hide()
        self._say(forget_result(gone))
        self._end()

    def _on_failed(self, text: str) -> None:
        self._say(text)
        self._end()

    def _end(self) -> None:
        self._keep.setFocus()  # the other button is about to be hidden
        self._confirm.hide()
        self._keep.setText(tr("Close"))
        self._keep.setAccessibleName(tr("Close"))

    def _say(self, text: str) -> None:
        self._text.setText(text)
        self.adjustSize()
