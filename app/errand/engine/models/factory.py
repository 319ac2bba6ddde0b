"""Creates the provider for an id; implementations and their libraries are imported on first use."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from errand.engine.core.addresses import check_address
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.secrets import Key, KeyStore, Variable
from errand.engine.core.setting_values import SettingValues
from errand.engine.models.base import ModelProvider, ModelRequest
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import RESPONSES_PATH, Provider, may_be_ollama
from errand.engine.models.endpoint import ModelEndpoint, check_headers, secret_values
from errand.protocol.notices import ThinkingObstacle

if TYPE_CHECKING:
    from errand.engine.models.http_pool import HttpPool
    from errand.engine.models.litellm.library_process import LibraryProcess
    from errand.engine.models.servers.local_servers import LocalModelServers


class ModelFactory:
    """Owns what providers share: connection pool, the process of litellm, key store."""

    def __init__(
        self, keys: KeyStore, scripts: Path, settings: Callable[[], SettingValues], local: "LocalModelServers"
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._scripts = scripts
        self._local = local
        self._pool: HttpPool | None = None
        self._library: LibraryProcess | None = None

    def make(
        self, provider: Provider, api_base: str | None, api_key: str | None, headers: Mapping[str, str]
    ) -> ModelProvider:
        """Check an endpoint. Raises `ConfigurationError` if it has no web address, or a header that cannot be sent."""
        if provider.kind == "scripted":
            from errand.engine.models.scripted import ScriptedModel

            return ScriptedModel(self._scripts)
        if provider.kind == "local":
            from errand.engine.models.local_model import LocalModel

            return LocalModel(provider, self._local, self.connections, self._keys.redactor)
        base = self._checked_base(provider, api_base)
        check_headers(headers)
        # An explicit address uses the newest key; an address from an environment only the key of the same environment.
        address_variable = (
            None if api_base or self._address_from_settings(provider) else self._address_variable(provider)
        )
        key = _KeySource(self._keys, provider, api_key, address_variable)
        for value in secret_values(headers):
            self._keys.redactor.add(value)
        endpoint = ModelEndpoint(provider, base, key, self._keys.redactor, key.origin, headers)
        match provider.kind:
            case "litellm":
                return self._open_library(endpoint)
            case "proxy":
                from errand.engine.models.proxy.model import ProxyModel

                return ProxyModel(endpoint, self.connections)
            case "anthropic":
                from errand.engine.models.anthropic.messages_api import MessagesApi
                from errand.engine.models.http_model import HttpModel

                return HttpModel(endpoint, MessagesApi, self.connections)
            case _:
                return self._open_fast(endpoint)

    def _checked_base(self, provider: Provider, api_base: str | None) -> str:
        """Return the address to ask, empty if the library knows it."""
        if provider.own and api_base:
            raise ConfigurationError(f"{provider.title} has an address of its own: leave out --api-base.")
        base = api_base or ("" if provider.kind == "litellm" else self.base_url(provider))
        if not base and provider.kind == "openai_compatible":
            raise ConfigurationError(
                f"{provider.title}: its address is missing. "
                "Give it with --api-base URL or in the setting default_api_base."
            )
        if not base and provider.kind == "proxy":
            raise ConfigurationError(
                f"{provider.title}: the address of the machine that shares them is missing. "
                f"Set it in the settings (proxy_url), or {provider.base_variable}."
            )
        check_address(base)
        if base and not base.startswith(("http://", "https://")):
            raise ConfigurationError(f"{base!r} is not an address: it begins with http:// or https://.")
        return base

    def prepare(self, provider: Provider, model_id: str) -> None:
        """Start the process that the model needs, if it needs one, so that the first request does not wait for it."""
        if provider.kind == "litellm":
            from errand.engine.models.litellm.model import practice_request

            self._opened_library().prepare(practice_request(provider, model_id))

    def base_url(self, provider: Provider) -> str:
        """Return the address of a provider, which a variable may set; a local one is completed with scheme and path."""
        if by_hand := self._address_from_settings(provider):
            return by_hand
        moved = self._address_variable(provider)
        base = moved[1] if moved else ""
        if not base:
            return provider.base_url
        if not provider.is_local:
            return base
        base = base if "://" in base else f"http://{base}"
        scheme, _, host_and_port = base.rstrip("/").removesuffix("/v1").partition("://")
        host, _, port = host_and_port.partition(":")
        return f"{scheme}://{'127.0.0.1' if host in ('', '0.0.0.0') else host}:{port or provider.local_port}/v1"

    def obstacle_to_thinking(self, request: ModelRequest, provider: Provider, base: str) -> ThinkingObstacle | None:
        """Why the thinking level of a request does not reach the model; None if it does."""
        if provider.kind in ("proxy", "scripted"):
            return None
        from errand.engine.models.openai.request import effort_fields
        from errand.engine.models.openai.responses_api import reasons

        facts = model_facts.facts(request.model)
        if request.options.thinking_level == "off":
            is_forced = provider.family == "openai" and reasons(request.model) and facts and "none" not in facts.efforts
            return "always" if is_forced or (facts is not None and facts.always_thinks) else None
        if facts is not None and facts.thinks is False:
            return "no_thinking"
        if provider.family == "openai":
            return None if reasons(request.model) or effort_fields(request, provider) else "no_thinking"
        if provider.kind != "openai_compatible" or base.rstrip("/").endswith(RESPONSES_PATH):
            return None if facts is None or facts.reasons else "no_thinking"
        return None if effort_fields(request, provider) else "no_way"

    async def key(self, provider: Provider) -> Key | None:
        """Return the key for the provider's `base_url`. Raises `ConfigurationError` if it cannot be read."""
        address_variable = None if self._address_from_settings(provider) else self._address_variable(provider)
        return await self._keys.get(provider.name, provider.key_variables, address_variable)

    @property
    def connections(self) -> "HttpPool":
        from errand.engine.models.http_pool import HttpPool

        if self._pool is None:
            self._pool = HttpPool(lambda: self._settings().ca_file)
        return self._pool

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
        if self._library is not None:
            await self._library.close()

    def _open_fast(self, endpoint: ModelEndpoint) -> ModelProvider:
        from errand.engine.models.http_model import HttpModel
        from errand.engine.models.openai.model import ChatCompletions, OpenAIModel
        from errand.engine.models.openai.responses_api import ResponsesApi

        if endpoint.base_url.rstrip("/").endswith(RESPONSES_PATH):
            return HttpModel(endpoint, ResponsesApi, self.connections)
        chat = HttpModel(endpoint, ChatCompletions, self.connections)
        if may_be_ollama(endpoint.provider, endpoint.base_url):
            from errand.engine.models.http_stream import LineStream
            from errand.engine.models.ollama.chat_api import OllamaChat, OllamaModel

            def ollama_chat(provider: Provider, server: str) -> OllamaChat:
                return OllamaChat(provider, server, endpoint.base_url)

            own = HttpModel(endpoint, ollama_chat, self.connections, stream_parser=LineStream)
            return OllamaModel(own, chat, endpoint.base_url)
        if endpoint.provider.family != "openai":
            return chat
        responses = HttpModel(endpoint, ResponsesApi, self.connections)
        is_gateway = endpoint.base_url != endpoint.provider.base_url
        return OpenAIModel(responses, chat, is_gateway=is_gateway)

    def _open_library(self, endpoint: ModelEndpoint) -> ModelProvider:
        from errand.engine.models.litellm.model import LiteLLMModel

        return LiteLLMModel(endpoint, self._opened_library())

    def _opened_library(self) -> "LibraryProcess":
        from errand.engine.models.litellm.library_process import LibraryProcess

        if self._library is None:
            self._library = LibraryProcess(lambda: self._settings().ca_file)
        return self._library

    def _address_from_settings(self, provider: Provider) -> str:
        """Return the provider's address in the settings; empty for none."""
        return self._settings().proxy_url if provider.kind == "proxy" else ""

    def _address_variable(self, provider: Provider) -> Variable | None:
        """Return the variable that sets the provider's address, from the newest environment with a key for it."""
        name = provider.base_variable
        if not name:
            return None
        return name, self._keys.environments.value_set_with(name, provider.key_variables)


