"""Banners at the top of every window: lost connections, and health conditions of the engine."""

from PySide6.QtCore import QTimer

from errand.protocol.engine import HealthUpdate
from errand.window.stores.session import EngineSession
from errand.window.theme.theme import Theme
from errand.window.widgets.banner import BannerView

_DELAY_MS = 400


class ConnectionBannerView(BannerView):
    """Shown only if connecting takes noticeable time."""

    def __init__(self, session: EngineSession, theme: Theme) -> None:
        super().__init__(theme)
        self._session = session
        self._delay = QTimer(self, singleShot=True, interval=_DELAY_MS)
        self._delay.timeout.connect(self._on_delay_over)
        session.state_changed.connect(self._on_state_changed)
        self.action_clicked.connect(session.retry)
        self._on_state_changed()

    def _on_state_changed(self) -> None:
        match self._session.state:
            case "ready":
                self._delay.stop()
                self.hide()
            case "connecting":
                self._delay.start()
            case "lost":
                self._delay.stop()
                text = "The engine has ended; it is being started again. What was finished is kept."
                if self._session.reason:
                    text = f"{text}\n{self._session.reason}"
                self.show_message(text, "waiting", "Try now", dismissible=False)

    def _on_delay_over(self) -> None:
        self.show_message("Connecting to the engine …", dismissible=False)


class HealthBannerView(BannerView):
    """Shown as long as a health condition exists."""

    def __init__(self, session: EngineSession, theme: Theme) -> None:
        super().__init__(theme)
        session.health_changed.connect(self._on_health_changed)
        self._show(HealthUpdate(conditions=session.conditions))

    def _on_health_changed(self, update: HealthUpdate) -> None:
        self._show(update)

    def _show(self, update: HealthUpdate) -> None:
        if not update.conditions:
            self.hide()
            return
        lines = [f"{condition.text} {condition.advice}" for condition in update.conditions]
        held = sum(task.status == "paused" for task in update.tasks)
        if held:
            lines.append(f"{held} {'task waits' if held == 1 else 'tasks wait'} meanwhile. What was finished is kept.")
        self.show_message("\n".join(lines), "failed", dismissible=False)
