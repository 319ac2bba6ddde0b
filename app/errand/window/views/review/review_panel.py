"""The panel that reviews the files a task changed: their list, the diff of one, undo and redo."""

from collections.abc import Callable, Iterable
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QSplitter, QStackedWidget, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.client.texts.changes import CHANGES_NOT_SEEN
from errand.protocol.changes import ChangeUndoResult
from errand.text.translation import tr, trn
from errand.window.stores.review.changes import ChangesStore
from errand.window.theme.theme import Theme
from errand.window.views.review.file_list import ChangedFileListView
from errand.window.views.review.file_review import FileReviewView
from errand.window.views.review.review_head import ReviewHeadView
from errand.window.widgets.banner import BannerView
from errand.window.widgets.boxes import fill, set_vbox
from errand.window.widgets.empty_state import EmptyStateView
from errand.window.widgets.labels import TextLabel

_MIN_WIDTH_PX, _WIDE, _LIST_WIDTH = 380, 860, 260
_MAX_NAMES = 3
_MAX_LIST_SHARE = 0.3  # of the height, for the list above the diff
_EMPTY = tr("When the agent changes files, they are listed here, line by line. You can undo any of it.")


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
        self._wanted = ""
        self._is_list_sized = False  # by the user
        self.is_maximized = False
        self.head = ReviewHeadView(theme)
        self.banner = BannerView(theme)
        self.files = ChangedFileListView(theme)
        self.file = FileReviewView(store, theme)
        self._copy = copy
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
        self.file.diff.set_side_by_side(is_side_by_side)
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
        if not self.file.diff.step(by) and self.files.step(by):
            self.file.enter(by)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.setMinimumWidth(self._theme.pixels(_MIN_WIDTH_PX))
        self._split.setChildrenCollapsible(False)
        self._split.addWidget(self.files)
        self._split.addWidget(self.file)
        self._split.setStretchFactor(1, 1)
        for layer in (self._split, self._empty):
            self._stack.addWidget(layer)
        foot = TextLabel(self._theme, CHANGES_NOT_SEEN, tone="muted", size=tokens.size_small, wrap=True)
        foot.setContentsMargins(tokens.space_normal, tokens.space_tight, tokens.space_normal, tokens.space_close)
        set_vbox(self, self.head, fill(self._stack), self.banner, foot, spacing=0)

    def _connect(self) -> None:
        store, history, head = self._store, self._store.history, self.head
        store.changed.connect(self._on_changed)
        store.failed.connect(self._on_failed)
        history.conflicted.connect(self._on_conflicted)
        history.failed.connect(self._on_failed)
        history.hinted.connect(self._on_hinted)
        history.done.connect(self.banner.hide)
        store.patch_loaded.connect(self._on_patch_loaded)
        self.banner.action_clicked.connect(history.overwrite)
        head.closed.connect(self.closed)
        head.layout_chosen.connect(self._on_layout_chosen)
        head.maximize_toggled.connect(lambda: self.set_maximized(not self.is_maximized))
        head.task_chosen.connect(store.choose)
        head.step_chosen.connect(self._show_files)
        head.patch_requested.connect(lambda: store.load_patch(None, head.step))
        head.undo_requested.connect(lambda: history.undo(step=head.step))
        head.redo_requested.connect(lambda: history.redo(step=head.step))
        self.file.failed.connect(self._on_failed)
        self._split.splitterMoved.connect(self._on_list_sized)
        self.files.chosen.connect(self._on_file_chosen)
        self.files.itemActivated.connect(self._on_file_activated)

    def _add_keys(self) -> None:
        """J, K and those of undo and redo only with the focus in the panel; F7 also while a message is written."""
        inside = Qt.ShortcutContext.WidgetWithChildrenShortcut
        for standard, act in (
            (QKeySequence.StandardKey.Undo, self._store.history.take_back),
            (QKeySequence.StandardKey.Redo, self._store.history.repeat),
        ):
            shortcut = QShortcut(self)
            shortcut.setKeys(standard)
            shortcut.setContext(inside)
            shortcut.activated.connect(act)
        for keys, by in (("J", 1), ("K", -1)):
            QShortcut(QKeySequence(keys), self, context=inside).activated.connect(partial(self.step, by))
        for keys, by in (("F7", 1), ("Shift+F7", -1)):
            QShortcut(QKeySequence(keys), self).activated.connect(partial(self.step, by))
        diff = self.file.diff
        QShortcut(QKeySequence("Del"), diff, context=inside).activated.connect(diff.undo_current)

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
        self.files.show_files(files, self.file.path)
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
        if file.path != self.file.path:
            self.banner.hide()
        self.file.show_file(file, self.head.step)

    def _on_list_sized(self) -> None:
        self._is_list_sized = True

    def _on_file_activated(self) -> None:
        self.file.diff.setFocus()

    def _on_hinted(self, text: str) -> None:
        self.banner.show_message(text, "waiting")

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
