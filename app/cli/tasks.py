"""`errand tasks` and `errand stop`."""

from datetime import UTC, datetime

import msgspec

from app.cli.answers import NobodyAnswers
from app.cli.figures import account, ago, short_id
from app.cli.options import Options
from app.cli.plain import columns, one_line
from app.cli.run import UsageError
from app.cli.screen import PeopleScreen
from app.cli.style import Style
from app.cli.terminal import Terminal
from app.cli.watch import Watch
from app.client.connection import Connection
from app.client.endings import is_unfinished
from app.client.launch import connect
from app.paths import Paths
from app.protocol.tasks import Task, TaskIdParams, TaskListParams
from app.protocol.wire import TASK_LIST, TASK_STOP

MOST_SEARCHED = 500
_SILENT = (
    "errand: The engine does not answer. If it stands still, its watchdog ends it within some seconds, "
    "and the next one stops the task."
)
_PAGE = 500  # the longest that the engine gives


async def list_tasks(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand tasks")
    try:
        tasks = await _tasks(connection, options.active, options.limit)
    finally:
        await connection.close()
    if options.json:
        for task in tasks:
            terminal.line(msgspec.json.encode(task).decode())
        return 0
    if not tasks:
        terminal.line("No tasks yet. Start one: errand run 'what to do'")
    for task in tasks:
        terminal.line(task_row(task, terminal.width, terminal.style))
    return 0


async def stop_task(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Stop one task and wait until everything it started has ended."""
    connection = await connect(paths, "errand stop", on_silence=lambda: terminal.note(_SILENT))
    try:
        task = await find_task(connection, options.task_id)
        if task.ended_at is not None:
            terminal.line(f"Task {short_id(task.id)} had ended already: {status_words(task)}.")
            return 0
        await _stop(connection, task, terminal)
    finally:
        await connection.close()
    return 0


def task_row(task: Task, width: int, style: Style) -> str:
    """One task in one line: id, state, age, what it was asked, what it took."""
    age = ago((datetime.now(UTC) - task.started_at).total_seconds())
    head = f"{short_id(task.id)}  {status_words(task):<12} {age:>10}  "
    tail = account(task, style)
    room = max(12, width - columns(head) - columns(tail) - 2)
    return f"{_painted(task, head, style)}{one_line(task.prompt, room)}  {style.dim(tail)}"


def status_words(task: Task) -> str:
    if task.retry_at is not None and task.ended_at is None:
        return f"until {task.retry_at.astimezone():%H:%M}"
    if is_unfinished(task):
        return {"refused": "not allowed", "cut": "cut short"}.get(task.completion or "", "unfinished")
    limits = {
        "iteration_limit": "turn limit",
        "time_limit": "time limit",
        "budget_limit": "budget limit",
        "token_limit": "token limit",
        "day_limit": "day limit",
    }
    return limits.get(task.stop_reason or "", task.status.replace("_", " "))


def _painted(task: Task, text: str, style: Style) -> str:
    match task.status:
        case "completed":
            return style.amber(text) if is_unfinished(task) else style.green(text)
        case "error":
            return style.red(text)
        case "cancelled":
            return style.dim(text)
        case "waiting_user" | "paused" | "interrupted":
            return style.amber(text)
        case "running" | "thinking" | "tool_executing":
            return style.blue(text)


async def _tasks(connection: Connection, active: bool, limit: int) -> tuple[Task, ...]:
    """As many as there are up to `limit`, newest first."""
    tasks: list[Task] = []
    cursor = None
    while len(tasks) < limit:
        size = min(limit - len(tasks), _PAGE)
        page = await connection.call(TASK_LIST, TaskListParams(active=active, limit=size, cursor=cursor))
        tasks += page.tasks
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(tasks)


async def find_task(connection: Connection, part: str) -> Task:
    """Among the tasks under way first, then among the newest; raises `UsageError`."""
    active = await _tasks(connection, True, MOST_SEARCHED)
    if any(_matches(task, part) for task in active):
        return _chosen(active, part)
    return _chosen(await _tasks(connection, False, MOST_SEARCHED), part)


def _matches(task: Task, part: str) -> bool:
    return bool(part) and (task.id.startswith(part) or task.id.endswith(part))


def _chosen(tasks: tuple[Task, ...], part: str) -> Task:
    """The task whose id is, starts or ends with `part`; raises `UsageError` for none and for several."""
    for task in tasks:
        if task.id == part:
            return task
    found = [task for task in tasks if _matches(task, part)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"No task has the id {part!r}. See them with: errand tasks")
    names = ", ".join(short_id(task.id) for task in found[:5])
    raise UsageError(f"{len(found)} tasks match {part!r} ({names}). Give more of the id.")


async def _stop(connection: Connection, task: Task, terminal: Terminal) -> None:
    """Ask for the stop and show how it goes: what is still running, then what was ended."""
    start = connection.welcome
    screen = PeopleScreen(terminal)
    screen.add(task.conversation_id)
    watch = Watch(connection, screen, NobodyAnswers(terminal))
    try:
        await watch.follow(task.conversation_id, after=start.head, epoch=start.epoch)
        await connection.call(TASK_STOP, TaskIdParams(task_id=task.id))
        await watch.until_ended([task.id])
    finally:
        watch.close()
        terminal.clear_status()
