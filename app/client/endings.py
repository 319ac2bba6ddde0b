"""What an end that is no success is called in every face."""

from app.client.figures import count
from app.protocol.tasks import Task


def is_unfinished(task: Task) -> bool:
    """It came to its end, but not because the work is known to be done."""
    return task.stop_reason == "completed" and task.completion in ("undeclared", "refused", "cut")


def unfinished_words(task: Task) -> str:
    """Why, of a task that `is_unfinished`."""
    match task.completion:
        case "cut":
            return "ended, its last reply was cut short"
        case "refused":
            return "ended, nothing it wanted to do was allowed"
        case _:
            return "ended without saying that it is done"


def refused_words(task: Task) -> str:
    """How much was not allowed; empty for nothing."""
    return f"{count(task.refused_calls, 'call')} not allowed" if task.refused_calls else ""
