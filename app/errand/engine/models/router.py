"""Opens the model for an id, with fallbacks; provides context windows and known prices."""

import re
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from errand.engine.core.addresses import is_local_address
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_values import SettingValues
from errand.engine.core.settings import Settings
from errand.engine.models.available_models import AvailableModels
from errand.engine.models.base import ChatModel, ModelOptions, ModelRequest
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.configured import KnownModelFacts, ProviderDirectory, default_api_base
from errand.engine.models.catalog.model_lists import ModelListCache
from errand.engine.models.catalog.providers import LOCAL, REACT, Provider, bare_id, provider_name
from errand.engine.models.factory import ModelFactory
from errand.engine.models.model_servers import ModelServers
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.servers.local_servers import NO_LOCAL_MODELS, LocalModelServers
from errand.protocol.agents import ThinkingLevel
from errand.protocol.notices import ThinkingObstacle

if TYPE_CHECKING:
    from errand.engine.models.recovery.driver import RecoveringModel
    from errand.engine.models.recovery.request_adaptation import LearnedLimits
    from errand.engine.models.recovery.source import ModelSource

_RETRY = RetryPolicy()
_SCRIPT_NAME = re.compile(r"\w[\w.-]*")
_MILLION = 1_000_000
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class ModelRouter:
    """The models of one engine. `scripts` is the folder of the scripted model."""

    def __init__(
        self,
        keys: KeyStore,
        scripts: Path,
        retry: RetryPolicy = _RETRY,
        settings: Callable[[], SettingValues] = SettingValues,
        lists: Path | None = None,
        local: LocalModelServers = NO_LOCAL_MODELS,
    ) -> None:
        self._factory = ModelFactory(keys, scripts, settings, local)
        self._local = local
        self._retry = retry
        self._keys = keys
        self._settings = settings
        self._facts = KnownModelFacts(settings, ModelListCache(lists))
        self._providers = ProviderDirectory(settings)
        self.servers = ModelServers(
            self._factory, self._providers, local, lists.with_name("learned_windows.json") if lists else None
        )
        self.available = AvailableModels(self._factory, self.servers, self._facts, self._providers, settings, local)
        self._sources: dict[tuple[str, str], ModelSource] = {}
        self._recovering: dict[ModelSource, RecoveringModel] = {}
        self._learned: dict[tuple[str, str], LearnedLimits] = {}
        self._own: weakref.WeakSet[ModelSource] = weakref.WeakSet()

    def open(
        self,
        model_id: str,
        api_base: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> ChatModel:
        """Return the model for an id `provider/model`, with retries, key look-up for each call, and cost.

        If its provider fails, the models of the setting `fallback_models` are tried. Raises `ConfigurationError` that
        says what to set. `api_base` is an address that the user has just given: it is remembered as trusted. `api_key`
        and `headers`, which go with each request to this provider, stay in memory with the returned model.
        """
        model = self._open(model_id, api_base, api_key, headers)
        if api_base is not None:
            self._keys.allow_address(self._provider(model_id).name, api_base)
        return model

    def open_again(self, model_id: str, api_base: str | None, api_key: str | None = None) -> ChatModel:
        """Open a model as `open` does, with an address from a record.

        It must be an address that a user chose for this provider on this machine, so that a file alone cannot redirect
        requests.
        """
        provider = self._provider(model_id)
        is_default = api_base in (None, default_api_base(model_id, self._settings()))
        if api_base is not None and not is_default and not self._keys.is_allowed_address(provider.name, api_base):
            raise ConfigurationError(
                f"Nobody on this machine has chosen the address {api_base} for {provider.title}, so nothing is sent "
                "there. Send a message with --api-base to choose it, or choose another model."
            )
        return self._open(model_id, api_base, api_key, _NO_HEADERS)

    def open_alone(self, model_id: str) -> ChatModel:
        """Return the model at its usual address, without fallbacks: for calls that may fail, but go nowhere else."""
        from errand.engine.models.recovery.driver import RecoveringModel
        from errand.engine.models.recovery.fallback import FallbackModels

        self._facts.refresh()
        source = self._source(model_id, default_api_base(model_id, self._settings()), None, _NO_HEADERS)
        return RecoveringModel(FallbackModels(source), self._retry)

    def prepare(self, model_id: str) -> None:
        """Get ready for a request that may follow soon, in the background; an invalid id changes nothing."""
        with suppress(ConfigurationError):
            self._factory.prepare(self._provider(model_id), model_id.removeprefix(REACT))

    def _open(self, model_id: str, api_base: str | None, api_key: str | None, headers: Mapping[str, str]) -> ChatModel:
        from errand.engine.models.recovery.driver import RecoveringModel
        from errand.engine.models.recovery.fallback import FallbackModels

        self._facts.refresh()
        self.prepare(model_id)
        source = self._source(model_id, api_base, api_key, headers)
        if source in self._recovering:
            return self._recovering[source]
        model = RecoveringModel(FallbackModels(source, self._fallbacks, self._fallback_source), self._retry)
        if source not in self._own:
            self._recovering[source] = model
        return model

    def _fallbacks(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self._settings().fallback_models.split(",") if name.strip())

    def _provider(self, model_id: str) -> Provider:
        return self._providers.of(model_id.removeprefix(REACT))

    def _fallback_source(self, model_id: str) -> "ModelSource":
        return self._source(model_id, default_api_base(model_id, self._settings()), None, _NO_HEADERS)

    def _source(
        self, model_id: str, api_base: str | None, api_key: str | None, headers: Mapping[str, str]
    ) -> "ModelSource":
        provider = self._provider(model_id)
        key = (provider.name, api_base or self._factory.base_url(provider))
        if api_key or headers:
            source = self._make(key, provider, api_base, api_key, headers)
            self._own.add(source)
            return source
        if key not in self._sources:
            self._sources[key] = self._make(key, provider, api_base, None, _NO_HEADERS)
        return self._sources[key]

    def _make(
        self,
        key: tuple[str, str],
        provider: Provider,
        api_base: str | None,
        api_key: str | None,
        headers: Mapping[str, str],
    ) -> "ModelSource":
        from errand.engine.models.recovery.request_adaptation import LearnedLimits
        from errand.engine.models.recovery.source import ModelSource

        model = self._factory.make(provider, api_base, api_key, headers)
        if provider.kind == "scripted":
            return ModelSource(model, estimates_usage=False)
        learned = self._learned.setdefault(key, LearnedLimits(key[1]))
        return ModelSource(model, learned, address=key[1], finds_tokens=_finds_tokens(provider, key[1]))

    def context_tokens(self, model_id: str, api_base: str | None = None) -> int | None:
        """Return the size of the context window in tokens, None if unknown.

        `api_base` is the address of the request, None for the usual one of the provider.
        """
        if provider_name(model_id) == LOCAL:
            return self._local.context_tokens(bare_id(model_id).partition("/")[2])
        provider = self._providers.find(provider_name(model_id))
        usual = self._factory.base_url(provider) if provider is not None else ""
        facts = model_facts.facts(model_id, api_base or usual or None)
        return facts.context_tokens if facts else None

    def has_price(self, model_id: str) -> bool:
        """Return True if the price of this model is known; otherwise `cost_usd` of its usage is meaningless."""
        provider = self._providers.find(provider_name(model_id))
        if provider is not None and (
            provider.is_local or provider.kind in ("scripted", "local") or provider.family == "openrouter"
        ):
            return True
        facts = model_facts.facts(model_id)
        return facts is not None and facts.prices.input is not None and facts.prices.output is not None

    def obstacle_to_thinking(
        self, model_id: str, level: ThinkingLevel, api_base: str | None
    ) -> ThinkingObstacle | None:
        """Why a thinking level does not reach the model at this address; None if it does."""
        provider = self._provider(model_id)
        request = ModelRequest(model_id.removeprefix(REACT), "", (), options=ModelOptions(thinking_level=level))
        return self._factory.obstacle_to_thinking(request, provider, api_base or self._factory.base_url(provider))

    async def close(self) -> None:
        """End all streams as aborted and close the connections."""
        for source in (*self._sources.values(), *self._own):
            source.streams.close()
        await self._factory.close()


def _finds_tokens(provider: Provider, address: str) -> bool:
    """Return True for servers that people run: llama.cpp, Ollama and vLLM look for tokens in all of a prompt."""
    is_run_by_people = provider.is_local or provider.is_custom or is_local_address(address)
    return provider.kind == "local" or (provider.kind == "openai_compatible" and is_run_by_people)


def window_of(model_id: str, api_base: str | None, *, models: ModelRouter, settings: Settings) -> int | None:
    """Return the context window in tokens: from the catalogue, else from the settings; None if unknown."""
    return models.context_tokens(model_id, api_base) or settings.values.context_tokens or None
