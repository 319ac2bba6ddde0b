"""The data folder: sizes, export, import, cleanup."""

from collections.abc import Coroutine
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from PySide6.QtCore import QRectF, Qt, QUrl, Signal
from PySide6.QtGui import QColor, QDesktopServices, QPainter, QPaintEvent
from PySide6.QtWidgets import QFileDialog, QPushButton, QWidget

from errand.client.number_format import file_size
from errand.client.texts.imports import import_text
from errand.protocol.base import EmptyParams
from errand.protocol.data import (
    DATA_EXPORT,
    DATA_IMPORT,
    DATA_SUMMARY,
    DataExportParams,
    DataImportParams,
    DataPart,
    DataSummaryResult,
    ExportFormat,
)
from errand.text.translation import tr, trn
from errand.window.theme.style import push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.data.cleanup import OrphansView, PruneView
from errand.window.views.settings.data.found_sessions import FoundSessionsView
from errand.window.views.settings.page import EngineCalls, SettingsPageView
from errand.window.widgets.boxes import STRETCH, at_top, fill, hbox, set_vbox
from errand.window.widgets.labels import ElidedLabel, TextLabel
from errand.window.widgets.list_column import ListColumn

_BAR_HEIGHT = 4

_TEXT = tr(
    "Errand stores everything in one folder on this computer. API keys can be in the system keyring "
    "instead, and records on a database server."
)
_MOVE = tr(
    "A complete export contains all branches, records and pictures and can be imported on another "
    "computer. It contains no API keys and no permissions. Web pages and Markdown are for reading. "
    "You can also import sessions and exports from ChatGPT, Claude, Codex, Claude Code, OpenCode, "
    "gemini-cli, goose and pi, as a file, zip or folder."
)
_FORMS: dict[ExportFormat, str] = {"json": "JSON", "markdown": tr("Markdown"), "html": "HTML"}
_MEMORY = tr("Search what's remembered across conversations, forget parts of it, or leave folders out.")
_PRUNE = tr("Delete conversations that were archived long ago. You'll see how many first.")
_ORPHANS = tr("Conversations stay when their last agent is deleted, but nobody answers in them.")


class StorageRowView(QWidget):
    """`largest` is the size of the largest part, in bytes."""

    def __init__(self, theme: Theme, part: DataPart, largest: int) -> None:
        super().__init__()
        head = hbox(
            TextLabel(theme, tr(part.name), bold=True),
            fill(ElidedLabel(theme, tr(part.about), tone="muted")),
            TextLabel(theme, size_label(part)),
            spacing=theme.tokens.space_normal,
        )
        set_vbox(
            self, head, ShareBarView(theme, part.bytes / largest if largest else 0), spacing=theme.tokens.space_tight
        )
        set_tool_tip(self, part.server or part.path)


class ShareBarView(QWidget):
    """A thin bar, filled to `share` of its width; the text beside it says the same."""

    def __init__(self, theme: Theme, share: float) -> None:
        super().__init__()
        self._theme = theme
        self._share = min(1.0, max(0.0, share))
        self.setFixedHeight(_BAR_HEIGHT)
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        radius = _BAR_HEIGHT / 2
        painter.setBrush(QColor(tokens.hover))
        painter.drawRoundedRect(QRectF(self.rect()), radius, radius)
        if self._share:
            width = max(_BAR_HEIGHT, self._share * self.width())
            painter.setBrush(QColor(tokens.accent))
            painter.drawRoundedRect(QRectF(0, 0, width, self.height()), radius, radius)


def size_label(part: DataPart) -> str:
    if not part.files:
        return tr("empty")
    size = file_size(part.bytes)
    return size if part.files == 1 else trn("{size} in {n} file", "{size} in {n} files", part.files).format(size=size)


