"""What a person decides about models: which are offered, and the facts of those that no list knows."""

from dataclasses import replace

from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.core.setting_lists import OwnModel, format_own_models, parse_own_models
from errand.engine.core.settings import Settings
from errand.engine.models.catalog.configured import ProviderDirectory
from errand.protocol.settings import ModelChooseParams, ModelRemoveParams, ModelSaveParams

_MAX_NAME_LENGTH = 200
_MAX_MODELS = 500
_MAX_CHOSEN_MODELS = 5_000
# They separate the rows of the setting.
_SEPARATORS = frozenset("#;\n\r")


class OwnModels:
    """Changes the settings `own_models` and `chosen_models`."""

    def __init__(self, settings: Settings, providers: ProviderDirectory) -> None:
        self._settings = settings
        self._providers = providers

    def save(self, params: ModelSaveParams) -> None:
        """Describe a model. Raises `InvalidParams` for values that are none, `ConfigurationError` for the provider."""
        model = _checked(params)
        self._providers.of(model.id)
        models = parse_own_models(self._settings.values.own_models)
        others = [other for other in models if other.id not in (params.replaces, model.id)]
        if len(others) >= _MAX_MODELS:
            raise InvalidParams(f"There are {_MAX_MODELS} models already. Remove one first.")
        self._store((*others, model))

    def remove(self, params: ModelRemoveParams) -> None:
        models = parse_own_models(self._settings.values.own_models)
        others = tuple(other for other in models if other.id != params.id)
        if len(others) == len(models):
            raise NotFound(f"There is no model {params.id!r} of your own.")
        self._store(others)

    def choose(self, params: ModelChooseParams) -> None:
        if self._providers.find(params.provider) is None:
            raise NotFound(f"There is no provider {params.provider!r}.")
        chosen = dict(self._settings.values.chosen_models)
        chosen.pop(params.provider, None)
        if params.models is not None:
            if len(params.models) > _MAX_CHOSEN_MODELS or any(len(name) > _MAX_NAME_LENGTH for name in params.models):
                raise InvalidParams("These are too many models, or names that are too long.")
            chosen[params.provider] = params.models
        self._settings.set_chosen_models(chosen)

    def forget(self, provider: str) -> None:
        """Remove what was decided about the models of a provider that is removed."""
        models = parse_own_models(self._settings.values.own_models)
        others = tuple(other for other in models if not other.id.startswith(f"{provider}/"))
        if others != models:
            self._store(others)
        if provider in self._settings.values.chosen_models:
            self.choose(ModelChooseParams(provider=provider, models=None))

    def _store(self, models: tuple[OwnModel, ...]) -> None:
        self._settings.set("own_models", format_own_models(models))


def _checked(params: ModelSaveParams) -> OwnModel:
    model_id, name = params.id.strip(), " ".join(params.name.split())
    provider, _, bare = model_id.partition("/")
    if not provider or not bare:
        raise InvalidParams("Enter the id of the model, as its provider names it.")
    if len(model_id) > _MAX_NAME_LENGTH or len(name) > _MAX_NAME_LENGTH:
        raise InvalidParams(f"An id or a name has at most {_MAX_NAME_LENGTH} characters.")
    if " " in model_id or not model_id.isprintable() or _SEPARATORS & {*model_id, *name} or not name.isprintable():
        raise InvalidParams("An id has no spaces, and neither an id nor a name has one of the signs # and ;.")
    numbers = (params.context_tokens, params.input_price, params.output_price)
    if any(number is not None and not 0 <= number < 1_000_000_000 for number in numbers):
        raise InvalidParams("Context size and prices are numbers from 0 up.")
    has = {"tools": params.tools, "images": params.images, "thinking": params.thinking}
    abilities = frozenset(ability for ability, is_there in has.items() if is_there)
    model = OwnModel(model_id, params.context_tokens, params.input_price, params.output_price, abilities, name)
    return replace(model, context_tokens=model.context_tokens or None)
