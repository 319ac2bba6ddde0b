"""A conversation with its tree at the right, which is made when it is first asked for."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSplitter, QWidget

from app.window.stores.conversation import ConversationStore
from app.window.stores.session import Session
from app.window.theme.theme import Theme

if TYPE_CHECKING:
    from app.window.views.tree_panel import TreePanelView

_WIDTH = 320


class TreeSplit(QSplitter):
    """`left` comes when the tree goes away while the keyboard is in it."""

    left = Signal()

    def __init__(self, content: QWidget, store: ConversationStore, session: Session, theme: Theme) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._store = store
        self._session = session
        self._theme = theme
        self._panel: TreePanelView | None = None
        self.setChildrenCollapsible(False)
        self.addWidget(content)
        self.setStretchFactor(0, 1)

    @property
    def panes(self) -> tuple[QWidget, ...]:
        """Where F6 stops."""
        return (self._panel,) if self._panel is not None and self._panel.isVisible() else ()

    def toggle(self) -> None:
        """Show the tree, with the keyboard in it, or put it away."""
        panel = self._panel or self._made_panel()
        if panel.isVisible():
            self._on_closed()
        else:
            panel.show()
            panel.setFocus()

    def _made_panel(self) -> "TreePanelView":
        from app.window.stores.tree import TreeStore
        from app.window.views.tree_panel import TreePanelView  # most conversations have one branch

        tree = TreeStore(self._store, self._session)
        tree.failed.connect(self._store.failed)
        panel = self._panel = TreePanelView(tree, self._theme)
        panel.hide()
        panel.closed.connect(self._on_closed)
        self.addWidget(panel)
        self.setSizes([max(self.width() - _WIDTH, _WIDTH), _WIDTH])
        return panel

    def _on_closed(self) -> None:
        assert self._panel is not None
        had_keyboard = self._panel.isAncestorOf(self.focusWidget() or self)
        self._panel.hide()
        if had_keyboard:
            self.left.emit()
