"""The tool `task`: gives a part of the work to a sub-agent and returns what it reports."""

from typing import Annotated

from msgspec import Meta, Struct

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import Text
from errand.engine.tools.arguments import decode, schema_of, text_argument
from errand.engine.tools.base import Access, ExecutionMode, PermissionTier
from errand.engine.tools.context import SubAgentOrder, ToolContext
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult, text_result
from errand.protocol.base import JsonObject
from errand.protocol.blocks import CallDisplay
from errand.protocol.tasks.groups import TaskStopReason
from errand.protocol.tasks.task import Task
from errand.text.redaction import redact, short_line
from errand.text.translation import marked

MAX_DEPTH = 3
MAX_CONCURRENT_TASKS = 20
_MAX_TITLE_LENGTH = 80
_MAX_PROMPT_LENGTH = 100_000
_MAX_REPORT_LENGTH = 20_000
_CALL_FAILED = "[The sub-agent ended after a failed call.]"
_CHANGED_NOTHING = "[The sub-agent has only looked: none of its calls changed anything.]"
_NO_TOOL = "[The sub-agent used no tool: it has looked at nothing and done nothing.]"

_ENDS: dict[TaskStopReason, str] = {
    "manual_stop": "The person stopped this sub-agent before it was done",
    "iteration_limit": "It ended at the limit of turns before it was done",
    "time_limit": "It ended at the limit of time before it was done",
    "budget_limit": "It ended at the limit of cost before it was done",
    "token_limit": "It ended at the limit of tokens before it was done",
    "day_limit": "It ended at the limit of today before it was done",
    "error": "It failed",
}


class TaskArguments(Struct, frozen=True):
    description: Annotated[str, Meta(description="A title of a few words.")]
    prompt: Annotated[
        str,
        Meta(
            description="What to do, what is known, and what to report: the sub-agent knows nothing of this "
            "conversation."
        ),
    ]
    personality: Annotated[str, Meta(description="Name of a personality. Default: your own.")] = ""
    model: Annotated[str, Meta(description="Model id. Default: your own.")] = ""
    tools: Annotated[tuple[str, ...], Meta(description="Only these of your tools.")] = ()


class TaskTool:
    """Touches nothing itself: each call of the sub-agent is judged like one of its own task."""

    name = "task"
    label = "Sub-agent"
    description = (
        "Give a part of the work to a sub-agent, which works on its own and reports to you at its end. Several calls "
        "in one reply run at the same time: use it for independent parts, such as searching many places. It shares the "
        "workspace, the approvals and the limits of this task."
    )
    parameters = schema_of(TaskArguments)
    tier: PermissionTier = "free"
    activity = marked("waiting for sub-agents")
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, context: ToolContext) -> None:
        self._sub_agents = context.sub_agents

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        prepared: JsonObject = {key: value for key, value in arguments.items() if value is not None}
        if "prompt" in prepared and "description" not in prepared:
            prepared["description"] = text_argument(prepared, "prompt").strip().partition("\n")[0]
        return prepared

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        title = one_line_title(text_argument(arguments, "description"))
        return CallDisplay(kind="other", running="sub-agent", done="sub-agent", target=title, icon="git-branch")

    def access(self, arguments: JsonObject) -> Access:
        return Access("free", "Give work to a sub-agent.")

    def allow(self, call_id: str, access: Access) -> None:
        """Does nothing: the call accesses nothing."""

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        request = decode(arguments, TaskArguments)
        if self._sub_agents is None:
            raise ToolError("There are no sub-agents here.")
        if not request.prompt.strip():
            raise ToolError("The prompt is empty: say what the sub-agent is to do.")
        if len(request.prompt) > _MAX_PROMPT_LENGTH:
            raise ToolError(
                f"The prompt has more than {_MAX_PROMPT_LENGTH:,} characters. Put what is long into a file."
            )
        title = one_line_title(request.description) or "Sub-agent"
        order = SubAgentOrder(title, request.prompt, request.personality, request.model, request.tools)
        ended = await self._sub_agents.run(order, call_id, cancel)
        if cancel.is_set:
            raise ToolError("Operation aborted")
        return _result(ended)


def one_line_title(text: str) -> str:
    """Return the text as a short line, without keys, which are recognized before the line is cut."""
    return short_line(text, _MAX_TITLE_LENGTH, redact)


def _remarks(ended: Task) -> tuple[str, ...]:
    """Return what speaks against the report of a sub-agent."""
    if not ended.progress.tool_runs:
        return (_NO_TOOL,)
    names = ", ".join(ended.outcome.untouched)
    untouched = f"[No call of the sub-agent touched these, which it names: {names}]" if names else ""
    call_failed = _CALL_FAILED if ended.progress.last_call_failed else ""
    changed_nothing = _CHANGED_NOTHING if ended.outcome.changed_nothing else ""
    return tuple(filter(None, (call_failed, changed_nothing, untouched)))


def _result(ended: Task) -> ToolResult:
    """Return the report of a sub-agent; one that did not end by itself is an error, with what it said last."""
    report = ended.outcome.summary.strip()
    if len(report) > _MAX_REPORT_LENGTH:
        report = f"{report[:_MAX_REPORT_LENGTH]}\n[the rest of the report is left out]"
    steps = f"{ended.progress.step_count} step{'' if ended.progress.step_count == 1 else 's'}"
    details: JsonObject = {
        "task_id": ended.id,
        "agent_id": ended.agent_id,
        "stop_reason": ended.outcome.stop_reason,
        "steps": ended.progress.step_count,
        "cost_usd": ended.total_usage.cost_usd,
        "duration_ms": round(ended.activity.worked_s * 1000),
    }
    if ended.activity.status == "completed" and ended.outcome.completion == "no_answer":
        ending = f" Its last words:\n{report}" if report else ""
        text = f"The sub-agent gave no answer: its last reply has no text, or a call that did not run.{ending}"
        return ToolResult((Text(text),), details, "no answer", is_error=True)
    if ended.activity.status == "completed":
        return text_result("\n".join((report or "(It ended without a report.)", *_remarks(ended))), steps, details)
    why = _ENDS.get(ended.outcome.stop_reason or "error", "It did not end") + (
        f": {ended.outcome.error}" if ended.outcome.error else ""
    )
    ending = f"\nIts last words:\n{report}" if report else ""
    summary = "stopped by you" if ended.outcome.stop_reason == "manual_stop" else why[:1].lower() + why[1:120]
    return ToolResult((Text(f"{why}.{ending}"),), details, summary, is_error=True)
