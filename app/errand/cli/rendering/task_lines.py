"""Tasks as single lines: their prompt, how they ended, and the begin and end of a sub-agent. Pure."""

from errand.cli.terminal.style import Style
from errand.cli.terminal.text import cut, indent, one_line, short_id, usage_line
from errand.client.errors import EngineUnreachable
from errand.client.safe_text import escape_hidden_line
from errand.client.texts.tasks import is_unfinished, neutral_text, refused_text, unfinished_text, untouched_text
from errand.protocol.tasks.groups import TaskStopReason
from errand.protocol.tasks.task import Task
from errand.text.translation import tr, uncapitalised

_LIMITS: dict[TaskStopReason, str] = {
    "iteration_limit": tr("turn limit reached"),
    "time_limit": tr("time limit reached"),
    "budget_limit": tr("budget reached"),
    "token_limit": tr("token limit reached"),
    "day_limit": tr("daily budget reached"),
}


def prompt_line(task: Task, style: Style, width: int) -> str:
    """Return the first line of a task: its prompt."""
    return style.bold(cut(f"{style.sign('dot')} {one_line(task.request.prompt, width)}", width))


def asking_line(task: Task) -> str:
    """Return which of several tasks asks."""
    return tr("Task {id} asks: {title}").format(
        id=short_id(task.id), title=one_line(task.origin.title or task.request.prompt, 60)
    )


def unreachable_text(error: EngineUnreachable) -> str:
    """Return why the engine cannot be reached, and how to go on."""
    reason = tr("The engine cannot be reached: {reason}. Everything saved is kept. ").format(
        reason=str(error).rstrip(".")
    )
    if error.task_id is None:
        return reason + tr("Start it again: errand tasks")
    return reason + tr("Continue the task: errand resume {name}").format(name=short_id(error.task_id))


def result_line(task: Task, style: Style) -> str:
    """Return the outcome of a task."""
    match task.outcome.stop_reason:
        case "completed" if is_unfinished(task):
            outcome = style.paint("1;33", f"{style.sign('warn')} {unfinished_text(task)}")
            return style.join(outcome, style.amber(refused_text(task)))
        case "completed" if neutral := neutral_text(task):
            outcome = f"{style.sign('bullet')} {uncapitalised(neutral)}"
            return style.join(outcome, uncapitalised(untouched_text(task)), style.amber(refused_text(task)))
        case "completed":
            is_chat = task.origin.parent_id is None and "chat" in (task.options.mode, task.options.decided)
            outcome = tr("answered in chat mode") if is_chat else tr("task complete")
            done, refused = style.paint("1;32", f"{style.sign('tick')} {outcome}"), refused_text(task)
            return style.join(done, style.amber(refused))
        case "manual_stop":
            return style.paint("1;33", f"{style.sign('warn')} {tr('task stopped')}")
        case "iteration_limit" | "time_limit" | "budget_limit" | "token_limit" | "day_limit":
            return style.paint("1;33", f"{style.sign('warn')} {_LIMITS[task.outcome.stop_reason]}")
        case "error" | None:
            return style.paint("1;31", f"{style.sign('cross')} {tr('task failed')}")


def sub_agent_line(task: Task, style: Style, width: int) -> str:
    """Return the task of a sub-agent: that it runs, or how it ended."""
    title = one_line(escape_hidden_line(task.origin.title), max(12, width - 40))
    line = f"{indent(task.origin.depth)}{style.sign('branch')} {title}"
    if task.outcome.ended_at is None:
        return style.dim(tr("{line}: running").format(line=line))
    return style.join(f"{line}: {result_line(task, style)}", style.dim(usage_line(task, style)))
