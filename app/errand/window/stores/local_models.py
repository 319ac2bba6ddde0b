"""The models that run on this machine: what there is, and how far their downloads are."""

from collections.abc import Callable

import msgspec
from PySide6.QtCore import QObject, Signal

from errand.protocol.base import EmptyParams, EmptyResult, Method
from errand.protocol.events import LocalModelUpdate
from errand.protocol.local_models import (
    LOCAL_MODEL_CANCEL,
    LOCAL_MODEL_INSTALL,
    LOCAL_MODEL_LIST,
    LOCAL_MODEL_REMOVE,
    LocalModel,
    LocalModelListResult,
    LocalModelParams,
)
from errand.window.stores.session import EngineSession


class LocalModelStore(QObject):
    """`listing` is None until `load` has been answered. `available_changed`: one was installed or removed."""

    changed = Signal()
    available_changed = Signal()

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self.listing: LocalModelListResult | None = None
        session.state_changed.connect(self._on_state_changed)

    @property
    def models(self) -> tuple[LocalModel, ...]:
        return self.listing.models if self.listing is not None else ()

    @property
    def recommended(self) -> LocalModel | None:
        return next((model for model in self.models if model.recommended), None)

    def load(self) -> None:
        """Ask what there is now."""
        self._session.spawn(self._load())

    def install(self, model_id: str, failed: Callable[[str], None]) -> None:
        """Begin or resume a download; its progress comes as changes."""
        self._session.spawn(self._call(LOCAL_MODEL_INSTALL, model_id), failed)

    def cancel(self, model_id: str, failed: Callable[[str], None]) -> None:
        self._session.spawn(self._call(LOCAL_MODEL_CANCEL, model_id), failed)

    def remove(self, model_id: str, failed: Callable[[str], None]) -> None:
        self._session.spawn(self._call(LOCAL_MODEL_REMOVE, model_id), failed)

    def apply(self, event: LocalModelUpdate) -> None:
        """Apply an event from the engine."""
        if self.listing is None:  # not shown yet; a terminal may have installed one
            if event.model.state in ("available", "installed"):
                self.available_changed.emit()
            return
        before = {model.id: model for model in self.models}
        models = {**before, event.model.id: event.model}
        self.listing = msgspec.structs.replace(self.listing, models=tuple(models.values()))
        self.changed.emit()
        old = before.get(event.model.id)
        if (old is not None and old.state == "installed") != (event.model.state == "installed"):
            self.available_changed.emit()
            self.load()

    def _on_state_changed(self) -> None:
        """Load again what was shown: the engine may be another one, without the downloads of the one before."""
        if self._session.state == "ready" and self.listing is not None:
            self.load()

    async def _call(self, method: Method[LocalModelParams, EmptyResult], model_id: str) -> None:
        await self._session.call(method, LocalModelParams(id=model_id))

    async def _load(self) -> None:
        self.listing = await self._session.call(LOCAL_MODEL_LIST, EmptyParams())
        self.changed.emit()
