"""Finds the model behind an id and lists what can be used. Making models is the factory's work."""

import difflib
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from app.engine import own_models
from app.engine.errors import ConfigurationError
from app.engine.models import prices
from app.engine.models.addresses import is_in_the_clear
from app.engine.models.base import ChatModel
from app.engine.models.catalog import PROVIDERS, REACT, Provider, find, provider_name
from app.engine.models.factory import ModelFactory
from app.engine.models.listings import Listings, Source
from app.engine.models.retry import RetryPolicy
from app.engine.models.trial import try_model
from app.engine.own_models import OwnModel
from app.engine.secrets import Key, KeyStore
from app.engine.settings import SettingValues
from app.protocol import models as wire

if TYPE_CHECKING:
    from app.engine.models.discover import LocalServer
    from app.engine.models.fallback import Fallback

_RETRY = RetryPolicy()
_SCRIPT_NAME = re.compile(r"\w[\w.-]*")
_MILLION = 1_000_000


class ModelRouter:
    """All ways to models of one engine. `scripts` is the folder of the scripted model."""

    def __init__(
        self,
        keys: KeyStore,
        scripts: Path,
        retry: RetryPolicy = _RETRY,
        settings: Callable[[], SettingValues] = SettingValues,
        lists: Path | None = None,
    ) -> None:
        self._factory = ModelFactory(keys, scripts, retry, settings)
        self._settings = settings
        self._listings = Listings(lists)
        self._own = ""
        self._own_ids: tuple[tuple[str, str, str], ...] = ()
        self._learn(again=True)
        self._shared: dict[tuple[str, str], ChatModel] = {}
        self._with_fallback: dict[ChatModel, Fallback] = {}
        self._without_tools: dict[tuple[str, str], set[str]] = {}
        self._with_own_key: weakref.WeakSet[ChatModel] = weakref.WeakSet()
        self._servers: tuple[LocalServer, ...] | None = None
        self._looked_at: dict[str, str] = {}

    def open(self, model_id: str, api_base: str | None = None, api_key: str | None = None) -> ChatModel:
        """The model behind an id `provider/model`; retries, key look-up for each call and cost are part of it.

        Where its provider fails, those of the setting `fallback_models` are asked. Raises `ConfigurationError` that
        says what to set. `api_key` stays in memory with the model returned.
        """
        from app.engine.models.fallback import Fallback

        self._learn()
        alone = self._open_alone(model_id, api_base, api_key)
        if alone in self._with_fallback:
            return self._with_fallback[alone]
        routed = Fallback(alone, self._fallbacks, self._open_fallback)
        if alone in self._shared.values():
            self._with_fallback[alone] = routed
        return routed

    def _fallbacks(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self._settings().fallback_models.split(",") if name.strip())

    def _open_fallback(self, model_id: str) -> ChatModel:
        return self._open_alone(model_id, default_api_base(model_id, self._settings()), None)

    def _open_alone(self, model_id: str, api_base: str | None, api_key: str | None) -> ChatModel:
        if model_id.startswith(REACT):
            return _as_text(self._open_alone(model_id.removeprefix(REACT), api_base, api_key))
        provider = _provider_of(model_id)
        place = (provider.name, api_base or self._factory.base_url(provider))
        if api_key:
            model = self._make(place, provider, api_base, api_key)
            self._with_own_key.add(model)
            return model
        if place not in self._shared:
            self._shared[place] = self._make(place, provider, api_base, None)
        return self._shared[place]

    def _make(self, place: tuple[str, str], provider: Provider, api_base: str | None, api_key: str | None) -> ChatModel:
        model = self._factory.make(provider, api_base, api_key)
        if provider.kind == "scripted":
            return model
        from app.engine.models.adaptive import AdaptiveModel
        from app.engine.models.tempered import Tempered

        return AdaptiveModel(Tempered(model), self._without_tools.setdefault(place, set()))

    async def list(self, refresh: bool, fetch: bool = False) -> wire.ModelListResult:
        """Providers, their models, the default one. Local servers are looked for at the first call and on refresh.

        With `fetch` the providers that have a key are asked for their own lists, which are kept.
        """
        await self._look(refresh)
        if fetch:
            await self._fetch()
        self._learn()
        rows = [await self._describe(provider) for provider in PROVIDERS]
        ready = [row.name for row in rows if row.ready]
        models = [_describe_model(provider, name) for provider in ready for name in self._names(provider)]
        return wire.ModelListResult(providers=tuple(rows), models=tuple(models), default=await self.default_model())

    async def default_model(self) -> str | None:
        """The model to use where none is named: of the first provider with a key, else of the first local server."""
        for provider in PROVIDERS:
            if provider.default_model and await self._key(provider):
                return f"{provider.name}/{provider.default_model}"
        listing = self._listings.of("proxy")
        if listing is not None and listing.models and self._factory.base_url(_provider_of("proxy/any")):
            return f"proxy/{listing.models[0].name}"
        await self._look(refresh=False)
        for server in self._servers or ():
            if server.models:
                return f"{server.provider.name}/{server.models[0]}"
        return None

    async def test(self, provider_name: str, model_id: str | None) -> wire.ModelTestResult:
        """One real round trip, tried once. Raises `ConfigurationError` for what there is not."""
        provider = _provider_of((model_id or f"{provider_name}/any").removeprefix(REACT))
        if provider.name != provider_name:
            raise ConfigurationError(f"{model_id!r} is not a model of {provider_name}.")
        wanted = model_id or await self._model_to_test(provider)
        model = self._factory.make(provider, default_api_base(wanted, self._settings()), None, RetryPolicy(attempts=1))
        try:
            return await try_model(_as_text(model) if wanted.startswith(REACT) else model, wanted)
        finally:
            await model.close()

    async def _model_to_test(self, provider: Provider) -> str:
        """The one that tasks would use."""
        if provider.default_model:
            return f"{provider.name}/{provider.default_model}"
        listing = self._listings.of(provider.name)
        if listing is not None and listing.models:
            return f"{provider.name}/{listing.models[0].name}"
        await self._look(refresh=True)
        server = self._server(provider.name)
        if server is not None and server.models:
            return f"{provider.name}/{server.models[0]}"
        if provider.is_local and server is None:
            base = self._factory.base_url(provider)
            raise ConfigurationError(f"{provider.title} does not answer at {base}: {provider.start_hint}.")
        raise ConfigurationError(f"{provider.title}: no model is known to try. Name one.")

    def context_tokens(self, model_id: str) -> int | None:
        """How many tokens the model can read; None where that is not known."""
        known = prices.facts(model_id)
        return known.context_tokens if known else None

    def has_price(self, model_id: str) -> bool:
        """Whether costs of this model are known; where not, `cost_usd` of a usage says nothing."""
        provider = find(provider_name(model_id))
        if provider is not None and (provider.is_local or provider.kind == "scripted" or provider.name == "openrouter"):
            return True
        known = prices.facts(model_id)
        return known is not None and known.input_price is not None and known.output_price is not None

    async def close(self) -> None:
        """End all streams as aborted and close the connections."""
        for model in (*self._shared.values(), *self._with_own_key):
            await model.close()
        await self._factory.close()

    async def _look(self, refresh: bool) -> None:
        bases = {row.name: self._factory.base_url(row) for row in PROVIDERS if row.is_local}
        if refresh or self._servers is None or bases != self._looked_at:
            from app.engine.models.discover import local_servers

            self._servers, self._looked_at = await local_servers(self._factory.connections.session, bases), bases

    def _server(self, name: str) -> "LocalServer | None":
        return next((server for server in self._servers or () if server.provider.name == name), None)

    def _names(self, provider: str) -> tuple[str, ...]:
        server = self._server(provider)
        listing = self._listings.of(provider)
        listed = tuple(model.name for model in listing.models) if listing else prices.chat_models(provider)
        own = (name for of, _, name in self._own_ids if of == provider)
        return tuple(dict.fromkeys((*own, *(server.models if server else listed))))

    async def _fetch(self) -> None:
        sources: list[Source] = []
        for provider in PROVIDERS:
            base = self._factory.base_url(provider)
            base = f"{base.rstrip('/').removesuffix('/api')}/api" if provider.kind == "proxy" and base else base
            if (base or provider.list_url) and (key := await self._key(provider)) is not None:
                sources.append(Source(provider, base, key.value))
        await self._listings.refresh(self._factory.connections.session, sources)
        self._learn(again=True)

    def _learn(self, *, again: bool = False) -> None:
        """Bring what is known of models up to date with the setting and the lists."""
        text = self._settings().own_models
        if again or text != self._own:
            self._own = text
            own = own_models.parse(text)
            self._own_ids = tuple(model.id.partition("/") for model in own)
            prices.learn({model.id: _own_facts(model) for model in own}, self._listings.facts())

    async def _key(self, provider: Provider) -> Key | None:
        """The provider's key; one that cannot be read now counts as none here, its use says why."""
        if not provider.key_variables:
            return None
        try:
            return await self._factory.key(provider)
        except ConfigurationError:
            return None

    async def _describe(self, provider: Provider) -> wire.Provider:
        key = await self._key(provider)
        server = self._server(provider.name)
        source: wire.KeySource = key.source if key else "none" if provider.needs_key else "not_needed"
        base = server.base_url if server else self._factory.base_url(provider)
        return wire.Provider(
            name=provider.name,
            title=provider.title,
            key_source=source,
            key_variable=provider.key_variables[0] if provider.key_variables else "",
            api_base=base,
            local=provider.is_local,
            ready=self._is_ready(provider, key),
            listed_at=listing.at if (listing := self._listings.of(provider.name)) else None,
            list_error=self._listings.errors.get(provider.name, ""),
            in_the_clear=is_in_the_clear(base),
        )

    def _is_ready(self, provider: Provider, key: Key | None) -> bool:
        if provider.kind == "proxy" and not self._factory.base_url(provider):
            return False
        has_key = provider.needs_key and key is not None
        return has_key or self._server(provider.name) is not None or provider.kind == "scripted"


