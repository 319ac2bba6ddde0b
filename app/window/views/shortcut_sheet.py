"""The sheet of keyboard shortcuts, made from the table of actions."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QWidget

from app.window.shortcuts import Shortcuts, native
from app.window.theme.theme import Theme
from app.window.views.actions import ACTIONS
from app.window.widgets.text_label import TextLabel

_IN_COMPOSER = (
    ("Send; steer a task at work; reply to a question", "Enter"),
    ("A new line", "Shift+Enter"),
    ("Queue for after the work at hand", "Alt+Enter"),
    ("Close what is open; stop the task by a second Esc", "Esc"),
    ("Bring back the last message", "Up"),
    ("Go to a tab by its number", "Ctrl+1 … 9"),
)


class ShortcutDialog(QDialog):
    """Closed by Esc."""

    def __init__(self, theme: Theme, shortcuts: Shortcuts, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keyboard shortcuts")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        tokens = theme.tokens
        grid = QGridLayout(self)
        grid.setContentsMargins(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_far)
        grid.setHorizontalSpacing(2 * tokens.space_far)
        grid.setVerticalSpacing(tokens.space_close)
        keyed = [(action, shortcuts.keys(action.name)) for action in ACTIONS]
        lines = [(action.text, ", ".join(map(native, keys))) for action, keys in keyed if keys]
        for place, (text, keys) in enumerate((*lines, *_IN_COMPOSER)):
            grid.addWidget(TextLabel(theme, text), place, 0)
            grid.addWidget(TextLabel(theme, keys, tone="muted"), place, 1, Qt.AlignmentFlag.AlignRight)
