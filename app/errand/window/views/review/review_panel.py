"""The panel that reviews the files a task changed: their list, the diff of one, undo and redo."""

from collections.abc import Callable, Iterable
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QMenu, QSplitter, QStackedWidget, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.client.texts.changes import CHANGES_NOT_SEEN, REDO_PREVIEW
from errand.protocol.changes import ChangedFile, ChangeUndoResult, DiffHunk, FileDiff
from errand.text.translation import tr, trn
from errand.window.stores.changes import ChangesStore
from errand.window.theme.theme import Theme
from errand.window.views.review.diff_pane import DiffPane
from errand.window.views.review.editor import open_in_editor
from errand.window.views.review.file_head import FileHeadView
from errand.window.views.review.file_list import ChangedFileListView
from errand.window.views.review.review_head import ReviewHeadView
from errand.window.widgets.banner import BannerView
from errand.window.widgets.boxes import fill, set_vbox
from errand.window.widgets.empty_state import EmptyStateView
from errand.window.widgets.labels import TextLabel

_MIN_WIDTH_PX, _WIDE, _LIST_WIDTH = 380, 860, 260
_MAX_NAMES = 3
_MAX_LIST_SHARE = 0.3  # of the height, for the list above the diff
_EMPTY = tr("When the agent changes files, they are listed here, line by line. You can undo any of it.")
_NOTHING_LEFT = tr("None of this change is left in the file.")


