"""The providers and models of this installation: catalog rows plus settings and fetched lists."""

import difflib
import re
from collections.abc import Callable
from dataclasses import replace

from errand.engine.core.errors import ConfigurationError
from errand.engine.core.setting_lists import OwnModel, parse_own_models
from errand.engine.core.setting_values import ModelServer, SettingValues
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.model_lists import ModelListCache
from errand.engine.models.catalog.providers import PROVIDERS, REACT, Provider, addable, find

# Of a misspelt name to the one that is suggested: `nope` is not `openai`.
_MIN_SIMILARITY = 0.7
_SCRIPT_NAME = re.compile(r"\w[\w.-]*")


class ProviderDirectory:
    """The known providers; custom servers come first."""

    def __init__(self, settings: Callable[[], SettingValues]) -> None:
        self._settings = settings

    def all(self) -> tuple[Provider, ...]:
        return (*self.own(), *PROVIDERS)

    def own(self) -> tuple[Provider, ...]:
        return tuple(custom_provider(server) for server in self._settings().model_servers)

    def find(self, name: str) -> Provider | None:
        return next((row for row in self.own() if row.name == name), None) or find(name)

    def kind_of(self, provider: Provider) -> str:
        """Return the kind it was added as; its own name if it is one of the catalog."""
        added = (server.kind for server in self._settings().model_servers if server.id == provider.name)
        return next(added, provider.name)

    def of(self, model_id: str) -> Provider:
        """Return the provider of a model id. Raises `ConfigurationError`, with advice, for an invalid id."""
        name, _, model = model_id.partition("/")
        if not name or not model:
            raise ConfigurationError(f"{model_id!r} is not a model id: write provider/model, such as openai/gpt-5.4.")
        provider = self.find(name)
        if provider is not None:
            if provider.kind == "scripted" and not _SCRIPT_NAME.fullmatch(model):
                raise ConfigurationError(f"{model!r} is not the name of a script.")
            return provider
        if model_facts.is_known_provider(name):
            # Some use credentials of the machine instead of a key, which the library finds by itself.
            keys, ids = (f"{name.upper()}_API_KEY",), "gemini" if name.startswith("vertex") else "plain"
            return Provider(name, name, "litellm", keys, price_prefix=name, key_optional=True, call_ids=ids)
        names = [row.name for row in self.all()]
        near = difflib.get_close_matches(name, names, 1, _MIN_SIMILARITY)
        hint = f"Did you mean {near[0]}/{model}?" if near else f"Providers are: {', '.join(names)}."
        raise ConfigurationError(f"There is no provider named {name!r}. {hint}")


def custom_provider(server: ModelServer) -> Provider:
    """Return a provider that the person added: one of the catalog, or a server with one of the two interfaces."""
    row = addable(server.kind)
    if row is None:
        kind = "anthropic" if server.kind == "anthropic_compatible" else "openai_compatible"
        return Provider(server.id, server.name, kind, base_url=server.address, own=True)
    return replace(
        row,
        name=server.id,
        title=server.name,
        key_variables=(),
        base_url=server.address or row.base_url,
        base_variable="",
        own=True,
        added_as=row.name,
    )


def default_api_base(model_id: str, settings: SettingValues) -> str | None:
    """Return the provider for models of unknown providers: no other provider's key may go to this address."""
    return settings.default_api_base or None if model_id.removeprefix(REACT).startswith("openai_compatible/") else None


class KnownModelFacts:
    """Keeps `model_facts` up to date: call `refresh` before reading it."""

    def __init__(self, settings: Callable[[], SettingValues], listings: ModelListCache) -> None:
        self.listings = listings
        self._settings = settings
        self._applied: tuple[str, tuple[ModelServer, ...]] = ("", ())
        self._own: dict[str, OwnModel] = {}
        self.refresh(again=True)

    def refresh(self, *, again: bool = False) -> None:
        """Apply the current setting and model lists."""
        values = self._settings()
        settings = values.own_models, values.model_servers
        if again or settings != self._applied:
            self._applied = settings
            self._own = {model.id: model for model in parse_own_models(values.own_models)}
            families = {server.id: server.kind for server in values.model_servers if addable(server.kind) is not None}
            own_facts = {model.id: _own_facts(model) for model in self._own.values()}
            model_facts.register(own_facts, self.listings.facts(), families)

    def own(self, model_id: str) -> OwnModel | None:
        """Return the description of a model in the setting `own_models`."""
        return self._own.get(model_id)

    def own_names(self, provider: str) -> tuple[str, ...]:
        """Return the models of a provider that the setting `own_models` describes."""
        ids = (model_id.partition("/") for model_id in self._own)
        return tuple(name for of, _, name in ids if of == provider)


def _own_facts(model: OwnModel) -> model_facts.ModelFacts:
    def can(ability: str) -> bool | None:
        return None if model.abilities is None else ability in model.abilities

    return model_facts.parse_facts(
        model.context_tokens, model.input_price, model.output_price, can("tools"), can("images"), can("thinking")
    )
