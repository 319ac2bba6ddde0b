"""The tab bar: title, task status, unread badge, close, reorder, pin, context menu."""

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QTabBar, QToolButton, QWidget

from errand.text.translation import tr, trn, uncapitalised
from errand.window.theme.style import plain_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.pulse import PulseTimer
from errand.window.widgets.status_dot import STATE_LABELS, DotState, StatusDotView, shown_state

_MAX_COUNT = 99

_NOTCH = 120  # of a wheel, in eighths of a degree

_MAX_TITLE = 24
_MAX_PINNED_TITLE = 9


class TabMenu(QMenu):
    """Emits a signal for each entry; deleted after use."""

    pin_requested = Signal()
    own_window_requested = Signal()
    close_requested = Signal()
    close_others_requested = Signal()
    close_right_requested = Signal()

    def __init__(self, parent: QWidget, *, is_pinned: bool) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.addAction(tr("Unpin tab") if is_pinned else tr("Pin tab")).triggered.connect(self.pin_requested)
        self.addAction(tr("Open in new window")).triggered.connect(self.own_window_requested)
        self.addSeparator()
        self.addAction(tr("Close tab")).triggered.connect(self.close_requested)
        self.addAction(tr("Close other tabs")).triggered.connect(self.close_others_requested)
        self.addAction(tr("Close tabs to the right")).triggered.connect(self.close_right_requested)


def unread_text(count: int) -> str:
    return trn("{n} new", "{n} new", count)


class Badge(QWidget):
    """A count in a coloured pill. `noun` names the counted items in the accessible name: "3 unread"."""

    def __init__(self, theme: Theme, *, waiting: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._waiting = waiting
        self._count = 0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_count(0)
        theme.changed.connect(self.update)

    def set_count(self, count: int) -> None:
        self._count = count
        self.setAccessibleName(unread_text(count))
        self.setVisible(count > 0)
        self.updateGeometry()
        self.update()

    @property
    def text(self) -> str:
        return f"{_MAX_COUNT}+" if self._count > _MAX_COUNT else str(self._count)

    def sizeHint(self) -> QSize:
        self.setFont(self._theme.font(self._theme.tokens.size_small, bold=True))
        height = self._theme.tokens.size_small + self._theme.tokens.space_tight + 2
        width = self.fontMetrics().horizontalAdvance(self.text) + self._theme.tokens.space_normal
        return QSize(max(height, width), height)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tokens.waiting_soft if self._waiting else tokens.accent))
        radius = self.height() / 2
        painter.drawRoundedRect(QRectF(self.rect()), radius, radius)
        painter.setPen(QColor(tokens.waiting if self._waiting else tokens.on_accent))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.text)


class TabStatusView(QWidget):
    """Status dot and unread badge of a tab; takes no space without either."""

    def __init__(self, theme: Theme, pulse: PulseTimer) -> None:
        super().__init__()
        self._dot = StatusDotView(theme, pulse)
        self._badge = Badge(theme)
        self._space = theme.tokens.space_close
        self._row = QHBoxLayout(self)
        self._row.setSpacing(theme.tokens.space_tight)
        self._row.addWidget(self._dot)
        self._row.addWidget(self._badge)

    def show_state(self, state: DotState, unread: int) -> None:
        badge_state = shown_state(state, unread)
        self._dot.set_state(badge_state)
        self._dot.setVisible(badge_state != "idle")
        self._badge.set_count(unread)
        self._row.setContentsMargins(self._space if badge_state != "idle" or unread else 0, 0, 0, 0)
        self.adjustSize()


@dataclass(frozen=True, slots=True)
class TabState:
    """`state` is that of the newest task, `unread` the number of unread tasks.

    Pinned tabs are narrow and on the left.
    """

    title: str
    state: DotState = "idle"
    unread: int = 0
    pinned: bool = False

    @property
    def accessible_text(self) -> str:
        """The complete text, for the tool tip and screen readers."""
        return " · ".join(part for part in (self.title, self.status_text) if part)

    @property
    def status_text(self) -> str:
        """The text without the title."""
        state = "" if self.state == "idle" else uncapitalised(STATE_LABELS[self.state])
        unread = unread_text(self.unread) if self.unread else ""
        pinned = tr("pinned") if self.pinned else ""
        return " · ".join(part for part in (state, unread, pinned) if part)

    @property
    def visible_title(self) -> str:
        """The title, shortened to fit into a tab."""
        longest = _MAX_PINNED_TITLE if self.pinned else _MAX_TITLE
        return self.title if len(self.title) <= longest else self.title[: longest - 1] + "…"


