"""Tasks: one run of an agent on one request."""

from typing import Literal

from app.protocol.agents import ThinkingLevel
from app.protocol.base import JsonObject, JsonValue, Method, Timestamp, Wire
from app.protocol.usage import Usage

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
# How a task came to the stop reason `completed`; the last three are no success.
Completion = Literal["declared", "replied", "undeclared", "refused", "cut"]
TaskLimitKind = Literal["turns", "minutes", "money", "tokens"]
DayLimitKind = Literal["day_money", "day_tokens"]
LimitKind = Literal[TaskLimitKind, DayLimitKind]
TaskMode = Literal["auto", "task", "chat"]
DecidedMode = Literal["task", "chat"]
ApproveMode = Literal["ask", "never", "all"]

QueuedKind = Literal["steer", "follow_up"]


class Queued(Wire, frozen=True, kw_only=True):
    """A text that waits for its turn in a task: `steer` for the next turn, `follow_up` for the end of the work."""

    id: str
    kind: QueuedKind
    text: str
    queued_at: Timestamp
    attachments: tuple[str, ...] = ()


class Allowance(Wire, frozen=True, kw_only=True):
    """What a task may use in all. Null is no limit."""

    turns: int
    minutes: float | None = None
    budget_usd: float | None = None
    tokens: int | None = None


class Task(Wire, frozen=True, kw_only=True):
    """One run, whole: sent with every change.

    `status` says where it is, `activity` the same in words for people ("retrying in 3 s: rate limit", "stopping, 2
    processes left"). `step_count` counts turns. `ask_id` is set while it waits for a person. `queue` is what people
    said that the agent has not read yet, in the order in which it will be read within each kind. `worked_s` are the
    seconds it worked, without those it waited for a person or for an engine. `allowance` is set once a person has
    allowed more than the task was given. `near` names the limits of which four fifths are used up. `resumes`: it was
    interrupted by an update, the next engine goes on with it. `decided` is what a task in `auto` mode took itself for,
    or a person has. `retry_at`: a provider's limit holds it until then, and has since `limited_at`; it goes on by
    itself, after a restart too, unless it runs with an `own_key`, which was given for it and is not stored. `answer`
    follows `answer_schema`, a JSON Schema, where one was given. `summarises`: it is to make a summary of its
    conversation before anything else, and goes on only with what is said meanwhile. `follows` is the task after which
    its agent speaks in a round of several.

    `completion` says of the stop reason `completed` what it rests on: the agent said that the work is done
    (`declared`), or gave a reply that ends a task (`replied`). Or it ended for want of either: replies without a call
    in a task that goes on until it is declared done (`undeclared`); calls that were not allowed, and none that does
    more than read (`refused`); a last reply that hit the model's limit of output (`cut`).

    `refused_calls` counts what was not allowed, `acting_calls` what was and does more than read.

    `attended`: somebody can be asked about limits and about calls made again and again, also where all is approved.
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
    attended: bool = True
    thinking_level: ThinkingLevel = "off"
    max_turns: int = 50
    budget_usd: float | None = None
    stop_reason: TaskStopReason | None = None
    completion: Completion | None = None
    refused_calls: int = 0
    acting_calls: int = 0
    stopping: bool = False
    step_count: int = 0
    current_tool: str | None = None
    activity: str = ""
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
    follows: str | None = None
    owner: str = "local"
    ended_at: Timestamp | None = None


class PlannedCall(Wire, frozen=True, kw_only=True):
    tool_name: str
    parameters: JsonObject


class AgentPlan(Wire, frozen=True, kw_only=True):
    """A turn in the words of seed 000: why, which tools, what is asked of the user, whether the job is done."""

    task_id: str
    turn: int
    reasoning: str
    tool_calls: tuple[PlannedCall, ...]
    question: str | None
    is_complete: bool


class TaskStartParams(Wire, frozen=True, kw_only=True):
    """Start a task: in a new conversation, or where `conversation_id` (and `agent_id`) point.

    `task_id` may be chosen by the client; starting the same id again gives the task that is there. `api_base` goes
    with models of `openai_compatible`. `api_key` is for this run only: it is held in memory and never stored.

    `sibling_of` names a user's message of the conversation: the prompt stands beside it, in a branch of its own (an
    edited message that is sent again). `attachments` are absolute paths of files: pictures are shown to the model,
    others are named to it. `personality_id` is the agent's from this task on. `model_if_none` is for an agent that has
    no model of its own, nor has its personality.
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
    approve: ApproveMode = "ask"
    attended: bool = True
    thinking_level: ThinkingLevel | None = None
    max_turns: int | None = None
    budget_usd: float | None = None
    sibling_of: str | None = None
    attachments: tuple[str, ...] = ()
    personality_id: str | None = None
    answer_schema: JsonObject | None = None
    model_if_none: str | None = None


