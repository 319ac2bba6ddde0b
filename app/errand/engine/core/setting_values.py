"""The settings, each a declared field with its default, title and help; file, wire and dialogs derive from it."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from errand.protocol.agents import ThinkingLevel
from errand.protocol.engine import SandboxMode

_MAX_MINUTES = 1_000_000
_Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]
_Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000_000)]


def _setting(title: str, text: str) -> msgspec.Meta:
    return msgspec.Meta(title=title, description=text)


class ModelServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider that the person added. Its `id` is the provider in the ids of its models, and never changes.

    `kind` is an interface (`openai_compatible`, `anthropic_compatible`) or the name of a provider of the catalog.
    """

    id: str
    name: str
    address: str
    kind: str = "openai_compatible"


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server of the Model Context Protocol: a `command` that is started, or a `url` that is opened.

    Values of `env`, `headers` and `client_secret` refer to stored keys and variables as `${NAME}`. `client_id` is that
    of a program that the person registered at the server's authorization server, with `callback_port`.
    `client_issuer` is the authorization server that the secret was entered for, `unknown` if that was not found out.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    sandbox: bool = False
    enabled: bool = True
    timeout_s: float = 60.0
    client_id: str = ""
    client_secret: str = ""
    callback_port: int = 0
    client_issuer: str = ""


