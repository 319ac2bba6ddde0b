"""The view of one row: base class, what rows may ask for (`RowActions`), and the context menu."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from PySide6.QtCore import QPoint, Qt, Signal, SignalInstance
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from app.protocol.asks import Remember
from app.protocol.blocks import TextBlock
from app.protocol.conversations import Node
from app.window.rows.row import Row
from app.window.rows.text_view import TextView
from app.window.theme.theme import Theme

MenuHook = Callable[[QMenu], None]


class BranchActions(Protocol):
    """Intents; what comes of them comes back as changed rows."""

    @property
    def lock_changed(self) -> SignalInstance:
        """Emitted when `locked` says otherwise."""
        ...

    def locked(self) -> str:
        """Why nothing can be branched now, in words; empty when it can."""
        ...

    def switch(self, node_id: str) -> None: ...

    def fork(self, node_id: str) -> None: ...

    def models(self) -> tuple[str, ...]:
        """Those that can be used now."""
        ...

    def retry(self, node_id: str, model: str | None = None) -> None: ...

    def edit(self, node_id: str) -> None: ...

    def end_edit(self) -> None: ...

    def resend(self, node: Node, text: str) -> None: ...

    def draft(self, key: str, otherwise: str = "") -> str: ...

    def keep_draft(self, key: str, text: str) -> None: ...


class ContextActions(Protocol):
    """Intents; what comes of them comes back as changed rows, or by `kept_changed`."""

    @property
    def kept_changed(self) -> SignalInstance:
        """Emitted when `is_kept` says otherwise of some message."""
        ...

    def is_kept(self, node_id: str) -> bool: ...

    def keep(self, node_id: str) -> None: ...

    def release(self, node_id: str) -> None: ...

    def change_summary(self, node_id: str, text: str) -> None: ...


class RowActions(Protocol):
    """Intents of the blocks; what comes of them comes back as changed rows."""

    @property
    def branches(self) -> BranchActions: ...

    @property
    def context(self) -> ContextActions: ...

    def open_link(self, url: str) -> None: ...

    def copy(self, text: str) -> None: ...

    def answer(
        self, ask_id: str, *, text: str, allow: bool | None, remember: Remember, amount: float | None = None
    ) -> None: ...

    def load_older(self) -> None: ...


@dataclass(frozen=True, slots=True)
class CopySource:
    """What could be copied here; empty where there is nothing."""

    link: str = ""
    message: str = ""


def message_markdown(node: Node | None) -> str:
    """All text of a message as it was written."""
    blocks = node.blocks if node else ()
    return "\n\n".join(block.text.strip("\n") for block in blocks if isinstance(block, TextBlock))


def show_menu(parent: QWidget, where: QPoint, copyable: CopySource, actions: RowActions, opening: MenuHook) -> None:
    """`opening` may add entries of its own before it is shown."""
    entries = (
        ("Copy link", copyable.link),
        ("Copy message as Markdown", copyable.message),
    )
    menu = QMenu(parent)
    for title, text in entries:
        if text:
            menu.addAction(title).triggered.connect(lambda _=False, text=text: actions.copy(text))
    opening(menu)
    if not menu.isEmpty():
        menu.popup(where)
        menu.aboutToHide.connect(menu.deleteLater)
    else:
        menu.deleteLater()


class RowView(QWidget):
    """Shows one row, then another one: `set_row` must leave nothing of the row before.

    `resized` says that the height changed by itself (a card was opened). What a person opened is kept by the
    transcript: it hears `opened(is_open)` and calls `set_open` before `set_row`. `menu_opening` has the QMenu that is
    about to be shown, for entries of those above.
    """

    resized = Signal()
    opened = Signal(bool)
    menu_opening = Signal(object)

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.intents = actions
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def set_row(self, row: Row) -> None:
        raise NotImplementedError

    def markdown(self) -> str:
        """The whole message that the row belongs to, for copying; empty if it has no text."""
        return ""

    def fill_menu(self, menu: QMenu) -> None:
        """Add what can be done with it besides copying."""

    def set_open(self, is_open: bool) -> None:
        """Open or closed in place; for the blocks that can be."""

    def show_found(self, count: int) -> None:
        """How often a search finds something in what is closed; 0 for nothing. For the blocks that can be opened."""

    def take_focus(self) -> None:
        """Give the keyboard to what answers it; for the blocks that wait for a person."""

    def height_for(self, width: int) -> int:
        """The height in pixels at `width`, from the layout."""
        layout = self.layout()
        assert layout is not None
        self.resize(width, self.height())
        _refresh(self)
        layout.activate()
        if layout.hasHeightForWidth():
            return layout.totalHeightForWidth(width)
        return layout.totalSizeHint().height()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        under = self.childAt(event.pos())
        view = under.parentWidget() if under is not None else None
        link = view.anchorAt(under.mapFrom(self, event.pos())) if under and isinstance(view, TextView) else ""
        show_menu(self, event.globalPos(), CopySource(link, self.markdown()), self.intents, self._on_menu_opening)

    def _on_menu_opening(self, menu: QMenu) -> None:
        self.fill_menu(menu)
        self.menu_opening.emit(menu)


def _refresh(widget: QWidget) -> None:
    """Tell the layouts of cards inside cards now; Qt would tell them one level for each turn of the event loop."""
    for child in widget.children():
        if isinstance(child, QWidget) and not child.isHidden() and child.layout() is not None:
            _refresh(child)
            child.updateGeometry()


RowViewType: TypeAlias = type[RowView]