class TaskRetryParams(Wire, frozen=True, kw_only=True):
    """Have a reply written anew, as a sibling of it: a task that goes on from the node before `node_id`.

    No message is added. What is null is as in the task of that reply. `task_id` may be chosen by the client.
    """

    node_id: str
    task_id: str | None = None
    model: str | None = None


class TaskSetModeParams(Wire, frozen=True, kw_only=True):
    """Take a task for something else than it took itself for.

    While it is under way this holds from the end of its turn on. A chat at its end goes on as a task: a new one, right
    after it, which is the one given back; its id, `new_task_id`, may be chosen by the client.
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
    """Null where the word went back to the person."""

    task: Task | None = None


class TaskMessageParams(Wire, frozen=True, kw_only=True):
    """A text for a task under way.

    `task/steer` brings it into the next turn, `task/follow_up` after the work at hand. `queued_id` may be chosen by the
    client; what was said to the task under that id already is not said twice.
    """

    task_id: str
    text: str
    attachments: tuple[str, ...] = ()
    queued_id: str | None = None


class TaskQueueChangeParams(Wire, frozen=True, kw_only=True):
    """Change a text that still waits; only the fields given. Refused once the agent has read it.

    `kind` `steer` sends a follow-up now. `place` counts from 0 among those of its kind.
    """

    task_id: str
    queued_id: str
    text: str | None = None
    kind: QueuedKind | None = None
    place: int | None = None


class TaskQueueRemoveParams(Wire, frozen=True, kw_only=True):
    """Take back a text that still waits. Refused once the agent has read it."""

    task_id: str
    queued_id: str


class TaskListParams(Wire, frozen=True, kw_only=True):
    """Newest first; `active` leaves out the ended ones. `cursor` is the `next_cursor` of the page before."""

    active: bool = False
    conversation_id: str | None = None
    limit: int = 50
    cursor: str | None = None


class TaskListResult(Wire, frozen=True, kw_only=True):
    tasks: tuple[Task, ...]
    next_cursor: str | None = None


class TaskPlansResult(Wire, frozen=True, kw_only=True):
    """All turns of a task, oldest first."""

    plans: tuple[AgentPlan, ...]


class TaskRecordResult(Wire, frozen=True, kw_only=True):
    """The lines of a task's record file, as docs/record.md describes them. File contents are in it, keys never are."""

    lines: tuple[str, ...]


TASK_START = Method("task/start", TaskStartParams, TaskStartResult, True, "Start a task.")

TASK_STOP = Method("task/stop", TaskIdParams, TaskResult, True, "Stop a task and all it started.")

TASK_PAUSE = Method("task/pause", TaskIdParams, TaskResult, True, "Pause before the next step.")

TASK_RESUME = Method("task/resume", TaskIdParams, TaskResult, True, "Go on after a pause or a crash.")

TASK_TRY_NOW = Method(
    "task/try_now",
    TaskIdParams,
    TaskResult,
    True,
    "Ask the model at once, though a provider's limit is waited for.",
)

TASK_SET_MODE = Method(
    "task/set_mode", TaskSetModeParams, TaskResult, True, "Take a task for a chat, or a chat for a task."
)

TASK_STEER = Method("task/steer", TaskMessageParams, TaskResult, True, "A word for the next turn.")

TASK_FOLLOW_UP = Method(
    "task/follow_up", TaskMessageParams, TaskResult, True, "A word for when the work at hand is done."
)

TASK_GET = Method("task/get", TaskIdParams, TaskResult, False, "One task.")

TASK_NEXT = Method(
    "task/next",
    TaskIdParams,
    TaskNextResult,
    False,
    "Who speaks after a task in a round, once that is settled.",
)

TASK_LIST = Method("task/list", TaskListParams, TaskListResult, False, "Tasks, newest first.")

TASK_PLANS = Method("task/plans", TaskIdParams, TaskPlansResult, False, "The plan of each turn.")

TASK_RECORD = Method("task/record", TaskIdParams, TaskRecordResult, False, "All a task did, to be played again.")

TASK_RETRY = Method("task/retry", TaskRetryParams, TaskResult, True, "Have a reply written anew.")

TASK_CHANGE_QUEUED = Method(
    "task/change_queued", TaskQueueChangeParams, TaskResult, True, "Edit, move or send now what waits."
)

TASK_REMOVE_QUEUED = Method("task/remove_queued", TaskQueueRemoveParams, TaskResult, True, "Take back what waits.")
