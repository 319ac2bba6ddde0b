"""Asks where an imported conversation is to work before anything is begun in it: its file names a folder."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from app.client.characters import exact
from app.window.stores.requests import WorkspaceQuestion
from app.window.widgets.question_box import QuestionBox


class WorkspaceDialog(QuestionBox):
    """Shows the whole path. Esc and Enter begin nothing."""

    def __init__(self, question: WorkspaceQuestion, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Folder to work in")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(f"Work in {exact(question.proposed)}?")
        self.setInformativeText(
            "This conversation was imported, and its file names this folder. Its agents would read the files there "
            "without asking, and change them when you allow it."
        )
        self._question = question
        self._there = self.addButton("Work there", QMessageBox.ButtonRole.AcceptRole)
        self._own = self.addButton("Use a new folder", QMessageBox.ButtonRole.ActionRole)
        cancel = self.addButton(QMessageBox.StandardButton.Cancel)
        self.set_default(cancel)
        self.setEscapeButton(cancel)
        self.finished.connect(self._on_finished)

    def _on_finished(self) -> None:
        pressed = self.clickedButton()
        if pressed is self._there:
            self._question.settle(self._question.proposed)
        else:
            self._question.settle(self._question.own if pressed is self._own else None)
