"""Asks before a conversation is deleted for good: says what goes with it."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from app.window.theme.look import set_look
from app.window.widgets.question_box import QuestionBox


class DeleteDialog(QuestionBox):
    """`accepted` deletes; Enter and Esc keep it."""

    def __init__(self, title: str, messages: int, tasks: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Delete for good")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(f"Delete “{title}” for good?")
        self.setInformativeText(
            f"{_count(messages, 'message')} and {_count(tasks, 'task')} go with it, and the files "
            "Errand keeps for them. What the agents did in your folders stays. This cannot be undone."
        )
        delete = self.addButton("Delete for good", QMessageBox.ButtonRole.AcceptRole)
        keep = self.addButton("Keep it", QMessageBox.ButtonRole.RejectRole)
        set_look(delete, "look", "danger")
        self.set_default(keep)
        self.setEscapeButton(keep)


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
