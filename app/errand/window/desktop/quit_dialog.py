"""Asks whether to keep running tasks when quitting, and shows which are stopping."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QWidget

from errand.client.safe_text import plain
from errand.protocol.tasks.task import Task
from errand.text.translation import tr, trn
from errand.window.stores.quit import QuitStore
from errand.window.stores.tasks import task_activity
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import fill, hbox, set_hbox, set_vbox, stretch
from errand.window.widgets.labels import ElidedLabel, TextLabel

_MAX_LINES = 6


class QuitDialog(QDialog):
    """`accepted` when the window may close: the tasks continue in the background, or all have ended."""

    def __init__(self, quitting: QuitStore, theme: Theme, parent: QWidget | None) -> None:
        super().__init__(parent)
        self._quitting = quitting
        self._is_ending = False
        self.setWindowTitle(tr("Quit Errand"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        tokens = theme.tokens
        self.setMinimumWidth(tokens.column * 7 // 8)
        self._heading = TextLabel(theme, size=tokens.size_large, bold=True, wrap=True)
        self._text = TextLabel(theme, wrap=True, tone="muted")
        self._lines = [_Line(theme) for _ in range(_MAX_LINES)]
        self._more = TextLabel(theme, size=tokens.size_small, tone="muted")
        set_vbox(
            self,
            self._heading,
            self._text,
            *self._lines,
            self._more,
            tokens.space_normal,
            stretch(0),
            self._make_buttons(tokens.space_close),
            spacing=tokens.space_close,
            margins=(tokens.space_far, tokens.space_far, tokens.space_far, tokens.space_wide),
        )
        quitting.changed.connect(self._show)
        quitting.done.connect(self.accept)
        self._show()

    def reject(self) -> None:
        """Ignored while tasks are being stopped."""
        if not self._is_ending:
            super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._is_ending:
            event.ignore()
        else:
            super().closeEvent(event)

    def _make_buttons(self, space: int) -> QHBoxLayout:
        self._keep = push_button(tr("Keep running in the background"), "primary")
        self._end = push_button(tr("Stop tasks and quit"), "danger")
        self._cancel = push_button(tr("Cancel"))
        self._keep.setDefault(True)
        self._keep.clicked.connect(self.accept)
        self._end.clicked.connect(self._on_end)
        self._cancel.clicked.connect(self.reject)
        self._keep.setFocus()
        return hbox(self._keep, self._end, stretch(0), self._cancel, spacing=space)

    def _on_end(self) -> None:
        self._is_ending = True
        for button in (self._keep, self._end, self._cancel):
            button.setEnabled(False)
        self._quitting.end_all()
        self._show()

    def _show(self) -> None:
        tasks = self._quitting.tasks.running()
        self._heading.setText(self._question(len(tasks)))
        self._text.setText(self._explanation())
        for number, line in enumerate(self._lines):
            line.show_task(tasks[number] if number < len(tasks) else None)
        self._more.setText(trn("and {n} more", "and {n} more", len(tasks) - _MAX_LINES))
        self._more.setVisible(len(tasks) > _MAX_LINES)
        self.setAccessibleName(f"{self._heading.text()} {self._text.text()}")

    def _question(self, at_work: int) -> str:
        if self._is_ending:
            return trn("Stopping {n} task…", "Stopping {n} tasks…", at_work) if at_work else tr("Ending the engine…")
        if not at_work:
            return tr("No tasks are running.")
        return trn("{n} task is still running. Quit?", "{n} tasks are still running. Quit?", at_work)

    def _explanation(self) -> str:
        if self._is_ending:
            return tr("Your work is saved. This takes up to 3 seconds.")
        return tr(
            "In the background, tasks continue and questions wait for you. If you quit, all tasks and the "
            "processes they started are stopped, also for everyone else connected to this engine."
        )


class _Line(QWidget):
    """A task and its current activity."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._title = ElidedLabel(theme)
        self._detail = ElidedLabel(theme, tone="muted")
        set_hbox(self, fill(self._title, 3), fill(self._detail, 2), spacing=theme.tokens.space_normal)

    def show_task(self, task: Task | None) -> None:
        self.setVisible(task is not None)
        if task is not None:
            self._title.set_text(" ".join(plain(task.request.prompt).split()))
            self._detail.set_text(task_activity(task))
