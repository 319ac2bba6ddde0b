"""The bar of tabs: title, state and unread count; close, reorder. What a tab shows is the pages' part."""

from dataclasses import dataclass

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QMenu, QTabBar, QWidget

from app.window.theme.theme import Theme
from app.window.views.tab_mark import TabMark
from app.window.widgets.icon_button import IconButton
from app.window.widgets.pulse import Pulse
from app.window.widgets.state_dot import WORDS, State

_LONGEST_TITLE = 24


@dataclass(frozen=True, slots=True)
class TabLook:
    """`state` is the newest task's. `unread` counts what waits to be seen."""

    title: str
    state: State = "idle"
    unread: int = 0

    @property
    def words(self) -> str:
        """The whole of it in words, for the tool tip and screen readers."""
        state = "" if self.state == "idle" else WORDS[self.state].lower()
        unread = f"{self.unread} new" if self.unread else ""
        return " · ".join(part for part in (self.title, state, unread) if part)


class TabsView(QTabBar):
    """Tabs are known by a key of the caller's, which stays when they are moved."""

    chosen = Signal(str)
    close_asked = Signal(str)
    close_others_asked = Signal(str)

    def __init__(self, theme: Theme, pulse: Pulse, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._pulse = pulse
        self._looks: dict[str, TabLook] = {}
        self.setObjectName("tabs")
        self.setAccessibleName("Open conversations")
        self.setMovable(True)
        self.setExpanding(False)
        self.setDrawBase(False)
        self.setUsesScrollButtons(True)
        self.setElideMode(Qt.TextElideMode.ElideRight)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setFont(theme.font(theme.tokens.size_base))
        self.currentChanged.connect(self._on_current_changed)
        self.customContextMenuRequested.connect(self._on_menu_asked)

    @property
    def keys(self) -> tuple[str, ...]:
        """From left to right."""
        return tuple(str(self.tabData(index)) for index in range(self.count()))

    @property
    def current(self) -> str:
        """The key of the tab in front, "" without tabs."""
        return str(self.tabData(self.currentIndex())) if self.count() else ""

    def add(self, key: str, look: TabLook) -> None:
        """At the right end, without going there."""
        index = self.addTab("")
        self.setTabData(index, key)
        self.setTabButton(index, QTabBar.ButtonPosition.LeftSide, TabMark(self._theme, self._pulse))
        close = IconButton(self._theme, "x", "Close tab")
        close.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Ctrl+W is the keyboard's way; 50 stops for Tab help nobody
        close.clicked.connect(lambda: self.close_asked.emit(key))
        self.setTabButton(index, QTabBar.ButtonPosition.RightSide, close)
        self.show_look(key, look)
        if self.count() == 1:
            self.chosen.emit(key)

    def show_look(self, key: str, look: TabLook) -> None:
        """Each change lays the whole bar out, so that what is shown already is left alone."""
        if self._looks.get(key) == look:
            return
        self._looks[key] = look
        index = self.keys.index(key)
        title = look.title if len(look.title) <= _LONGEST_TITLE else look.title[: _LONGEST_TITLE - 1] + "…"
        mark = self.tabButton(index, QTabBar.ButtonPosition.LeftSide)
        assert isinstance(mark, TabMark)
        mark.show_state(look.state, look.unread)
        self.setTabText(index, title.replace("&", "&&"))
        self.setTabToolTip(index, look.words)
        self.setAccessibleTabName(index, look.words)

    def go_to(self, key: str) -> None:
        self.setCurrentIndex(self.keys.index(key))

    def remove(self, key: str) -> None:
        self._looks.pop(key, None)
        index = self.keys.index(key)
        self.tabButton(index, QTabBar.ButtonPosition.LeftSide).hide()  # what pulses in it stops
        self.removeTab(index)

    def minimumTabSizeHint(self, index: int) -> QSize:
        """Many tabs are scrolled rather than made too narrow to be read."""
        wanted = self.tabSizeHint(index)
        return QSize(min(wanted.width(), self._theme.tokens.column // 6), wanted.height())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        index = self.tabAt(event.position().toPoint())
        if event.button() == Qt.MouseButton.MiddleButton and index >= 0:
            self.close_asked.emit(str(self.tabData(index)))
            return
        super().mouseReleaseEvent(event)

    def _on_current_changed(self, index: int) -> None:
        if index >= 0 and self.tabData(index) is not None:
            self.chosen.emit(str(self.tabData(index)))

    def _on_menu_asked(self, place: QPoint) -> None:
        index = self.tabAt(place)
        if index < 0:
            return
        key = str(self.tabData(index))
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Close").triggered.connect(lambda: self.close_asked.emit(key))
        menu.addAction("Close the others").triggered.connect(lambda: self.close_others_asked.emit(key))
        menu.popup(self.mapToGlobal(place))