class ReviewPanelView(QWidget):
    """Follows the task's changes while it is open.

    Emits `closed` when the user closes it, `maximized` when it is to have all of the conversation's room or not any
    more, and `layout_chosen` with whether diffs are side by side.
    """

    closed = Signal()
    maximized = Signal(bool)
    layout_chosen = Signal(bool)

    def __init__(self, store: ChangesStore, theme: Theme, copy: Callable[[str], None]) -> None:
        super().__init__()
        self.setObjectName("review")
        self._store = store
        self._theme = theme
        self._path = ""
        self._entered = 0  # the hunk to go to when the diff is there: 1 the first, -1 the last, 0 none
        self._wanted = ""
        self._shown: tuple[str, int | None] = ("", None)  # the file and step of the diff
        self._is_list_sized = False  # by the user
        self.is_maximized = False
        self.head = ReviewHeadView(theme)
        self.banner = BannerView(theme)
        self.files = ChangedFileListView(theme)
        self.file_head = FileHeadView(theme)
        self.diff = DiffPane(theme)
        self._copy = copy
        self._note = TextLabel(theme, tone="waiting", size=theme.tokens.size_small, wrap=True)
        self._no_diff = TextLabel(theme, tone="muted", wrap=True)
        self._diff_stack = QStackedWidget()
        self._split = QSplitter(Qt.Orientation.Vertical)
        self._empty = EmptyStateView(theme, "file-diff", tr("No changed files"), _EMPTY)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._add_keys()
        self.setFocusProxy(self.files)
        self._on_changed()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._store.load()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The list is beside the diff if there is room for both."""
        super().resizeEvent(event)
        is_wide = self.width() >= self._theme.pixels(_WIDE)
        orientation = Qt.Orientation.Horizontal if is_wide else Qt.Orientation.Vertical
        if orientation != self._split.orientation():
            self._split.setOrientation(orientation)
            self._is_list_sized = False
        self._fit_list()

    def set_side_by_side(self, is_side_by_side: bool) -> None:
        self.diff.set_side_by_side(is_side_by_side)
        self.head.show_layout(is_side_by_side=is_side_by_side)

    def set_maximized(self, is_maximized: bool) -> None:
        """Give the panel all of the conversation's room, or give it back."""
        self.is_maximized = is_maximized
        self.head.show_maximized(is_maximized=is_maximized)
        self.maximized.emit(is_maximized)

    def show_file(self, task_id: str, name: str) -> None:
        """Show the changes of a task; with `name`, of that file."""
        self._wanted = name
        self._store.choose(task_id)

    def step(self, by: int) -> None:
        """Go to the next or previous change, in the next or previous file after the last one of this."""
        if not self.diff.step(by) and self.files.step(by):
            self._entered = by

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.setMinimumWidth(self._theme.pixels(_MIN_WIDTH_PX))
        self._no_diff.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._no_diff.setContentsMargins(tokens.space_far, tokens.space_far, tokens.space_far, tokens.space_far)
        for layer in (self.diff, self._no_diff):
            self._diff_stack.addWidget(layer)
        pane = QWidget()
        set_vbox(
            pane,
            self.file_head,
            self._note,
            fill(self._diff_stack),
            spacing=tokens.space_tight,
            margins=(0, tokens.space_close, 0, 0),
        )
        self._note.setContentsMargins(tokens.space_normal, 0, tokens.space_normal, 0)
        self._split.setChildrenCollapsible(False)
        self._split.addWidget(self.files)
        self._split.addWidget(pane)
        self._split.setStretchFactor(1, 1)
        for layer in (self._split, self._empty):
            self._stack.addWidget(layer)
        foot = TextLabel(self._theme, CHANGES_NOT_SEEN, tone="muted", size=tokens.size_small, wrap=True)
        foot.setContentsMargins(tokens.space_normal, tokens.space_tight, tokens.space_normal, tokens.space_close)
        set_vbox(self, self.head, fill(self._stack), self.banner, foot, spacing=0)

    def _connect(self) -> None:
        store, head, file_head = self._store, self.head, self.file_head
        store.changed.connect(self._on_changed)
        store.diff_loaded.connect(self._on_diff_loaded)
        store.conflicted.connect(self._on_conflicted)
        store.failed.connect(self._on_failed)
        store.hinted.connect(self._on_hinted)
        store.done.connect(self.banner.hide)
        store.patch_loaded.connect(self._on_patch_loaded)
        self.banner.action_clicked.connect(store.overwrite)
        head.closed.connect(self.closed)
        head.layout_chosen.connect(self._on_layout_chosen)
        head.maximize_toggled.connect(lambda: self.set_maximized(not self.is_maximized))
        head.task_chosen.connect(store.choose)
        head.step_chosen.connect(self._show_files)
        head.patch_requested.connect(lambda: store.load_patch(None, head.step))
        head.undo_requested.connect(lambda: store.undo(step=head.step))
        head.redo_requested.connect(lambda: store.redo(step=head.step))
        file_head.patch_requested.connect(lambda: store.load_patch(self._path, head.step))
        file_head.open_requested.connect(self.open_file)
        file_head.undo_requested.connect(lambda: store.undo(self._path, head.step))
        file_head.redo_requested.connect(lambda: store.redo(self._path, head.step))
        file_head.hunk_redo_requested.connect(self._on_redo_hunk)
        self._split.splitterMoved.connect(self._on_list_sized)
        self.files.chosen.connect(self._on_file_chosen)
        self.files.itemActivated.connect(self._on_file_activated)
        self.diff.hunk_changed.connect(self._show_position)
        self.diff.undo_requested.connect(self._on_undo_hunk)
        self.diff.menu_opening.connect(self._on_menu_opening)

    def _add_keys(self) -> None:
        """J, K and those of undo and redo only with the focus in the panel; F7 also while a message is written."""
        inside = Qt.ShortcutContext.WidgetWithChildrenShortcut
        for standard, act in (
            (QKeySequence.StandardKey.Undo, self._store.take_back),
            (QKeySequence.StandardKey.Redo, self._store.repeat),
        ):
            shortcut = QShortcut(self)
            shortcut.setKeys(standard)
            shortcut.setContext(inside)
            shortcut.activated.connect(act)
        for keys, by in (("J", 1), ("K", -1)):
            QShortcut(QKeySequence(keys), self, context=inside).activated.connect(partial(self.step, by))
        for keys, by in (("F7", 1), ("Shift+F7", -1)):
            QShortcut(QKeySequence(keys), self).activated.connect(partial(self.step, by))
        QShortcut(QKeySequence("Del"), self.diff, context=inside).activated.connect(self.diff.undo_current)

    def open_file(self) -> None:
        """Open the file in the person's editor, at the line of the cursor."""
        problem = open_in_editor(self._path, self.diff.line, self._store.workspace)
        if problem:
            self._on_failed(escape_hidden_line(problem))

    def _on_changed(self) -> None:
        changes = self._store.shown
        self._stack.setCurrentWidget(self._split if changes is not None else self._empty)
        self.head.show_changes(self._store.tasks, changes)
        if changes is not None:
            self._show_files()

    def _show_files(self) -> None:
        """The files of the chosen step; the selection stays on its file."""
        changes, step = self._store.shown, self.head.step
        if changes is None:
            return
        files = [file for file in changes.files if step is None or step in (*file.steps, *file.undone_steps)]
        had = self.files.count()
        self.files.show_files(files, self._path)
        if self._wanted:
            wanted_name, self._wanted = self._wanted, ""
            self.files.select(wanted_name)
        self.head.show_files(files)
        if had != len(files):
            self._fit_list()
        self._on_file_chosen()

    def _fit_list(self) -> None:
        """Resize the list to its files, up to a part of the panel, until the user resizes it."""
        if self._is_list_sized:
            return
        if self._split.orientation() == Qt.Orientation.Horizontal:
            width = self._theme.pixels(_LIST_WIDTH)
            self._split.setSizes([width, max(self.width() - width, width)])
            return
        height = min(self.files.wanted_height, round(self.height() * _MAX_LIST_SHARE))
        self._split.setSizes([height, max(self.height() - height, height)])

    def _on_file_chosen(self) -> None:
        file = self.files.file
        if file is None:
            return
        if file.path != self._path:
            self._path = file.path
            self._entered = 0
            self.banner.hide()
            self.diff.show_hunks("", (), keeps_place=False, can_undo=False)
            self._diff_stack.setCurrentWidget(self.diff)
            self._show_note(file, "")
        self.file_head.show_file(file, self.head.step)
        self._show_position()
        self._store.compare(file.path, self.head.step)

    def _on_list_sized(self) -> None:
        self._is_list_sized = True

    def _on_file_activated(self) -> None:
        self.diff.setFocus()

    def _show_note(self, file: ChangedFile, note: str) -> None:
        self._note.show_text(file.note or note)

    def _show_position(self) -> None:
        self.file_head.show_position(*self.diff.position)

    def _on_diff_loaded(self, path: str, diff: FileDiff | None) -> None:
        file = self.files.file
        if file is None or path != self._path:
            return
        is_same = self._shown == (path, self.head.step)
        self._shown = (path, self.head.step)
        hunks = diff.hunks if diff is not None else ()
        is_whole = self.head.step is None and diff is not None and not diff.renamed_from
        can_undo = is_whole and file.can_undo and diff is not None and not diff.is_undone
        self.diff.show_hunks(self._path, hunks, keeps_place=is_same and not self._entered, can_undo=can_undo)
        note = "" if diff is None else diff.note or (REDO_PREVIEW if diff.is_undone else _rename_note(file, diff))
        self._no_diff.setText(note if diff is not None else _NOTHING_LEFT)
        self._diff_stack.setCurrentWidget(self.diff if hunks else self._no_diff)
        self._show_note(file, note if hunks else "")
        is_hint = diff is not None and bool(diff.renamed_from) and not (file.note or diff.note)
        self._note.set_tone("muted" if is_hint else "waiting")
        self.file_head.show_counts(diff)
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
        self._store.undo(self._path, hunk=hunk.id)

    def _on_hinted(self, text: str) -> None:
        self.banner.show_message(text, "waiting")

    def _on_redo_hunk(self, change_id: str) -> None:
        self._store.redo(self._path, hunk=change_id)

    def _on_menu_opening(self, menu: QMenu) -> None:
        menu.addAction(self._theme.icon("external-link"), tr("Open in editor")).triggered.connect(self.open_file)

    def _on_layout_chosen(self, is_side_by_side: bool) -> None:
        self.set_side_by_side(is_side_by_side)
        self.layout_chosen.emit(is_side_by_side)

    def _on_patch_loaded(self, patch: str, left_out: Iterable[str]) -> None:
        names = [escape_hidden_line(name) for name in left_out]
        if patch:
            self._copy(patch)
        if names:
            did = tr("Copied, but not all: these are not text, or too large: {names}.") if patch else ""
            did = did or tr("Nothing was copied: these are not text, or too large: {names}.")
            more = trn("{n} more", "{n} more", len(names) - _MAX_NAMES) if len(names) > _MAX_NAMES else ""
            listed_names = ", ".join((*names[:_MAX_NAMES], *((more,) if more else ())))
            self.banner.show_message(did.format(names=listed_names), "waiting")
        elif patch:
            self.banner.show_message(tr("The patch was copied."), "done")

    def _on_conflicted(self, result: ChangeUndoResult) -> None:
        first, *others = result.conflicts
        more = " " + trn("And {n} more file.", "And {n} more files.", len(others)) if others else ""
        can_overwrite = all(conflict.can_overwrite for conflict in result.conflicts)
        outcome = tr("The other files were changed.") if result.changes else tr("Nothing was changed.")
        hint, button = tr("If you overwrite it, redo brings that version back."), tr("Overwrite")
        if all(conflict.is_gone for conflict in result.conflicts):
            hint, button = tr("If you restore it, redo removes it again."), tr("Restore file")
        text = f"{escape_hidden_line(first.text)}{more} {outcome}{f' {hint}' if can_overwrite else ''}"
        self.banner.show_message(text, "waiting", button if can_overwrite else "")

    def _on_failed(self, text: str) -> None:
        self.banner.show_message(text, "failed")


def _rename_note(file: ChangedFile, diff: FileDiff) -> str:
    """Return a note for the diff of a file that was renamed."""
    if diff.renamed_from:
        text = tr("Renamed from {name}. To undo that, undo both files.")
        return text.format(name=escape_hidden_line(diff.renamed_from))
    if file.renamed_to and not diff.hunks:
        return tr("Renamed to {name}, which shows its changes.").format(name=escape_hidden_line(file.renamed_to))
    return ""
