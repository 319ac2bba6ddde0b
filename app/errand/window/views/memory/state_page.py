"""The page of the state: numbers and sizes, the model, clean-up, what is left out, and the audit."""

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from errand.client.number_format import file_size
from errand.client.safe_text import escape_hidden_line, plain
from errand.client.texts.embedding_model import download_text, finds_meanings, multilingual_text, percent_done
from errand.client.texts.forgetting import being_removed
from errand.protocol.memory import EmbeddingModel, MemoryLogEntry, MemoryPruneResult, MemoryStatsResult
from errand.text.translation import grouped, tr, trn
from errand.window.stores.memory.entries import LeftOutFolder, LeftOutStore, MemoryStateStore
from errand.window.stores.memory.shared_folders import SharedFoldersStore
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.views.memory.clean_up import CleanUpView
from errand.window.views.memory.shared_folders import SharedFoldersView
from errand.window.views.memory.texts import left_out_text, log_line, model_text
from errand.window.widgets.boxes import at_left, fill, set_at_top, set_hbox, set_vbox, vbox
from errand.window.widgets.containers import hairline, vertical_scroll_area
from errand.window.widgets.forms.form import form
from errand.window.widgets.labels import TextLabel
from errand.window.widgets.list_column import ListColumn
from errand.window.widgets.progress import ProgressView

_LEFT_OUT = tr(
    "Conversations in these folders and their subfolders are left out of memory. To leave out a "
    "single conversation, use its menu in the list."
)
_OTHER_FOLDERS = tr(
    "Whether agents are given what was said in conversations of other folders. Pinned facts are told everywhere."
)
_EXPORT = tr("All facts and entries in one file: Markdown to read, or JSON lines for programs.")
_CLEAN_UP = tr("Memory is built from your conversations. Nothing here changes them.")


class ModelView(QWidget):
    """The state of the embedding model. `download_wanted` gives True to start or resume, False to cancel."""

    download_wanted = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._text = TextLabel(theme, wrap=True)
        self._folder = TextLabel(theme, size=theme.tokens.size_small, tone="muted", mono=True, wrap=True)
        self._progress = ProgressView(theme, tr("Embedding model download"))
        self._start, self._cancel = (
            push_button(tr("Download"), "primary", name=tr("Download the embedding model")),
            push_button(tr("Cancel"), name=tr("Cancel download")),
        )
        set_vbox(
            self,
            self._text,
            self._progress,
            self._folder,
            at_left(self._start),
            at_left(self._cancel),
            spacing=theme.tokens.space_tight,
        )
        self._start.clicked.connect(lambda: self._ask(True))
        self._cancel.clicked.connect(lambda: self._ask(False))

    def show_model(self, model: EmbeddingModel) -> None:
        is_downloading = model.status == "downloading"
        had_focus = self._start.hasFocus() or self._cancel.hasFocus()
        self._text.setText(model_text(model))
        self._text.set_tone("failed" if model.status == "failed" else "text")
        self._text.setVisible(not is_downloading)
        self._folder.setText(plain(model.folder))
        self._folder.setVisible(bool(model.folder))
        self._progress.setVisible(is_downloading)
        if is_downloading:
            self._progress.show_progress(download_text(model), model.done, model.total)
        self._start.setText(
            tr("Try again") if model.status == "failed" else tr("Continue") if model.done else tr("Download")
        )
        self._start.setVisible(model.status in ("missing", "failed"))
        self._cancel.setVisible(is_downloading)
        for button in (self._start, self._cancel):
            button.setEnabled(True)
            if had_focus and not button.isHidden():
                button.setFocus()

    def _ask(self, wanted: bool) -> None:
        for button in (self._start, self._cancel):
            button.setEnabled(False)  # until the engine has answered
        self.download_wanted.emit(wanted)

    def allow_again(self) -> None:
        """The engine refused."""
        for button in (self._start, self._cancel):
            button.setEnabled(True)


