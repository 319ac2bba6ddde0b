"""The engine: endpoint, handshake, subscription, health, shutdown."""

from typing import Literal, TypeAlias

from app.protocol.agents import Agent
from app.protocol.asks import Ask, Grant
from app.protocol.base import EmptyParams, EmptyResult, Method, Timestamp, Wire
from app.protocol.conversations import Conversation, Fork, Node
from app.protocol.tasks import Task

# What is the matter with the ground that the engine stands on.
Trouble: TypeAlias = Literal["disk_full", "read_only", "locked", "disk_error", "damaged", "no_descriptors"]
# `stalled`: the engine before this one stood still and was ended.
ConditionKind: TypeAlias = Literal[Trouble, "stalled"]

PROTOCOL_VERSION = 2

_KEY_ENDING = "_API_KEY"
_ADDRESSES = frozenset(
    {
        "ERRAND_PROXY_URL",
        "LLAMA_CPP_API_BASE",
        "LM_STUDIO_API_BASE",
        "OLLAMA_HOST",
        "OPENAI_BASE_URL",
        "VLLM_API_BASE",
    }
)


class Endpoint(Wire, frozen=True, kw_only=True):
    """`url` is the WebSocket's. `token` is what both sides prove to know, see `challenge`; it is never sent.

    `process_start` is when the process was started, in clock ticks since the boot, 0 where the system does not tell.
    """

    url: str
    port: int
    pid: int
    token: str
    instance_id: str
    protocol_version: int
    process_start: int = 0


class Condition(Wire, frozen=True, kw_only=True):
    """`text` says what is the matter, `advice` what to do. While one `holds` nothing can be saved: tasks wait."""

    kind: ConditionKind
    text: str
    advice: str
    since: Timestamp
    holds: bool = True


class HealthUpdate(Wire, frozen=True, kw_only=True):
    """All conditions there are now, none when all is well; comes to every client whenever one comes or goes.

    `tasks` are those under way as they stand now: paused while nothing can be saved, which the log cannot tell.
    """

    conditions: tuple[Condition, ...]
    tasks: tuple[Task, ...] = ()


def is_key(variable: str) -> bool:
    """True for a variable that holds the key of a provider."""
    return variable.endswith(_KEY_ENDING)


def is_offered(variable: str) -> bool:
    """True for the variables of a client's environment that the engine wants: keys, and addresses of model servers."""
    return is_key(variable) or variable in _ADDRESSES


class ChallengeParams(Wire, frozen=True, kw_only=True):
    """First call of a connection. `nonce` is a random text of 16 to 200 characters, another one each time."""

    nonce: str


class ChallengeResult(Wire, frozen=True, kw_only=True):
    """The engine's `nonce`, and its `proof`: HMAC-SHA256 in hex, keyed with the endpoint file's token, of the text
    `answers`, the client's nonce and the engine's, parted by line feeds.

    A client goes on only if the proof is right: before that it may be anybody who took the port of an engine that died.
    """

    nonce: str
    proof: str


class InitializeParams(Wire, frozen=True, kw_only=True):
    """Second call of a connection.

    `proof` is the client's: as the engine's, of the text `asks` and the same two nonces. `client_id` stays the same
    over reconnects: commands are told apart by it and their id. `keys` are the variables of the client's environment
    that end in `_API_KEY`, and the addresses of model servers (OPENAI_BASE_URL, OLLAMA_HOST, LM_STUDIO_API_BASE,
    LLAMA_CPP_API_BASE, VLLM_API_BASE, ERRAND_PROXY_URL): the engine is started without them. It holds them
    in memory until it ends; the newest client's go before its own. `environment` is what the commands of the tasks get
    that this client begins or resumes, at most 256,000 characters; keys are taken out in any case. Without it they get
    the engine's own.
    """

    client_id: str
    client_name: str
    proof: str = ""
    protocol_version: int = PROTOCOL_VERSION
    keys: dict[str, str] = {}  # noqa: RUF012 -- msgspec makes a new one for each
    environment: dict[str, str] = {}  # noqa: RUF012

    def __repr__(self) -> str:
        """Without the values of keys, so that no log or error can hold them."""
        return f"InitializeParams({self.client_id!r}, {self.client_name!r}, keys={sorted(self.keys)})"


class InitializeResult(Wire, frozen=True, kw_only=True):
    """`epoch` names the event log, `head` is its newest sequence number; `health` is what is the matter now."""

    protocol_version: int
    instance_id: str
    engine_version: str
    epoch: str
    head: int
    health: tuple[Condition, ...] = ()


class SubscribeParams(Wire, frozen=True, kw_only=True):
    """Follow events. `scope` is `all` or a conversation's id.

    `summary` gives tasks, asks, conversations and agents; `full` gives a conversation's nodes and streamed text too.
    `agent_id` names the agent of the conversation whose branch a snapshot has the nodes of; without, or where it is
    gone, that is the first agent.
    With `after` and `epoch` the events since come before the answer; without, or where that is out of range, the
    answer holds a snapshot. What happens from then on follows the answer.
    """

    scope: str = "all"
    detail: Literal["summary", "full"] = "summary"
    after: int | None = None
    epoch: str | None = None
    agent_id: str | None = None


class Snapshot(Wire, frozen=True, kw_only=True):
    """The state at `sequence`: running and recent tasks and waiting asks.

    Of everything also the newest conversations and the grants; of one conversation also its agents and, for `full`,
    the newest page of nodes with their forks, as `conversation/nodes` gives them.
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
    """`head` is the event up to which the client knows all of the scope now.

    `replayed` counts the events that came from the log before this answer; `reason` says why a snapshot came instead.
    """

    epoch: str
    head: int
    replayed: int = 0
    snapshot: Snapshot | None = None
    reason: Literal["", "fresh", "out_of_range", "wrong_epoch"] = ""


class UnsubscribeParams(Wire, frozen=True, kw_only=True):
    scope: str = "all"


class EngineShutdownParams(Wire, frozen=True, kw_only=True):
    """Tasks end the step in hand, for at most 2 s, and are interrupted. With `hand_over` the next engine resumes them:
    the caller starts it at once."""

    hand_over: bool = False


class EngineStatusResult(Wire, frozen=True, kw_only=True):
    """Measured, not estimated: memory in bytes (PSS where the system tells), CPU in seconds since the start."""

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


CHALLENGE = Method(
    "challenge",
    ChallengeParams,
    ChallengeResult,
    False,
    "Have the engine prove that it knows the token.",
)

INITIALIZE = Method("initialize", InitializeParams, InitializeResult, False, "Open the conversation with the engine.")

SUBSCRIBE = Method("subscribe", SubscribeParams, SubscribeResult, False, "Follow events of a scope.")

UNSUBSCRIBE = Method("unsubscribe", UnsubscribeParams, EmptyResult, False, "Stop following a scope.")

ENGINE_STATUS = Method("engine/status", EmptyParams, EngineStatusResult, False, "What the engine uses.")

ENGINE_SHUTDOWN = Method("engine/shutdown", EngineShutdownParams, EmptyResult, True, "End the engine in order.")
