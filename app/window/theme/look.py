"""Looks: the dynamic properties that the style sheet knows, set in a way that repaints."""

from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QPushButton, QStyleOptionButton, QWidget

ButtonLook = Literal["primary", "plain", "quiet", "danger"]
Tone = Literal["text", "muted", "link", "waiting", "done", "failed"]


def plain_tip(text: str) -> str:
    """A tool tip that shows the text as it is. Qt takes what looks like HTML for that, with its links and pictures."""
    return GuiQt.convertFromPlainText(text) if GuiQt.mightBeRichText(text) else text


def set_tip(widget: QWidget, text: str) -> None:
    """The tool tip of a widget, never read as HTML."""
    widget.setToolTip(plain_tip(text))


def set_look(widget: QWidget, name: str, value: str) -> None:
    """Set the property `name` and let the style sheet look again; nothing happens if it is set already."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    if not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        return  # the first showing polishes; to do it before would lose a font set in between
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)


def push_button(text: str, look: ButtonLook = "plain") -> QPushButton:
    """A button that is reached by Tab, also on systems that skip buttons, and pressed by Enter as by Space."""
    button = _EnterButton(text)
    button.setAccessibleName(text)
    button.setAutoDefault(False)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    set_look(button, "look", look)
    return button


class _EnterButton(QPushButton):
    """Qt presses by Enter only what is a dialog's default, and then from any field of the dialog."""

    def initStyleOption(self, option: QStyleOptionButton) -> None:
        super().initStyleOption(option)
        if not self.icon().isNull():
            # Under a style sheet Qt leaves 2 px between icon and text.
            option.text = f" {self.text()}"  # pyright: ignore[reportAttributeAccessIssue] -- PySide6's stubs leave out the fields of QStyleOption

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and event.modifiers() in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier):
            self.click()
            return
        super().keyPressEvent(event)
