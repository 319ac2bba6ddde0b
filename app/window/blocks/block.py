"""A block: the widget of one row. The transcript makes, places, pools and reuses them."""

from typing import TypeAlias

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.menu import Copyable, show_menu
from app.window.blocks.text_view import TextView
from app.window.rows import Row
from app.window.theme.theme import Theme


class Block(QWidget):
    """Shows one row, then another one: `set_row` must leave nothing of the row before.

    `resized` says that the height changed by itself (a card was opened). What a person opened is kept by the
    transcript: it hears `opened(is_open)` and calls `set_open` before `set_row`. `menu_opening` has the QMenu that is
    about to be shown, for entries of those above.
    """

    resized = Signal()
    opened = Signal(bool)
    menu_opening = Signal(object)

    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
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
        show_menu(self, event.globalPos(), Copyable(link, self.markdown()), self.intents, self._on_menu_opening)

    def _on_menu_opening(self, menu: QMenu) -> None:
        self.fill_menu(menu)
        self.menu_opening.emit(menu)


def _refresh(widget: QWidget) -> None:
    """Tell the layouts of cards inside cards now; Qt would tell them one level for each turn of the event loop."""
    for child in widget.children():
        if isinstance(child, QWidget) and not child.isHidden() and child.layout() is not None:
            _refresh(child)
            child.updateGeometry()


BlockType: TypeAlias = type[Block]