class NumbersView(QWidget):
    """Counts and sizes as the engine gives them, and how far the indexing is."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._problem = TextLabel(theme, tone="waiting", wrap=True)
        self._advice = TextLabel(theme, multilingual_text(), size=theme.tokens.size_small, tone="muted", wrap=True)
        self._progress = ProgressView(theme, tr("Indexing"))
        self._most_to_index = 0  # since there was something to index
        self._values = {
            name: TextLabel(theme)
            for name in (
                tr("Entries"),
                tr("With vectors"),
                tr("Pruned"),
                tr("Being removed"),
                tr("Search index"),
                tr("Vectors"),
            )
        }
        tokens = theme.tokens
        numbers = form(
            theme,
            *self._values.items(),
            spacing=tokens.space_tight,
            column_spacing=tokens.space_far,
            label_tone="muted",
        )
        set_vbox(self, self._problem, self._progress, numbers, self._advice, spacing=theme.tokens.space_close)

    @property
    def texts(self) -> dict[str, str]:
        return {name: value.text() for name, value in self._values.items()}

    def show_stats(self, stats: MemoryStatsResult) -> None:
        self._problem.setText(plain(stats.problem))
        self._problem.setVisible(bool(stats.problem))
        self._advice.setVisible(stats.other_languages and stats.model.status == "ready")
        texts = {
            tr("Entries"): grouped(stats.entries),
            tr("With vectors"): grouped(stats.vectors),
            tr("Pruned"): grouped(stats.pruned),
            tr("Being removed"): grouped(stats.to_remove),
            tr("Search index"): file_size(stats.index_bytes),
            tr("Vectors"): file_size(stats.vector_bytes),
        }
        for name, text in texts.items():
            self._values[name].setText(text)
        self._most_to_index = max(self._most_to_index, stats.to_index) if stats.to_index else 0
        if stats.to_index:
            percent = percent_done(self._most_to_index - stats.to_index, stats.to_index)
            progress_text = trn(
                "{n} message left to index · {percent} %", "{n} messages left to index · {percent} %", stats.to_index
            ).format(percent=percent)
            self._progress.show_progress(progress_text, self._most_to_index - stats.to_index, self._most_to_index)
        elif stats.to_embed and finds_meanings(stats.model):
            percent = percent_done(stats.vectors, stats.to_embed)
            progress_text = trn(
                "{n} entry without a vector · {percent} %", "{n} entries without a vector · {percent} %", stats.to_embed
            ).format(percent=percent)
            self._progress.show_progress(progress_text, stats.vectors, stats.vectors + stats.to_embed)
        else:
            self._progress.hide()


class LeftOutView(QWidget):
    """The folders that memory leaves out, each with a button that takes it back."""

    def __init__(self, store: LeftOutStore, theme: Theme) -> None:
        super().__init__()
        self._store = store
        self._theme = theme
        self._add = push_button(tr("Exclude folder…"))
        self._rows = ListColumn(theme.tokens.space_close, self._row, make_empty=self._empty, has_lines=False)
        set_vbox(self, self._rows, at_left(self._add), spacing=theme.tokens.space_close)
        self._add.clicked.connect(self._on_add_clicked)
        store.changed.connect(self._show)

    def _show(self) -> None:
        self._rows.show_items({folder.path: folder for folder in self._store.folders})

    def _empty(self) -> TextLabel:
        return TextLabel(self._theme, tr("No excluded folders"), tone="muted")

    def _row(self, folder: LeftOutFolder) -> QWidget:
        name = escape_hidden_line(folder.path)
        back = push_button(tr("Include"), name=tr("Include in memory: {name}").format(name=name))
        back.clicked.connect(partial(self._store.take_back, folder.path))
        view = QWidget()
        set_hbox(
            view,
            fill(TextLabel(self._theme, f"{name}: {left_out_text(folder)}", wrap=True)),
            back,
            spacing=self._theme.tokens.space_close,
        )
        return view

    def _on_add_clicked(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Choose folder to exclude"))
        if folder:
            self._store.leave_out(folder)


class LogView(QWidget):
    """The audit, newest first. `older_requested` asks for another page."""

    older_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._lines = TextLabel(theme, tone="muted", wrap=True)
        self._older = push_button(tr("Show older"))
        set_vbox(self, self._lines, at_left(self._older), spacing=theme.tokens.space_close)
        self._older.clicked.connect(self.older_requested)

    def show_log(self, log: tuple[MemoryLogEntry, ...], has_older: bool) -> None:
        self._lines.setText("\n".join(map(log_line, log)) or tr("No activity yet"))
        self._older.setVisible(has_older)


class StatePageView(QWidget):
    """Emits `notified` with a sentence about what was done."""

    notified = Signal(str)

    def __init__(
        self, theme: Theme, state: MemoryStateStore, left_out: LeftOutStore, shared: SharedFoldersStore
    ) -> None:
        super().__init__()
        self._theme = theme
        self._state = state
        self._folders = left_out
        self._shared = shared
        self._shared_folders = SharedFoldersView(shared, theme)
        self.numbers = NumbersView(theme)
        self.model = ModelView(theme)
        self.clean_up = CleanUpView(theme)
        self.log = LogView(theme)
        self.export_button = push_button(tr("Export memory…"))
        self._left_out = LeftOutView(left_out, theme)
        self._inside = QWidget()
        self._lay_out()
        state.changed.connect(self._show)
        state.log_changed.connect(lambda: self.log.show_log(state.log, state.has_older_log))
        state.pruned.connect(self._on_pruned)
        state.rebuilding.connect(lambda: self.notified.emit(tr("Rebuilding the index in the background.")))
        state.failed.connect(self.model.allow_again)
        state.failed.connect(self.clean_up.close_questions)
        self.model.download_wanted.connect(state.download)
        self.clean_up.rebuild_wanted.connect(state.rebuild)
        self.clean_up.prune_wanted.connect(state.prune)
        self.log.older_requested.connect(state.load_older_log)
        self.export_button.clicked.connect(self._on_export_clicked)
        state.exported.connect(self._on_exported)

    def open(self) -> None:
        self._state.load()
        self._folders.load()
        self._shared.load()

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        set_style(self._inside, "look", "page")
        column = vbox(spacing=tokens.space_close)
        set_at_top(self._inside, column, margins=(0, 0, tokens.space_close, 0))
        export = QWidget()
        set_vbox(export, at_left(self.export_button))
        sections: tuple[tuple[str, str, QWidget], ...] = (
            (tr("Contents"), "", self.numbers),
            (tr("Search by meaning"), "", self.model),
            (tr("Export"), _EXPORT, export),
            (tr("Clean up"), _CLEAN_UP, self.clean_up),
            (tr("Excluded folders"), _LEFT_OUT, self._left_out),
            (tr("Other folders"), _OTHER_FOLDERS, self._shared_folders),
            (tr("Activity"), "", self.log),
        )
        for number, (title, text, view) in enumerate(sections):
            if number:
                column.addSpacing(tokens.space_close)
                column.addWidget(hairline())
                column.addSpacing(tokens.space_close)
            column.addWidget(TextLabel(self._theme, title, bold=True))
            if text:
                column.addWidget(TextLabel(self._theme, text, tone="muted", wrap=True))
            column.addWidget(view)
        scroll = vertical_scroll_area(self._inside)
        self._inside.hide()  # until there are numbers; the scroll area has shown it
        set_vbox(self, scroll)

    def _on_export_clicked(self) -> None:
        filters = f"{tr('Markdown')} (*.md);;{tr('JSON lines')} (*.jsonl)"
        dialog = QFileDialog(self, tr("Export memory"), "memory.md", filters)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.fileSelected.connect(self._state.export)
        dialog.open()
        dialog.finished.connect(dialog.deleteLater)

    def _on_exported(self, count: int, path: str) -> None:
        entries = trn("{n} entry", "{n} entries", count)
        self.notified.emit(tr("{entries} written to {file}.").format(entries=entries, file=plain(path)))

    def _show(self) -> None:
        stats = self._state.stats
        if stats is not None:
            self._inside.show()
            self.numbers.show_stats(stats)
            self.model.show_model(stats.model)
            self.clean_up.show_stats(stats)

    def _on_pruned(self, pruned: MemoryPruneResult) -> None:
        self.clean_up.close_questions()
        if pruned.to_remove:
            self.notified.emit(being_removed(pruned.to_remove))
        elif pruned.removed:
            self.notified.emit(trn("{n} vector removed.", "{n} vectors removed.", pruned.removed))
        else:
            self.notified.emit(tr("No vectors to remove."))