class TabBarView(QTabBar):
    """Tabs are identified by a key of the caller, which stays the same when they are moved.

    The current tab and the one below the mouse have a button to close them. Emits `menu_requested` with a tab's key
    and a screen position, and `own_window_requested` with those of a tab that was dragged off the bar.
    """

    chosen = Signal(str)
    close_requested = Signal(str)
    menu_requested = Signal(str, QPoint)
    own_window_requested = Signal(str, QPoint)
    resized = Signal()

    def __init__(self, theme: Theme, pulse: PulseTimer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._pulse = pulse
        self._states: dict[str, TabState] = {}
        self._hovered = ""
        self._turned = 0  # the wheel, in eighths of a degree
        self.setMouseTracking(True)
        self.setObjectName("tabs")
        self.setAccessibleName(tr("Open conversations"))
        self.setMovable(True)
        self.setExpanding(False)
        self.setDrawBase(False)
        self.setUsesScrollButtons(True)
        self.setIconSize(QSize(theme.tokens.icon_small, theme.tokens.icon_small))
        self.setElideMode(Qt.TextElideMode.ElideRight)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setFont(theme.font(theme.tokens.size_base))
        self.currentChanged.connect(self._on_current_changed)
        self.customContextMenuRequested.connect(self._on_menu_requested)
        theme.changed.connect(self._on_theme_changed)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys from left to right."""
        return tuple(str(self.tabData(index)) for index in range(self.count()))

    @property
    def current(self) -> str:
        """The key of the current tab; "" without tabs."""
        return str(self.tabData(self.currentIndex())) if self.count() else ""

    def overflows(self, width: int) -> bool:
        """Return True if the tabs do not fit into the width."""
        return sum(self.minimumTabSizeHint(index).width() for index in range(self.count())) > width

    def add(self, key: str, state: TabState) -> None:
        """Add a tab at the end, or after the pinned ones, without activating it."""
        index = self.addTab("")
        self.setTabData(index, key)
        self.setTabButton(index, QTabBar.ButtonPosition.LeftSide, TabStatusView(self._theme, self._pulse))
        close = IconButton(self._theme, "x", tr("Close tab"))
        close.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Ctrl+W and Delete close it; 50 Tab stops would not help
        close.clicked.connect(lambda: self.close_requested.emit(key))
        self.setTabButton(index, QTabBar.ButtonPosition.RightSide, close)
        self.show_state(key, state)
        if self.count() == 1:
            self.chosen.emit(key)

    def show_state(self, key: str, state: TabState) -> None:
        """Update a tab if it has changed: each change lays out the whole bar."""
        if self._states.get(key) == state:
            return
        self._states[key] = state
        self._move_pinned_left()
        index = self.keys.index(key)
        mark = self.tabButton(index, QTabBar.ButtonPosition.LeftSide)
        close = self.tabButton(index, QTabBar.ButtonPosition.RightSide)
        assert isinstance(mark, TabStatusView)
        mark.show_state(state.state, state.unread)
        close.setVisible(not state.pinned and key in (self.current, self._hovered))
        close.setFixedSize(QSize(0, 0) if state.pinned else close.sizeHint())  # a hidden button keeps its space
        close.setAccessibleName(tr("Close {title}").format(title=state.title))
        self.setTabIcon(index, self._pin_icon() if state.pinned else QIcon())
        self.setTabText(index, state.visible_title.replace("&", "&&"))
        self.setTabToolTip(index, plain_tool_tip(state.accessible_text))
        self.setAccessibleTabName(index, state.accessible_text)

    def go_to(self, key: str) -> None:
        self.setCurrentIndex(self.keys.index(key))

    def step(self, by: int) -> None:
        """Activate the next tab; wraps around."""
        self.setCurrentIndex((self.currentIndex() + by) % self.count())

    def go_to_number(self, number: int) -> None:
        """Activate a tab, counted from 1; 9 is the last tab, as in browsers."""
        index = self.count() - 1 if number == 9 else number - 1
        if index < self.count():
            self.setCurrentIndex(index)

    def remove(self, key: str) -> None:
        index = self.keys.index(key)
        self.tabButton(index, QTabBar.ButtonPosition.LeftSide).hide()  # stops its pulse
        self.removeTab(index)
        self._states.pop(key, None)

    def shift(self, by: int) -> None:
        """Move the current tab, among the pinned ones or among the others."""
        here = self.currentIndex()
        target = here + by
        if 0 <= target < self.count() and self._is_pinned(here) == self._is_pinned(target):
            self.moveTab(here, target)

    def minimumTabSizeHint(self, index: int) -> QSize:
        """Many tabs scroll instead of becoming too narrow to read."""
        size = self.tabSizeHint(index)
        title = self.fontMetrics().horizontalAdvance(self.tabText(index))
        return QSize(size.width() - max(0, title - self._theme.tokens.column // 7), size.height())

    def tabLayoutChange(self) -> None:
        super().tabLayoutChange()
        self.resized.emit()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        position = event.position().toPoint()
        index = self.tabAt(position)
        if event.button() == Qt.MouseButton.MiddleButton and index >= 0:
            self.close_requested.emit(str(self.tabData(index)))
            return
        super().mouseReleaseEvent(event)
        if event.button() != Qt.MouseButton.LeftButton:
            return
        self._move_pinned_left()
        if not -self.height() < position.y() < 2 * self.height():
            self.own_window_requested.emit(self.current, event.globalPosition().toPoint())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self._hover(self.tabAt(event.position().toPoint()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(-1)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll by a tab for each notch. Qt would change the current tab."""
        event.accept()
        turned = event.angleDelta()
        self._turned += turned.y() or turned.x()
        notches = int(self._turned / _NOTCH)
        self._turned -= notches * _NOTCH
        button = self.findChild(QToolButton, "ScrollLeftButton" if notches > 0 else "ScrollRightButton")
        for _ in range(abs(notches)):
            if isinstance(button, QToolButton):
                button.click()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete and self.count():
            self.close_requested.emit(self.current)
            return
        super().keyPressEvent(event)

    def _hover(self, index: int) -> None:
        key = str(self.tabData(index)) if index >= 0 else ""
        if key != self._hovered:
            self._hovered = key
            self._show_close_buttons()

    def _show_close_buttons(self) -> None:
        keys_with_button = (self.current, self._hovered)
        for index, key in enumerate(self.keys):
            state = self._states.get(key)
            button = self.tabButton(index, QTabBar.ButtonPosition.RightSide)
            if state is not None and button.isVisibleTo(self) != (not state.pinned and key in keys_with_button):
                button.setVisible(not state.pinned and key in keys_with_button)

    def _move_pinned_left(self) -> None:
        """Move pinned tabs to the left; both groups keep their order."""
        pinned = [key for key in self.keys if self._states[key].pinned]
        for wanted_index, key in enumerate(pinned):
            index = self.keys.index(key)
            if index != wanted_index:
                self.moveTab(index, wanted_index)

    def _is_pinned(self, index: int) -> bool:
        return self._states[self.keys[index]].pinned

    def _pin_icon(self) -> QIcon:
        return self._theme.icon("pin", "muted")

    def _on_current_changed(self, index: int) -> None:
        self._show_close_buttons()
        if index >= 0 and self.tabData(index) is not None:
            self.chosen.emit(str(self.tabData(index)))

    def _on_menu_requested(self, position: QPoint) -> None:
        """Open the menu of the tab under the mouse; with the menu key, of the current tab."""
        index = self.tabAt(position)
        if index < 0:
            index = self.currentIndex()
            position = self.tabRect(index).center()
        if index >= 0:
            self.menu_requested.emit(str(self.tabData(index)), self.mapToGlobal(position))

    def _on_theme_changed(self) -> None:
        for index in range(self.count()):
            if self._is_pinned(index):
                self.setTabIcon(index, self._pin_icon())
