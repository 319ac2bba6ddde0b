"""Tasks: runs of an agent on one request."""

from typing import Literal

from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import DerivedId, JsonObject, JsonValue, Method, Timestamp, Wire
from errand.protocol.usage import Usage, add_usage

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
# How a task reached the stop reason `completed`; the last four are not a success.
Completion = Literal["declared", "replied", "undeclared", "refused", "cut", "no_answer"]
TaskLimitKind = Literal["turns", "minutes", "money", "tokens"]
DayLimitKind = Literal["day_money", "day_tokens"]
LimitKind = Literal[TaskLimitKind, DayLimitKind]
TaskMode = Literal["auto", "task", "chat"]
DecidedMode = Literal["task", "chat"]
# `asked`: commands that a person allowed and that need it have the network; `on`: all commands.
NetworkMode = Literal["off", "asked", "on"]
# What happens where approval is needed. `ask`: a person is asked; `edits`: changes of files in the workspace run, the
# rest is asked; `plan`: only reading, the rest is denied; `never`: the rest is denied; `all`: nothing is asked.
ApproveMode = Literal["ask", "edits", "plan", "never", "all"]

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


class Task(Wire, frozen=True, kw_only=True):
    """One run with its full state; sent with every change.

    `status` is the state, `activity` describes it for people ("retrying in 3 s: rate limit", "stopping, 2 processes
    left"). `attempt` is above 0 while a failed model call is about to be sent again: how often it has failed.
    `step_count` counts turns. `ask_id` is set while the task waits for a person. `queue` holds messages that
    the agent has not read yet, in reading order within each kind. `worked_s` is the working time in seconds, without
    waiting for a person or for an engine. `max_minutes` and `max_tokens` null are those of the settings. `allowance`
    is set once a person has raised the task's limits. `near`
    names the limits of which four fifths are used up. `resumes`: an update interrupted it and the next engine
    resumes it. `decided` is the mode chosen in `auto` mode, by the task or by a person. `retry_at`: a provider's
    rate limit delays it until then, since `limited_at`; it continues by itself, also after a restart, unless it runs
    with an `own_key`, which is not stored. `answer` follows `answer_schema`, a JSON Schema, if one was given.
    `summarises`: it first makes a summary of its conversation, and continues only if messages arrive meanwhile;
    `summarised`: it has made it.
    `working_dir` is the folder in which its last shell command ended, empty for the workspace.
    `follows` is the task after which its agent replies in a round of several agents. `pausing`: somebody paused it; the
    status becomes `paused` when the step at hand is done. `messages` counts what the agent has said to people: replies
    with a text, updates, questions, its summary.

    `completion` qualifies the stop reason `completed`: the agent declared the work done (`declared`), or gave a
    reply that ends a task (`replied`). Otherwise the task ended without either: replies without a call in a task
    that runs until it is declared done (`undeclared`); refused calls, and no call that does more than read
    (`refused`); a last reply cut off at the model's output limit (`cut`), or twice a reply that is no answer
    (`no_answer`). `refused_calls` counts refused calls,
    `acting_calls` the allowed calls that do more than read. `approve` is the approval mode, which may change while
    the task runs. `attended`: a person can be asked; without one, what needs approval is denied unless the mode
    allows it. `calls` are the calls of the current turn that have begun, in this order; the end of the last one comes
    with the next turn. `todo` is the agent's plan as it last wrote it; empty if it wrote none.

    A sub-agent's task has the `parent_id` of the task that gave it the work in turn `call_turn` by the call `call_id`,
    a `title`, and `depth` from 1 to 3. `tools` limits its tools; empty is no limit. `delegated` and `delegated_turns`
    are what the sub-agents of a task used, and those below them; `usage` and `step_count` are its own.
    """

    id: str
    conversation_id: str
    agent_id: str
    prompt: str
    status: TaskStatus
    model: str
    workspace: str
    started_at: Timestamp
    api_base: str | None = None
    mode: TaskMode = "auto"
    approve: ApproveMode = "ask"
    network: NetworkMode = "asked"
    attended: bool = True
    thinking_level: ThinkingLevel = "off"
    max_turns: int = 50
    budget_usd: float | None = None
    max_minutes: float | None = None
    max_tokens: int | None = None
    stop_reason: TaskStopReason | None = None
    completion: Completion | None = None
    refused_calls: int = 0
    acting_calls: int = 0
    stopping: bool = False
    pausing: bool = False
    step_count: int = 0
    messages: int = 0
    current_tool: str | None = None
    calls: tuple[CallProgress, ...] = ()
    activity: str = ""
    attempt: int = 0
    ask_id: str | None = None
    queue: tuple[Queued, ...] = ()
    summary: str = ""
    error: str | None = None
    usage: Usage = Usage()
    worked_s: float = 0.0
    allowance: Allowance | None = None
    near: tuple[LimitKind, ...] = ()
    resumes: bool = False
    decided: DecidedMode | None = None
    retry_at: Timestamp | None = None
    limited_at: Timestamp | None = None
    own_key: bool = False
    answer_schema: JsonObject | None = None
    answer: JsonValue = None
    summarises: bool = False
    summarised: bool = False
    follows: str | None = None
    todo: tuple[TodoItem, ...] = ()
    working_dir: str = ""
    parent_id: str | None = None
    depth: int = 0
    title: str = ""
    call_id: str = ""
    call_turn: int = 0
    tools: tuple[str, ...] = ()
    delegated: Usage = Usage()
    delegated_turns: int = 0
    owner: str = "local"
    ended_at: Timestamp | None = None

    @property
    def total_usage(self) -> Usage:
        """With that of its sub-agents."""
        return add_usage(self.usage, self.delegated)


