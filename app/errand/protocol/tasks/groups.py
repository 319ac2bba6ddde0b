"""The fields of a task by subject. Fields of one group change at the same moments, and together."""

from typing import Literal

from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import JsonObject, JsonValue, Timestamp, Wire
from errand.protocol.usage import Usage

TaskStatus = Literal[
    "running",
    "thinking",
    "tool_executing",
    "waiting_user",
    "paused",
    "interrupted",
    "completed",
    "cancelled",
    "error",
]
TaskStopReason = Literal[
    "completed", "manual_stop", "error", "iteration_limit", "time_limit", "budget_limit", "token_limit", "day_limit"
]
# How a task reached the stop reason `completed`. `declared`: the agent declared the work done. `replied`: it gave a
# reply that ends a task. `answered`: it did either without having used a tool. The others are not a success.
# `undeclared`: replies without a call in a task that runs until it is declared done. `no_work`: no tool ran in such a
# task. `refused`: refused calls, and no call that does more than read. `cut`: a last reply cut off at the model's
# output limit. `no_answer`: twice a reply that is no answer.
Completion = Literal["declared", "replied", "answered", "undeclared", "no_work", "refused", "cut", "no_answer"]
TaskLimitKind = Literal["turns", "minutes", "money", "tokens"]
DayLimitKind = Literal["day_money", "day_tokens"]
LimitKind = Literal[TaskLimitKind, DayLimitKind]
TaskMode = Literal["auto", "task", "chat"]
DecidedMode = Literal["task", "chat"]
# `asked`: commands that a person allowed and that need it have the network; `on`: all commands.
NetworkMode = Literal["off", "asked", "on"]
# What happens where approval is needed. `ask`: a person is asked; `edits`: changes of files in the workspace run, the
# rest is asked; `auto`: so does what the sandbox holds, needs no network and can be undone; `plan`: only reading, the
# rest is denied; `never`: the rest is denied; `all`: nothing is asked.
ApproveMode = Literal["ask", "edits", "auto", "plan", "never", "all"]

QueuedKind = Literal["steer", "follow_up"]
TodoStatus = Literal["pending", "in_progress", "done"]


class Queued(Wire, frozen=True, kw_only=True):
    """A queued message for a task: `steer` is read at the next turn, `follow_up` at the end of the work."""

    id: str
    kind: QueuedKind
    text: str
    queued_at: Timestamp
    attachments: tuple[str, ...] = ()


class TodoItem(Wire, frozen=True, kw_only=True):
    """A step of the agent's plan."""

    text: str
    status: TodoStatus = "pending"


class Allowance(Wire, frozen=True, kw_only=True):
    """The limits of a whole task. Null is no limit."""

    turns: int
    minutes: float | None = None
    budget_usd: float | None = None
    tokens: int | None = None


