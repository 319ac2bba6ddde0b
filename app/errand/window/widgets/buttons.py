"""Buttons: icon, copy, multi-line choice; and tool tips that name the shortcut."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QKeySequence, QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QToolButton, QWidget

from errand.text.translation import tr
from errand.window.theme.style import commit_composition, focus_by_keys, pressed_by_enter, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.labels import TextLabel

_SHOWN_MS = 1500
_DIGITS = 9


class IconButton(QToolButton):
    """`large` uses the 20 px icon. `shortcut` is only shown in the tool tip, not bound."""

    def __init__(
        self,
        theme: Theme,
        icon: str,
        name: str,
        *,
        large: bool = False,
        primary: bool = False,
        shortcut: str = "",
    ) -> None:
        super().__init__()
        self._theme = theme
        self._icon = icon
        self._primary = primary
        self._shortcut = shortcut
        pixels = theme.tokens.icon_large if large else theme.tokens.icon_small
        self.setIconSize(QSize(pixels, pixels))
        focus_by_keys(self)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        if primary:
            set_style(self, "look", "primary")
        self.set_icon_and_name(icon, name)
        theme.changed.connect(self._on_theme_changed)

    def set_icon_and_name(self, icon: str, name: str) -> None:
        """Change icon and name, as when send becomes stop."""
        self._icon = icon
        self.setAccessibleName(name)
        set_tool_tip(self, f"{name} ({native_keys(self._shortcut)})" if self._shortcut else name)
        self._on_theme_changed()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        commit_composition()
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def _on_theme_changed(self) -> None:
        self.setIcon(self._theme.icon(self._icon, "on_accent" if self._primary else "muted"))


class ChoiceButton(QPushButton):
    """An inner label shows `text`, so that it wraps. Enter presses the button, as Space does.

    `number` is shown before the text; 0 and numbers above 9 are not.
    """

    def __init__(self, theme: Theme, text: str, number: int = 0) -> None:
        super().__init__()
        self.setAccessibleName(text)
        self.setAutoDefault(False)
        focus_by_keys(self)
        set_style(self, "look", "choice")
        self._label = TextLabel(theme, text)
        self._label.setWordWrap(True)
        self._label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        row = QHBoxLayout(self)
        tokens = theme.tokens
        row.setContentsMargins(tokens.space_normal, 6, tokens.space_normal, 6)
        row.setSpacing(tokens.space_close)
        if 0 < number <= _DIGITS:
            digit = TextLabel(theme, str(number), tone="muted")
            digit.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            row.addWidget(digit, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._label, 1)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def sizeHint(self) -> QSize:
        layout = self.layout()
        assert layout is not None
        margins = layout.contentsMargins()
        text_size = self._label.fontMetrics().size(0, self._label.text())
        return QSize(text_size.width() + margins.left() + margins.right() + 4, text_size.height() + 12)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self._label.fontMetrics().height() + 12)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        layout = self.layout()
        assert layout is not None
        return layout.totalHeightForWidth(width)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)


class CopyButton(QToolButton):
    def __init__(self, theme: Theme, name: str, copy: Callable[[], None], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._name = name
        self._copy = copy
        self._revert_timer = QTimer(self, singleShot=True, interval=_SHOWN_MS)
        self._revert_timer.timeout.connect(self._revert)
        self.setAutoRaise(True)
        focus_by_keys(self)
        self.setIconSize(QSize(theme.tokens.icon_small, theme.tokens.icon_small))
        self.clicked.connect(self._on_clicked)
        theme.changed.connect(self._revert)
        self._revert()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def _on_clicked(self) -> None:
        self._copy()
        self._show("check", "done_mark", tr("Copied"))
        self._revert_timer.start()

    def _revert(self) -> None:
        self._show("copy", "muted", self._name)

    def _show(self, icon: str, colour: str, name: str) -> None:
        self.setIcon(self._theme.icon(icon, colour))
        set_tool_tip(self, name)
        self.setAccessibleName(name)


def native_keys(keys: str) -> str:
    """Keys such as `Ctrl+Del` in the platform's notation and the chosen language."""
    return QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText)


class ShortcutToolTip(QObject):
    """`text`, followed by the shortcut of the window's action `name` if it has one."""

    def __init__(self, control: QWidget, text: str, action: str) -> None:
        super().__init__(control)
        self._control = control
        self._text = text
        self._action = action
        set_tool_tip(control, text)
        control.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip:
            keys = self._keys()
            set_tool_tip(self._control, f"{self._text} ({keys})" if keys else self._text)
        return False

    def _keys(self) -> str:
        entries = (entry for entry in self._control.window().actions() if entry.objectName() == self._action)
        return "".join(entry.shortcut().toString(QKeySequence.SequenceFormat.NativeText) for entry in entries)
