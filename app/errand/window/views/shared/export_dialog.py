"""Asks for the file and the format of an export."""

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from errand.protocol.data import ExportFormat
from errand.text.translation import tr

_READING: dict[str, ExportFormat] = {
    tr("Web page with pictures (*.html)"): "html",
    tr("Markdown (*.md)"): "markdown",
}
_KEEPING_ALL = tr("Complete export with all branches (*.jsonl)")
_KEEPING_ONE = tr("Complete export (*.jsonl)")
_ENDINGS: dict[ExportFormat, str] = {"html": "html", "markdown": "md", "json": "jsonl"}
_MAX_NAME_LENGTH = 60


class ExportDialog(QFileDialog):
    """`chosen` gives the format and the path; the dialog itself asks before a file is overwritten."""

    chosen = Signal(str, str)

    def __init__(self, title: str, parent: QWidget, *, of_branch: bool = False) -> None:
        super().__init__(parent, tr("Export branch") if of_branch else tr("Export conversation"), str(Path.home()))
        self._forms: dict[str, ExportFormat] = {**_READING, _KEEPING_ONE if of_branch else _KEEPING_ALL: "json"}
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        self.setNameFilters(list(self._forms))
        self.selectFile(file_name(title))
        self._on_filter(self.selectedNameFilter())
        self.filterSelected.connect(self._on_filter)
        self.fileSelected.connect(self._on_selected)

    @property
    def format(self) -> ExportFormat:
        return self._forms[self.selectedNameFilter()]

    def _on_filter(self, chosen: str) -> None:
        self.setDefaultSuffix(_ENDINGS[self._forms[chosen]])

    def _on_selected(self, path: str) -> None:
        self.chosen.emit(self.format, path)


def file_name(title: str) -> str:
    """Return the title reduced to characters that every system allows in file names."""
    file_stem = "-".join("".join(letter if letter.isalnum() else " " for letter in title).split())
    return file_stem[:_MAX_NAME_LENGTH].strip("-") or "conversation"