def default_api_base(model_id: str, settings: SettingValues) -> str | None:
    """For models of no known provider only: another provider's key must not go to that address."""
    return settings.default_api_base or None if model_id.removeprefix(REACT).startswith("openai_compatible/") else None


def _as_text(model: ChatModel) -> ChatModel:
    from app.engine.models.react.model import ReAct

    return ReAct(model)


def _provider_of(model_id: str) -> Provider:
    name, _, model = model_id.partition("/")
    if not name or not model:
        raise ConfigurationError(f"{model_id!r} is not a model id: write provider/model, such as openai/gpt-5.4.")
    provider = find(name)
    if provider is not None:
        if provider.kind == "scripted" and not _SCRIPT_NAME.fullmatch(model):
            raise ConfigurationError(f"{model!r} is not the name of a script.")
        return provider
    if prices.is_known_provider(name):
        # Some take no key but an account of the machine's; the library looks for that itself.
        keys, ids = (f"{name.upper()}_API_KEY",), "gemini" if name.startswith("vertex") else "plain"
        return Provider(name, name, "litellm", keys, price_prefix=name, key_optional=True, call_ids=ids)
    names = [row.name for row in PROVIDERS]
    near = difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]}/{model}?" if near else f"Providers are: {', '.join(names)}."
    raise ConfigurationError(f"There is no provider named {name!r}. {hint}")


def _describe_model(provider: str, name: str) -> wire.Model:
    model_id = f"{provider}/{name}"
    known = prices.facts(model_id)
    if known is None:
        return wire.Model(id=model_id, provider=provider)
    return wire.Model(
        id=model_id,
        provider=provider,
        context_tokens=known.context_tokens,
        input_price=None if known.input_price is None else known.input_price * _MILLION,
        output_price=None if known.output_price is None else known.output_price * _MILLION,
        tools=known.calls_tools,
        images=known.sees,
        thinking=known.thinks,
    )


def _own_facts(model: OwnModel) -> prices.ModelFacts:
    def can(ability: str) -> bool | None:
        return None if model.abilities is None else ability in model.abilities

    return prices.told_facts(
        model.context_tokens, model.input_price, model.output_price, can("tools"), can("images"), can("thinking")
    )
