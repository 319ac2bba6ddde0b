"""Settings, providers and models."""

from typing import Literal

from app.protocol.base import JsonValue, Method, Timestamp, Wire

KeySource = Literal["environment", "keyring", "file", "none", "not_needed"]


class Setting(Wire, frozen=True, kw_only=True):
    """One declared setting. `kind` is the JSON type of `value`.

    Where `choices` are given, the value is one of them; a number is not below `minimum`.
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
    """Store a provider's key in the keyring, or the encrypted file where there is none. An empty key removes it."""

    provider: str
    key: str


class KeySetResult(Wire, frozen=True, kw_only=True):
    """`notice` says where the key went, in plain words."""

    notice: str


class Model(Wire, frozen=True, kw_only=True):
    """A model by its id `provider/model`. Prices are US dollars for a million tokens; null is for what is not known.

    `tools`, `images` and `thinking` say whether it calls tools, sees pictures, and can be told how long to think.
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
    """One provider row: where its key comes from, or the local server that answered.

    `listed_at` is when its own list of models was fetched last, null for never; `list_error` why it could not be now.
    `in_the_clear` says that what goes to `api_base` can be read on the way, and a key too. `own` is a server that the
    person named: `model_server/save` changes it.
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
    """`refresh` looks for local servers again, `fetch` also asks each provider with a key for its own list."""

    refresh: bool = False
    fetch: bool = False


class ModelListResult(Wire, frozen=True, kw_only=True):
    """`default` is what a task uses that names no model: the setting `default_model`, else the first that was found.

    It is null when nothing is configured: the tour is offered then.
    """

    providers: tuple[Provider, ...]
    models: tuple[Model, ...]
    default: str | None


class ModelTestParams(Wire, frozen=True, kw_only=True):
    """Make one small real round trip to a provider, with `model` or the one of it that tasks would use."""

    provider: str
    model: str | None = None


class ModelTestResult(Wire, frozen=True, kw_only=True):
    """`text` says in plain words what came of it: the model that answered and in what time, or why not."""

    ok: bool
    model: str
    text: str
    seconds: float


class ModelServerTestParams(Wire, frozen=True, kw_only=True):
    """Ask a server that speaks OpenAI's interface for its models; nothing is kept.

    `key` null is the stored key of the server `id`, which goes to its own address only.
    """

    address: str
    key: str | None = None
    id: str | None = None


class ModelServerTestResult(Wire, frozen=True, kw_only=True):
    """`text` says in plain words what came of it. `address` is where the models were found, perhaps with a path."""

    ok: bool
    address: str
    text: str
    models: tuple[str, ...] = ()


class ModelServerSaveParams(Wire, frozen=True, kw_only=True):
    """Add a server of one's own, or change the one with this `id`. It is a provider: its models are `id/model`.

    `key` null keeps the stored key unless the server moves to another machine or port, an empty one removes it.
    """

    name: str
    address: str
    key: str | None = None
    id: str | None = None


class ModelServerSaveResult(Wire, frozen=True, kw_only=True):
    """It is saved, also where it does not answer now (`ok` is false); `text` says what came of it."""

    id: str
    ok: bool
    text: str


class ModelServerRemoveParams(Wire, frozen=True, kw_only=True):
    """Forget a server with its key. Conversations with its models stay."""

    id: str


class ModelServerRemoveResult(Wire, frozen=True, kw_only=True):
    text: str


MODEL_LIST = Method("model/list", ModelListParams, ModelListResult, False, "Providers and models.")

MODEL_TEST = Method("model/test", ModelTestParams, ModelTestResult, False, "Try a provider for real.")

MODEL_SERVER_TEST = Method(
    "model_server/test", ModelServerTestParams, ModelServerTestResult, False, "Ask an address for models."
)

MODEL_SERVER_SAVE = Method(
    "model_server/save", ModelServerSaveParams, ModelServerSaveResult, True, "Add or change a server."
)

MODEL_SERVER_REMOVE = Method(
    "model_server/remove", ModelServerRemoveParams, ModelServerRemoveResult, True, "Forget a server."
)

SETTINGS_GET = Method("settings/get", SettingsGetParams, SettingsGetResult, False, "All settings.")

SETTINGS_SET = Method("settings/set", SettingsSetParams, SettingsSetResult, True, "Change one.")

KEY_SET = Method("settings/set_key", KeySetParams, KeySetResult, True, "Store a provider's key.")
