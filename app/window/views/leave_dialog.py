"""Said once when the window is closed while tasks run: they go on."""

from PySide6.QtWidgets import QMessageBox, QWidget

from app.window.widgets.question_box import QuestionBox


class LeaveDialog(QuestionBox):
    """`accepted` closes the window."""

    def __init__(self, running: int, parent: QWidget) -> None:
        super().__init__(parent)
        tasks = "One task goes on" if running == 1 else f"{running} tasks go on"
        self.setWindowTitle("Errand keeps working")
        self.setText(f"{tasks} without the window.")
        self.setInformativeText(
            "The engine works on in the background, and what waits for you waits. Open Errand again to look at it. "
            "To stop a task, stay and stop it here."
        )
        leave = self.addButton("Close the window", QMessageBox.ButtonRole.AcceptRole)
        stay = self.addButton("Stay", QMessageBox.ButtonRole.RejectRole)
        self.set_default(leave)
        self.setEscapeButton(stay)
