"""What the engine offers: models, personalities, declared settings, the sandbox."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from errand.client.texts.task_options import is_bounded
from errand.protocol.agents import (
    PERSONALITY_DELETE,
    PERSONALITY_LIST,
    PERSONALITY_SAVE,
    Personality,
    PersonalityDeleteParams,
    PersonalitySaveParams,
)
from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_STATUS
from errand.protocol.events import PersonalityDeleted, PersonalityUpdate
from errand.protocol.settings import (
    MODEL_LIST,
    SETTINGS_GET,
    Model,
    ModelListParams,
    ModelListResult,
    SettingsGetParams,
)
from errand.window.stores.session import EngineSession
from errand.window.stores.window_state import WindowStateStore

# The provider of the tour's models, which nobody chooses for work.
_SCRIPTED = "scripted"


def is_scripted(model: str) -> bool:
    """Return True for a model of the tour."""
    return model.startswith(f"{_SCRIPTED}/")


class ModelStore(QObject):
    """`found` is None until the engine has answered. Loads whenever the session becomes ready."""

    changed = Signal()

    def __init__(self, session: EngineSession, state: WindowStateStore) -> None:
        super().__init__()
        self._session = session
        self._state = state
        self.model_list: ModelListResult | None = None
        session.state_changed.connect(self._on_state_changed)

    @property
    def offered(self) -> tuple[Model, ...]:
        """The models whose provider is ready, without those that the person chose not to see."""
        if self.model_list is None:
            return ()
        providers = {provider.name for provider in self.model_list.providers if provider.ready}
        return tuple(model for model in self.model_list.models if model.shown and model.provider in providers)

    @property
    def ready(self) -> tuple[str, ...]:
        """Ids of the models whose provider is ready."""
        return tuple(model.id for model in self.offered)

    @property
    def providers(self) -> tuple[tuple[str, str], ...]:
        """The ready providers: id, which is the prefix of their model ids, and title."""
        providers = self.model_list.providers if self.model_list is not None else ()
        return tuple(
            (provider.name, provider.title) for provider in providers if provider.ready and provider.name != _SCRIPTED
        )

    @property
    def favourites(self) -> tuple[str, ...]:
        return tuple(self._state.settings.favourite_models)

    @property
    def recent(self) -> tuple[str, ...]:
        """The models that were chosen last, the newest first."""
        return tuple(self._state.settings.recent_models)

    @property
    def compared(self) -> tuple[str, ...]:
        """The models that were last asked together."""
        return tuple(self._state.settings.compared_models)

    def set_compared(self, models: Sequence[str]) -> None:
        self._state.set_compared_models(models)

    @property
    def scrolls_together(self) -> bool:
        """True if the columns of compared models scroll together."""
        return self._state.settings.scrolls_together

    def set_scrolls_together(self, scrolls_together: bool) -> None:
        self._state.settings.scrolls_together = scrolls_together
        self._state.save_soon()

    def set_favourite(self, model: str, is_favourite: bool) -> None:
        self._state.set_favourite_model(model, is_favourite=is_favourite)
        self.changed.emit()

    def add_recent(self, model: str) -> None:
        self._state.add_recent_model(model)
        self.changed.emit()

    @property
    def default(self) -> str:
        return (self.model_list.default or "") if self.model_list else ""

    @property
    def is_empty(self) -> bool:
        """True if the engine reported that no model is available."""
        return self.model_list is not None and self.model_list.default is None

    def reload(self) -> None:
        """Load again, and look for local servers."""
        self._session.spawn(self._load(refresh=True))

    def load(self) -> None:
        """Load again what the engine knows now."""
        self._session.spawn(self._load(refresh=False))

    def _on_state_changed(self) -> None:
        if self._session.state == "ready":
            self._session.spawn(self._load(refresh=self.model_list is None))

    async def _load(self, *, refresh: bool) -> None:
        self.model_list = await self._session.call(MODEL_LIST, ModelListParams(refresh=refresh))
        self.changed.emit()


class SandboxStore(QObject):
    """A store of whether commands run in a sandbox: False until the engine has answered.

    It loads when the session is ready.
    """

    changed = Signal()

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self.holds = False
        session.state_changed.connect(self._on_state_changed)

    def reload(self) -> None:
        self._session.spawn(self._load())

    def _on_state_changed(self) -> None:
        if self._session.state == "ready":
            self.reload()

    async def _load(self) -> None:
        self.holds = is_bounded((await self._session.call(ENGINE_STATUS, EmptyParams())).sandbox)
        self.changed.emit()


class PersonalityStore(QObject):
    """Emits `changed` after each event.

    `shipped` has the built-in personalities in their original form, `tools` the tools a personality may list.
    """

    changed = Signal()

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self._personalities: dict[str, Personality] = {}
        self.shipped: tuple[Personality, ...] = ()
        self.tools: tuple[str, ...] = ()
        # Events received while a list is loading: the list may be older.
        self._deferred: list[PersonalityUpdate | PersonalityDeleted] | None = None
        session.state_changed.connect(self._on_state_changed)

    @property
    def all(self) -> tuple[Personality, ...]:
        return tuple(sorted(self._personalities.values(), key=lambda personality: personality.name.casefold()))

    def get(self, personality_id: str) -> Personality | None:
        return self._personalities.get(personality_id)

    def save(self, personality: Personality, done: Callable[[], None], failed: Callable[[str], None]) -> None:
        """Store a personality; exactly one of the callbacks is called with the engine's answer."""
        self._session.spawn(self._save(personality, done), failed)

    def delete(self, personality_id: str, done: Callable[[], None], failed: Callable[[str], None]) -> None:
        self._session.spawn(self._delete(personality_id, done), failed)

    def apply(self, event: PersonalityUpdate | PersonalityDeleted) -> None:
        """Apply an event from the engine."""
        if self._deferred is not None:
            self._deferred.append(event)
        self._put(event)
        self.changed.emit()

    def _put(self, event: PersonalityUpdate | PersonalityDeleted) -> None:
        match event:
            case PersonalityUpdate(personality=personality):
                self._personalities[personality.id] = personality
            case PersonalityDeleted(personality_id=personality_id):
                self._personalities.pop(personality_id, None)

    def _on_state_changed(self) -> None:
        if self._session.state == "ready":
            self._session.spawn(self._load())

    async def _save(self, personality: Personality, done: Callable[[], None]) -> None:
        await self._session.call(PERSONALITY_SAVE, PersonalitySaveParams(personality=personality))
        done()

    async def _delete(self, personality_id: str, done: Callable[[], None]) -> None:
        await self._session.call(PERSONALITY_DELETE, PersonalityDeleteParams(personality_id=personality_id))
        done()

    async def _load(self) -> None:
        self._deferred = deferred = list[PersonalityUpdate | PersonalityDeleted]()
        try:
            result = await self._session.call(PERSONALITY_LIST, EmptyParams())
        finally:
            if self._deferred is deferred:  # otherwise a later load has started
                self._deferred = None
        self.shipped, self.tools = result.shipped, result.tools
        self._personalities = {personality.id: personality for personality in result.personalities}
        for event in deferred:
            self._put(event)
        self.changed.emit()


class SettingsStore(QObject):
    """Emits `loaded` with a tuple of `Setting` after each successful `load`."""

    loaded = Signal(object)

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session

    def load(self) -> None:
        if self._session.state == "ready":
            self._session.spawn(self._load())

    async def _load(self) -> None:
        self.loaded.emit((await self._session.call(SETTINGS_GET, SettingsGetParams())).settings)
