"""Two branches side by side, from where they part: both texts, what each took, and a way to go on with one."""

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QClipboard
from PySide6.QtWidgets import QDialog, QHBoxLayout, QSplitter, QVBoxLayout, QWidget

from app.window.models import ModelStore
from app.window.stores.compared import Compared
from app.window.stores.comparison import ComparisonStore
from app.window.theme.theme import Theme
from app.window.views.block_links import ConversationActions
from app.window.views.compared_actions import ComparedActions
from app.window.views.compared_view import ComparedView
from app.window.widgets.banner import Banner
from app.window.widgets.elided_label import ElidedLabel

_READING = "Reading both branches…"
_APART = "They have no beginning in common."


class CompareDialog(QDialog):
    """A window of its own, so that the conversation can be looked at beside it. Esc closes it."""

    def __init__(
        self, comparison: ComparisonStore, models: ModelStore, theme: Theme, clipboard: QClipboard, parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"{comparison.store.title} — two branches")
        self._comparison = comparison
        self._theme = theme
        self._beginning = ElidedLabel(theme, _READING, tone="muted")
        self._trouble = Banner(theme)
        self._actions = ComparedActions(ConversationActions(comparison.store, models, clipboard, self))
        agents = comparison.store.agents
        self.views = (
            ComparedView("Left", comparison.sides[0], agents, theme, self._actions),
            ComparedView("Right", comparison.sides[1], agents, theme, self._actions),
        )
        self._lay_out()
        self._connect()
        comparison.load()

    def done(self, result: int) -> None:
        self._comparison.close()
        super().done(result)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.resize(2 * tokens.column, tokens.column)
        sides = QSplitter(Qt.Orientation.Horizontal)
        sides.setChildrenCollapsible(False)
        for view in self.views:
            sides.addWidget(view)
        sides.setSizes([self.width() // 2, self.width() // 2])
        head = QHBoxLayout()
        head.setContentsMargins(tokens.space_normal, tokens.space_normal, tokens.space_normal, 0)
        head.addWidget(self._beginning)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(self._trouble)
        column.addWidget(sides, 1)
        self.views[0].transcript.setFocus()

    def _connect(self) -> None:
        comparison = self._comparison
        comparison.loaded.connect(self._on_loaded)
        comparison.failed.connect(self._on_failed)
        comparison.store.failed.connect(self._on_failed)
        self._actions.branches.refused.connect(self._on_failed)
        for number, view in enumerate(self.views):
            view.turned.connect(partial(self._on_turned, number))
            view.chosen.connect(partial(self._on_chosen, view))

    def _on_loaded(self) -> None:
        beginning = self._comparison.beginning
        self._beginning.set_text(f"Both go on from: “{beginning}”" if beginning else _APART)
        for view in self.views:
            view.transcript.to_start()

    def _on_turned(self, number: int, compared: Compared) -> None:
        self._comparison.turn(number, compared)

    def _on_chosen(self, view: ComparedView) -> None:
        self._comparison.store.go_on_with(view.side.leaf_id)
        self.accept()

    def _on_failed(self, why: str) -> None:
        self._trouble.tell(why, "failed")
