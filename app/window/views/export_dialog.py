"""Asks where a conversation is written to, and as what: the ending of the name says which form it has."""

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.protocol.data import ExportFormat

_FILTERS: dict[str, ExportFormat] = {
    "Page for reading, with pictures (*.html)": "html",
    "Markdown for reading (*.md)": "markdown",
    "For keeping and importing, with all branches (*.jsonl)": "json",
}
_ENDINGS: dict[ExportFormat, str] = {"html": "html", "markdown": "md", "json": "jsonl"}
_LONGEST_NAME = 60


class ExportDialog(QFileDialog):
    """`chosen` gives the form and the path; it asks by itself before a file is overwritten."""

    chosen = Signal(str, str)

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(parent, "Export conversation", str(Path.home()))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        self.setNameFilters(list(_FILTERS))
        self.selectFile(file_name(title))
        self._on_filter(self.selectedNameFilter())
        self.filterSelected.connect(self._on_filter)
        self.fileSelected.connect(self._on_selected)

    @property
    def form(self) -> ExportFormat:
        return _FILTERS[self.selectedNameFilter()]

    def _on_filter(self, chosen: str) -> None:
        self.setDefaultSuffix(_ENDINGS[_FILTERS[chosen]])

    def _on_selected(self, path: str) -> None:
        self.chosen.emit(self.form, path)


def file_name(title: str) -> str:
    """Of a title what every system takes as a name."""
    words = "-".join("".join(letter if letter.isalnum() else " " for letter in title).split())
    return words[:_LONGEST_NAME].strip("-") or "conversation"
