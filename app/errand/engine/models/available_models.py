"""The available models: providers with keys, local servers, the default model, and a test request."""

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

import msgspec

from errand.engine.core.addresses import display_address, is_in_the_clear, is_local_address
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError, EngineError
from errand.engine.core.messages import AssistantMessage, user_text
from errand.engine.core.secrets import Key
from errand.engine.core.setting_values import SettingValues
from errand.engine.models.base import ChatModel, ModelOptions, ModelRequest, ReplyEnd
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.configured import KnownModelFacts, ProviderDirectory, default_api_base
from errand.engine.models.catalog.model_lists import ListSource, is_for_chat
from errand.engine.models.catalog.providers import LOCAL, PROVIDERS, REACT, Provider
from errand.engine.models.factory import ModelFactory
from errand.engine.models.model_servers import ModelServers
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.servers.local_servers import LocalModelServers
from errand.engine.models.servers.served_models import LOADING, ServerStatus
from errand.engine.models.servers.server_probe import ProbeResult, ask, probe
from errand.protocol import settings as wire
from errand.protocol.settings import ModelTestResult
from errand.text.model_names import short_model_name

TEST_TIMEOUT_S = 20.0
# Some models think before they answer, which counts towards this limit.
_MAX_TOKENS = 256
_PROMPT = "This is a test of the connection. Reply with the word OK and nothing else."

_MILLION = 1_000_000
# Callers wait for the list: a custom server that is down must not delay it.
_QUICK_TIMEOUT_S = 1.5
_PATIENCE_S = 15.0


async def try_model(model: ChatModel, model_id: str, longest_s: float = TEST_TIMEOUT_S) -> ModelTestResult:
    """Send a short prompt to the model. Cancelling this ends the request."""
    started_at = time.monotonic()
    cancel = CancelSignal()
    timer = asyncio.get_running_loop().call_later(longest_s, cancel.set)
    try:
        reply = await _reply(model, model_id, cancel)
    finally:
        timer.cancel()
    seconds = time.monotonic() - started_at
    if cancel.is_set:
        text = f"There was no complete answer within {longest_s:g} s. It may be overloaded; try again later."
    else:
        text = reply.error or f"{model_id.partition('/')[2]} answered in {seconds:.1f} s."
    return ModelTestResult(ok=reply.error is None, model=model_id, text=text, seconds=seconds)


async def _reply(model: ChatModel, model_id: str, cancel: CancelSignal) -> AssistantMessage:
    options = ModelOptions(max_tokens=_MAX_TOKENS)
    request = ModelRequest(model_id, "", (user_text(_PROMPT),), options=options)
    async with aclosing(model.stream(request, cancel)) as events:
        async for event in events:
            if isinstance(event, ReplyEnd):
                return event.message
    raise EngineError("The model's stream ended without a final message.")


@dataclass(frozen=True, slots=True)
class _LocalServer:
    """A server on this machine or in its network that answered."""

    provider: Provider
    base_url: str
    status: ServerStatus

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model.name for model in self.status.models)


