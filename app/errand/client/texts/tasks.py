"""What a task does, how it ended, and the state of its to-do list."""

from errand.client.safe_text import escape_hidden_line
from errand.protocol.events import PromptReading
from errand.protocol.tasks.groups import Queued, TodoItem, TodoStatus
from errand.protocol.tasks.task import Task
from errand.text.translation import tr, trn

TODO_STATES: dict[TodoStatus, str] = {"pending": tr("To do"), "in_progress": tr("In progress"), "done": tr("Done")}


def tool_activity(task: Task) -> str:
    """Return what a task does that waits for a tool, as the tool declares it: `running a command`."""
    if task.activity.detail:
        return tr(task.activity.detail)
    if not task.activity.current_tool:
        return tr("using a tool")
    return tr("using {tool}").format(tool=escape_hidden_line(task.activity.current_tool))


def reading_text(reading: PromptReading) -> str:
    """Return how much of a request the model server has read; empty once it has read all."""
    if reading.processed >= reading.total:
        return ""
    return tr("reading {processed:,} of {total:,} tokens").format(processed=reading.processed, total=reading.total)


def is_unfinished(task: Task) -> bool:
    """Return True if the task ended without evidence that the work is done."""
    return task.outcome.stop_reason == "completed" and task.outcome.completion in (
        "undeclared",
        "no_work",
        "refused",
        "cut",
        "no_answer",
    )


def unfinished_text(task: Task) -> str:
    """Return the reason, for a task that `is_unfinished`."""
    match task.outcome.completion:
        case "cut":
            return tr("Ended: the last reply was cut off")
        case "refused":
            return tr("Ended: nothing it tried was allowed")
        case "no_answer":
            return tr("Ended: the last reply is not an answer")
        case "no_work":
            return tr("Ended: no tool was used, so nothing was done")
        case _:
            return tr("Ended without confirming that it's done")


def is_answer(task: Task) -> bool:
    """Return True if the task ended with an answer, and no call of it changed anything or failed last."""
    if task.outcome.stop_reason != "completed":
        return False
    match task.outcome.completion:
        case "answered":
            return True
        case "declared" | "replied":
            return task.outcome.changed_nothing and not task.progress.last_call_failed
        case _:
            return False


def neutral_text(task: Task) -> str:
    """Return how a task ended that is neither a success nor a failure; empty for all others.

    No call changed anything, it ended after a failed call, or it names what no call touched. Whoever chose a chat
    expects no change.
    """
    if is_answer(task):
        if task.options.mode == "chat":
            return tr("Answered")
        return (
            tr("Answered, no tool used") if task.outcome.completion == "answered" else tr("Answered, nothing changed")
        )
    if task.outcome.stop_reason != "completed" or task.outcome.completion not in ("declared", "replied"):
        return ""
    if task.progress.last_call_failed:
        return tr("Ended after a failed call")
    return tr("Ended") if task.outcome.untouched else ""


def untouched_text(task: Task) -> str:
    """Return what the last words of a task name, and no call; empty if there is nothing."""
    names = ", ".join(map(escape_hidden_line, task.outcome.untouched))
    return tr("Named, but in no call: {names}").format(names=names) if names else ""


def refused_text(task: Task) -> str:
    """Return the number of refused calls; empty if there are none."""
    return (
        trn("{n} call not allowed", "{n} calls not allowed", task.progress.refused_calls)
        if task.progress.refused_calls
        else ""
    )


def is_all_done(items: tuple[TodoItem, ...]) -> bool:
    return all(item.status == "done" for item in items)


def todo_text(items: tuple[TodoItem, ...]) -> str:
    """Return the progress of a to-do list: `3 of 7 done`."""
    done = sum(item.status == "done" for item in items)
    if done == len(items):
        return trn("{n} done", "All {n} done", done)
    return tr("{done} of {total} done").format(done=done, total=len(items))


def current_item(items: tuple[TodoItem, ...]) -> TodoItem | None:
    """Return the step in progress, else the next one; None if all are done."""
    current = next((item for item in items if item.status == "in_progress"), None)
    return current or next((item for item in items if item.status == "pending"), None)


def unread_messages(task: Task) -> tuple[Queued, ...]:
    """Return the messages that an ended task has not read, in reading order; none if another task reads them."""
    if task.outcome.ended_at is None or task.outcome.stop_reason == "completed":
        return ()
    return tuple(sorted(task.queue, key=lambda entry: entry.kind != "steer"))
