"""A conversation with its tree panel at the right; the panel is loaded when it is first opened."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSplitter, QWidget

from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.session import EngineSession
from errand.window.theme.theme import Theme

if TYPE_CHECKING:
    from errand.window.views.branches.tree_panel import TreePanelView

_WIDTH = 320


class TreeSplitterView(QSplitter):
    """Emits `closed_with_focus` if the tree had the focus when it was closed.

    Emits `changed` when the tree is opened, closed or resized.

    `compare_requested` and `export_requested` come from the panel.
    """

    closed_with_focus = Signal()
    changed = Signal()
    compare_requested = Signal(object, object)
    export_requested = Signal(str)

    def __init__(self, content: QWidget, store: ConversationStore, session: EngineSession, theme: Theme) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._store = store
        self._session = session
        self._theme = theme
        self._panel: TreePanelView | None = None
        self.setChildrenCollapsible(False)
        self.addWidget(content)
        self.setStretchFactor(0, 1)
        self.splitterMoved.connect(self.changed)

    @property
    def panel(self) -> "TreePanelView":
        """The tree panel, created on first use."""
        return self._panel or self._create_panel(_WIDTH)

    @property
    def panes(self) -> tuple[QWidget, ...]:
        """The stops of F6."""
        return (self._panel,) if self._panel is not None and self._panel.isVisible() else ()

    @property
    def open_width(self) -> int:
        """The width of the tree in pixels; 0 while it is closed."""
        return self._panel.width() if self._panel is not None and not self._panel.isHidden() else 0

    def open(self, width: int) -> None:
        """Show the tree with this width, without taking the focus."""
        self._create_panel(width).show()

    def toggle(self) -> None:
        """Show and focus the tree, or close it."""
        panel = self.panel
        if panel.isVisible():
            self._on_closed()
        else:
            panel.show()
            panel.setFocus()
            self.changed.emit()

    def _create_panel(self, width: int) -> "TreePanelView":
        from errand.window.stores.conversation.tree import TreeStore
        from errand.window.views.branches.tree_panel import TreePanelView  # most conversations have one branch

        tree = TreeStore(self._store, self._session)
        tree.failed.connect(self._store.failed)
        panel = self._panel = TreePanelView(tree, self._theme)
        panel.hide()
        panel.closed.connect(self._on_closed)
        panel.compare_requested.connect(self.compare_requested)
        panel.export_requested.connect(self.export_requested)
        self.addWidget(panel)
        self.setSizes([max(self.width() - width, width), width])
        return panel

    def _on_closed(self) -> None:
        assert self._panel is not None
        had_keyboard = self._panel.isAncestorOf(self.focusWidget() or self)
        self._panel.hide()
        self.changed.emit()
        if had_keyboard:
            self.closed_with_focus.emit()
