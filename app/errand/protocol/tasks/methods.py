"""What clients call: starting, following and changing tasks."""

from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import DerivedId, JsonObject, Method, Wire
from errand.protocol.tasks.groups import ApproveMode, DecidedMode, NetworkMode, QueuedKind, TaskMode
from errand.protocol.tasks.task import AgentPlan, Task


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
