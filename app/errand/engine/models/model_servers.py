"""The model servers that people run: asked what they serve before tasks and requests, never guessed.

Providers of the cloud are not asked.
"""

from contextlib import suppress
from pathlib import Path

from errand.engine.core.addresses import is_local_address
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.outgoing import proxy_of
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.configured import ProviderDirectory
from errand.engine.models.catalog.providers import REACT, Provider, asked_address, may_be_ollama, served_name
from errand.engine.models.catalog.served_facts import ServedFacts
from errand.engine.models.factory import ModelFactory
from errand.engine.models.servers.local_servers import LocalModelServers
from errand.engine.models.servers.served_models import (
    LOAD_TIMEOUT_S,
    ServedModel,
    ServerAddress,
    ServerKind,
    ServerStatus,
    server_label,
)
from errand.engine.models.servers.server_statuses import ServerStatuses
from errand.protocol.base import JsonObject

# Before each request of a task: a server does not load another model in less.
_REQUEST_AGE_S = 2.0
# Servers elsewhere do not change from one request to the next.
_REMOTE_AGE_S = 60.0
# What runs on one's own machines costs nothing, unless it may be a gateway to others.
_FREE, _UNKNOWN = model_facts.FREE, model_facts.Prices()
_MAX_LOAD_BYTES = 64 * 1024


class ModelServers:
    """Asks the servers behind model ids. `facts` has what they say, also for those who read `model_facts`.

    `windows` is the file of the context windows that refusals named.
    """

    def __init__(
        self,
        factory: ModelFactory,
        providers: ProviderDirectory,
        local: LocalModelServers,
        windows: Path | None = None,
    ) -> None:
        self._factory = factory
        self._local = local
        self._providers = providers
        self._statuses = ServerStatuses()
        # Of each Ollama that was seen to load a model with a smaller window than requests ask for.
        self._small_defaults: set[str] = set()
        self.facts = ServedFacts(windows)
        model_facts.use_served(self.facts)

    async def status(
        self, model_id: str, api_base: str | None = None, *, max_age_s: float = 0.0
    ) -> ServerStatus | None:
        """Return what the server of a model answers; None if it does not, or is one that is not asked.

        Takes 1.5 s at most. `api_base` is the address of the request, None for the usual one of the provider.
        """
        provider = self._provider(model_id)
        return None if provider is None else await self.ask(provider, api_base, served_name(model_id), max_age_s)

    async def status_for_request(self, model_id: str, api_base: str | None) -> ServerStatus | None:
        """Return the status before a request of a task, which is asked for anew after some seconds."""
        return await self.status(model_id, api_base, max_age_s=_REQUEST_AGE_S)

    async def ask(
        self, provider: Provider, api_base: str | None = None, wanted: str = "", max_age_s: float = 0.0
    ) -> ServerStatus | None:
        """Return what the server of a provider answers, with details of the model `wanted`; None as for `status`."""
        if provider.kind == "local":
            return await self._local.status(wanted)
        base = self._asked_base(provider, api_base)
        if not base:
            return None
        address = ServerAddress(
            base,
            await self._key(provider),
            _kind(provider),
            may_use_own=may_be_ollama(provider, api_base or self._factory.base_url(provider)),
        )
        max_age_s = max_age_s if is_local_address(base) or provider.is_local else max(max_age_s, _REMOTE_AGE_S)
        status = await self._statuses.ask(self._factory.connections, address, max_age_s, wanted)
        if status is not None:
            prices = _FREE if status.kind != "other" and is_local_address(base) else _UNKNOWN
            facts = {f"{provider.name}/{name}": model.facts(prices) for model in status.models for name in model.names}
            self.facts.register(facts, base)
            if any(model.has_small_window for model in status.models):
                self._small_defaults.add(base)
        return status

    async def load(self, model_id: str, api_base: str | None) -> None:
        """Let an Ollama load a model, with the window that it gives it; a failure shows in the request that follows.

        A request without a prompt does that. It asks for no window, since the person may have set a larger one there,
        unless that Ollama is known to give a small one: the model would be loaded a second time.
        """
        import aiohttp

        provider = self._providers.of(model_id.removeprefix(REACT))
        address = ServerAddress(self._asked_base(provider, api_base), await self._key(provider))
        url = f"{address.root}/api/generate"
        body: JsonObject = {"model": served_name(model_id), "stream": False}
        window = model_facts.window_to_ask_for(model_id, address.base_url)
        if window is not None and address.base_url in self._small_defaults:
            body["options"] = {"num_ctx": window}
        with suppress(aiohttp.ClientError, OSError):
            request = self._factory.connections.session.post(
                url,
                json=body,
                headers=address.headers,
                timeout=aiohttp.ClientTimeout(total=LOAD_TIMEOUT_S),
                proxy=proxy_of(url),
                allow_redirects=False,
            )
            async with request as response:
                await response.content.read(_MAX_LOAD_BYTES)

    def known_status(self, model_id: str, api_base: str | None = None) -> ServerStatus | None:
        """Return the newest answer of the server of a model, without asking."""
        provider = self._provider(model_id)
        if provider is not None and provider.kind == "local":
            return self._local.known_status(served_name(model_id))
        return None if provider is None else self._statuses.newest(self._asked_base(provider, api_base))

    def known(self, model_id: str, api_base: str | None = None) -> ServedModel | None:
        """Return what its server said of a model when it was asked last, which was when its task started."""
        status = self.known_status(model_id, api_base)
        return None if status is None else status.answering(served_name(model_id))

    def label(self, model_id: str, api_base: str | None, status: ServerStatus) -> str:
        """Return the name of a model's server for people: `llama.cpp at :8080`."""
        provider = self._providers.of(model_id.removeprefix(REACT))
        if provider.kind == "local":
            return provider.title
        return server_label(status.kind, self._asked_base(provider, api_base))

    def _provider(self, model_id: str) -> Provider | None:
        return self._providers.find(model_id.removeprefix(REACT).partition("/")[0])

    def _asked_base(self, provider: Provider, api_base: str | None) -> str:
        """Return the address at which a provider's server is asked; empty for one that is not."""
        if provider.kind != "openai_compatible":
            return ""
        base = asked_address(api_base or self._factory.base_url(provider))
        return base if base and (provider.is_local or provider.is_custom or is_local_address(base)) else ""

    async def _key(self, provider: Provider) -> str:
        if not provider.takes_key:
            return ""
        try:
            key = await self._factory.key(provider)
        except ConfigurationError:
            return ""
        return key.value if key is not None else ""


def _kind(provider: Provider) -> ServerKind:
    match provider.family:
        case "llama_cpp" | "ollama" | "lm_studio" | "vllm" as kind:
            return kind
        case _:
            return "other"
