"""Settings, providers and models."""

from typing import Literal

from errand.protocol.base import EmptyResult, JsonValue, Method, Timestamp, Wire

KeySource = Literal["environment", "keyring", "file", "none", "not_needed"]


class Setting(Wire, frozen=True, kw_only=True):
    """One declared setting. `kind` is the JSON type of `value`.

    If `choices` are given, the value is one of them. A number is not below `minimum`. `advanced`: few people change it.
    """

    name: str
    title: str
    help: str
    kind: Literal["string", "integer", "number", "boolean", "null"]
    value: JsonValue
    default: JsonValue
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    advanced: bool = False


class SettingsGetParams(Wire, frozen=True, kw_only=True):
    pass


class SettingsGetResult(Wire, frozen=True, kw_only=True):
    settings: tuple[Setting, ...]


class SettingsSetParams(Wire, frozen=True, kw_only=True):
    name: str
    value: JsonValue


class SettingsSetResult(Wire, frozen=True, kw_only=True):
    settings: tuple[Setting, ...]


class KeySetParams(Wire, frozen=True, kw_only=True):
    """Store a provider's key in the keyring, or without a keyring in the encrypted file. An empty key removes it."""

    provider: str
    key: str


class KeySetResult(Wire, frozen=True, kw_only=True):
    """`notice` says in plain words where the key was stored."""

    notice: str


class Model(Wire, frozen=True, kw_only=True):
    """A model with the id `provider/model`. Prices are US dollars per million tokens; null means unknown.

    `tools`, `images` and `thinking` say whether it calls tools, accepts pictures, and supports a thinking level.
    `for_chat` is false for models whose name says that they do something else, such as embeddings. `own`: the person
    described it with `model/save`. `name` is shown in place of the one in the id, if it is not empty: given by the
    person, or short for a file. `shown` is false for models that the person chose not to be offered. `loaded` says
    whether a server that people run holds it in memory, `parameters` how many billions of parameters it has.
    """

    id: str
    provider: str
    context_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    tools: bool | None = None
    images: bool | None = None
    thinking: bool | None = None
    for_chat: bool = True
    name: str = ""
    own: bool = False
    shown: bool = True
    loaded: bool | None = None
    parameters: float | None = None


class Provider(Wire, frozen=True, kw_only=True):
    """A provider: the source of its key, or the local server that answered.

    `listed_at` is the time its model list was last fetched, null for never; `list_error` is the reason the last
    fetch failed. `in_the_clear`: traffic to `api_base`, a key included, is not encrypted. `own` is a server that the
    person added: `model_server/save` changes it. `kind` is what it was added as, else its `name`. `loading`: it
    answers, and refuses requests until it has loaded its model.
    """

    name: str
    title: str
    key_source: KeySource
    key_variable: str = ""
    api_base: str = ""
    local: bool = False
    ready: bool = False
    listed_at: Timestamp | None = None
    list_error: str = ""
    in_the_clear: bool = False
    own: bool = False
    kind: str = ""
    loading: bool = False


class ModelListParams(Wire, frozen=True, kw_only=True):
    """Local servers are asked each time, with `refresh` all that people added too.

    `fetch` also asks each provider with a key for its model list.
    """

    refresh: bool = False
    fetch: bool = False


class ModelListResult(Wire, frozen=True, kw_only=True):
    """`default` is the model of tasks that name none: the setting `default_model`, else the first one found.

    It is null if nothing is configured; clients then offer the tour.
    """

    providers: tuple[Provider, ...]
    models: tuple[Model, ...]
    default: str | None


class ModelTestParams(Wire, frozen=True, kw_only=True):
    """Make one small real request to a provider, with `model` or with the model of it that tasks would use."""

    provider: str
    model: str | None = None


class ModelTestResult(Wire, frozen=True, kw_only=True):
    """`text` reports the outcome in plain words: the model that answered and in what time, or the error."""

    ok: bool
    model: str
    text: str
    seconds: float


class ModelWarmUpParams(Wire, frozen=True, kw_only=True):
    """Answered at once. `model` null is the one of tasks that name none.

    Some models are asked through a library whose process takes seconds to start, and ends after a while without use.
    """

    model: str | None = None


