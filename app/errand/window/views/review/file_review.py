"""The review of one file: its head, a note, and its diff with undo and redo of each change."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMenu, QStackedWidget, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.client.texts.changes import REDO_PREVIEW
from errand.protocol.changes import ChangedFile, DiffHunk, FileDiff
from errand.text.translation import tr
from errand.window.stores.review.changes import ChangesStore
from errand.window.theme.theme import Theme
from errand.window.views.review.diff_pane import DiffPane
from errand.window.views.review.editor import open_in_editor
from errand.window.views.review.file_head import FileHeadView
from errand.window.widgets.boxes import fill, set_vbox
from errand.window.widgets.labels import TextLabel

_NOTHING_LEFT = tr("None of this change is left in the file.")


class FileReviewView(QWidget):
    """Shows the whole change of a file, or that of one step of its task. Emits `failed` with a reason."""

    failed = Signal(str)

    def __init__(self, store: ChangesStore, theme: Theme) -> None:
        super().__init__()
        self._store = store
        self._theme = theme
        self._file: ChangedFile | None = None
        self._step: int | None = None
        self._entered = 0  # the hunk to go to when the diff is there: 1 the first, -1 the last, 0 none
        self._shown: tuple[str, int | None] = ("", None)  # the file and step of the diff
        self._head = FileHeadView(theme)
        self.diff = DiffPane(theme)
        self._note = TextLabel(theme, tone="waiting", size=theme.tokens.size_small, wrap=True)
        self._no_diff = TextLabel(theme, tone="muted", wrap=True)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()

    @property
    def path(self) -> str:
        """The path of the file; "" before there was one."""
        return self._file.path if self._file is not None else ""

    def show_file(self, file: ChangedFile, step: int | None) -> None:
        """Show a file, which may be the same in another state; its diff follows."""
        is_other, self._file, self._step = file.path != self.path, file, step
        if is_other:
            self._entered = 0
            self.diff.show_hunks("", (), keeps_place=False, can_undo=False)
            self._stack.setCurrentWidget(self.diff)
            self._show_note(file, "")
        self._head.show_file(file, step)
        self._show_position()
        self._store.compare(file.path, step)

    def enter(self, by: int) -> None:
        """Go to the first change of the file that was just shown, or with -1 to the last, once its diff is there."""
        self._entered = by

    def open_file(self) -> None:
        """Open the file in the person's editor, at the line of the cursor."""
        problem = open_in_editor(self.path, self.diff.line, self._store.workspace)
        if problem:
            self.failed.emit(escape_hidden_line(problem))

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self._no_diff.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._no_diff.setContentsMargins(tokens.space_far, tokens.space_far, tokens.space_far, tokens.space_far)
        self._note.setContentsMargins(tokens.space_normal, 0, tokens.space_normal, 0)
        for layer in (self.diff, self._no_diff):
            self._stack.addWidget(layer)
        set_vbox(
            self,
            self._head,
            self._note,
            fill(self._stack),
            spacing=tokens.space_tight,
            margins=(0, tokens.space_close, 0, 0),
        )

    def _connect(self) -> None:
        store, head = self._store, self._head
        store.diff_loaded.connect(self._on_diff_loaded)
        head.patch_requested.connect(lambda: store.load_patch(self.path, self._step))
        head.open_requested.connect(self.open_file)
        head.undo_requested.connect(lambda: store.history.undo(self.path, self._step))
        head.redo_requested.connect(lambda: store.history.redo(self.path, self._step))
        head.hunk_redo_requested.connect(self._on_redo_hunk)
        self.diff.hunk_changed.connect(self._show_position)
        self.diff.undo_requested.connect(self._on_undo_hunk)
        self.diff.menu_opening.connect(self._on_menu_opening)

    def _show_note(self, file: ChangedFile, note: str) -> None:
        self._note.show_text(file.note or note)

    def _show_position(self) -> None:
        self._head.show_position(*self.diff.position)

    def _on_diff_loaded(self, path: str, diff: FileDiff | None) -> None:
        file, step = self._file, self._step
        if file is None or path != file.path:
            return
        is_same = self._shown == (path, step)
        self._shown = (path, step)
        hunks = diff.hunks if diff is not None else ()
        is_whole = step is None and diff is not None and not diff.renamed_from
        can_undo = is_whole and file.can_undo and diff is not None and not diff.is_undone
        self.diff.show_hunks(path, hunks, keeps_place=is_same and not self._entered, can_undo=can_undo)
        note = "" if diff is None else diff.note or (REDO_PREVIEW if diff.is_undone else _rename_note(file, diff))
        self._no_diff.setText(note if diff is not None else _NOTHING_LEFT)
        self._stack.setCurrentWidget(self.diff if hunks else self._no_diff)
        self._show_note(file, note if hunks else "")
        is_hint = diff is not None and bool(diff.renamed_from) and not (file.note or diff.note)
        self._note.set_tone("muted" if is_hint else "waiting")
        self._head.show_counts(diff)
        if self._entered:
            self._enter_diff()
        self._show_position()

    def _enter_diff(self) -> None:
        entered, self._entered = self._entered, 0
        if entered > 0:
            self.diff.go_to_hunk(0)
        else:
            self.diff.go_to_last()

    def _on_undo_hunk(self, hunk: DiffHunk) -> None:
        self._store.history.undo(self.path, hunk=hunk.id)

    def _on_redo_hunk(self, change_id: str) -> None:
        self._store.history.redo(self.path, hunk=change_id)

    def _on_menu_opening(self, menu: QMenu) -> None:
        menu.addAction(self._theme.icon("external-link"), tr("Open in editor")).triggered.connect(self.open_file)


def _rename_note(file: ChangedFile, diff: FileDiff) -> str:
    """Return a note for the diff of a file that was renamed."""
    if diff.renamed_from:
        text = tr("Renamed from {name}. To undo that, undo both files.")
        return text.format(name=escape_hidden_line(diff.renamed_from))
    if file.renamed_to and not diff.hunks:
        return tr("Renamed to {name}, which shows its changes.").format(name=escape_hidden_line(file.renamed_to))
    return ""