class AvailableModels:
    """The providers and their models. Local servers are looked for each time, since they come and go."""

    def __init__(
        self,
        factory: ModelFactory,
        servers: ModelServers,
        model_facts: KnownModelFacts,
        providers: ProviderDirectory,
        settings: Callable[[], SettingValues],
        local: LocalModelServers,
    ) -> None:
        self._factory = factory
        self._model_servers = servers
        self._model_facts = model_facts
        self._providers = providers
        self._settings = settings
        self._local = local
        self._local_names: tuple[str, ...] = ()
        self._servers: tuple[_LocalServer, ...] = ()

    async def list(self, refresh: bool, fetch: bool = False) -> wire.ModelListResult:
        """Return the providers, their models and the default model.

        With `refresh` or `fetch`, custom servers are asked too; with `fetch`, the model lists of all providers with a
        key are fetched and stored.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._find_local_servers())
            if refresh and not fetch:
                group.create_task(self._refresh_custom_servers(_QUICK_TIMEOUT_S))
        if fetch:
            await self._fetch()
            await self._refresh_custom_servers(_PATIENCE_S)
        self._model_facts.refresh()
        self._local_names = await self._local.names()
        rows = [await self._describe(provider) for provider in self._providers.all()]
        ready = [row.name for row in rows if row.ready]
        models = [self._describe_model(provider, name) for provider in ready for name in self._names(provider)]
        default = await self._default_with_key() or await self._default_of_servers()
        return wire.ModelListResult(providers=tuple(rows), models=tuple(models), default=default)

    async def default_model(self) -> str | None:
        """Return the model to use if none is named: of the first provider with a key, else of the first server.

        Custom servers take precedence over servers that were found.
        """
        if (default := await self._default_with_key()) is not None:
            return default
        await self._find_local_servers()
        return await self._default_of_servers()

    async def _default_with_key(self) -> str | None:
        """Return the default model if no server has to be asked for it."""
        for provider in PROVIDERS:
            if provider.default_model and await self._key(provider):
                return f"{provider.name}/{provider.default_model}"
        listing = self._model_facts.listings.of("proxy")
        if listing is not None and listing.models and self._factory.base_url(self._providers.of("proxy/any")):
            return f"proxy/{listing.models[0].name}"
        return None

    async def _default_of_servers(self) -> str | None:
        """Return the default model among those of the servers that answered last, else of files on this machine."""
        for own in self._providers.own():
            if own.default_model and await self._key(own):
                return f"{own.name}/{own.default_model}"
            server, listing = self._server(own.name), self._model_facts.listings.of(own.name)
            if server is not None and server.models:
                return f"{own.name}/{server.models[0]}"
            if server is None and listing is not None and listing.models:
                return f"{own.name}/{listing.models[0].name}"
        for server in self._servers:
            if server.models:
                return f"{server.provider.name}/{server.models[0]}"
        # Its model is not known yet: the task waits for it.
        loading = (server.provider.name for server in self._servers if server.status.is_loading)
        if (name := next(loading, None)) is not None:
            return f"{name}/{LOADING}"
        self._local_names = await self._local.names()
        return f"{LOCAL}/{self._local_names[0]}" if self._local_names else None

    async def test(self, provider_name: str, model_id: str | None) -> wire.ModelTestResult:
        """Send one real request, without retries. Raises `ConfigurationError` for an unknown provider or model."""
        provider = self._providers.of((model_id or f"{provider_name}/any").removeprefix(REACT))
        if provider.name != provider_name:
            raise ConfigurationError(f"{model_id!r} is not a model of {provider_name}.")
        tested_id = model_id or await self._model_to_test(provider)
        return await self._try(provider, tested_id, default_api_base(tested_id, self._settings()), None)

    async def _try(self, provider: Provider, model_id: str, base: str | None, key: str | None) -> wire.ModelTestResult:
        from errand.engine.models.recovery.driver import RecoveringModel
        from errand.engine.models.recovery.source import ModelSource

        tried = self._factory.make(provider, base, key, {})
        source = ModelSource(tried, estimates_usage=provider.kind != "scripted")
        model = RecoveringModel(source, RetryPolicy(attempts=1))
        try:
            return await try_model(model, model_id)
        finally:
            await model.close()

    async def _model_to_test(self, provider: Provider) -> str:
        """Return the model that tasks would use."""
        if provider.default_model:
            return f"{provider.name}/{provider.default_model}"
        listing = self._model_facts.listings.of(provider.name)
        if listing is not None and listing.models:
            return f"{provider.name}/{listing.models[0].name}"
        await self._find_local_servers()
        server = self._server(provider.name)
        if server is not None and server.models:
            return f"{provider.name}/{server.models[0]}"
        if provider.is_local and server is None:
            base = self._factory.base_url(provider)
            raise ConfigurationError(f"{provider.title} does not answer at {base}: {provider.start_hint}.")
        raise ConfigurationError(f"{provider.title}: no model is known to try. Name one.")

    async def probe(self, provider: Provider, key: str | None) -> ProbeResult:
        """Fetch the model list of a provider, which need not be stored; stores nothing."""
        base = provider.base_url if provider.own else self._factory.base_url(provider)
        base = f"{base.rstrip('/').removesuffix('/api')}/api" if provider.kind == "proxy" else base
        return await probe(self._factory.connections, ListSource(provider, base, key or ""))

    async def try_provider(self, provider: Provider, key: str | None, name: str) -> wire.ModelTestResult:
        """Send one real request to a model of a provider, which need not be stored. Without retries."""
        return await self._try(provider, f"{provider.name}/{name}", None, key)

    def store_answer(self, provider: str, answer: ProbeResult) -> None:
        """Store the newest answer of a custom server."""
        listings = self._model_facts.listings
        if answer.models is None:
            listings.errors[provider] = answer.text
        else:
            with suppress(OSError):  # otherwise it is valid until the engine ends
                listings.store(provider, answer.models)
        self._model_facts.refresh(again=True)

    def forget(self, provider: str) -> None:
        with suppress(OSError):
            self._model_facts.listings.forget(provider)
        self._model_facts.refresh(again=True)

    async def _refresh_custom_servers(self, longest_s: float) -> None:
        """Fetch the model lists of the custom servers. A server that does not answer in time keeps its list."""
        pool = self._factory.connections
        rows = [(row, await self._key(row)) for row in self._providers.own()]
        asked = (ask(pool, ListSource(row, row.base_url, key.value if key else ""), longest_s) for row, key in rows)
        for (row, _), answer in zip(rows, await asyncio.gather(*asked), strict=True):
            if row in self._providers.own():  # it may have been changed during the request
                self.store_answer(row.name, answer)

    async def _find_local_servers(self) -> None:
        own = (row for row in self._providers.own() if is_local_address(row.base_url))
        rows = [*own, *(row for row in PROVIDERS if row.is_local)]
        statuses = await asyncio.gather(*(self._model_servers.ask(row) for row in rows))
        self._servers = tuple(
            _LocalServer(row, row.base_url if row.own else self._factory.base_url(row), status)
            for row, status in zip(rows, statuses, strict=True)
            if status is not None
        )

    def _server(self, name: str) -> _LocalServer | None:
        return next((server for server in self._servers if server.provider.name == name), None)

    def _names(self, provider: str) -> tuple[str, ...]:
        if provider == LOCAL:
            return self._local_names
        server = self._server(provider)
        listing = self._model_facts.listings.of(provider)
        listed = tuple(model.name for model in listing.models) if listing else model_facts.chat_models(provider)
        return tuple(dict.fromkeys((*self._model_facts.own_names(provider), *(server.models if server else listed))))

    async def _fetch(self) -> None:
        sources: list[ListSource] = []
        for provider in PROVIDERS:
            base = self._factory.base_url(provider)
            base = f"{base.rstrip('/').removesuffix('/api')}/api" if provider.kind == "proxy" and base else base
            if (base or provider.list_url) and (key := await self._key(provider)) is not None:
                sources.append(ListSource(provider, base, key.value))
        await self._model_facts.listings.refresh(self._factory.connections, sources)
        self._model_facts.refresh(again=True)

    async def _key(self, provider: Provider) -> Key | None:
        """Return the provider's key. An unreadable key counts as none here; using it raises the error."""
        if not provider.takes_key:
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
            api_base=display_address(base),
            local=provider.is_local,
            ready=self._is_ready(provider, key),
            listed_at=listing.at if (listing := self._model_facts.listings.of(provider.name)) else None,
            list_error=self._model_facts.listings.errors.get(provider.name, ""),
            in_the_clear=is_in_the_clear(base),
            own=provider.own,
            kind=self._providers.kind_of(provider),
            loading=server is not None and server.status.is_loading,
        )

    def _is_ready(self, provider: Provider, key: Key | None) -> bool:
        if provider.kind == "proxy" and not self._factory.base_url(provider):
            return False
        if provider.kind == "local":
            return bool(self._local_names)
        has_key = provider.needs_key and key is not None
        return provider.own or has_key or self._server(provider.name) is not None or provider.kind == "scripted"

    def _describe_model(self, provider: str, name: str) -> wire.Model:
        model_id = f"{provider}/{name}"
        own, chosen = self._model_facts.own(model_id), self._settings().chosen_models.get(provider)
        server = self._server(provider)
        served = server.status.find(name) if server is not None else None
        plain = wire.Model(
            id=model_id,
            provider=provider,
            name=own.name if own is not None else _short_name(name, server),
            own=own is not None,
            shown=own is not None or chosen is None or name in chosen,
            for_chat=is_for_chat(name),
            loaded=served.is_loaded if served is not None else None,
            parameters=served.parameters if served is not None else None,
            thinking=served.thinks if served is not None else None,
            context_tokens=served.trained_tokens if served is not None else None,
        )
        facts = model_facts.facts(model_id)
        return plain if facts is None else _with_facts(plain, facts)


def _short_name(name: str, server: _LocalServer | None) -> str:
    """Return the name to show for a server's file; empty if that is the name in the id."""
    short = short_model_name(name) if server is not None else name
    return "" if short == name else short


def _with_facts(model: wire.Model, facts: model_facts.ModelFacts) -> wire.Model:
    return msgspec.structs.replace(
        model,
        context_tokens=facts.context_tokens or model.context_tokens,
        input_price=None if facts.prices.input is None else facts.prices.input * _MILLION,
        output_price=None if facts.prices.output is None else facts.prices.output * _MILLION,
        tools=facts.calls_tools,
        images=facts.sees,
        thinking=model.thinking if facts.thinks is None else facts.thinks,
    )
