"""The panel that draws the tree of a conversation; a click switches to a branch."""

from functools import partial

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QListView, QMenu, QStackedWidget, QWidget

from errand.client.conversation.tree_layout import TreeLine
from errand.text.translation import tr
from errand.window.stores.conversation.tree import TreeStore
from errand.window.theme.style import plain_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.branches.tree_delegate import LINE, TreeDelegate, accessible_text, line_title
from errand.window.widgets.boxes import fill, hbox, set_vbox
from errand.window.widgets.buttons import IconButton, ShortcutToolTip
from errand.window.widgets.labels import TextLabel

_ONE_BRANCH = tr("This conversation has one branch. Edit a message or retry a reply to create another.")
_READING = tr("Loading branches…")
_WIDTH = 300
_ROOT = QModelIndex()

_Index = QModelIndex | QPersistentModelIndex


class TreeModel(QAbstractListModel):
    """The lines of a `TreeStore` as a Qt model."""

    def __init__(self, store: TreeStore, parent: QWidget) -> None:
        super().__init__(parent)
        self.lines: tuple[TreeLine, ...] = store.lines

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.lines)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or index.row() >= len(self.lines):
            return None
        line = self.lines[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return line_title(line)
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tool_tip(line_title(line))
            case Qt.ItemDataRole.AccessibleTextRole:
                return accessible_text(line)
            case _:
                return line if role == LINE else None

    def show(self, lines: tuple[TreeLine, ...]) -> None:
        """Replace the lines. If only their content changed, the view keeps its scroll position and selection."""
        if [line.node_id for line in self.lines] == [line.node_id for line in lines]:
            self.lines = lines
            self.dataChanged.emit(self.index(0), self.index(len(lines) - 1))
            return
        self.beginResetModel()
        self.lines = lines
        self.endResetModel()

    def row_of(self, node_id: str) -> QModelIndex:
        """Return the index of a node's line; invalid if there is none."""
        return next((self.index(row) for row, line in enumerate(self.lines) if line.node_id == node_id), _ROOT)


class TreePanelView(QWidget):
    """Enter or a click on a line switches to it.

    Emits `closed` when the user closes the panel, `compare_requested` with a tuple of branches (`ComparedBranch`) to
    show side by side, and `export_requested` with the last node of a branch to export.
    """

    closed = Signal()
    compare_requested = Signal(object)
    export_requested = Signal(str)

    def __init__(self, store: TreeStore, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("tree")
        self._store = store
        self._theme = theme
        self._model = TreeModel(store, self)
        self._list = QListView()
        self._note = TextLabel(theme, _READING, tone="muted", wrap=True)
        self._stack = QStackedWidget()
        self._lay_out()
        self.setFocusProxy(self._list)
        store.changed.connect(self._on_changed)
        self._list.clicked.connect(self._on_activated)
        self._list.activated.connect(self._on_activated)
        self._list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._list.customContextMenuRequested.connect(self._on_menu_requested)
        theme.changed.connect(self._list.viewport().update)

    @property
    def lines(self) -> tuple[TreeLine, ...]:
        return self._model.lines

    @property
    def note(self) -> str:
        """The text shown instead of the tree; empty while the tree is shown."""
        return self._note.text() if self._stack.currentWidget() is not self._list else ""

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._store.open()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._store.close()

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.setMinimumWidth(_WIDTH // 2)
        self._list.setAccessibleName(tr("Branches of this conversation"))
        self._list.setModel(self._model)
        self._list.setItemDelegate(TreeDelegate(self._theme, self._list))
        self._list.setUniformItemSizes(True)
        self._list.setMouseTracking(True)
        self._list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._note.setMargin(tokens.space_normal)
        self._stack.setContentsMargins(tokens.space_tight, 0, tokens.space_tight, tokens.space_tight)
        self._stack.addWidget(self._note)
        self._stack.addWidget(self._list)
        close = IconButton(self._theme, "x", tr("Close branches"))
        ShortcutToolTip(close, tr("Close branches"), "tree")
        close.clicked.connect(self.closed)
        head = hbox(
            fill(TextLabel(self._theme, tr("Branches"), bold=True)),
            close,
            margins=(tokens.space_normal, tokens.space_tight, tokens.space_tight, tokens.space_tight),
        )
        set_vbox(self, head, fill(self._stack), spacing=0)

    def _on_changed(self) -> None:
        """Keep the scroll position and the selection. At first, select the head and scroll to it."""
        marked: object = self._list.currentIndex().data(LINE)
        bar = self._list.verticalScrollBar()
        height = bar.value()
        self._model.show(self._store.lines)
        self._note.setText(_ONE_BRANCH)
        self._stack.setCurrentWidget(self._list if self._store.has_forks else self._note)
        if isinstance(marked, TreeLine):
            self._list.setCurrentIndex(self._model.row_of(marked.node_id))
            bar.setValue(height)
        else:
            head = next((line.node_id for line in self._model.lines if line.is_head), "")
            self._list.setCurrentIndex(self._model.row_of(head))
            self._list.scrollTo(self._model.row_of(head), QListView.ScrollHint.PositionAtCenter)

    def _on_menu_requested(self, position: QPoint) -> None:
        """Open the menu of the line under the mouse; with the keyboard, of the selected line."""
        index = self._list.indexAt(position)
        if not index.isValid():
            index = self._list.currentIndex()
        line: object = index.data(LINE)
        if not isinstance(line, TreeLine):
            return
        menu = self.menu_of(line)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self._list.viewport().mapToGlobal(self._list.visualRect(index).center()))

    def menu_of(self, line: TreeLine) -> QMenu:
        """Return the context menu of a line: actions on the branch through it."""
        menu = QMenu(self)
        pair = self._store.compared_with_shown(line.node_id)
        menu.addAction(self._theme.icon("corner-down-right"), tr("Open"), partial(self._store.go_to, line.node_id))
        compare = menu.addAction(self._theme.icon("columns-2"), tr("Compare with current branch"))
        compare.setEnabled(pair is not None)
        if pair is not None:
            compare.triggered.connect(partial(self.compare_requested.emit, pair))
        if line.count:
            versions = menu.addAction(self._theme.icon("columns-2"), tr("Compare all versions here"))
            versions.triggered.connect(partial(self._store.compare_versions, line.node_id))
        export = menu.addAction(self._theme.icon("file-text"), tr("Export branch…"))
        export.triggered.connect(partial(self.export_requested.emit, self._store.end_of(line.node_id)))
        return menu

    def _on_activated(self, index: QModelIndex) -> None:
        line: object = index.data(LINE)
        if isinstance(line, TreeLine):
            self._store.go_to(line.node_id)