class _KeySource:
    """Reads the key for each call, so that changes take effect at once."""

    def __init__(
        self, keys: KeyStore, provider: Provider, call_key: str | None, address_variable: Variable | None
    ) -> None:
        self._keys = keys
        self._provider = provider
        self._call_key = call_key
        self._address_variable = address_variable
        self._stored_key: Key | None = None

    async def __call__(self) -> str | None:
        if self._call_key:
            return self._call_key
        if not self._provider.takes_key:
            return None
        provider = self._provider
        self._stored_key = await self._keys.get(provider.name, provider.key_variables, self._address_variable)
        return self._stored_key.value if self._stored_key else None

    def origin(self) -> str:
        """Return, in words, where the newest key was set and can be replaced; empty without a key."""
        if self._call_key:
            return "It was given for this task alone, with --api-key-env or by a program: check it there."
        replace_it = f"Replace it with `errand keys set {self._provider.name}`, or in the settings."
        match self._stored_key:
            case Key(source="environment", variable=variable):
                return f"It is the one in the variable {variable}, which goes before a stored key: check it there."
            case Key(source="keyring"):
                return f"It is the one in the system's keyring. {replace_it}"
            case Key(source="file"):
                return f"It is the one in Errand's encrypted key file. {replace_it}"
            case _:
                return ""
