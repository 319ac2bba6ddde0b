"""Finds the way to a model by its id, and lists what can be used. Implementations are imported when first needed."""

import difflib
import functools
import re
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from app.engine.errors import ConfigurationError
from app.engine.models import prices
from app.engine.models.base import ChatModel
from app.engine.models.catalog import PROVIDERS, Provider, find
from app.engine.models.retry import RetryPolicy
from app.engine.secrets import KeyStore
from app.protocol import models as wire

if TYPE_CHECKING:
    from app.engine.models.connections import Connections
    from app.engine.models.discover import LocalServer

_RETRY = RetryPolicy()
_SCRIPT_NAME = re.compile(r"[\w.-]+")
_MILLION = 1_000_000


class ModelRouter:
    """All ways to models of one engine. `scripts` is the folder of the scripted model."""

    def __init__(self, keys: KeyStore, scripts: Path, retry: RetryPolicy = _RETRY) -> None:
        self._keys = keys
        self._scripts = scripts
        self._retry = retry
        self._connections: Connections | None = None
        self._opened: weakref.WeakValueDictionary[tuple[str, str], ChatModel] = weakref.WeakValueDictionary()
        self._with_own_key: weakref.WeakSet[ChatModel] = weakref.WeakSet()
        self._servers: tuple[LocalServer, ...] | None = None

    def open(self, model_id: str, api_base: str | None = None, api_key: str | None = None) -> ChatModel:
        """The model behind an id `provider/model`; retries, key look-up for each call and cost are part of it.

        Raises `ConfigurationError` that says what to set. `api_key` stays in memory with the model returned.
        """
        provider = self._provider(model_id)
        if api_key is not None:
            model = self._make(provider, model_id, api_base, api_key)
            self._with_own_key.add(model)
            return model
        place = (provider.name, api_base or "")
        model = self._opened.get(place)
        if model is None:
            model = self._make(provider, model_id, api_base, None)
            self._opened[place] = model
        return model

    async def list(self, refresh: bool) -> wire.ModelListResult:
        """Providers, their models, the default one. Local servers are looked for at the first call and on refresh."""
        await self._look(refresh)
        rows = [await self._describe(provider) for provider in PROVIDERS]
        ready = {row.name for row in rows if row.ready}
        models = [
            _describe_model(row.name, name) for row in rows if row.name in ready for name in self._names(row.name)
        ]
        return wire.ModelListResult(providers=tuple(rows), models=tuple(models), default=await self.default_model())

    async def default_model(self) -> str | None:
        """The model to use where none is named: of the first provider with a key, else of the first local server."""
        for provider in PROVIDERS:
            if provider.default_model and await self._keys.get(provider.name, provider.key_variables):
                return f"{provider.name}/{provider.default_model}"
        await self._look(refresh=False)
        for server in self._servers or ():
            if server.models:
                return f"{server.provider.name}/{server.models[0]}"
        return None

    def context_tokens(self, model_id: str) -> int | None:
        """How many tokens the model can read; None where that is not known."""
        known = prices.facts(model_id)
        return known.context_tokens if known else None

    def has_price(self, model_id: str) -> bool:
        """Whether costs of this model are known; where not, `cost_usd` of a usage says nothing."""
        provider = find(model_id.partition("/")[0])
        if provider is not None and (provider.is_local or provider.kind == "scripted" or provider.name == "openrouter"):
            return True
        known = prices.facts(model_id)
        return known is not None and known.input_price is not None and known.output_price is not None

    async def close(self) -> None:
        """End all streams as aborted and close the connections."""
        for model in (*self._opened.values(), *self._with_own_key):
            await model.close()
        if self._connections is not None:
            await self._connections.close()

    def _provider(self, model_id: str) -> Provider:
        name, slash, model = model_id.partition("/")
        if not slash or not name or not model:
            raise ConfigurationError(
                f"{model_id!r} is not a model id: write it as provider/model, such as openai/gpt-5.4."
            )
        provider = find(name)
        if provider is not None:
            if provider.kind == "scripted" and not _SCRIPT_NAME.fullmatch(model):
                raise ConfigurationError(f"{model!r} is not the name of a script.")
            return provider
        if prices.is_known_provider(name):
            return Provider(name, name, "litellm", (f"{name.upper()}_API_KEY",), price_prefix=name)
        names = [row.name for row in PROVIDERS]
        near = difflib.get_close_matches(name, names, 1)
        hint = f"Did you mean {near[0]}/{model}?" if near else f"Providers are: {', '.join(names)}."
        raise ConfigurationError(f"There is no provider named {name!r}. {hint}")

    def _make(self, provider: Provider, model_id: str, api_base: str | None, api_key: str | None) -> ChatModel:
        async def key() -> str | None:
            if api_key is not None:
                return api_key
            found = await self._keys.get(provider.name, provider.key_variables)
            return found.value if found else None

        if provider.kind == "scripted":
            from app.engine.models.scripted import ScriptedModel

            return ScriptedModel(self._scripts)
        from app.engine.models.openai_compatible import Endpoint, OpenAICompatible

        base = api_base or self._base(provider)
        if not base:
            raise ConfigurationError(f"{model_id} needs the address of its server: give it with --api-base URL.")
        if not base.startswith(("http://", "https://")):
            raise ConfigurationError(f"{base!r} is not an address: it begins with http:// or https://.")
        return OpenAICompatible(Endpoint(provider, base, key), self._pool, retry=self._retry)

    @functools.cached_property
    def _pool(self) -> "Connections":
        from app.engine.models.connections import Connections

        self._connections = Connections()
        return self._connections

    def _base(self, provider: Provider) -> str:
        """The address of a provider, which the user may have moved by a variable (OLLAMA_HOST may lack the scheme)."""
        base = self._keys.environment.get(provider.base_variable, "").strip() if provider.base_variable else ""
        if not base:
            return provider.base_url
        if not provider.is_local:
            return base
        base = base if "://" in base else f"http://{base}"
        host, _, port = base.partition("://")[2].rstrip("/").partition(":")
        host = "127.0.0.1" if host in ("", "0.0.0.0") else host
        return f"{base.partition('://')[0]}://{host}:{port or provider.local_port}/v1"

    async def _look(self, refresh: bool) -> None:
        if refresh or self._servers is None:
            from app.engine.models.discover import local_servers

            bases = {row.name: self._base(row) for row in PROVIDERS if row.is_local}
            self._servers = await local_servers(self._pool.session, bases)

    def _server(self, name: str) -> "LocalServer | None":
        return next((server for server in self._servers or () if server.provider.name == name), None)

    def _names(self, provider: str) -> tuple[str, ...]:
        server = self._server(provider)
        return server.models if server else prices.chat_models(provider)

    async def _describe(self, provider: Provider) -> wire.Provider:
        key = await self._keys.get(provider.name, provider.key_variables) if provider.key_variables else None
        server = self._server(provider.name)
        source: wire.KeySource = key.source if key else "none" if provider.needs_key else "not_needed"
        return wire.Provider(
            name=provider.name,
            title=provider.title,
            key_source=source,
            key_variable=provider.key_variables[0] if provider.key_variables else "",
            api_base=server.base_url if server else self._base(provider),
            local=provider.is_local,
            ready=server is not None or (provider.needs_key and key is not None) or provider.kind == "scripted",
        )


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
    )
