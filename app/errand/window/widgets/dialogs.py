"""Base dialogs: a question with a safe default button, and a frameless panel; sizes that fit the screen."""

import ctypes
import functools

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter, QPaintEvent, QScreen, QShowEvent
from PySide6.QtWidgets import QDialog, QMessageBox, QPushButton, QWidget

from errand.text.translation import tr
from errand.window.theme.style import paint_rounded, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.input.reaction_time import ReactionTime

# What a window manager adds: borders and a title.
_FRAME = QSize(16, 48)


def resize_on_screen(window: QWidget, width: int, height: int) -> None:
    """Resize a window, within the screen of its parent, and keep it within the screen when it is shown again there."""
    room = (window.parentWidget() or window).screen().availableSize() - _FRAME
    window.resize(QSize(width, height).boundedTo(room))
    if window.findChild(ScreenFit, options=Qt.FindChildOption.FindDirectChildrenOnly) is None:
        ScreenFit(window)


class ScreenFit(QObject):
    """Keeps a window within its screen: when it is shown, and when the screen changes its size or is taken away."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._screen: QScreen | None = None
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and not event.spontaneous():
            self._fit()
        return False

    def _fit(self) -> None:
        window = self._window
        screen = QGuiApplication.screenAt(window.frameGeometry().center()) or window.screen()
        self._follow(screen)
        if window.isMaximized() or window.isFullScreen():
            return
        room = screen.availableGeometry()
        window.resize(window.size().boundedTo(room.size() - _FRAME))
        frame = window.frameGeometry()
        if window.testAttribute(Qt.WidgetAttribute.WA_Moved) and not room.contains(frame):
            left = max(room.left(), min(frame.left(), room.right() + 1 - frame.width()))
            window.move(left, max(room.top(), min(frame.top(), room.bottom() + 1 - frame.height())))

    def _follow(self, screen: QScreen) -> None:
        if self._screen is screen:
            return
        if self._screen is not None:
            self._screen.availableGeometryChanged.disconnect(self._on_screen_changed)
        self._screen = screen
        screen.availableGeometryChanged.connect(self._on_screen_changed)
        screen.destroyed.connect(self._on_screen_removed)

    def _on_screen_changed(self) -> None:
        if self._window.isVisible():
            self._fit()

    def _on_screen_removed(self) -> None:
        self._screen = None
        QTimer.singleShot(0, self, self._on_screen_changed)  # Qt moves the window to another screen first


def move_on_screen(popup: QWidget, corner: QPoint) -> None:
    """Move a popup to this corner, or as near to it as the screen of its parent has room for all of it."""
    room = (popup.parentWidget() or popup).screen().availableGeometry()
    left = min(corner.x(), room.right() + 1 - popup.width())
    top = min(corner.y(), room.bottom() + 1 - popup.height())
    popup.move(max(left, room.left()), max(top, room.top()))


def bring_to_front(window: QWidget) -> None:
    """Show a window above the others, with the keyboard."""
    window.show()
    window.raise_()
    window.activateWindow()


class QuestionDialog(QMessageBox):
    """Restores its default button: on a style change, such as dark mode, Qt makes the first button the default.

    It may appear while a person types or clicks, so its buttons work once they had time to see it.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._default: QPushButton | None = None
        self._reaction_time = ReactionTime(self)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        for button in self.buttons():
            button.installEventFilter(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._reaction_time.is_over or event.key() == Qt.Key.Key_Escape:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        presses = (QEvent.Type.KeyPress, QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonDblClick)
        is_early = event.type() in presses and not self._reaction_time.is_over
        return is_early and not (isinstance(event, QKeyEvent) and event.key() in (Qt.Key.Key_Escape, Qt.Key.Key_Tab))

    def set_default(self, button: QPushButton) -> None:
        self._default = button
        self.setDefaultButton(button)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            QTimer.singleShot(0, self, self._restore)  # the buttons receive the style change after this event

    def _restore(self) -> None:
        if self._default is not None:
            self.setDefaultButton(self._default)


class ConfirmDialog(QuestionDialog):
    """A question with a button that goes ahead, and Cancel. `accepted` goes ahead; Esc cancels, and so does Enter.

    With `is_danger` false the button that goes ahead looks like any other.
    """

    def __init__(
        self, parent: QWidget, title: str, question: str, details: str, confirm: str, *, is_danger: bool = True
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(question)
        self.setInformativeText(details)
        self.confirm = self.addButton(confirm, QMessageBox.ButtonRole.AcceptRole)
        cancel = self.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole)
        if is_danger:
            set_style(self.confirm, "look", "danger")
        self.set_default(cancel)
        self.setEscapeButton(cancel)


@functools.cache
def has_compositor() -> bool:
    """False on an X11 screen without a compositor: what is transparent elsewhere is black there.

    Asked once: Qt does not tell, and a compositor that is started later is rare.
    """
    if QGuiApplication.platformName() != "xcb":
        return True
    try:
        x11 = ctypes.CDLL("libX11.so.6")
    except OSError:
        return True
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
    x11.XInternAtom.restype = ctypes.c_ulong
    x11.XGetSelectionOwner.argtypes = (ctypes.c_void_p, ctypes.c_ulong)
    x11.XGetSelectionOwner.restype = ctypes.c_ulong
    x11.XDefaultScreen.argtypes = x11.XCloseDisplay.argtypes = (ctypes.c_void_p,)
    display: int | None = x11.XOpenDisplay(None)
    if display is None:
        return True
    # The compositor of a screen owns this selection: "Compositing Managers" of the EWMH specification.
    selection = x11.XInternAtom(display, f"_NET_WM_CM_S{x11.XDefaultScreen(display)}".encode(), 0)
    owner: int = x11.XGetSelectionOwner(display, selection)
    x11.XCloseDisplay(display)
    return owner != 0


class FramelessDialog(QDialog):
    """Paints its background itself: Qt does not paint style-sheet backgrounds of translucent windows.

    Its corners are round only where they can be transparent.
    """

    def __init__(self, theme: Theme, kind: Qt.WindowType, parent: QWidget | None = None) -> None:
        super().__init__(parent, kind | Qt.WindowType.FramelessWindowHint)
        self._look = theme
        self._has_round_corners = has_compositor()
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground, self._has_round_corners)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._look.tokens
        painter = QPainter(self)
        radius = tokens.radius_card if self._has_round_corners else 0
        paint_rounded(painter, self.rect(), radius, fill=tokens.raised, line=tokens.outline)
        painter.end()
