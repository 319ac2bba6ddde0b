"""Tasks: one run of an agent on one request."""

from typing import Literal

from app.protocol.agents import ThinkingLevel
from app.protocol.json import JsonObject
from app.protocol.struct import Moment, Wire
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
TaskStopReason = Literal["completed", "manual_stop", "error", "iteration_limit", "time_limit", "budget_limit"]
TaskMode = Literal["auto", "task", "chat"]
ApproveMode = Literal["ask", "never", "all"]


class Task(Wire, frozen=True, kw_only=True):
    """One run, whole: sent with every change.

    `status` says where it is, `activity` the same in words for people ("retrying in 3 s: rate limit", "stopping, 2
    processes left"). `step_count` counts turns. `ask_id` is set while it waits for a person.
    """

    id: str
    conversation_id: str
    agent_id: str
    prompt: str
    status: TaskStatus
    model: str
    workspace: str
    started_at: Moment
    api_base: str | None = None
    mode: TaskMode = "auto"
    approve: ApproveMode = "ask"
    thinking_level: ThinkingLevel = "off"
    max_turns: int = 50
    budget_usd: float | None = None
    stop_reason: TaskStopReason | None = None
    stopping: bool = False
    step_count: int = 0
    current_tool: str | None = None
    activity: str = ""
    ask_id: str | None = None
    summary: str = ""
    error: str | None = None
    usage: Usage = Usage()
    ended_at: Moment | None = None


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
    thinking_level: ThinkingLevel | None = None
    max_turns: int | None = None
    budget_usd: float | None = None


class TaskStartResult(Wire, frozen=True, kw_only=True):
    task: Task


class TaskIdParams(Wire, frozen=True, kw_only=True):
    task_id: str


class TaskResult(Wire, frozen=True, kw_only=True):
    task: Task


class TaskMessageParams(Wire, frozen=True, kw_only=True):
    """A text for a task under way.

    `task/steer` brings it into the next turn, `task/follow_up` after the work at hand.
    """

    task_id: str
    text: str


class TaskListParams(Wire, frozen=True, kw_only=True):
    """Newest first; `active` leaves out the ended ones."""

    active: bool = False
    conversation_id: str | None = None
    limit: int = 50


class TaskListResult(Wire, frozen=True, kw_only=True):
    tasks: tuple[Task, ...]


class TaskPlansResult(Wire, frozen=True, kw_only=True):
    """All turns of a task, oldest first."""

    plans: tuple[AgentPlan, ...]
