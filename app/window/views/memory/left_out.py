"""The folders that memory leaves out, each with a button that takes it back."""

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QVBoxLayout, QWidget

from app.client.safe_text import escape_hidden_line
from app.window.stores.memory import LeftOutFolder, LeftOutStore
from app.window.theme.style import push_button
from app.window.theme.theme import Theme
from app.window.views.memory.texts import left_out_text
from app.window.widgets.containers import clear_layout
from app.window.widgets.labels import TextLabel


class LeftOutView(QWidget):
    def __init__(self, store: LeftOutStore, theme: Theme) -> None:
        super().__init__()
        self._store = store
        self._theme = theme
        self._add = push_button("Leave a folder out …")
        self._rows = QVBoxLayout()
        self._rows.setSpacing(theme.tokens.space_close)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        column.addLayout(self._rows)
        column.addWidget(self._add, 0, Qt.AlignmentFlag.AlignLeft)
        self._add.clicked.connect(self._on_add_clicked)
        store.changed.connect(self._show)

    def _show(self) -> None:
        clear_layout(self._rows)
        for folder in self._store.folders:
            self._rows.addWidget(self._row(folder))
        if not self._store.folders:
            self._rows.addWidget(TextLabel(self._theme, "No folder is left out.", tone="muted"))

    def _row(self, folder: LeftOutFolder) -> QWidget:
        name = escape_hidden_line(folder.path)
        back = push_button("Take back")
        back.setAccessibleName(f"Remember and recall again: {name}")
        back.clicked.connect(partial(self._store.take_back, folder.path))
        view = QWidget()
        row = QHBoxLayout(view)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(self._theme.tokens.space_close)
        row.addWidget(TextLabel(self._theme, f"{name}: {left_out_text(folder)}", wrap=True), 1)
        row.addWidget(back)
        return view

    def _on_add_clicked(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Folder that memory leaves out")
        if folder:
            self._store.leave_out(folder)
