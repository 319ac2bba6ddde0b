"""What a task does now, or how it ended, in words for people."""

from app.client.endings import is_unfinished, unfinished_words
from app.protocol.tasks import Task


def activity_of(task: Task) -> str:
    """What it does now, in words: the engine's own where it has some."""
    if task.ended_at is None and task.activity:
        return task.activity[:1].upper() + task.activity[1:]
    if task.ended_at is not None:
        return _ending_of(task)
    match task.status:
        case "tool_executing":
            return f"Running {task.current_tool}" if task.current_tool else "Running a tool"
        case "waiting_user":
            return "Waiting for you"
        case "paused":
            return "Paused"
        case "interrupted":
            return "Interrupted: the engine ended while it worked"
        case "running" | "thinking" | "completed" | "cancelled" | "error":
            return "Stopping" if task.stopping else "Thinking"


def _ending_of(task: Task) -> str:
    match task.stop_reason:
        case "completed":
            words = unfinished_words(task) if is_unfinished(task) else "done"
            return f"{words[:1].upper()}{words[1:]}"
        case "manual_stop":
            return "Stopped"
        case "iteration_limit":
            return "Stopped: no turns left"
        case "time_limit":
            return "Stopped: no time left"
        case "budget_limit":
            return "Stopped: no budget left"
        case "token_limit":
            return "Stopped: no tokens left"
        case "day_limit":
            return "Stopped: nothing left of the limit of today"
        case "error" | None:
            return "Failed"