class FolderPair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two folders, and whether memory of the one is given to agents in the other.

    Without `decided` the person was asked and has not answered yet.
    """

    first: str
    second: str
    shares: bool
    decided: bool = True


class SettingValues(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings with their defaults. Those without a title have separate wire methods.

    `chosen_models` has the names of the models to offer, for each provider of which a person chose some.
    `not_given_again` has the ids of nodes that agents are not given from memory any more.
    """

    model_servers: tuple[ModelServer, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    chosen_models: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    folder_pairs: tuple[FolderPair, ...] = ()
    not_given_again: tuple[str, ...] = ()
    default_model: Annotated[
        str, _setting("Default model", "Model id, provider/model. Empty: the first model found.")
    ] = ""
    default_api_base: Annotated[
        str, _setting("Default base URL", "Base URL for `openai_compatible/…` models. Empty for none.")
    ] = ""
    fallback_models: Annotated[
        str,
        _setting(
            "Fallback models",
            "Tried in this order when the provider of a model fails. As text: model ids, separated by commas.",
        ),
    ] = ""
    title_model: Annotated[
        str,
        _setting("Model for titles", "Model id. It writes a short title when a task ends. Empty: no short titles."),
    ] = ""
    own_models: Annotated[
        str,
        _setting(
            "Custom models",
            "Models that no list has, separated by `;`: id, context tokens, price in US dollars "
            "per million tokens in and out, abilities. Example: `ollama/qwen3 40960 0 0 tools "
            "images thinking`. Use - for unknown values.",
        ),
    ] = ""
    ca_file: Annotated[
        str,
        _setting(
            "Certificate authorities",
            "PEM file of additional certificate authorities to trust, for example your company's. Empty for none.",
        ),
    ] = ""
    model_hub: Annotated[
        str, _setting("Model hub", "Address that models for this machine come from: Hugging Face, or a mirror of it.")
    ] = "https://huggingface.co"
    llama_cpp_downloads: Annotated[
        str, _setting("Downloads of llama.cpp", "Address of the releases of llama.cpp, or of a mirror of them.")
    ] = "https://github.com/ggml-org/llama.cpp/releases/download"
    llama_server: Annotated[
        str,
        _setting("llama.cpp's server", "The program llama-server. Empty: the one on the PATH, else a downloaded one."),
    ] = ""
    local_models_folder: Annotated[
        str, _setting("Folder of models", "Folder with GGUF files that are used in place. Empty for none.")
    ] = ""
    local_model_context: Annotated[
        int,
        msgspec.Meta(ge=0, le=10_000_000),
        _setting("Context on this machine", "Tokens for models on this machine. 0: as many as fit, up to 32,768."),
    ] = 0
    local_model_gpu_layers: Annotated[
        int,
        msgspec.Meta(ge=-1, le=1_000),
        _setting("Layers on the graphics card", "Of a model on this machine. -1: llama.cpp decides, 0 for none."),
    ] = -1
    local_model_idle_minutes: Annotated[
        float,
        msgspec.Meta(ge=0, le=_MAX_MINUTES),
        _setting("Models stay in memory", "Minutes that a model on this machine stays in memory without requests."),
    ] = 10.0
    proxy_url: Annotated[
        str,
        _setting("Shared models", "Address of the machine that shares its models as `proxy/…`. Empty for none."),
    ] = ""
    thinking_level: Annotated[
        ThinkingLevel,
        _setting("Thinking level", "How much models think, if they can: off, minimal, low, medium, high or xhigh."),
    ] = "off"
    max_turns: Annotated[
        int,
        msgspec.Meta(ge=1, le=1_000_000),
        _setting("Max turns", "Model calls of a task before it asks to continue."),
    ] = 50
    max_minutes: Annotated[
        float,
        msgspec.Meta(ge=0, le=_MAX_MINUTES),
        _setting("Max minutes", "Minutes of work of a task before it asks to continue. 0 for no limit."),
    ] = 30.0
    budget_usd: Annotated[
        _Dollars, _setting("Budget", "US dollars that a task may spend before it asks to continue. 0 for no limit.")
    ] = 0.0
    max_tokens: Annotated[
        _Tokens,
        _setting("Max tokens", "Tokens of a task, input and output, before it asks to continue. 0 for no limit."),
    ] = 0
    day_budget_usd: Annotated[
        _Dollars,
        _setting(
            "Daily budget",
            "US dollars that all tasks together may spend in a day before they ask to continue. 0 for no limit.",
        ),
    ] = 0.0
    day_max_tokens: Annotated[
        _Tokens,
        _setting(
            "Daily max tokens", "Tokens of all tasks together in a day before they ask to continue. 0 for no limit."
        ),
    ] = 0
    tool_set: Annotated[
        Literal["auto", "minimal", "usual", "all"],
        _setting(
            "Tools offered",
            "What models are told of their tools: minimal (files and commands, for small models), usual (the others "
            "are found when they are needed), all. auto chooses by the size of the model and of its context window.",
        ),
    ] = "auto"
    summarise_at: Annotated[
        float,
        msgspec.Meta(ge=0, le=0.95),
        _setting(
            "Summarise at",
            "Share of the context window at which older messages are summarised: 0.8 is 80 %. 0 to never summarise.",
        ),
    ] = 0.8
    context_tokens: Annotated[
        int,
        msgspec.Meta(ge=0, le=1_000_000_000),
        _setting(
            "Default context window",
            "Tokens assumed for models with an unknown context window, such as local ones. 0 for none.",
        ),
    ] = 0
    seconds_between_calls: Annotated[
        float,
        msgspec.Meta(ge=0, le=3_600),
        _setting("Pause between calls", "Least number of seconds between two model calls of a task."),
    ] = 0.0
    ask_timeout: Annotated[
        float,
        msgspec.Meta(ge=0, le=_MAX_MINUTES),
        _setting(
            "Approval timeout",
            "Minutes after which an unanswered approval is denied, a question is skipped and a "
            "task at its limit ends. 0 for no limit.",
        ),
    ] = 0.0
    command_sandbox: Annotated[
        SandboxMode,
        _setting(
            "Sandbox",
            "Commands in the sandbox can change only the workspace and see no keys. auto uses "
            "the strongest sandbox available (bubblewrap, else Landlock, else none), required "
            "runs no command without one, off uses none.",
        ),
    ] = "auto"
    network_hosts: Annotated[
        str,
        _setting(
            "Allowed private hosts",
            "Hosts on this machine or in the local network that commands with network access may "
            "reach, separated by commas: `localhost:5432, *.intra.example`. Public hosts are "
            "always allowed for them.",
        ),
    ] = ""
    writable_folders: Annotated[
        str,
        _setting(
            "Writable folders",
            "Folders outside the workspace that sandboxed commands may change, separated by `;`. "
            "~ is your home folder.",
        ),
    ] = ""
    max_processes: Annotated[
        int,
        msgspec.Meta(ge=1, le=1_000_000),
        _setting(
            "Max processes",
            "Processes that may run at once of the commands of a task, of Python and of the background commands of a "
            "conversation each. Beyond that the youngest are ended. Holds for tasks that start after it.",
        ),
    ] = 512
    login_environment: Annotated[
        bool,
        _setting(
            "Login shell environment",
            "Give commands and servers the variables of your login shell, such as PATH with nvm "
            "or pyenv, if the window was started from the desktop. Keys are left out.",
        ),
    ] = True
    embedding_folder: Annotated[
        str,
        _setting(
            "Embedding model",
            "Folder with all-MiniLM-L6-v2 in ONNX format, or, for languages other than English, "
            "paraphrase-multilingual-MiniLM-L12-v2. Empty: `embedding` in the data directory.",
        ),
    ] = ""
    offer_embedding_model: Annotated[
        bool,
        _setting(
            "Offer search by meaning", "Ask whether the embedding model may be downloaded. Nothing comes by itself."
        ),
    ] = True
    recall_tokens: Annotated[
        int,
        msgspec.Meta(ge=0, le=20_000),
        _setting(
            "Recall",
            "Tokens of earlier conversations that an agent may be given with a message. 0 for none.",
        ),
    ] = 1_500
    other_folders: Annotated[
        Literal["ask", "share", "apart"],
        _setting(
            "Memory of other folders",
            "Whether agents are given what was said in conversations of other folders: ask once for each pair of "
            "folders, share all, or keep all apart. `errand memory folders` lists what you decided.",
        ),
    ] = "ask"
    not_remembered_folders: Annotated[
        str,
        _setting(
            "Folders not remembered",
            "Conversations in these folders, and in folders below them, are left out of memory. "
            "Separate them with `;`.",
        ),
    ] = ""
    not_recalled_folders: Annotated[
        str,
        _setting(
            "Folders without recall",
            "Agents in these folders, and in folders below them, are given nothing from memory. "
            "Separate them with `;`.",
        ),
    ] = ""
    keep_vectors: Annotated[
        int,
        msgspec.Meta(ge=0, le=100_000_000),
        _setting("Max vectors", "Number of newest memory entries that can be found by meaning. 0 for all."),
    ] = 0
    keep_vectors_days: Annotated[
        int,
        msgspec.Meta(ge=0, le=36_500),
        _setting("Max age of vectors", "Days for which memory entries can be found by meaning. 0 for no limit."),
    ] = 0
    vector_server: Annotated[
        str,
        _setting(
            "Vector server",
            "Address of a Qdrant server for the vectors of memory. Empty: this machine. Its key "
            "is that of the provider qdrant. Takes effect at the next start.",
        ),
    ] = ""
    language: Annotated[
        Literal["system", "en", "de"],
        _setting("Language", "Language of the window and the terminal. Takes effect at the next start."),
    ] = "system"
    keep_changes_days: Annotated[
        int,
        msgspec.Meta(ge=1, le=3_650),
        _setting("Undo history", "Days for which replaced files are kept, so that changes can be undone."),
    ] = 30
    database_url: Annotated[
        str,
        _setting(
            "Database",
            "postgresql://user@host/database. Empty: a file in the data directory. Takes effect at the next start.",
        ),
    ] = ""
