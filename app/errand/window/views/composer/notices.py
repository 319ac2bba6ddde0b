"""The line above the composer: the status of the task, or the most urgent notice in its place.

Its height never changes, so a notice moves nothing.
"""

from typing import Literal, get_args

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from errand.protocol.engine import HealthUpdate
from errand.text.translation import tr, trn
from errand.window.stores.session import EngineSession
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.composer.status_line import StatusLineView
from errand.window.widgets.banner import BannerTone
from errand.window.widgets.notice_line import Notice, NoticeLineView

NoticeKind = Literal["connection", "health", "message", "no_model", "interrupted", "tour", "memory"]
"""The most urgent first: one is shown at a time."""

_CONNECT_DELAY_MS = 400


class NoticeSlotView(QWidget):
    """Emits `action_chosen` with the kind of the notice and the number of its button, `dismissed` with the kind."""

    action_chosen = Signal(str, int)
    dismissed = Signal(str)

    def __init__(self, status: StatusLineView, session: EngineSession, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self._status = status
        self._has_status = False
        self._has_reminder = False
        self._line: NoticeLineView | None = None
        self._notices: dict[NoticeKind, Notice] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(status)
        self.setFixedHeight(push_button(tr("Try now"), "quiet").sizeHint().height())
        self._sources = (ConnectionNotices(self, session), HealthNotices(self, session))
        session.state_changed.connect(self._on_state_changed)
        self._show()

    @property
    def shown(self) -> NoticeKind | None:
        return next((kind for kind in get_args(NoticeKind) if kind in self._notices), None)

    @property
    def text(self) -> str:
        """The text of the notice that is shown."""
        return self._notices[self.shown].text if self.shown is not None else ""

    def put(self, kind: NoticeKind, notice: Notice | None) -> None:
        """Set the notice of this kind; None if there is nothing to say any more."""
        if notice is None:
            self._notices.pop(kind, None)
        else:
            self._notices[kind] = notice
        self._show()

    def show_message(self, text: str, tone: BannerTone) -> None:
        """Show a result until it is dismissed, a message is sent or the connection is back."""
        self.put("message", Notice(text, tone, is_dismissible=True))

    def clear_message(self) -> None:
        self.put("message", None)

    def show_status(self, *, has_task: bool) -> None:
        """Show the status of the task, unless there is a notice."""
        self._has_status = has_task
        self._show()

    def remind(self, text: str) -> None:
        """Show this text for a moment, instead of all else; empty when the moment is over."""
        self._has_reminder = bool(text)
        self._status.show_reminder(text)
        self._show()

    def _show(self) -> None:
        kind = self.shown
        if kind is not None:
            self._made_line().show_notice(self._notices[kind])
        is_noticed = kind is not None and not self._has_reminder
        if self._line is not None:
            self._line.setVisible(is_noticed)
        self._status.setVisible(self._has_status and not is_noticed)

    def _made_line(self) -> NoticeLineView:
        if self._line is None:
            self._line = NoticeLineView(self._theme)
            self._line.action_clicked.connect(self._on_action_clicked)
            self._line.dismissed.connect(self._on_dismissed)
            self._column.addWidget(self._line)
        return self._line

    def _on_action_clicked(self, number: int) -> None:
        if self.shown is not None:
            self.action_chosen.emit(self.shown, number)

    def _on_dismissed(self) -> None:
        kind = self.shown
        if kind is not None:
            self.put(kind, None)
            self.dismissed.emit(kind)

    def _on_state_changed(self) -> None:
        if self._session.state == "ready":
            self.clear_message()


class ConnectionNotices(QObject):
    """Says that the engine is lost; that it is being connected only if this takes noticeable time."""

    def __init__(self, slot: NoticeSlotView, session: EngineSession) -> None:
        super().__init__(slot)
        self._slot = slot
        self._session = session
        self._delay = QTimer(self, singleShot=True, interval=_CONNECT_DELAY_MS)
        self._delay.timeout.connect(self._on_delay_over)
        session.state_changed.connect(self._on_state_changed)
        slot.action_chosen.connect(self._on_action_chosen)
        self._on_state_changed()

    def _on_state_changed(self) -> None:
        self._delay.stop()
        match self._session.state:
            case "ready":
                self._slot.put("connection", None)
            case "connecting":
                self._delay.start()
            case "lost":
                text = tr("The engine has stopped and is being restarted. Finished steps are kept.")
                if self._session.reason:
                    text = f"{text}\n{self._session.reason}"
                self._slot.put("connection", Notice(text, "waiting", (tr("Try now"),)))

    def _on_delay_over(self) -> None:
        self._slot.put("connection", Notice(tr("Connecting to the engine…")))

    def _on_action_chosen(self, kind: NoticeKind) -> None:
        if kind == "connection":
            self._session.retry()


class HealthNotices(QObject):
    """Says what is wrong with the engine as long as it is."""

    def __init__(self, slot: NoticeSlotView, session: EngineSession) -> None:
        super().__init__(slot)
        self._slot = slot
        session.health_changed.connect(self._show)
        self._show(HealthUpdate(conditions=session.conditions))

    def _show(self, update: HealthUpdate) -> None:
        if not update.conditions:
            self._slot.put("health", None)
            return
        lines = [f"{condition.text} {condition.advice}" for condition in update.conditions]
        held = sum(task.activity.status == "paused" for task in update.tasks)
        if held:
            lines.append(
                trn("{n} task waits. Finished steps are kept.", "{n} tasks wait. Finished steps are kept.", held)
            )
        self._slot.put("health", Notice("\n".join(lines), "failed"))
