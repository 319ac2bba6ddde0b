"""The head of the review: which task and step, how much changed, the layout, and undo and redo of all of it."""

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from errand.client.number_format import count
from errand.protocol.changes import ChangedFile, TaskChanges
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.buttons import IconButton, ShortcutToolTip
from errand.window.widgets.combo_box import ComboBox
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
        self._title = TextLabel(theme, "Review", bold=True)
        self._added, self._removed = (
            TextLabel(theme, size=size, tone="done"),
            TextLabel(theme, size=size, tone="failed"),
        )
        self.task_choice, self.step_choice = ComboBox(()), ComboBox(())
        self.task_choice.setAccessibleName("Task")
        self.step_choice.setAccessibleName("Step")
        self.undo, self.redo = push_button("Undo all", "quiet"), push_button("Redo all", "quiet")
        self._copy = IconButton(theme, "copy", "Copy all as patch")
        self._layout = IconButton(theme, "columns-2", "Show side by side")
        self._maximize = IconButton(theme, "maximize", "Expand the review")
        self._close = IconButton(theme, "x", "Close the review")
        ShortcutToolTip(self._close, "Close the review", "review")
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
            self._title.setText("Review")
            self._added.hide()
            self._removed.hide()

    def show_files(self, files: Sequence[ChangedFile]) -> None:
        """The sums of these files, and what can be done with all of them."""
        step = self.step
        self._title.setText(count(len(files), "file"))
        added, removed = sum(file.added for file in files), sum(file.removed for file in files)
        for label, sign, number, verb in ((self._added, "+", added, "added"), (self._removed, "−", removed, "removed")):
            label.setText(f"{sign}{number:,}")
            label.setAccessibleName(f"{count(number, 'line')} {verb}")
            label.setVisible(number > 0)
        for button, verb in ((self.undo, "Undo"), (self.redo, "Redo")):
            button.setText(f"{verb} all" if step is None else f"{verb} step")
            button.setAccessibleName(button.text())
        self.undo.setEnabled(any(can_undo(file, step) for file in files))
        self.redo.setVisible(any(can_redo(file, step) for file in files))

    def show_layout(self, *, is_side_by_side: bool) -> None:
        self._is_side_by_side = is_side_by_side
        icon, name = ("list", "Show unified") if is_side_by_side else ("columns-2", "Show side by side")
        self._layout.set_icon_and_name(icon, name)

    def show_maximized(self, *, is_maximized: bool) -> None:
        name = "Show the conversation" if is_maximized else "Expand the review"
        self._maximize.set_icon_and_name("panel-left" if is_maximized else "maximize", name)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        head = QHBoxLayout()
        head.setSpacing(tokens.space_tight)
        head.addWidget(self._title)
        head.addSpacing(tokens.space_tight)
        head.addWidget(self._added)
        head.addWidget(self._removed)
        head.addStretch(1)
        for control in (self.undo, self.redo, self._copy, self._layout, self._maximize, self._close):
            head.addWidget(control)
        choices = QHBoxLayout()
        choices.setSpacing(tokens.space_close)
        choices.addWidget(self.task_choice)
        choices.addWidget(self.step_choice)
        choices.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_normal, tokens.space_tight, tokens.space_tight, tokens.space_tight)
        column.setSpacing(tokens.space_tight)
        column.addLayout(head)
        column.addLayout(choices)

    def _show_tasks(self, tasks: Sequence[TaskChanges], shown: TaskChanges | None) -> None:
        self.task_choice.setVisible(len(tasks) > 1)
        self.task_choice.clear()
        for number, task in enumerate(tasks):
            name = "Newest task" if not number else f"Task {len(tasks) - number}"
            self.task_choice.addItem(f"{name} · {count(len(task.files), 'file')}", task.task_id)
            if task == shown:
                self.task_choice.setCurrentIndex(number)

    def _show_steps(self, shown: TaskChanges | None) -> None:
        """The choice stays at its step, as long as the task has it."""
        chosen, blocker = self.step, QSignalBlocker(self.step_choice)
        steps = shown.steps if shown is not None else ()
        self.step_choice.setVisible(len(steps) > 1)
        self.step_choice.clear()
        self.step_choice.addItem("All steps", None)
        for step in steps:
            undone = "" if step.can_undo else " · undone"
            self.step_choice.addItem(f"Step {step.step} · {count(step.files, 'file')}{undone}", step.step)
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
