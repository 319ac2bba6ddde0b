"""Models and providers: what is configured, what was found."""

from typing import Literal

from app.protocol.struct import Moment, Wire

KeySource = Literal["environment", "keyring", "file", "none", "not_needed"]


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
    `in_the_clear` says that what goes to `api_base` can be read on the way, and a key too.
    """

    name: str
    title: str
    key_source: KeySource
    key_variable: str = ""
    api_base: str = ""
    local: bool = False
    ready: bool = False
    listed_at: Moment | None = None
    list_error: str = ""
    in_the_clear: bool = False


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
