"""Asks before an agent is taken out of a conversation: says what stays."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from app.window.theme.look import set_look
from app.window.widgets.question_box import QuestionBox


class RemoveAgentDialog(QuestionBox):
    """`accepted` removes it; Enter and Esc keep it."""

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Remove an agent")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(f"Remove {name} from this conversation?")
        self.setInformativeText(
            "What it wrote stays, under its name. Its branches stay too: go to them by the tree. "
            "A task of it that was interrupted cannot be resumed any more."
        )
        remove = self.addButton("Remove", QMessageBox.ButtonRole.AcceptRole)
        keep = self.addButton("Keep it", QMessageBox.ButtonRole.RejectRole)
        set_look(remove, "look", "danger")
        self.set_default(keep)
        self.setEscapeButton(keep)
