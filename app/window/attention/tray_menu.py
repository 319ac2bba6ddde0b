"""The tray's menu: what waits, what runs with a stop for each, and the ways into the window and out of it."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QMenu

from app.client.characters import plain
from app.protocol.asks import Ask
from app.protocol.tasks import Task
from app.window.stores.stores import Stores
from app.window.views.activity import activity_of
from app.window.views.asked import asked_line

_MOST_LINES = 8
_LONGEST_TITLE, _LONGEST_DETAIL = 36, 48
_GATHER_MS = 250


class TrayMenu(QMenu):
    """Filled anew when what it says has changed, at most four times a second: while tasks stream it changes often."""

    opened = Signal(str)
    stop_asked = Signal(str)
    new_asked = Signal()
    quick_asked = Signal()
    window_asked = Signal()
    quit_asked = Signal()

    def __init__(self, stores: Stores) -> None:
        super().__init__()
        self._stores = stores
        self._last: tuple[object, ...] | None = None
        self._gathering = QTimer(self)
        self._gathering.setSingleShot(True)
        self._gathering.setInterval(_GATHER_MS)
        self._gathering.timeout.connect(self._on_gathered)
        stores.tasks.taskUpdate.connect(self._on_changed)
        stores.asks.changed.connect(self._on_changed)
        stores.conversations.changed.connect(self._on_changed)
        stores.conversations.reset.connect(self._on_changed)
        self._on_gathered()

    def _on_changed(self) -> None:
        if not self._gathering.isActive():
            self._gathering.start()

    def _on_gathered(self) -> None:
        waiting = [(self._ask_text(ask), ask.conversation_id) for ask in self._stores.asks.waiting()]
        running = [(self._task_text(task), task) for task in self._stores.tasks.running()]
        content = (*waiting, *((text, task.id, task.stopping) for text, task in running))
        if content == self._last:
            return
        self._last = content
        self.clear()
        self._add_waiting(waiting)
        self._add_running(running)
        self._add_ways()

    def _add_waiting(self, waiting: list[tuple[str, str]]) -> None:
        if not waiting:
            return
        self._add_heading(f"Waiting for you ({len(waiting)})")
        for text, conversation_id in waiting[:_MOST_LINES]:
            self.addAction(text).triggered.connect(partial(self.opened.emit, conversation_id))
        self._add_more(len(waiting))
        self.addSeparator()

    def _add_running(self, running: list[tuple[str, Task]]) -> None:
        if not running:
            return
        self._add_heading(f"Running ({len(running)})")
        for text, task in running[:_MOST_LINES]:
            menu = self.addMenu(text)
            menu.addAction("Open").triggered.connect(partial(self.opened.emit, task.conversation_id))
            stop = menu.addAction("Stopping" if task.stopping else "Stop")
            stop.setEnabled(not task.stopping)
            stop.triggered.connect(partial(self.stop_asked.emit, task.id))
        self._add_more(len(running))
        self.addSeparator()

    def _add_ways(self) -> None:
        ways: tuple[tuple[str, Callable[[], None]], ...] = (
            ("New task", self.new_asked.emit),
            ("Quick task …", self.quick_asked.emit),
            ("Open Errand", self.window_asked.emit),
        )
        for text, way in ways:
            self.addAction(text).triggered.connect(way)
        self.addSeparator()
        self.addAction("Quit …").triggered.connect(self.quit_asked.emit)

    def _add_heading(self, text: str) -> None:
        self.addAction(text).setEnabled(False)

    def _add_more(self, count: int) -> None:
        if count > _MOST_LINES:
            self._add_heading(f"and {count - _MOST_LINES} more")

    def _ask_text(self, ask: Ask) -> str:
        return _line(self._title(ask.conversation_id, ""), asked_line(ask))

    def _task_text(self, task: Task) -> str:
        return _line(self._title(task.conversation_id, task.prompt), activity_of(task))

    def _title(self, conversation_id: str, otherwise: str) -> str:
        known = self._stores.conversations.get(conversation_id)
        return known.title if known else otherwise


def _line(title: str, detail: str) -> str:
    """One line for both; an ampersand would underline the letter behind it."""
    parts = (_short(title, _LONGEST_TITLE), _short(detail, _LONGEST_DETAIL))
    return " · ".join(part for part in parts if part).replace("&", "&&")


def _short(text: str, longest: int) -> str:
    line = " ".join(plain(text).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