class CallProgress(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A call of the current turn that has begun. Its result may follow later, with those of the calls beside it."""

    call_id: str
    started_at: Timestamp
    ended_at: Timestamp | None = None


class TaskRequest(Wire, frozen=True, kw_only=True):
    """The request that the task was started with. It stays as it is until the task is resumed."""

    prompt: str
    """What the person, or the agent that gave out the work, wrote."""
    model: str
    """The model, as `provider/name`."""
    workspace: str
    """The folder in which the agent works."""
    api_base: str | None = None
    """The address of the model, if its provider has none of its own."""
    network: NetworkMode = "asked"
    """Which commands have the network."""
    thinking_level: ThinkingLevel = "off"
    """How much the model thinks before it replies."""
    answer_schema: JsonObject | None = None
    """The JSON Schema that `answer` must follow, if one was given."""
    tools: tuple[str, ...] = ()
    """The only tools that the agent has; empty is no limit."""
    own_key: bool = False
    """The task runs with an API key that is not stored, so it does not continue by itself after a restart."""
    summarises: bool = False
    """The task first makes a summary of its conversation, and continues only if messages arrive meanwhile."""


class TaskOrigin(Wire, frozen=True, kw_only=True):
    """The task or the round of agents that this task was started from. Never changes."""

    parent_id: str | None = None
    """The task that gave this one to a sub-agent; null for a task of a person."""
    depth: int = 0
    """How many tasks are above it: from 1 to 3 for a sub-agent's."""
    title: str = ""
    """What the parent calls the work; empty for a task of a person."""
    call_id: str = ""
    """The call of the parent that started this task."""
    call_turn: int = 0
    """The turn of the parent with that call."""
    follows: str | None = None
    """The task after which its agent replies in a round of several agents."""


class TaskOptions(Wire, frozen=True, kw_only=True):
    """The options that a person can change while the task runs."""

    mode: TaskMode = "auto"
    """Whether the task is a conversation or runs until the work is done; `auto`: the agent decides."""
    decided: DecidedMode | None = None
    """The mode chosen in `auto`, by the agent or by a person."""
    approve: ApproveMode = "ask"
    """What happens where approval is needed."""
    attended: bool = True
    """A person can be asked. Without one, what needs approval is denied unless `approve` allows it."""


class TaskBudget(Wire, frozen=True, kw_only=True):
    """The limits of the task."""

    max_turns: int = 50
    """The largest number of turns."""
    budget_usd: float | None = None
    """The largest cost; null is no limit."""
    max_minutes: float | None = None
    """The longest working time; null is that of the settings."""
    max_tokens: int | None = None
    """The largest number of tokens; null is that of the settings."""
    allowance: Allowance | None = None
    """The limits as a person raised them, if one did."""
    near: tuple[LimitKind, ...] = ()
    """The limits of which four fifths are used up."""


class TaskActivity(Wire, frozen=True, kw_only=True):
    """The work of the task at the moment."""

    status: TaskStatus
    """The state."""
    detail: str = ""
    """The state for people: "retrying in 3 s: rate limit", "stopping, 2 processes left"."""
    current_tool: str | None = None
    """The tool that was called last and still runs."""
    calls: tuple[CallProgress, ...] = ()
    """The calls of the current turn that have begun, in this order. The end of the last comes with the next turn."""
    attempt: int = 0
    """How often the model call at hand has failed, while it is about to be sent again; otherwise 0."""
    awaits_server: bool = False
    """The model call waits for a model server that loads its model."""
    ask_id: str | None = None
    """The ask that the task waits for."""
    stopping: bool = False
    """Somebody stopped the task, and it has not ended yet."""
    pausing: bool = False
    """Somebody paused the task; the status becomes `paused` when the step at hand is done."""
    retry_at: Timestamp | None = None
    """When a task continues by itself that a provider's rate limit delays; also after a restart."""
    limited_at: Timestamp | None = None
    """Since when that rate limit delays it."""
    resumes: bool = False
    """An update of Errand interrupted the task, and the next engine resumes it."""
    worked_s: float = 0.0
    """The working time so far in seconds, without waiting for a person or for an engine."""


class TaskProgress(Wire, frozen=True, kw_only=True):
    """The work that the task has done so far."""

    step_count: int = 0
    """The number of turns."""
    messages: int = 0
    """How often the agent said something to people: replies with a text, updates, questions, its summary."""
    refused_calls: int = 0
    """The number of refused calls."""
    acting_calls: int = 0
    """The number of allowed calls that do more than read."""
    changing_calls: int = 0
    """The number of calls that may have changed something. Commands that only look, and changes of files that failed,
    do not count."""
    tool_runs: int = 0
    """How often a tool ran, without the tools that only control the task."""
    last_call_failed: bool = False
    """The last call of such a tool failed, or the last that may have changed something. A refused call does not count,
    nor a search that finds nothing."""
    usage: Usage = Usage()
    """What its own model calls used."""
    delegated: Usage = Usage()
    """What its sub-agents used, and those below them."""
    delegated_turns: int = 0
    """The number of turns of its sub-agents, and of those below them."""
    summarised: bool = False
    """The summary that the task was started for is made."""
    working_dir: str = ""
    """The folder in which its last shell command ended; empty for the workspace."""


class TaskOutcome(Wire, frozen=True, kw_only=True):
    """The end of the task. An interrupted task has a `summary` and no more."""

    stop_reason: TaskStopReason | None = None
    """Why it ended; null before."""
    completion: Completion | None = None
    """How it reached the stop reason `completed`."""
    summary: str = ""
    """What the agent says of the work, or its last reply."""
    untouched: tuple[str, ...] = ()
    """Files and commands that these words name, and no call or result of the task: three at most."""
    changed_nothing: bool = False
    """No call of the task, or of its sub-agents, changed anything."""
    error: str | None = None
    """What failed, as a text for people."""
    answer: JsonValue = None
    """The answer that follows `answer_schema`, if one was given."""
    ended_at: Timestamp | None = None
    """When it ended; null before."""
