"""The dialog with the files that a task changed: their diffs, and buttons to undo and redo them."""

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from errand.client.display_text import CHANGES_NOT_SEEN, REDO_PREVIEW, file_state_text
from errand.client.number_format import count
from errand.client.safe_text import escape_hidden_line
from errand.protocol.changes import ChangedFile, ChangeUndoResult, FileDiff, TaskChanges
from errand.window.stores.changes import ChangesStore
from errand.window.theme.style import push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.review.diff_edit import DiffEdit
from errand.window.views.shared.item_delegate import DETAIL, HINT, KEY, ItemDelegate
from errand.window.widgets.banner import BannerView
from errand.window.widgets.combo_box import ComboBox
from errand.window.widgets.empty_state import EmptyStateView
from errand.window.widgets.labels import ElidedLabel, TextLabel

_WIDTH, _HEIGHT, _LIST_WIDTH = 1040, 700, 300
_EMPTY = "Here stand the files that an agent changes, line by line. Each change can be undone, and redone."
_NEXT, _PREVIOUS = "F7", "Shift+F7"


class ChangesDialog(QDialog):
    """Follows the task's changes while it is open."""

    def __init__(self, store: ChangesStore, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._theme = theme
        self._path = ""
        self.setWindowTitle("Changes")
        self.resize(_WIDTH, _HEIGHT)
        self.task_choice = ComboBox(())
        self.task_choice.setAccessibleName("Task")
        self.step_choice = ComboBox(())
        self.step_choice.setAccessibleName("Step")
        self.undo_all, self.redo_all = push_button("Undo all"), push_button("Redo all")
        self.undo_file, self.redo_file = push_button("Undo file"), push_button("Redo file")
        self.undo_part, self.redo_part = push_button("Undo part"), push_button("Redo part")
        self.banner = BannerView(theme)
        self.files = QListWidget()
        self.diff = DiffEdit(theme)
        self._head = TextLabel(theme, size=theme.tokens.size_heading, bold=True)
        self._name = ElidedLabel(theme, bold=True, mode=Qt.TextElideMode.ElideMiddle)
        self._note = TextLabel(theme, tone="waiting", size=theme.tokens.size_small, wrap=True)
        self._part = TextLabel(theme, tone="muted", size=theme.tokens.size_small)
        self._empty = EmptyStateView(theme, "file-pen", "No files were changed", _EMPTY)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._on_changed()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.banner.hide()
        self._store.load()
        self.files.setFocus()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.banner.hide()

    @property
    def _step(self) -> int | None:
        value: object = self.step_choice.currentData()
        return value if isinstance(value, int) else None

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        head = QHBoxLayout()
        head.setSpacing(tokens.space_close)
        head.addWidget(self._head)
        head.addSpacing(tokens.space_close)
        head.addWidget(self.task_choice)
        head.addWidget(self.step_choice)
        head.addStretch(1)
        head.addWidget(self.undo_all)
        head.addWidget(self.redo_all)
        self.files.setAccessibleName("Changed files")
        self.files.setItemDelegate(ItemDelegate(self._theme, self.files))
        self.files.setFrameShape(QListWidget.Shape.NoFrame)
        self.files.setMouseTracking(True)
        self.files.setUniformItemSizes(True)
        self.files.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(self.files)
        splitter.addWidget(self._file_pane())
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([_LIST_WIDTH, _WIDTH - _LIST_WIDTH])
        for layer in (splitter, self._empty):
            self._stack.addWidget(layer)
        inside = QVBoxLayout()
        inside.setContentsMargins(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_wide)
        inside.setSpacing(tokens.space_normal)
        inside.addLayout(head)
        inside.addWidget(self._stack, 1)
        inside.addWidget(TextLabel(self._theme, CHANGES_NOT_SEEN, tone="muted", size=tokens.size_small, wrap=True))
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self.banner)
        whole.addLayout(inside, 1)

    def _file_pane(self) -> QWidget:
        tokens = self._theme.tokens
        pane = QWidget()
        line = QHBoxLayout()
        line.setSpacing(tokens.space_close)
        line.addWidget(self._name, 1)
        line.addWidget(self._part)
        for button in (self.undo_part, self.redo_part, self.undo_file, self.redo_file):
            line.addWidget(button)
        column = QVBoxLayout(pane)
        column.setContentsMargins(tokens.space_normal, 0, 0, 0)
        column.setSpacing(tokens.space_close)
        column.addLayout(line)
        column.addWidget(self._note)
        column.addWidget(self.diff, 1)
        return pane

    def _connect(self) -> None:
        store = self._store
        store.changed.connect(self._on_changed)
        store.diff_loaded.connect(self._on_diff_loaded)
        store.conflicted.connect(self._on_conflicted)
        store.failed.connect(self._on_failed)
        store.done.connect(self.banner.hide)
        self.banner.action_clicked.connect(store.overwrite)
        self.task_choice.activated.connect(self._on_task_chosen)
        self.step_choice.currentIndexChanged.connect(self._on_step_chosen)
        self.files.currentItemChanged.connect(self._on_file_chosen)
        self.diff.hunk_changed.connect(self._show_part)
        self.undo_all.clicked.connect(lambda: store.undo(step=self._step))
        self.redo_all.clicked.connect(lambda: store.redo(step=self._step))
        self.undo_file.clicked.connect(lambda: store.undo(self._path, self._step))
        self.redo_file.clicked.connect(lambda: store.redo(self._path, self._step))
        self.undo_part.clicked.connect(self._on_undo_part)
        self.redo_part.clicked.connect(self._on_redo_part)
        for key, by in ((_NEXT, 1), (_PREVIOUS, -1)):
            QShortcut(QKeySequence(key), self, partial(self.diff.step, by))
        set_tool_tip(self.undo_part, f"Undo the part at the cursor ({_NEXT} and {_PREVIOUS} go to others)")
        set_tool_tip(self.redo_part, "Redo the part that was undone last")

    def _on_changed(self) -> None:
        shown = self._store.shown
        self._stack.setCurrentIndex(1 if shown is None else 0)
        for control in (self.step_choice, self.undo_all, self.redo_all):
            control.setVisible(shown is not None)
        self._show_tasks()
        if shown is None:
            self._head.setText("Changes")
            return
        self._show_steps(shown)
        self._show_files()

    def _show_tasks(self) -> None:
        shown, tasks = self._store.shown, self._store.tasks
        self.task_choice.setVisible(len(tasks) > 1)
        self.task_choice.clear()
        for number, task in enumerate(tasks):
            name = "Newest task" if not number else f"Task {len(tasks) - number}"
            self.task_choice.addItem(f"{name} · {count(len(task.files), 'file')}", task.task_id)
            if task == shown:
                self.task_choice.setCurrentIndex(number)

    def _show_steps(self, shown: TaskChanges) -> None:
        chosen = self._step
        self.step_choice.blockSignals(True)
        self.step_choice.clear()
        self.step_choice.addItem("All steps", None)
        for step in shown.steps:
            undone = "" if step.can_undo else " · undone"
            self.step_choice.addItem(f"Step {step.step} · {count(step.files, 'file')}{undone}", step.step)
            if step.step == chosen:
                self.step_choice.setCurrentIndex(self.step_choice.count() - 1)
        self.step_choice.blockSignals(False)

    def _show_files(self) -> None:
        """The files of the chosen step; the selection stays on its file."""
        shown, step = self._store.shown, self._step
        assert shown is not None
        files = [file for file in shown.files if step is None or step in (*file.steps, *file.undone_steps)]
        added, removed = sum(file.added for file in files), sum(file.removed for file in files)
        self._head.setText(f"{count(len(files), 'file')}  +{added:,} −{removed:,}")
        self.undo_all.setText("Undo all" if step is None else "Undo step")
        self.redo_all.setText("Redo all" if step is None else "Redo step")
        for button in (self.undo_all, self.redo_all):
            button.setAccessibleName(button.text())
        self.undo_all.setEnabled(any(_undoes(file, step) for file in files))
        self.redo_all.setEnabled(any(_redoes(file, step) for file in files))
        self.files.blockSignals(True)
        while self.files.count() > len(files):
            self.files.takeItem(self.files.count() - 1)
        for row, file in enumerate(files):
            item = self.files.item(row) if row < self.files.count() else None
            if item is None:
                item = QListWidgetItem(self.files)
            _fill(item, file)
        row = next((row for row, file in enumerate(files) if file.path == self._path), 0)
        self.files.setCurrentRow(row)
        self.files.blockSignals(False)
        self._on_file_chosen()

    def _on_file_chosen(self) -> None:
        path: object = self.files.currentIndex().data(KEY)
        if not isinstance(path, str):
            return
        if path != self._path:
            self._path = path
            self.diff.show_hunks(())
        self._show_file()
        self._store.compare(path, self._step)

    def _show_file(self) -> None:
        file = self._store.file(self._path)
        if file is None:
            return
        self._name.set_text(escape_hidden_line(file.name))
        self._note.setText(file.note)
        self._note.setVisible(bool(file.note))
        self.undo_file.setEnabled(_undoes(file, self._step))
        self.redo_file.setEnabled(_redoes(file, self._step))
        self._show_part()

    def _show_part(self) -> None:
        file = self._store.file(self._path)
        number, parts = self.diff.position
        is_whole = self._step is None
        self._part.setText(f"part {number} of {parts}" if number and parts > 1 else "")
        self.undo_part.setVisible(is_whole)
        self.undo_part.setEnabled(self.diff.hunk is not None and file is not None and file.can_undo)
        self.redo_part.setVisible(is_whole and file is not None and bool(file.undone_hunks))

    def _on_diff_loaded(self, diff: object) -> None:
        if not isinstance(diff, FileDiff):
            self.diff.show_hunks(())
            self.diff.setPlaceholderText("Nothing of this change is left in the file.")
            return
        if diff.path == self._path:
            self.diff.setPlaceholderText(diff.note)
            self.diff.show_hunks(diff.hunks)
            note = diff.note or (REDO_PREVIEW if diff.is_undone else "")
            if note:
                self._note.setText(note)
                self._note.show()
        self._show_part()

    def _on_task_chosen(self) -> None:
        self.step_choice.setCurrentIndex(0)
        self._store.choose(str(self.task_choice.currentData()))

    def _on_step_chosen(self) -> None:
        if self._store.shown is not None:
            self._show_files()

    def _on_undo_part(self) -> None:
        if (hunk := self.diff.hunk) is not None:
            self._store.undo(self._path, hunk=hunk.id)

    def _on_redo_part(self) -> None:
        file = self._store.file(self._path)
        if file is not None and file.undone_hunks:
            self._store.redo(self._path, hunk=file.undone_hunks[-1].change_id)

    def _on_conflicted(self, result: ChangeUndoResult) -> None:
        first, *others = result.conflicts
        more = f" And {count(len(others), 'more file')}." if others else ""
        can_overwrite = all(conflict.can_overwrite for conflict in result.conflicts)
        kept = " Nothing was changed. Their version is kept if you overwrite it." if can_overwrite else ""
        text = f"{escape_hidden_line(first.text)}{more}{kept}"
        self.banner.show_message(text, "waiting", "Overwrite" if can_overwrite else "")

    def _on_failed(self, text: str) -> None:
        self.banner.show_message(text, "failed")


def _fill(item: QListWidgetItem, file: ChangedFile) -> None:
    folder, _, name = file.name.rpartition("/")
    state = file_state_text(file)
    item.setText(escape_hidden_line(name))
    item.setData(HINT, "" if file.is_folder else f"+{file.added:,} −{file.removed:,}")
    item.setData(DETAIL, " · ".join(part for part in (state, escape_hidden_line(folder) or "in the workspace") if part))
    item.setData(KEY, file.path)
    lines = "" if file.is_folder else f"{count(file.added, 'line')} added, {count(file.removed, 'line')} removed"
    item.setData(Qt.ItemDataRole.AccessibleTextRole, ", ".join(part for part in (file.name, lines, state) if part))


def _undoes(file: ChangedFile, step: int | None) -> bool:
    return file.can_undo and (step is None or step in file.steps)


def _redoes(file: ChangedFile, step: int | None) -> bool:
    return file.can_redo and (step is None or step in file.undone_steps)
