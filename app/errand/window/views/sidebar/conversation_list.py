"""The list of conversations: open, rename inline, pin, archive, export, group."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QCursor,
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QLineEdit, QListView, QMenu, QStyleOptionViewItem, QWidget

from errand.protocol.conversations import Conversation
from errand.text.translation import tr
from errand.window.stores.conversation_list import ConversationListStore, PagedListStore
from errand.window.stores.window_state import Grouping
from errand.window.theme.style import brush
from errand.window.theme.theme import Theme
from errand.window.views.shared.item_delegate import GROUP, HEADING, KEY, ItemDelegate
from errand.window.views.sidebar.conversation_marks import ConversationMarks
from errand.window.views.sidebar.conversation_model import ConversationModel, local_now
from errand.window.widgets.boxes import STRETCH, BoxPart, set_hbox
from errand.window.widgets.buttons import IconButton

_Index = QModelIndex | QPersistentModelIndex
_MAX_TITLE = 500


class RenameDelegate(ItemDelegate):
    """`renamed` gives the item's key and the new title; the item changes when the engine confirms it."""

    renamed = Signal(str, str)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        return _TitleEdit(parent, _string(index.data(KEY)), _string(index.data()))

    def setEditorData(self, editor: QWidget, index: _Index) -> None:
        """The editor gets its title on creation: an event that arrives while the user types must not reset it."""

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: _Index) -> None:
        assert isinstance(editor, _TitleEdit)
        title = editor.text().strip()
        if title and title != editor.before:
            self.renamed.emit(editor.key, title)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:
        editor.setGeometry(self.title_rect(option, index))


class _TitleEdit(QLineEdit):
    """Stores the key of its item: the items may move while it is open."""

    def __init__(self, parent: QWidget, key: str, before: str) -> None:
        super().__init__(before, parent)
        self.key = key
        self.before = before
        self.setMaxLength(_MAX_TITLE)
        self.setAccessibleName(tr("Title"))
        self.selectAll()


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class ListAction:
    """One entry of a conversation's context menu, with its shortcut; "" is none."""

    text: str
    keys: str
    run: Callable[[Conversation], None]


class StickyHeading(QWidget):
    """Shows the heading of the group at the top of a list, over the list; the next heading pushes it away."""

    def __init__(self, view: QListView, delegate: ItemDelegate, theme: Theme) -> None:
        super().__init__(view)
        self._view = view
        self._delegate = delegate
        self._theme = theme
        self._text = ""
        self._shift = 0
        self._corner: QWidget | None = None

    @property
    def text(self) -> str:
        return self._text

    def set_corner(self, widget: QWidget) -> None:
        """Put a widget at its right end, which stays when headings change."""
        self._corner = widget
        set_hbox(
            self,
            STRETCH,
            BoxPart(widget, alignment=Qt.AlignmentFlag.AlignBottom),
            margins=(0, self._theme.tokens.space_tight, 0, 0),
        )

    def follow(self) -> None:
        """Call it after scrolling and after changes of the list."""
        top = self._view.indexAt(QPoint(1, 0))
        text: object = top.data(GROUP) if top.isValid() else ""
        self._text = text if isinstance(text, str) else ""
        height = self._delegate.heading_height()
        self._shift = 0
        index = top.siblingAtRow(top.row() + 1)
        while index.isValid() and (edge := self._view.visualRect(index).top()) < height:
            if index.data(HEADING):
                self._shift = edge - height
                break
            index = index.siblingAtRow(index.row() + 1)
        self.setGeometry(0, 0, self._view.viewport().width(), height)
        self.setVisible(bool(self._text))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        rect = self.rect().translated(0, self._shift)
        painter.fillRect(rect if self._corner is None else self.rect(), brush(self._theme.tokens.panel))
        room = self._corner.width() if self._corner is not None else 0
        self._delegate.draw_heading(painter, rect.adjusted(0, 0, -room, 0), self._text)
        if self._corner is not None and self._shift:
            index = self._view.indexAt(QPoint(1, self.height() + self._shift))
            heading: object = index.data(HEADING)
            below = QRect(rect.left(), rect.bottom() + 1, rect.width() - room, rect.height())
            self._delegate.draw_heading(painter, below, heading if isinstance(heading, str) else "")


