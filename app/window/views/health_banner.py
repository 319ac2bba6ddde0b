"""Says what keeps the engine from working as it should, and what to do, until it is mended."""

from app.protocol.health import HealthUpdate
from app.window.stores.session import Session
from app.window.theme.theme import Theme
from app.window.widgets.banner import Banner


class HealthBanner(Banner):
    """Stays for as long as it is so: nothing typed is taken meanwhile."""

    def __init__(self, session: Session, theme: Theme) -> None:
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
        self.tell("\n".join(lines), "failed", dismissible=False)
