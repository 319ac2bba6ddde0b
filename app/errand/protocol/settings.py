"""Settings, providers and models."""

from typing import Literal

from errand.protocol.base import EmptyResult, JsonValue, Method, Timestamp, Wire

KeySource = Literal["environment", "keyring", "file", "none", "not_needed"]


class Setting(Wire, frozen=True, kw_only=True):
    """One declared setting. `kind` is the JSON type of `value`.

    If `choices` are given, the value is one of them. A number is not below `minimum`.
    """

    name: str
    title: str
    help: str
    kind: Literal["string", "integer", "number", "boolean", "null"]
    value: JsonValue
    default: JsonValue
    choices: tuple[str, ...] = ()
    minimum: float | None = None


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
    """

    id: str
    provider: str
    context_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    tools: bool | None = None
    images: bool | None = None
    thinking: bool | None = None


class Provider(Wire, frozen=True, kw_only=True):
    """A provider: the source of its key, or the local server that answered.

    `listed_at` is the time its model list was last fetched, null for never; `list_error` is the reason the last
    fetch failed. `in_the_clear`: traffic to `api_base`, a key included, is not encrypted. `own` is a server that the
    person added: `model_server/save` changes it.
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


class ModelListParams(Wire, frozen=True, kw_only=True):
    """`refresh` searches for local servers again, `fetch` also asks each provider with a key for its model list."""

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
    """Ask a server with an OpenAI-compatible interface for its models. Nothing is stored.

    `key` null uses the stored key of the server `id`, which is sent only to that server's address.
    """

    address: str
    key: str | None = None
    id: str | None = None


class ModelServerTestResult(Wire, frozen=True, kw_only=True):
    """`text` reports the outcome in plain words. `address` is where the models were found; it may have a path added."""

    ok: bool
    address: str
    text: str
    models: tuple[str, ...] = ()


class ModelServerSaveParams(Wire, frozen=True, kw_only=True):
    """Add a custom server, or change the one with this `id`. It is a provider: its models are `id/model`.

    `key` null keeps the stored key unless the server moves to another machine or port; an empty key removes it.
    """

    name: str
    address: str
    key: str | None = None
    id: str | None = None


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
    SETTINGS_GET,
    SETTINGS_SET,
    KEY_SET,
)