class PagedListView(QListView):
    """Enter or a click opens. Subclasses provide the actions, which the context menu shows.

    `export_requested` gives a conversation, the format and the path.
    """

    opened = Signal(str)
    opened_in_background = Signal(str)
    renamed = Signal(str, str)
    export_requested = Signal(str, str, str)

    def __init__(
        self,
        listing: PagedListStore,
        marks: ConversationMarks | None,
        theme: Theme,
        name: str,
        now: Callable[[], datetime] = local_now,
    ) -> None:
        super().__init__()
        self._listing = listing
        self._model = ConversationModel(listing, marks, self, now)
        delegate = RenameDelegate(theme, self)
        self.heading = StickyHeading(self, delegate, theme)
        self._open_id: str | None = None
        self._settle = QTimer(self, singleShot=True, interval=0)
        self._settle.timeout.connect(self.heading.follow)
        delegate.renamed.connect(self.renamed)
        self.setAccessibleName(name)
        self.setModel(self._model)
        self.setItemDelegate(delegate)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setLayoutMode(QListView.LayoutMode.Batched)
        self.setMouseTracking(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.clicked.connect(self._on_activated)
        self.activated.connect(self._on_activated)
        self.customContextMenuRequested.connect(self._on_menu_requested)
        self.verticalScrollBar().valueChanged.connect(self.heading.follow)
        self.verticalScrollBar().rangeChanged.connect(self.heading.follow)
        for changed in (self._model.modelReset, self._model.rowsInserted, self._model.rowsRemoved):
            changed.connect(self._settle.start)
        self._model.rowsMoved.connect(self._settle.start)
        self._model.dataChanged.connect(self._settle.start)
        theme.changed.connect(self.viewport().update)

    @property
    def selected(self) -> Conversation | None:
        return self._model.at(self.currentIndex())

    def select(self, conversation_id: str) -> None:
        """Select a conversation, if the list has loaded it."""
        self._open_id = conversation_id
        self._model.set_current(conversation_id)
        self._select_open()

    def _select_open(self) -> None:
        """Highlight the open conversation, and no other."""
        row = self._model.row_of(self._open_id or "")
        if row is None:
            self.clearSelection()
        else:
            self.setCurrentIndex(self._model.index(row, 0))

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The highlight of the arrow keys ends with the focus. A menu and the field of a title keep it."""
        super().focusOutEvent(event)
        is_inside = event.reason() == Qt.FocusReason.PopupFocusReason or self.state() == self.State.EditingState
        if self._open_id is not None and not is_inside and event.reason() != Qt.FocusReason.ActiveWindowFocusReason:
            self._select_open()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Only the left button selects; the others have a menu, or open in the background."""
        if event.button() == Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange:
            self._end_hover()

    def _end_hover(self) -> None:
        """Qt misses that the pointer has left while a menu or another window was above."""
        viewport = self.viewport()
        if not viewport.rect().contains(viewport.mapFromGlobal(QCursor.pos())):
            QApplication.sendEvent(viewport, QEvent(QEvent.Type.Leave))

    def actions_for(self, conversation: Conversation) -> tuple[ListAction, ...]:
        raise NotImplementedError

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.heading.follow()

    def edit_title(self, conversation: Conversation) -> None:
        """Edit its title inline: `renamed` is emitted if it changes."""
        row = self._model.row_of(conversation.id)
        if row is not None:
            self.edit(self._model.index(row, 0))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        conversation = self.selected
        pressed = QKeySequence(event.keyCombination())
        if conversation is not None:
            for action in self.actions_for(conversation):
                if action.keys and pressed == QKeySequence(action.keys):
                    action.run(conversation)
                    return
        super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        conversation = self._model.at(self.indexAt(event.position().toPoint()))
        if event.button() == Qt.MouseButton.MiddleButton and conversation is not None:
            self.opened_in_background.emit(conversation.id)
            return
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and self._open_id is not None:
            self._select_open()  # pressed here and let go elsewhere

    def open_actions(self) -> tuple[ListAction, ...]:
        """Return the first two actions of every list."""
        return (
            ListAction(tr("Open"), "", lambda conversation: self.opened.emit(conversation.id)),
            ListAction(
                tr("Open in background"),
                "Shift+Return",
                lambda conversation: self.opened_in_background.emit(conversation.id),
            ),
        )

    def export_action(self) -> ListAction:
        return ListAction(tr("Export…"), "Ctrl+E", self.ask_to_export)

    def ask_to_export(self, conversation: Conversation) -> None:
        """Ask for the file and the format."""
        from errand.window.views.shared.export_dialog import ExportDialog

        dialog = ExportDialog(conversation.title, self)
        dialog.chosen.connect(partial(self.export_requested.emit, conversation.id))
        dialog.open()

    def _on_activated(self, index: QModelIndex) -> None:
        conversation = self._model.at(index)
        if conversation is not None:
            self.opened.emit(conversation.id)
        else:
            self._model.choose(index)

    def _on_menu_requested(self, position: QPoint) -> None:
        conversation = self._model.at(self.indexAt(position))
        if conversation is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for action in self.actions_for(conversation):
            entry = menu.addAction(action.text)
            entry.setShortcut(QKeySequence(action.keys))
            entry.triggered.connect(lambda _=False, action=action: action.run(conversation))
        menu.aboutToHide.connect(self._end_hover)
        menu.popup(self.viewport().mapToGlobal(position))


class ConversationListView(PagedListView):
    """`grouping_chosen` gives the choice of the button beside the first heading.

    `other_folders_requested` gives a conversation: a person wants to see what its folder shares in memory.
    """

    grouping_chosen = Signal(str)
    other_folders_requested = Signal(object)

    def __init__(
        self,
        store: ConversationListStore,
        marks: ConversationMarks,
        theme: Theme,
        now: Callable[[], datetime] = local_now,
    ) -> None:
        super().__init__(store, marks, theme, tr("Conversations"), now)
        self._store = store
        self.group_button = IconButton(theme, "sliders-horizontal", tr("Group conversations"))
        self.heading.set_corner(self.group_button)
        self.renamed.connect(store.rename)
        self.export_requested.connect(store.export)
        self.group_button.clicked.connect(self._on_group_clicked)

    def set_grouping(self, grouping: Grouping) -> None:
        self._model.set_grouping(grouping)

    def _on_group_clicked(self) -> None:
        menu = QMenu(self)
        choices: tuple[tuple[Grouping, str], ...] = (("day", tr("Group by day")), ("folder", tr("Group by folder")))
        for grouping, text in choices:
            entry = menu.addAction(text)
            entry.setCheckable(True)
            entry.setChecked(grouping == self._model.grouping)
            entry.triggered.connect(partial(self._on_grouping_chosen, grouping))
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.group_button.mapToGlobal(QPoint(0, self.group_button.height())))

    def _on_grouping_chosen(self, grouping: Grouping) -> None:
        self.set_grouping(grouping)
        self.scrollToTop()
        self.grouping_chosen.emit(grouping)

    def actions_for(self, conversation: Conversation) -> tuple[ListAction, ...]:
        return (
            *self.open_actions(),
            ListAction(tr("Rename"), "F2", self.edit_title),
            ListAction(tr("Unpin") if conversation.pinned else tr("Pin"), "Ctrl+D", self._toggle_pin),
            self.export_action(),
            *self._memory_actions(conversation),
            ListAction(tr("Archive"), "Del", self._archive),
        )

    def _memory_actions(self, conversation: Conversation) -> tuple[ListAction, ...]:
        remember = tr("Leave out of memory") if conversation.remembers else tr("Include in memory")
        recall = tr("Don't use memory here") if conversation.recalls else tr("Use memory here")
        return (
            ListAction(remember, "", self._store.switch_remembering),
            ListAction(recall, "", self._store.switch_recall),
            ListAction(tr("Memory of other folders…"), "", self.other_folders_requested.emit),
        )

    def _toggle_pin(self, conversation: Conversation) -> None:
        self._store.pin(conversation.id, not conversation.pinned)

    def _archive(self, conversation: Conversation) -> None:
        self._store.archive(conversation.id)
