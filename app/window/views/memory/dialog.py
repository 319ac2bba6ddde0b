"""The window of memory."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from app.window.stores.stores import Stores
from app.window.theme.theme import Theme
from app.window.views.memory.facts_page import FactsPageView
from app.window.widgets.banner import BannerView
from app.window.widgets.labels import TextLabel

_WIDTH, _HEIGHT = 980, 640


class MemoryDialog(QDialog):
    """Not modal. `source_requested` gives a conversation and a node to show."""

    source_requested = Signal(str, str)

    def __init__(self, stores: Stores, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Memory")
        self.resize(_WIDTH, _HEIGHT)
        self.facts = FactsPageView(theme, stores.facts)
        self.banner = BannerView(theme)
        tokens = theme.tokens
        inside = QVBoxLayout()
        inside.setContentsMargins(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_far)
        inside.setSpacing(tokens.space_wide)
        inside.addWidget(TextLabel(theme, "Facts", size=tokens.size_heading, bold=True))
        inside.addWidget(self.facts, 1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self.banner)
        whole.addLayout(inside, 1)
        stores.facts.failed.connect(self._on_failed)
        self.facts.source_requested.connect(self._on_source_requested)
        self.facts.said.connect(self._on_said)
        self.banner.action_clicked.connect(self.facts.undo)

    def open_facts(self) -> None:
        self.show()
        self.raise_()
        self.activateWindow()
        self.banner.hide()
        self.facts.open()

    def _on_source_requested(self, conversation_id: str, node_id: str) -> None:
        self.hide()
        self.source_requested.emit(conversation_id, node_id)

    def _on_said(self, text: str, can_undo: bool) -> None:
        self.banner.show_message(text, "done", "Undo" if can_undo else "")

    def _on_failed(self, text: str) -> None:
        if self.isVisible():
            self.banner.show_message(text, "failed")