class DataPageView(SettingsPageView):
    """`memory_requested` asks for the window of memory."""

    memory_requested = Signal()

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme, tr("Data"), _TEXT)
        self._calls = calls
        self._folder = ""
        self._facts = TextLabel(theme, wrap=True, tone="muted")
        self._path_label = TextLabel(theme, mono=True, wrap=True)
        self._open = push_button(tr("Open folder"))
        self._largest = 0
        self._parts = ListColumn(theme.tokens.space_normal, self._part_row, has_lines=False)
        self._export = push_button(tr("Export everything…"))
        self._export_html = push_button(tr("As web pages…"), name=tr("Export everything as web pages…"))
        self._export_markdown = push_button(tr("As Markdown…"), name=tr("Export everything as Markdown…"))
        self._import = push_button(tr("Import…"))
        self._folder_import = push_button(tr("Import folder…"))
        self._found = FoundSessionsView(theme, calls)
        self._memory = push_button(tr("Open memory"))
        self._memory.clicked.connect(self.memory_requested)
        self._progress = TextLabel(theme, tone="muted")
        self._progress.hide()
        self._prune = PruneView(theme, calls)
        self._orphans = OrphansView(theme, calls)
        self._lay_out()
        self._open.clicked.connect(self._on_opened)
        self._export.clicked.connect(self._on_export)
        self._export_html.clicked.connect(partial(self._on_export_pages, "html"))
        self._export_markdown.clicked.connect(partial(self._on_export_pages, "markdown"))
        self._import.clicked.connect(self._on_import)
        self._folder_import.clicked.connect(self._on_folder_import)
        self._prune.confirmation_shown.connect(partial(self.bring_into_view, self._prune))
        self._prune.pruned.connect(self._on_pruned)
        self._found.content_changed.connect(partial(self.bring_into_view, self._found))
        self._found.imported.connect(self._on_pruned)
        self._orphans.confirmation_shown.connect(partial(self.bring_into_view, self._orphans))
        self._orphans.done.connect(self._on_pruned)

    def load(self) -> None:
        self._calls.spawn(self._load(), self.show_failure)

    def export(self, form: ExportFormat, path: str) -> None:
        """Write everything to `path`; replaces an existing file."""
        self._start(tr("Exporting…"), self._write(path, form))

    def import_file(self, path: str) -> None:
        """Import a file."""
        self._start(tr("Importing…"), self._import_file(path))

    def _lay_out(self) -> None:
        tokens = self.theme.tokens
        head = hbox(fill(self._path_label), at_top(self._open), spacing=tokens.space_close)
        self.rows.addLayout(head)
        self.rows.addWidget(self._facts)
        self.rows.addLayout(self._parts)
        self.add_section(tr("Export and import"), _MOVE)
        for group in self._buttons():
            self.rows.addLayout(hbox(*group, STRETCH, spacing=tokens.space_close))
        self.rows.addWidget(self._found)
        self.rows.addWidget(self._progress)
        self.add_section(tr("Memory"), _MEMORY)
        self.rows.addWidget(self._memory, 0, Qt.AlignmentFlag.AlignLeft)
        self.add_section(tr("Delete old conversations"), _PRUNE)
        self.rows.addWidget(self._prune)
        self.add_section(tr("Conversations without an agent"), _ORPHANS)
        self.rows.addWidget(self._orphans)

    async def _load(self) -> None:
        self._show(await self._calls.call(DATA_SUMMARY, EmptyParams()))

    def _show(self, found: DataSummaryResult) -> None:
        self._folder = found.folder
        self._path_label.setText(found.folder)
        total_bytes = sum(part.bytes for part in found.parts)
        facts = [
            trn("{n} conversation", "{n} conversations", found.conversations),
            trn("{n} archived", "{n} archived", found.archived),
            tr("{size} used").format(size=file_size(total_bytes)),
            tr("{size} free").format(size=file_size(found.free_bytes)),
        ]
        facts += [tr("records in database {server}").format(server=part.server) for part in found.parts if part.server]
        self._facts.setText(" · ".join(facts))
        self._largest = max((part.bytes for part in found.parts), default=0)
        self._parts.show_items({part.name: part for part in found.parts})

    def _part_row(self, part: DataPart) -> StorageRowView:
        return StorageRowView(self.theme, part, self._largest)

    async def _write(self, path: str, form: ExportFormat) -> None:
        params = DataExportParams(path=path, format=form, overwrite=True)
        done = await self._calls.call(DATA_EXPORT, params)
        notice = tr("Exported {conversations}, {messages} to {path} ({size}).").format(
            conversations=trn("{n} conversation", "{n} conversations", done.conversations),
            messages=trn("{n} message", "{n} messages", done.nodes),
            path=done.path,
            size=file_size(done.bytes),
        )
        self.banner.show_message(notice, "done")

    async def _import_file(self, path: str) -> None:
        done = await self._calls.call(DATA_IMPORT, DataImportParams(path=path))
        self.banner.show_message(" ".join(import_text(done)), "done")
        await self._load()

    def _start(self, words: str, work: Coroutine[None, None, None]) -> None:
        self.banner.hide()
        self._progress.setText(words)
        self._set_busy(True)
        self._calls.spawn(self._run_to_end(work), self.show_failure)

    async def _run_to_end(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        finally:
            self._set_busy(False)

    def _set_busy(self, busy: bool) -> None:
        self._progress.setVisible(busy)
        for group in self._buttons():
            for button in group:
                button.setEnabled(not busy)

    def _buttons(self) -> tuple[tuple[QPushButton, ...], ...]:
        return (self._export, self._export_html, self._export_markdown), (self._import, self._folder_import)

    def _on_opened(self) -> None:
        if self._folder:
            QDesktopServices.openUrl(QUrl.fromLocalFile(self._folder))

    def _on_export(self) -> None:
        dialog = self._dialog(tr("Export everything"), f"errand-{datetime.now(UTC).astimezone():%Y-%m-%d}.jsonl")
        dialog.fileSelected.connect(partial(self.export, "json"))
        dialog.open()

    def _on_export_pages(self, form: ExportFormat) -> None:
        name = f"errand-{datetime.now(UTC).astimezone():%Y-%m-%d}-{form}"
        dialog = self._dialog(tr("Folder for {format} files").format(format=_FORMS[form]), name)
        dialog.fileSelected.connect(partial(self.export, form))
        dialog.open()

    def _on_import(self) -> None:
        dialog = self._import_dialog(tr("Import conversations"), QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([tr("Exports and sessions (*.jsonl *.json *.zip)"), tr("All files (*)")])
        dialog.open()

    def _on_folder_import(self) -> None:
        self._import_dialog(tr("Import all conversations in a folder"), QFileDialog.FileMode.Directory).open()

    def _import_dialog(self, title: str, mode: QFileDialog.FileMode) -> QFileDialog:
        dialog = QFileDialog(self, title, str(Path.home()))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(mode)
        dialog.fileSelected.connect(self.import_file)
        return dialog

    def _dialog(self, title: str, name: str) -> QFileDialog:
        """Make the dialog, which asks itself before a file is overwritten."""
        dialog = QFileDialog(self, title, str(Path.home()))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(name)
        return dialog

    def _on_pruned(self, words: str) -> None:
        self.banner.show_message(words, "done")
        self.load()
