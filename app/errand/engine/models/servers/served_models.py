"""What is known of a model server and its models: its kind, context windows, abilities, and whether they are loaded."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from errand.engine.models.catalog.model_facts import ModelFacts, Prices, parse_facts

ServerKind: TypeAlias = Literal["llama_cpp", "ollama", "lm_studio", "vllm", "other"]
DecodingConstraint: TypeAlias = Literal["tool_choice", "json_schema", "grammar", "format"]

# Stands for the name of the model that a server is loading, until that is known.
LOADING = "loading"
# A large model on a slow disk takes minutes.
LOAD_TIMEOUT_S = 1_800.0
# How each server gives a model a larger window.
LARGER_WINDOW: Mapping[ServerKind, str] = {
    "llama_cpp": "start the server with -c 8192",
    "ollama": "start Ollama with OLLAMA_CONTEXT_LENGTH=8192",
    "lm_studio": "load the model with a context length of 8192",
    "vllm": "start the server with --max-model-len 8192",
    "other": "give the model a larger context window (llama.cpp: -c 8192)",
}
# These leave out what is too long for the window, where others refuse the request.
CUTTING_SERVERS: frozenset[ServerKind] = frozenset({"ollama"})
_DEFAULT_TAG = ":latest"
_TITLES: Mapping[ServerKind, str] = {
    "llama_cpp": "llama.cpp",
    "ollama": "Ollama",
    "lm_studio": "LM Studio",
    "vllm": "vLLM",
    "other": "The model server",
}
# How each server can be told to write nothing but a call or a JSON value: `tool_choice: required`, a JSON schema as
# `response_format`, a grammar, Ollama's `format`.
_CONSTRAINTS: Mapping[ServerKind, frozenset[DecodingConstraint]] = {
    "llama_cpp": frozenset({"tool_choice", "json_schema", "grammar"}),
    "vllm": frozenset({"tool_choice", "json_schema"}),
    "lm_studio": frozenset({"json_schema"}),
    "ollama": frozenset({"format"}),
    "other": frozenset(),
}


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model as its server describes it; None means that the server does not say.

    `context_tokens` is the window that requests have now, `trained_tokens` the largest one the model was made for.
    `calls_tools`: its chat template has a place for tools. `parameters` is their number in billions. `takes_window`:
    requests ask for `context_tokens`, and get them; `loaded_tokens` is the window with which it was loaded.
    """

    name: str
    server: ServerKind = "other"
    context_tokens: int | None = None
    trained_tokens: int | None = None
    calls_tools: bool | None = None
    sees: bool | None = None
    thinks: bool | None = None
    is_loaded: bool | None = None
    parameters: float | None = None
    takes_window: bool = False
    loaded_tokens: int | None = None

    @property
    def has_small_window(self) -> bool:
        """It was loaded with a smaller window than requests ask for, and is loaded again for the next one."""
        return self.takes_window and (self.loaded_tokens or self.context_tokens or 0) < (self.context_tokens or 0)

    @property
    def constraints(self) -> frozenset[DecodingConstraint]:
        """The ways of constrained decoding that the server offers; empty for none, or if that is not known."""
        return _CONSTRAINTS[self.server]

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which requests reach the model: Ollama reads one without a tag as `:latest`."""
        short_name = self.name.removesuffix(_DEFAULT_TAG) if self.server == "ollama" else self.name
        return (self.name,) if short_name == self.name else (self.name, short_name)

    def facts(self, prices: Prices) -> ModelFacts:
        """Return this as facts of the model, with the prices of its requests."""
        facts = parse_facts(self.context_tokens, None, None, self.calls_tools, self.sees, None)
        return replace(facts, thinks=self.thinks, prices=prices, takes_window=self.takes_window)


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The answer of a server. While `is_loading`, it refuses requests until its model is loaded.

    `is_described` is False if the details of its models did not arrive in time.
    """

    kind: ServerKind
    models: tuple[ServedModel, ...] = ()
    is_loading: bool = False
    is_described: bool = True

    def find(self, name: str) -> ServedModel | None:
        return next((model for model in self.models if name in model.names), None)

    @property
    def only_model(self) -> ServedModel | None:
        """The model that answers every request, for servers that serve one; None if requests choose."""
        serves_one = self.kind in ("llama_cpp", "vllm") and len(self.models) == 1
        return self.models[0] if serves_one else None

    def answering(self, name: str) -> ServedModel | None:
        """Return the model that answers a request for this name; None if that is not known."""
        return self.find(name) or self.only_model


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server. `kind` is what it is if it does not say so itself.

    `may_use_own`: requests may go to the server's own interface, which Ollama has beside the compatible one.
    """

    base_url: str
    key: str = field(default="", repr=False)
    kind: ServerKind = "other"
    may_use_own: bool = False

    @property
    def root(self) -> str:
        """The address without the path of the OpenAI-compatible interface: servers' own interfaces are beside it."""
        return self.base_url.rstrip("/").removesuffix("/v1")

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}


def server_label(kind: ServerKind, base_url: str) -> str:
    """Return a server's name for people: `llama.cpp at :8080` on this machine, else with its host."""
    parts = urlsplit(base_url)
    is_here = parts.hostname in ("127.0.0.1", "localhost", "::1")
    return f"{_TITLES[kind]} at {f':{parts.port}' if is_here and parts.port else parts.netloc}"