class ModelServerTestParams(Wire, frozen=True, kw_only=True):
    """Ask a server for its models. Nothing is stored.

    `key` null uses the stored key of the server `id`, which is sent only to that server's address. `kind` is as in
    `model_server/save`. With `calls`, one of its models (`model`, if that is not empty) is asked for a word, for real.
    """

    address: str
    key: str | None = None
    id: str | None = None
    kind: str = "openai_compatible"
    calls: bool = False
    model: str = ""


class ModelServerTestResult(Wire, frozen=True, kw_only=True):
    """`text` reports the outcome in plain words. `address` is where the models were found; it may have a path added."""

    ok: bool
    address: str
    text: str
    models: tuple[str, ...] = ()


class ModelServerSaveParams(Wire, frozen=True, kw_only=True):
    """Add a provider, or change the one with this `id`. Its models are `id/model`.

    `kind` is `openai_compatible`, `anthropic_compatible`, or the name of a provider of the catalog, for which `address`
    may be empty. The first one of the catalog's that is added under its own title is the catalog's own, with this key.
    A changed provider keeps its kind. `key` null keeps the stored key unless the server moves to another machine or
    port; an empty key removes it.
    """

    name: str
    address: str
    key: str | None = None
    id: str | None = None
    kind: str = "openai_compatible"


class ModelServerSaveResult(Wire, frozen=True, kw_only=True):
    """The server is saved even if it does not answer (`ok` is false); `text` reports the outcome."""

    id: str
    ok: bool
    text: str


class ModelServerRemoveParams(Wire, frozen=True, kw_only=True):
    """Remove a server and its key. Conversations with its models stay."""

    id: str


class ModelServerRemoveResult(Wire, frozen=True, kw_only=True):
    text: str


class ModelSaveParams(Wire, frozen=True, kw_only=True):
    """Describe a model `provider/model` that no list has, or correct what a list says. Prices as in `Model`.

    `name` is shown in place of the id. `replaces` is the id that it had before.
    """

    id: str
    name: str = ""
    context_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    tools: bool = False
    images: bool = False
    thinking: bool = False
    replaces: str = ""


class ModelRemoveParams(Wire, frozen=True, kw_only=True):
    """Remove the description that `model/save` stored."""

    id: str


class ModelChooseParams(Wire, frozen=True, kw_only=True):
    """Offer only the models with these names of a provider; null for all, also those that it lists later."""

    provider: str
    models: tuple[str, ...] | None


MODEL_LIST = Method("model/list", ModelListParams, ModelListResult, False, "List providers and models.")

MODEL_TEST = Method("model/test", ModelTestParams, ModelTestResult, False, "Test a provider with a real request.")

MODEL_WARM_UP = Method(
    "model/warm_up", ModelWarmUpParams, EmptyResult, False, "A message to a model is being written: get ready for it."
)

MODEL_SERVER_TEST = Method(
    "model_server/test", ModelServerTestParams, ModelServerTestResult, False, "Fetch the model list of an address."
)

MODEL_SERVER_SAVE = Method(
    "model_server/save", ModelServerSaveParams, ModelServerSaveResult, True, "Add or change a model server."
)

MODEL_SERVER_REMOVE = Method(
    "model_server/remove", ModelServerRemoveParams, ModelServerRemoveResult, True, "Remove a model server and its key."
)

MODEL_SAVE = Method("model/save", ModelSaveParams, EmptyResult, True, "Describe a model.")

MODEL_REMOVE = Method("model/remove", ModelRemoveParams, EmptyResult, True, "Remove the description of a model.")

MODEL_CHOOSE = Method("model/choose", ModelChooseParams, EmptyResult, True, "Choose the models that are offered.")

SETTINGS_GET = Method("settings/get", SettingsGetParams, SettingsGetResult, False, "Get all settings.")

SETTINGS_SET = Method("settings/set", SettingsSetParams, SettingsSetResult, True, "Change a setting.")

KEY_SET = Method("settings/set_key", KeySetParams, KeySetResult, True, "Store the key of a provider.")

METHODS = (
    MODEL_LIST,
    MODEL_TEST,
    MODEL_WARM_UP,
    MODEL_SERVER_TEST,
    MODEL_SERVER_SAVE,
    MODEL_SERVER_REMOVE,
    MODEL_SAVE,
    MODEL_REMOVE,
    MODEL_CHOOSE,
    SETTINGS_GET,
    SETTINGS_SET,
    KEY_SET,
)
