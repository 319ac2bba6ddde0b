"""Applies the theme to widgets: style-sheet properties, tool tips, buttons, painting with tokens."""

from typing import Literal

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QGuiApplication, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QAbstractButton, QCheckBox, QPushButton, QStyleOptionButton, QWidget

from errand.window.theme.tokens import DesignTokens

ButtonStyle = Literal["primary", "plain", "quiet", "row", "danger"]
Tone = Literal["text", "muted", "link", "waiting", "done", "failed"]

_RING = 2.0


def plain_tool_tip(text: str) -> str:
    """Escape a tool tip: Qt renders text that looks like HTML as HTML, with its links and images."""
    return GuiQt.convertFromPlainText(text) if GuiQt.mightBeRichText(text) else text


def set_tool_tip(widget: QWidget, text: str) -> None:
    """Set the tool tip of a widget as plain text, never as HTML."""
    widget.setToolTip(plain_tool_tip(text))


def set_style(widget: QWidget, name: str, value: str) -> None:
    """Set the property `name` and reapply the style sheet; does nothing if the value is unchanged."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    if not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        return  # Qt polishes it when first shown; polishing now would lose a font that is set in between
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)


def focus_by_keys(control: QWidget) -> None:
    """Put a control into the Tab order.

    A click leaves the focus where it was, so that a ring is seen only after keyboard use, and typing goes on.
    """
    control.setFocusPolicy(Qt.FocusPolicy.TabFocus)


def push_button(text: str, look: ButtonStyle = "plain", *, name: str = "") -> QPushButton:
    """Return a button in the Tab order, also on systems that skip buttons. Enter presses it, as Space does.

    Screen readers say `name` where the text alone does not say what the button is for.
    """
    button = _EnterButton(text)
    button.setAccessibleName(name or text)
    button.setAutoDefault(False)
    focus_by_keys(button)
    set_style(button, "look", look)
    return button


def check_box(text: str = "", *, name: str = "") -> QCheckBox:
    """Return a check box in the Tab order. Screen readers say `name` instead of its text."""
    box = QCheckBox(text)
    box.setAccessibleName(name)
    focus_by_keys(box)
    return box


def pressed_by_enter(button: QAbstractButton, event: QKeyEvent) -> bool:
    """Click the button if the key is Enter, once while it is held. Qt's own buttons are pressed by Space alone."""
    is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
    if is_enter and event.modifiers() in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier):
        if not event.isAutoRepeat():
            button.click()
        return True
    return False


def commit_composition() -> None:
    """Complete what an input method composes: a click on a button leaves the focus in the field."""
    QGuiApplication.inputMethod().commit()


class _EnterButton(QPushButton):
    """Enter presses it when focused. Qt's own Enter presses only a dialog's default button, from any field."""

    def initStyleOption(self, option: QStyleOptionButton) -> None:
        super().initStyleOption(option)
        if not self.icon().isNull():
            # Under a style sheet Qt leaves only 2 px between icon and text.
            option.text = f" {self.text()}"  # pyright: ignore[reportAttributeAccessIssue] -- PySide6's stubs omit the fields of QStyleOption

    def sizeHint(self) -> QSize:
        """Return the size with the space before the text, which Qt does not count."""
        hint = super().sizeHint()
        return hint if self.icon().isNull() else hint + QSize(self.fontMetrics().horizontalAdvance(" "), 0)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        commit_composition()
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)


def colour(name: str) -> QColor:
    return QColor(name)


def brush(name: str) -> QBrush:
    return QBrush(QColor(name))


def paint_rounded(painter: QPainter, rect: QRect, radius: float, *, fill: str = "", line: str = "") -> None:
    """A rounded rectangle: filled, or with a hairline inside its edge, or both."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(brush(fill) if fill else QBrush(Qt.BrushStyle.NoBrush))
    painter.setPen(QPen(QColor(line)) if line else QPen(Qt.PenStyle.NoPen))
    edge = 0.5 if line else 0.0
    painter.drawRoundedRect(QRectF(rect).adjusted(edge, edge, -edge, -edge), radius, radius)


def paint_focus_ring(
    painter: QPainter, rect: QRect, tokens: DesignTokens, radius: float, *, on_accent: bool = False
) -> None:
    """The focus ring: two pixels inside the edge."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(QBrush(Qt.BrushStyle.NoBrush))
    painter.setPen(QPen(QColor(tokens.on_accent if on_accent else tokens.focus), _RING))
    painter.drawRoundedRect(QRectF(rect).adjusted(1, 1, -1, -1), radius, radius)
