"""A conversation with a panel at its right: its tree, or the review of changed files."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.review.changes import ChangesStore
from errand.window.stores.session import EngineSession
from errand.window.theme.theme import Theme

if TYPE_CHECKING:
    from errand.window.views.branches.tree_panel import TreePanelView
    from errand.window.views.review.review_panel import ReviewPanelView

P = TypeVar("P", bound=QWidget)

_TREE_WIDTH, _REVIEW_WIDTH = 320, 520
_REVIEW_SHARE = 0.5  # of a wide conversation


class SidePanel(QObject, Generic[P]):
    """One panel of a splitter, which `make` loads and creates on first use.

    Emits `changed` when it is opened or closed, and `closed_with_focus` if it had the focus when it was closed.
    """

    changed = Signal()
    closed_with_focus = Signal()

    def __init__(self, splitter: QSplitter, make: Callable[[], P], width: int, share: float = 0) -> None:
        """Until a person moves its edge it is `width` wide, or has `share` of the splitter if that is more."""
        super().__init__(splitter)
        self._splitter = splitter
        self._make = make
        self._least, self._share = width, share
        self._width = 0
        self._panel: P | None = None
        self.is_open = False

    @property
    def panel(self) -> P:
        """Created on first use, and hidden until it is opened."""
        if self._panel is None:
            self._panel = self._make()
            self._panel.hide()
            self._splitter.addWidget(self._panel)
        return self._panel

    @property
    def is_made(self) -> bool:
        return self._panel is not None

    @property
    def panes(self) -> tuple[QWidget, ...]:
        """The stops of F6."""
        return (self._panel,) if self._panel is not None and self._panel.isVisible() else ()

    @property
    def open_width(self) -> int:
        """The width to open it with again, in pixels; 0 while it is closed. A narrow window does not reduce it."""
        if self._panel is None or not self.is_open:
            return 0
        return self._width or max(self._panel.width(), self._least)

    @property
    def has_focus(self) -> bool:
        return self._panel is not None and self._panel.isAncestorOf(self._splitter.focusWidget() or self._splitter)

    def open(self, width: int = 0) -> None:
        """Show it without taking the focus; `width` is 0 for the last one."""
        if self.is_open:
            return
        panel, self._width = self.panel, width or self._width
        self.is_open = True
        panel.show()
        self.fit()
        self.changed.emit()

    def fit(self) -> None:
        """Give it its width; what stands beside it has the rest."""
        if self._panel is None or not self.is_open:
            return
        width = self._width or max(self._least, round(self._splitter.width() * self._share))
        index = self._splitter.indexOf(self._panel)
        rest = max(self._splitter.width() - width, width)
        self._splitter.setSizes([rest if not at else width if at == index else 0 for at in range(index + 1)])

    def keep_width(self) -> None:
        """A person moved its edge."""
        if self.open_width and self._panel is not None:
            self._width = self._panel.width()

    def close(self) -> None:
        if self._panel is None or not self.is_open:
            return
        had_keyboard = self.has_focus
        self.is_open = False
        self._panel.hide()
        self.changed.emit()
        if had_keyboard:
            self.closed_with_focus.emit()

    def toggle(self) -> None:
        """Show and focus it, or close it."""
        if self.is_open:
            self.close()
        else:
            self.open()
            self.panel.setFocus()


class SidePanelsView(QSplitter):
    """`tree` and `review` are at the right of `content`; one of them is open at a time.

    Emits `changed` when a panel is opened, closed or resized, and `closed_with_focus` if it had the focus when it was
    closed. `compare_requested` and `export_requested` come from the tree, `layout_chosen` from the review: whether
    diffs are side by side.
    """

    closed_with_focus = Signal()
    changed = Signal()
    compare_requested = Signal(object)
    export_requested = Signal(str)
    layout_chosen = Signal(bool)

    def __init__(
        self,
        content: QWidget,
        store: ConversationStore,
        changes: ChangesStore,
        session: EngineSession,
        theme: Theme,
        copy: Callable[[str], None],
    ) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._content = content
        self._store = store
        self._changes = changes
        self._session = session
        self._theme = theme
        self._copy = copy
        self._is_side_by_side = False
        self.tree: SidePanel[TreePanelView] = SidePanel(self, self._make_tree, theme.pixels(_TREE_WIDTH))
        self.review: SidePanel[ReviewPanelView] = SidePanel(
            self, self._make_review, theme.pixels(_REVIEW_WIDTH), _REVIEW_SHARE
        )
        self.setChildrenCollapsible(False)
        self.addWidget(content)
        self.setStretchFactor(0, 1)
        self.splitterMoved.connect(self._on_moved)
        for panel in (self.tree, self.review):
            panel.closed_with_focus.connect(self.closed_with_focus)
        self.tree.changed.connect(self._on_tree_changed)
        self.review.changed.connect(self._on_review_changed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A panel that was squeezed has its width again in a wider window."""
        super().resizeEvent(event)
        for panel in (self.tree, self.review):
            panel.fit()

    @property
    def panes(self) -> tuple[QWidget, ...]:
        """The stops of F6."""
        return (*self.tree.panes, *self.review.panes)

    def set_side_by_side(self, is_side_by_side: bool) -> None:
        """Set how diffs are shown, now or once the review is opened."""
        self._is_side_by_side = is_side_by_side
        if self.review.is_made:
            self.review.panel.set_side_by_side(is_side_by_side)

    def _make_tree(self) -> "TreePanelView":
        from errand.window.stores.conversation.tree import TreeStore
        from errand.window.views.branches.tree_panel import TreePanelView  # most conversations have one branch

        tree = TreeStore(self._store, self._session)
        tree.failed.connect(self._store.failed)
        panel = TreePanelView(tree, self._theme)
        panel.closed.connect(self.tree.close)
        panel.compare_requested.connect(self.compare_requested)
        panel.export_requested.connect(self.export_requested)
        return panel

    def _make_review(self) -> "ReviewPanelView":
        from errand.window.views.review.review_panel import ReviewPanelView  # many conversations change no files

        panel = ReviewPanelView(self._changes, self._theme, self._copy)
        panel.set_side_by_side(self._is_side_by_side)
        panel.closed.connect(self.review.close)
        panel.layout_chosen.connect(self.layout_chosen)
        panel.maximized.connect(self._on_maximized)
        return panel

    def _on_moved(self) -> None:
        for panel in (self.tree, self.review):
            panel.keep_width()
        self.changed.emit()

    def _on_tree_changed(self) -> None:
        if self.tree.is_open:
            self.review.close()
        self.changed.emit()

    def _on_review_changed(self) -> None:
        if self.review.is_open:
            self.tree.close()
        self._on_maximized(self.review.is_open and self.review.panel.is_maximized)
        self.changed.emit()

    def _on_maximized(self, is_maximized: bool) -> None:
        self._content.setVisible(not is_maximized)
