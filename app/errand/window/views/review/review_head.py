"""The head of the review: which task and step, how much changed, the layout, and undo and redo of all of it."""

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QWidget

from errand.protocol.changes import ChangedFile, TaskChanges
from errand.text.translation import tr, trn
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, hbox, set_vbox
from errand.window.widgets.buttons import IconButton, ShortcutToolTip
from errand.window.widgets.containers import FlowLayout
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.labels import TextLabel


class ReviewHeadView(QWidget):
    """`step` is the chosen one, None for the whole task."""

    closed = Signal()
    layout_chosen = Signal(bool)
    maximize_toggled = Signal()
    patch_requested = Signal()
    undo_requested = Signal()
    redo_requested = Signal()
    task_chosen = Signal(str)
    step_chosen = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._is_side_by_side = False
        size = theme.tokens.size_small
        self._title = TextLabel(theme, tr("Review"), bold=True)
        self._added, self._removed = (
            TextLabel(theme, size=size, tone="done"),
            TextLabel(theme, size=size, tone="failed"),
        )
        self.task_choice, self.step_choice = ComboBox((), name=tr("Task")), ComboBox((), name=tr("Step"))
        self.undo, self.redo = push_button(tr("Undo all"), "quiet"), push_button(tr("Redo all"), "quiet")
        self._copy = IconButton(theme, "copy", tr("Copy all as patch"))
        self._layout = IconButton(theme, "columns-2", tr("Show side by side"))
        self._maximize = IconButton(theme, "maximize", tr("Expand the review"))
        self._close = IconButton(theme, "x", tr("Close the review"))
        ShortcutToolTip(self._close, tr("Close the review"), "review")
        self._lay_out()
        self._copy.clicked.connect(self.patch_requested)
        self._layout.clicked.connect(lambda: self.layout_chosen.emit(not self._is_side_by_side))
        self._maximize.clicked.connect(self.maximize_toggled)
        self._close.clicked.connect(self.closed)
        self.undo.clicked.connect(self.undo_requested)
        self.redo.clicked.connect(self.redo_requested)
        self.task_choice.activated.connect(self._on_task_chosen)
        self.step_choice.currentIndexChanged.connect(self.step_chosen)

    @property
    def step(self) -> int | None:
        value: object = self.step_choice.currentData()
        return value if isinstance(value, int) else None

    def show_changes(self, tasks: Sequence[TaskChanges], shown: TaskChanges | None) -> None:
        for control in (self.undo, self.redo, self._copy, self._layout, self._maximize):
            control.setVisible(shown is not None)
        self._show_tasks(tasks, shown)
        self._show_steps(shown)
        if shown is None:
            self._title.setText(tr("Review"))
            self._added.hide()
            self._removed.hide()

    def show_files(self, files: Sequence[ChangedFile]) -> None:
        """The sums of these files, and what can be done with all of them."""
        step = self.step
        self._title.setText(trn("{n} file", "{n} files", len(files)))
        added, removed = sum(file.added for file in files), sum(file.removed for file in files)
        self._added.setAccessibleName(trn("{n} line added", "{n} lines added", added))
        self._removed.setAccessibleName(trn("{n} line removed", "{n} lines removed", removed))
        for label, sign, number in ((self._added, "+", added), (self._removed, "−", removed)):
            label.setText(f"{sign}{number:,}")
            label.setVisible(number > 0)
        self.undo.setText(tr("Undo all") if step is None else tr("Undo step"))
        self.redo.setText(tr("Redo all") if step is None else tr("Redo step"))
        for button in (self.undo, self.redo):
            button.setAccessibleName(button.text())
        self.undo.setEnabled(any(can_undo(file, step) for file in files))
        self.redo.setVisible(any(can_redo(file, step) for file in files))

    def show_layout(self, *, is_side_by_side: bool) -> None:
        self._is_side_by_side = is_side_by_side
        icon, name = ("list", tr("Show unified")) if is_side_by_side else ("columns-2", tr("Show side by side"))
        self._layout.set_icon_and_name(icon, name)

    def show_maximized(self, *, is_maximized: bool) -> None:
        name = tr("Show the conversation") if is_maximized else tr("Expand the review")
        self._maximize.set_icon_and_name("panel-left" if is_maximized else "maximize", name)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        head = hbox(
            self._title,
            tokens.space_tight,
            self._added,
            self._removed,
            STRETCH,
            self._copy,
            self._layout,
            self._maximize,
            self._close,
            spacing=tokens.space_tight,
        )
        # What can be done with all files takes a second line where the words are long.
        choices = FlowLayout(tokens.space_tight, self.task_choice, self.step_choice, self.undo, self.redo)
        set_vbox(
            self,
            head,
            choices,
            spacing=tokens.space_tight,
            margins=(tokens.space_normal, tokens.space_tight, tokens.space_tight, tokens.space_tight),
        )

    def _show_tasks(self, tasks: Sequence[TaskChanges], shown: TaskChanges | None) -> None:
        self.task_choice.setVisible(len(tasks) > 1)
        self.task_choice.clear()
        for number, task in enumerate(tasks):
            name = tr("Task {number}").format(number=len(tasks) - number) if number else tr("Newest task")
            files = trn("{n} file", "{n} files", len(task.files))
            self.task_choice.addItem(f"{name} · {files}", task.task_id)
            if task == shown:
                self.task_choice.setCurrentIndex(number)

    def _show_steps(self, shown: TaskChanges | None) -> None:
        """The choice stays at its step, as long as the task has it."""
        chosen, blocker = self.step, QSignalBlocker(self.step_choice)
        steps = shown.steps if shown is not None else ()
        self.step_choice.setVisible(len(steps) > 1)
        self.step_choice.clear()
        self.step_choice.addItem(tr("All steps"), None)
        for step in steps:
            name, files = tr("Step {number}").format(number=step.step), trn("{n} file", "{n} files", step.files)
            parts = (name, files, "" if step.can_undo else tr("undone"))
            self.step_choice.addItem(" · ".join(part for part in parts if part), step.step)
            if step.step == chosen:
                self.step_choice.setCurrentIndex(self.step_choice.count() - 1)
        blocker.unblock()

    def _on_task_chosen(self) -> None:
        blocker = QSignalBlocker(self.step_choice)
        self.step_choice.setCurrentIndex(0)
        blocker.unblock()
        self.task_chosen.emit(str(self.task_choice.currentData()))


def can_undo(file: ChangedFile, step: int | None) -> bool:
    return file.can_undo and (step is None or step in file.steps)


def can_redo(file: ChangedFile, step: int | None) -> bool:
    return file.can_redo and (step is None or step in file.undone_steps)
