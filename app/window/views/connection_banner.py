"""Says how the line to the engine is, while it is not ready."""

from PySide6.QtCore import QTimer

from app.window.stores.session import Session
from app.window.theme.theme import Theme
from app.window.widgets.banner import Banner

_PATIENCE_MS = 400


class ConnectionBanner(Banner):
    """A start that takes no longer than a blink is not spoken of."""

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(theme)
        self._session = session
        self._soon = QTimer(self, singleShot=True, interval=_PATIENCE_MS)
        self._soon.timeout.connect(self._on_patience_over)
        session.state_changed.connect(self._on_state_changed)
        self.acted.connect(session.retry)
        self._on_state_changed()

    def _on_state_changed(self) -> None:
        match self._session.state:
            case "ready":
                self._soon.stop()
                self.hide()
            case "connecting":
                self._soon.start()
            case "lost":
                self._soon.stop()
                text = "The engine has ended; it is being started again. What was finished is kept."
                if self._session.reason:
                    text = f"{text}\n{self._session.reason}"
                self.tell(text, "waiting", "Try now", dismissible=False)

    def _on_patience_over(self) -> None:
        self.tell("Connecting to the engine …", dismissible=False)
