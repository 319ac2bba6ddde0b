"""The engine: endpoint, handshake, subscription, health, shutdown."""

from typing import Literal, TypeAlias

from errand.protocol.agents import Agent
from errand.protocol.asks import Ask, Grant
from errand.protocol.base import EmptyParams, EmptyResult, Method, Timestamp, Wire
from errand.protocol.conversations import Conversation, Fork, Node
from errand.protocol.tasks.task import Task

# Faults of the disk, the database or the process limits of the engine. `unreachable`: the database server is away.
Trouble: TypeAlias = Literal[
    "disk_full", "read_only", "locked", "disk_error", "damaged", "unreachable", "no_descriptors"
]
# `stalled`: the previous engine stopped responding and was ended.
# `no_sandbox`: commands run without one, though the setting wants one if there is any.
ConditionKind: TypeAlias = Literal[Trouble, "stalled", "no_sandbox"]
SandboxForm = Literal["bubblewrap", "landlock", "none"]
# `required`: no command runs without a sandbox.
SandboxMode = Literal["auto", "required", "off"]

# Raised at most once between two releases.
PROTOCOL_VERSION = 4

_KEY_ENDING = "_API_KEY"
_ADDRESSES = frozenset(
    {
        "ERRAND_PROXY_URL",
        "LLAMA_CPP_API_BASE",
        "LM_STUDIO_API_BASE",
        "OLLAMA_HOST",
        "ANTHROPIC_BASE_URL",
        "OPENAI_BASE_URL",
        "PIP_EXTRA_INDEX_URL",
        "PIP_INDEX_URL",
        "VLLM_API_BASE",
    }
)


class Endpoint(Wire, frozen=True, kw_only=True):
    """`url` is the WebSocket address. `token` is a secret that both sides prove to know, without sending it.

    `process_start` is the start time of the process in clock ticks since boot, None if the system does not provide it.
    """

    url: str
    port: int
    pid: int
    token: str
    instance_id: str
    protocol_version: int
    process_start: int | None = None


class Condition(Wire, frozen=True, kw_only=True):
    """`text` describes the problem, `advice` the remedy. While `holds` is true nothing can be saved and tasks wait."""

    kind: ConditionKind
    text: str
    advice: str
    since: Timestamp
    holds: bool = True


class HealthUpdate(Wire, frozen=True, kw_only=True):
    """All current conditions, empty if there are none; sent to every client whenever one appears or ends.

    `tasks` are the running tasks with their current status: paused while nothing can be saved, which the log cannot
    record.
    """

    conditions: tuple[Condition, ...]
    tasks: tuple[Task, ...] = ()


def is_key(variable: str) -> bool:
    """Return True for a variable that holds a provider's key."""
    return variable.endswith(_KEY_ENDING)


def is_offered(variable: str) -> bool:
    """Return True for variables of a client's environment that the engine uses: keys, and addresses of model
    servers and package indexes.
    """
    return is_key(variable) or variable in _ADDRESSES


class ChallengeParams(Wire, frozen=True, kw_only=True):
    """First call of a connection. `nonce` is a random text of 16 to 200 characters, a new one for each connection."""

    nonce: str


class ChallengeResult(Wire, frozen=True, kw_only=True):
    """The engine's `nonce` and its `proof` that it knows the token of the endpoint file.

    `proof` is HMAC-SHA256 in hex, keyed with the token, of the text `answers`, the client's nonce and the engine's
    nonce, separated by line feeds. A client continues only if the proof is right: another process may have taken the
    port of an engine that died.
    """

    nonce: str
    proof: str


class InitializeParams(Wire, frozen=True, kw_only=True):
    """Second call of a connection.

    `proof` is the client's: computed like the engine's, of the text `asks` and the same two nonces. `client_id` is
    stable across reconnects; together with a request id it identifies a command. `keys` are the variables of the
    client's environment that end in `_API_KEY`, and the addresses of model servers (OPENAI_BASE_URL,
    ANTHROPIC_BASE_URL, OLLAMA_HOST, LM_STUDIO_API_BASE, LLAMA_CPP_API_BASE, VLLM_API_BASE, ERRAND_PROXY_URL) and of
    package indexes (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL), which may hold passwords: the
    engine is started without them. It holds them in memory until it ends; the newest client's override its own.
    `environment` is the environment for commands of tasks that this client starts or resumes, at most 256,000
    characters; keys are removed from it in any case. Without it they get the engine's environment. With `from_desktop`
    commands also get what the person's login shell sets, which a desktop does not give to programs.
    """

    client_id: str
    client_name: str
    proof: str = ""
    protocol_version: int = PROTOCOL_VERSION
    keys: dict[str, str] = {}  # noqa: RUF012 -- msgspec makes a new one for each
    environment: dict[str, str] = {}  # noqa: RUF012
    from_desktop: bool = False

    def __repr__(self) -> str:
        """Without the values of keys, so that no log or error contains them."""
        return f"InitializeParams({self.client_id!r}, {self.client_name!r}, keys={sorted(self.keys)})"