class PlannedCall(Wire, frozen=True, kw_only=True):
    tool_name: str
    parameters: JsonObject


class AgentPlan(Wire, frozen=True, kw_only=True):
    """The plan of a turn: reasoning, tool calls, the question to the user, and whether the job is done."""

    task_id: str
    turn: int
    reasoning: str
    tool_calls: tuple[PlannedCall, ...]
    question: str | None
    is_complete: bool


class TaskStartParams(Wire, frozen=True, kw_only=True):
    """Start a task, in a new conversation or in the one that `conversation_id` (and `agent_id`) select.

    The client may choose `task_id`; repeating an id returns the existing task. `api_base` applies to models of
    `openai_compatible`. `api_key` is for this run only: it is held in memory and never stored. `sibling_of` names a
    user's message of the conversation: the prompt becomes its sibling, on a new branch (an edited message that is
    sent again). `attachments` are absolute paths of files: the model receives pictures as images and other files by
    name. `personality_id` becomes the agent's personality from this task on. `model_if_none` applies if neither the
    agent nor its personality has a model. `network` becomes that of the conversation: which of its commands have the
    network. `approve` becomes the approval mode of the conversation, except `never`,
    which holds for this task; null is the conversation's own.
    """

    prompt: str
    task_id: str | None = None
    conversation_id: str | None = None
    agent_id: str | None = None
    model: str | None = None
    api_base: str | None = None
    api_key: str | None = None
    workspace: str | None = None
    mode: TaskMode = "auto"
    approve: ApproveMode | None = None
    network: NetworkMode | None = None
    attended: bool = True
    thinking_level: ThinkingLevel | None = None
    max_turns: int | None = None
    budget_usd: float | None = None
    max_minutes: float | None = None
    max_tokens: int | None = None
    sibling_of: str | None = None
    attachments: tuple[str, ...] = ()
    personality_id: str | None = None
    answer_schema: JsonObject | None = None
    model_if_none: str | None = None


class TaskRetryParams(Wire, frozen=True, kw_only=True):
    """Regenerate a reply as a sibling: a task that continues from the node before `node_id`.

    Adds no message. Null fields default to those of the reply's task. The client may choose `task_id`.
    """

    node_id: str
    task_id: str | None = None
    model: str | None = None


class TaskSetModeParams(Wire, frozen=True, kw_only=True):
    """Change the mode that a task decided on.

    In a running task the change applies at the end of the turn. An ended chat continues as a new task right after
    it, which is returned; the client may choose its id, `new_task_id`.
    """

    task_id: str
    mode: DecidedMode
    new_task_id: str | None = None


class TaskStartResult(Wire, frozen=True, kw_only=True):
    task: Task


class TaskIdParams(Wire, frozen=True, kw_only=True):
    task_id: str


class TaskResult(Wire, frozen=True, kw_only=True):
    task: Task


class TaskNextResult(Wire, frozen=True, kw_only=True):
    """Null if it is the person's turn."""

    task: Task | None = None


class TaskMessageParams(Wire, frozen=True, kw_only=True):
    """A message to a running task.

    `task/steer` delivers it at the next turn, `task/follow_up` after the current work. The client may choose
    `queued_id`; a message with a known id is not queued again.
    """

    task_id: str
    text: str
    attachments: tuple[str, ...] = ()
    queued_id: str | None = None


