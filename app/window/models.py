"""Which models there are, for the choice in the composer and for what a first start offers."""

from PySide6.QtCore import QObject, Signal

from app.protocol.models import ModelListParams, ModelListResult
from app.protocol.wire import MODEL_LIST
from app.window.stores.session import Session


class ModelStore(QObject):
    """`found` is None until the engine has answered; it is asked whenever the session becomes ready."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.found: ModelListResult | None = None
        session.state_changed.connect(self._on_state_changed)

    @property
    def ready(self) -> tuple[str, ...]:
        """The ids of the models whose provider can be used now."""
        if self.found is None:
            return ()
        providers = {provider.name for provider in self.found.providers if provider.ready}
        return tuple(model.id for model in self.found.models if model.provider in providers)

    @property
    def servers(self) -> tuple[tuple[str, str], ...]:
        """The person's own: what the ids of their models begin with, and their names."""
        own = self.found.providers if self.found is not None else ()
        return tuple((provider.name, provider.title) for provider in own if provider.own)

    @property
    def default(self) -> str:
        return (self.found.default or "") if self.found else ""

    @property
    def is_empty(self) -> bool:
        """True when the engine has said that no model can be used."""
        return self.found is not None and self.found.default is None

    def look_again(self) -> None:
        self._session.spawn(self._load(refresh=True))

    def _on_state_changed(self) -> None:
        if self._session.state == "ready":
            self._session.spawn(self._load(refresh=self.found is None))

    async def _load(self, *, refresh: bool) -> None:
        self.found = await self._session.call(MODEL_LIST, ModelListParams(refresh=refresh))
        self.changed.emit()
