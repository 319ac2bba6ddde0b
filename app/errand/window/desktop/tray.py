"""The tray icon: badge, and the menu of asks and running tasks."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from errand.client.safe_text import plain
from errand.protocol.asks import Ask
from errand.protocol.tasks.task import Task
from errand.text.redaction import redact
from errand.text.translation import tr, trn
from errand.window.stores.asks import ask_summary
from errand.window.stores.stores import Stores
from errand.window.stores.tasks import task_activity
from errand.window.theme.icons import app_icon
from errand.window.theme.tokens import DARK

_SIZES = (16, 22, 24, 32, 48, 64)
_BADGE_RATIO = 0.62
"""Fraction of the icon's side: at 16 px a digit is 8 px high, the smallest readable size."""

_MAX_LINES = 8
_MAX_TITLE_LENGTH, _MAX_DETAIL_LENGTH = 36, 48
_THROTTLE_MS = 250
_MAX_COUNT = 9


def tray_icon(waiting: int) -> QIcon:
    """Amber in all themes: the background of the tray is unknown."""
    plain = app_icon()
    if not waiting:
        return plain
    text = str(waiting) if waiting <= _MAX_COUNT else f"{_MAX_COUNT}+"
    icon = QIcon()
    for side in _SIZES:
        icon.addPixmap(_with_badge(plain.pixmap(side, side), side, text))
    return icon


def _with_badge(plain: QPixmap, side: int, text: str) -> QPixmap:
    picture = QPixmap(side, side)
    picture.fill(Qt.GlobalColor.transparent)
    height = round(side * _BADGE_RATIO)
    width = height if len(text) == 1 else round(height * 1.35)
    badge = QRectF(side - width, side - height, width, height)
    font = QFont()
    font.setPixelSize(round(height * 0.85))
    font.setBold(True)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.drawPixmap(0, 0, side, side, plain)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(DARK.waiting))
    painter.drawRoundedRect(badge, height / 2, height / 2)
    painter.setPen(QColor(DARK.page))
    painter.setFont(font)
    painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, text)
    painter.end()
    return picture


class TrayMenu(QMenu):
    """Rebuilt when its content has changed, at most four times a second: streaming tasks change it often."""

    opened = Signal(str)
    stop_requested = Signal(str)
    new_task_requested = Signal()
    quick_task_requested = Signal()
    main_window_requested = Signal()
    quit_requested = Signal()

    def __init__(self, stores: Stores) -> None:
        super().__init__()
        self._stores = stores
        self._last: tuple[object, ...] | None = None
        self._update_timer = QTimer(self)
        self._update_timer.setSingleShot(True)
        self._update_timer.setInterval(_THROTTLE_MS)
        self._update_timer.timeout.connect(self._update)
        stores.tasks.taskUpdate.connect(self._on_changed)
        stores.asks.changed.connect(self._on_changed)
        stores.conversations.changed.connect(self._on_changed)
        stores.conversations.reset.connect(self._on_changed)
        self._update()

    def _on_changed(self) -> None:
        if not self._update_timer.isActive():
            self._update_timer.start()

    def _update(self) -> None:
        waiting = [(self._ask_text(ask), ask.conversation_id) for ask in self._stores.asks.waiting()]
        running = [(self._task_text(task), task) for task in self._stores.tasks.running()]
        content = (*waiting, *((text, task.id, task.activity.stopping) for text, task in running))
        if content == self._last:
            return
        self._last = content
        self.clear()
        self._add_waiting(waiting)
        self._add_running(running)
        self._add_commands()

    def _add_waiting(self, waiting: list[tuple[str, str]]) -> None:
        if not waiting:
            return
        self._add_heading(tr("Waiting for you ({count})").format(count=len(waiting)))
        for text, conversation_id in waiting[:_MAX_LINES]:
            self.addAction(text).triggered.connect(partial(self.opened.emit, conversation_id))
        self._add_more(len(waiting))
        self.addSeparator()

    def _add_running(self, running: list[tuple[str, Task]]) -> None:
        if not running:
            return
        self._add_heading(tr("Running ({count})").format(count=len(running)))
        for text, task in running[:_MAX_LINES]:
            menu = self.addMenu(text)
            menu.addAction(tr("Open")).triggered.connect(partial(self.opened.emit, task.conversation_id))
            stop = menu.addAction(tr("Stopping…") if task.activity.stopping else tr("Stop"))
            stop.setEnabled(not task.activity.stopping)
            stop.triggered.connect(partial(self.stop_requested.emit, task.id))
        self._add_more(len(running))
        self.addSeparator()

    def _add_commands(self) -> None:
        commands: tuple[tuple[str, Callable[[], None]], ...] = (
            (tr("New task"), self.new_task_requested.emit),
            (tr("Quick task…"), self.quick_task_requested.emit),
            (tr("Open Errand"), self.main_window_requested.emit),
        )
        for text, run in commands:
            self.addAction(text).triggered.connect(run)
        self.addSeparator()
        self.addAction(tr("Quit…")).triggered.connect(self.quit_requested.emit)

    def _add_heading(self, text: str) -> None:
        self.addAction(text).setEnabled(False)

    def _add_more(self, count: int) -> None:
        if count > _MAX_LINES:
            self._add_heading(trn("and {n} more", "and {n} more", count - _MAX_LINES))

    def _ask_text(self, ask: Ask) -> str:
        return _line(self._title(ask.conversation_id, ""), ask_summary(ask))

    def _task_text(self, task: Task) -> str:
        return _line(self._title(task.conversation_id, task.request.prompt), task_activity(task))

    def _title(self, conversation_id: str, otherwise: str) -> str:
        conversation = self._stores.conversations.get(conversation_id)
        return conversation.title if conversation else otherwise


def _line(title: str, detail: str) -> str:
    """Title and detail in one line; escapes ampersands, which would underline the next letter."""
    parts = (_short(title, _MAX_TITLE_LENGTH), _short(detail, _MAX_DETAIL_LENGTH))
    return " · ".join(part for part in parts if part).replace("&", "&&")


def _short(text: str, longest: int) -> str:
    line = redact(" ".join(plain(text).split()))
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


class Tray(QObject):
    """`main_window_requested` is emitted on a click on the icon; `menu` emits the chosen entries."""

    main_window_requested = Signal()

    def __init__(self, stores: Stores) -> None:
        super().__init__()
        self._stores = stores
        self._waiting = -1
        self._tool_tip = ""
        self.menu = TrayMenu(stores)
        self.icon = QSystemTrayIcon(self)
        self.icon.setContextMenu(self.menu)
        self.icon.activated.connect(self._on_activated)
        stores.asks.changed.connect(self._on_changed)
        stores.tasks.taskUpdate.connect(self._on_changed)
        self._on_changed()
        self.icon.show()

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in (QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick):
            self.main_window_requested.emit()

    def _on_changed(self) -> None:
        waiting, running = len(self._stores.asks.waiting()), len(self._stores.tasks.running())
        tool_tip = _tool_tip(waiting, running)
        if tool_tip != self._tool_tip:  # each change is a D-Bus message
            self._tool_tip = tool_tip
            self.icon.setToolTip(tool_tip)
        if waiting != self._waiting:
            self._waiting = waiting
            self.icon.setIcon(tray_icon(waiting))


def _tool_tip(waiting: int, running: int) -> str:
    parts = [trn("{n} waiting for you", "{n} waiting for you", waiting)] if waiting else []
    parts += [trn("{n} task running", "{n} tasks running", running)] if running else []
    return tr("Errand: {parts}").format(parts=", ".join(parts)) if parts else "Errand"