class TaskQueueChangeParams(Wire, frozen=True, kw_only=True):
    """Change the given fields of a queued message. Refused once the agent has read it.

    `kind` `steer` sends a follow-up now. `place` is the zero-based index among messages of its kind.
    """

    task_id: str
    queued_id: str
    text: str | None = None
    kind: QueuedKind | None = None
    place: int | None = None


class TaskQueueRemoveParams(Wire, frozen=True, kw_only=True):
    """Remove a queued message. Refused once the agent has read it."""

    task_id: str
    queued_id: str


class TaskListParams(Wire, frozen=True, kw_only=True):
    """Newest first; `active` omits ended tasks, `id_part` those whose id does not contain it.

    `cursor` is the `next_cursor` of the previous page.
    """

    active: bool = False
    conversation_id: str | None = None
    id_part: str = ""
    limit: int = 50
    cursor: str | None = None


class TaskListResult(Wire, frozen=True, kw_only=True):
    tasks: tuple[Task, ...]
    next_cursor: str | None = None


class TaskPlansResult(Wire, frozen=True, kw_only=True):
    """All turns of a task, oldest first."""

    plans: tuple[AgentPlan, ...]


class TaskRecordResult(Wire, frozen=True, kw_only=True):
    """The lines of a task's record file, as described in docs/record.md. They include file contents, never keys."""

    lines: tuple[str, ...]


TASK_START = Method(
    "task/start", TaskStartParams, TaskStartResult, True, "Start a task.", makes=DerivedId("task_id", "task")
)

TASK_STOP = Method("task/stop", TaskIdParams, TaskResult, True, "Stop a task and its processes.")

TASK_PAUSE = Method("task/pause", TaskIdParams, TaskResult, True, "Pause a task before its next step.")

TASK_RESUME = Method("task/resume", TaskIdParams, TaskResult, True, "Resume a paused or interrupted task.")

TASK_TRY_NOW = Method(
    "task/try_now",
    TaskIdParams,
    TaskResult,
    True,
    "Retry now instead of waiting for a rate limit.",
)

TASK_SET_MODE = Method(
    "task/set_mode",
    TaskSetModeParams,
    TaskResult,
    True,
    "Turn a task into a chat, or a chat into a task.",
    makes=DerivedId("new_task_id", "task"),
)

TASK_STEER = Method(
    "task/steer",
    TaskMessageParams,
    TaskResult,
    True,
    "Queue a message for the next turn.",
    makes=DerivedId("queued_id", "queued"),
)

TASK_FOLLOW_UP = Method(
    "task/follow_up",
    TaskMessageParams,
    TaskResult,
    True,
    "Queue a message for after the current work.",
    makes=DerivedId("queued_id", "queued"),
)

TASK_GET = Method("task/get", TaskIdParams, TaskResult, False, "Get a task.")

TASK_NEXT = Method(
    "task/next",
    TaskIdParams,
    TaskNextResult,
    False,
    "Get the next task of a round, once it is decided.",
)

TASK_LIST = Method("task/list", TaskListParams, TaskListResult, False, "List tasks, newest first.")

TASK_PLANS = Method("task/plans", TaskIdParams, TaskPlansResult, False, "Get the plan of each turn.")

TASK_RECORD = Method("task/record", TaskIdParams, TaskRecordResult, False, "Get a task's record, for replay.")

TASK_RETRY = Method(
    "task/retry", TaskRetryParams, TaskResult, True, "Regenerate a reply.", makes=DerivedId("task_id", "task")
)

TASK_CHANGE_QUEUED = Method(
    "task/change_queued", TaskQueueChangeParams, TaskResult, True, "Edit, move or send a queued message."
)

TASK_REMOVE_QUEUED = Method("task/remove_queued", TaskQueueRemoveParams, TaskResult, True, "Remove a queued message.")

METHODS = (
    TASK_START,
    TASK_RETRY,
    TASK_STOP,
    TASK_PAUSE,
    TASK_RESUME,
    TASK_TRY_NOW,
    TASK_SET_MODE,
    TASK_STEER,
    TASK_FOLLOW_UP,
    TASK_CHANGE_QUEUED,
    TASK_REMOVE_QUEUED,
    TASK_GET,
    TASK_NEXT,
    TASK_LIST,
    TASK_PLANS,
    TASK_RECORD,
)