class InitializeResult(Wire, frozen=True, kw_only=True):
    """`epoch` names the event log, `head` is its newest sequence number; `health` lists the current conditions."""

    protocol_version: int
    instance_id: str
    engine_version: str
    epoch: str
    head: int
    health: tuple[Condition, ...] = ()


class SubscribeParams(Wire, frozen=True, kw_only=True):
    """Follow events. `scope` is `all` or a conversation's id.

    `summary` gives tasks, asks, conversations and agents; `full` adds a conversation's nodes and streamed text.
    `agent_id` names the agent whose branch the nodes of a snapshot come from; the default, also for a deleted agent,
    is the conversation's first agent.

    With `after` and `epoch`, the events since then precede the answer. Without them, or if they are out of range,
    the answer holds a snapshot. Later events follow the answer.
    """

    scope: str = "all"
    detail: Literal["summary", "full"] = "summary"
    after: int | None = None
    epoch: str | None = None
    agent_id: str | None = None


class Snapshot(Wire, frozen=True, kw_only=True):
    """The state at `sequence`: running and recent tasks, and open asks.

    The scope `all` adds the newest conversations and the grants. A conversation adds its agents and, for `full`, the
    newest page of nodes with their forks, as in `conversation/nodes`.
    """

    sequence: int
    tasks: tuple[Task, ...]
    asks: tuple[Ask, ...]
    conversations: tuple[Conversation, ...]
    agents: tuple[Agent, ...] = ()
    grants: tuple[Grant, ...] = ()
    nodes: tuple[Node, ...] = ()
    has_more_nodes: bool = False
    forks: tuple[Fork, ...] = ()


class SubscribeResult(Wire, frozen=True, kw_only=True):
    """`head` is the event up to which the client now knows the scope.

    `replayed` counts the events sent from the log before this answer; `reason` says why a snapshot was sent instead.
    """

    epoch: str
    head: int
    replayed: int = 0
    snapshot: Snapshot | None = None
    reason: Literal["", "fresh", "out_of_range", "wrong_epoch"] = ""


class UnsubscribeParams(Wire, frozen=True, kw_only=True):
    scope: str = "all"


class EngineShutdownParams(Wire, frozen=True, kw_only=True):
    """Tasks get at most 2 s to finish the current step, then they are interrupted.

    With `hand_over` the next engine, which the caller starts at once, resumes them.
    """

    hand_over: bool = False


class SandboxStatus(Wire, frozen=True, kw_only=True):
    """The bounds of the commands of tasks: `form` is what holds on this machine, `mode` is the setting.

    `text` says so to people, in one or two sentences; `advice` says what would make it better, empty if nothing.
    """

    form: SandboxForm
    mode: SandboxMode
    text: str
    advice: str = ""


class EngineStatusResult(Wire, frozen=True, kw_only=True):
    """Measured, not estimated: memory in bytes (PSS if the system provides it), CPU in seconds since the start."""

    pid: int
    instance_id: str
    version: str
    started_at: Timestamp
    data_dir: str
    database: str
    memory_bytes: int
    cpu_seconds: float
    running_tasks: int
    clients: int
    loop_stall_p99_ms: float
    loop_stall_max_ms: float
    sandbox: SandboxStatus


CHALLENGE = Method(
    "challenge",
    ChallengeParams,
    ChallengeResult,
    False,
    "Request proof that the engine knows the token.",
)

INITIALIZE = Method("initialize", InitializeParams, InitializeResult, False, "Start the session of a client.")

SUBSCRIBE = Method("subscribe", SubscribeParams, SubscribeResult, False, "Subscribe to the events of a scope.")

UNSUBSCRIBE = Method("unsubscribe", UnsubscribeParams, EmptyResult, False, "Unsubscribe from a scope.")

ENGINE_STATUS = Method(
    "engine/status", EmptyParams, EngineStatusResult, False, "Get the engine's state and resource use."
)

ENGINE_SHUTDOWN = Method("engine/shutdown", EngineShutdownParams, EmptyResult, True, "Shut the engine down.")

ENGINE_ROTATE_TOKEN = Method(
    "engine/rotate_token", EmptyParams, EmptyResult, True, "Replace the access token and disconnect all other clients."
)

METHODS = (
    CHALLENGE,
    INITIALIZE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    ENGINE_STATUS,
    ENGINE_SHUTDOWN,
    ENGINE_ROTATE_TOKEN,
)
