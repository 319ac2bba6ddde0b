"""`errand tasks`, `stop`, `attach`, `resume`, `pause`, `mode`, `approvals`: tasks started elsewhere or earlier."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from errand.cli.arguments import APPROVE_HELP, FOLLOW_JSON_HELP, ID_HELP, FollowOptions, TaskIdOptions
from errand.cli.command import Command
from errand.cli.exit_codes import EXIT_CODES_TEXT, EXIT_ERROR, exit_code, json_result
from errand.cli.follow.answers import NoAnswerer
from errand.cli.follow.follower import TaskFollower
from errand.cli.follow.typed_lines import ATTACHED_HELP, approvals_text, change_approvals, completions, mode_text
from errand.cli.lookup import find_task
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.rendering.screen import TextScreen
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import columns, indent, one_line, padded, plain, short_id, time_ago, usage_line
from errand.client.connection import Connection
from errand.client.conversation.task_watcher import TaskWatcher
from errand.client.launch import connect
from errand.client.texts.tasks import is_answer, is_unfinished, neutral_text
from errand.protocol.tasks.groups import ApproveMode, DecidedMode, TaskStatus
from errand.protocol.tasks.methods import (
    TASK_LIST,
    TASK_PAUSE,
    TASK_RESUME,
    TASK_SET_MODE,
    TASK_STOP,
    TaskIdParams,
    TaskListParams,
    TaskSetModeParams,
)
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.translation import marked, tr

_TASK_JSON_HELP = marked("print the task as one JSON object")
_NO_ANSWER = tr(
    "errand: the engine does not respond. If it hangs, its watchdog ends it within "
    "seconds, and the next engine stops the task."
)
_PAGE = 500  # the engine's maximum
_ID_WIDTH = 8
_NARROWEST_PROMPT = 20
_MIN_PROMPT_LENGTH = 12
_STATES: dict[TaskStatus, str] = {
    "running": tr("running"),
    "thinking": tr("running"),
    "tool_executing": tr("running"),
    "waiting_user": tr("waiting for you"),
    "paused": tr("paused"),
    "interrupted": tr("interrupted"),
    "completed": tr("completed"),
    "cancelled": tr("stopped"),
    "error": tr("failed"),
}


class TasksOptions(CommandOptions, frozen=True, kw_only=True):
    active: Annotated[bool, Flag("--active", "show running tasks only")] = False
    limit: Annotated[int, Option("--limit", "show at most N (default: 20)")] = 20


async def list_tasks(options: TasksOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand tasks") as connection:
        tasks = await _tasks(connection, options.active, options.limit)
    none = tr("No running tasks.") if options.active else tr("No tasks yet.")
    listed = tasks if output.as_json else nested(tasks)
    lines = dict(zip((task.id for task in listed), task_lines(listed, output.width, output.style), strict=True))
    empty = tr("{none} Start one: errand run 'what to do'").format(none=none)
    output.each(listed, lambda task: [lines[task.id]], empty=empty)
    return 0


TASKS = Command(TasksOptions, list_tasks)


async def stop_task(options: TaskIdOptions, paths: Paths, output: CommandOutput) -> int:
    """Stop one task and wait until everything it started has ended."""
    async with await connect(paths, "errand stop", on_silence=lambda: output.note(_NO_ANSWER)) as connection:
        task = await find_task(connection, options.task_id)
        if task.outcome.ended_at is None:
            task = await _stop(connection, task, output)
        else:
            text = tr("Task {id} had already ended: {task}.")
            output.line(text.format(id=short_id(task.id), task=status_text(task)))
    output.json(task)
    return 0


STOP = Command(TaskIdOptions, stop_task, json_help=_TASK_JSON_HELP)


def nested(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks in their order, each followed by those of its sub-agents, oldest first."""
    task_ids = {task.id for task in tasks}
    below: dict[str | None, list[Task]] = {}
    for task in tasks:
        below.setdefault(task.origin.parent_id if task.origin.parent_id in task_ids else None, []).append(task)
    ordered: list[Task] = []
    waiting = below.pop(None, [])[::-1]
    while waiting:
        task = waiting.pop()
        ordered.append(task)
        waiting += below.pop(task.id, [])
    return ordered


def task_lines(tasks: Sequence[Task], width: int, style: Style) -> list[str]:
    """Return a line for each task with id, state, age, prompt and usage; narrow ones have no usage and no age."""
    states = [status_text(task) for task in tasks]
    ages = [time_ago((datetime.now(UTC) - task.started_at).total_seconds()) for task in tasks]
    tails = [usage_line(task, style) for task in tasks]
    state_width, age_width, tail_width = (max(map(columns, texts), default=0) for texts in (states, ages, tails))
    room = width - _ID_WIDTH - state_width - age_width - 6
    if room - tail_width - 2 < _NARROWEST_PROMPT:
        tails, tail_width = [""] * len(tails), -2
    if room < _MIN_PROMPT_LENGTH:
        room, ages, age_width = room + age_width + 2, [""] * len(ages), -2
    room = max(_MIN_PROMPT_LENGTH, room - tail_width - 2)
    lines: list[str] = []
    for task, state, age, tail in zip(tasks, states, ages, tails, strict=True):
        head = f"{short_id(task.id):<{_ID_WIDTH}}  {padded(state, state_width)}  "
        head += f"{age:>{age_width}}  " if age else ""
        title = (
            f"{indent(task.origin.depth - 1)}{style.sign('branch')} {task.origin.title}"
            if task.origin.depth
            else task.request.prompt
        )
        cell = padded(one_line(title, room), room)
        lines.append(f"{colored(task, head, style)}{cell}  {style.dim(tail)}".rstrip())
    return lines


def status_text(task: Task) -> str:
    """Return what a task does, or how it ended."""
    if task.activity.retry_at is not None and task.outcome.ended_at is None:
        return tr("until {time:%H:%M}").format(time=task.activity.retry_at.astimezone())
    if is_unfinished(task):
        return {
            "refused": tr("not allowed"),
            "cut": tr("cut short"),
            "no_answer": tr("no answer"),
            "no_work": tr("nothing done"),
        }.get(task.outcome.completion or "", tr("unfinished"))
    if neutral_text(task):
        return _neutral_status(task)
    limits = {
        "iteration_limit": tr("turn limit"),
        "time_limit": tr("time limit"),
        "budget_limit": tr("budget limit"),
        "token_limit": tr("token limit"),
        "day_limit": tr("daily limit"),
    }
    return limits.get(task.outcome.stop_reason or "") or _STATES[task.activity.status]


def _neutral_status(task: Task) -> str:
    if is_answer(task):
        return tr("answered")
    return tr("call failed") if task.progress.last_call_failed else tr("ended")


def colored(task: Task, text: str, style: Style) -> str:
    """Return the text in the colour of the task's state."""
    match task.activity.status:
        case "completed" if neutral_text(task):
            return text
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
    """List at most `limit` tasks, newest first."""
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


async def _stop(connection: Connection, task: Task, output: CommandOutput) -> Task:
    """Request the stop and show its progress: remaining processes, then ended ones. Returns the ended task."""
    start = connection.welcome
    screen = TextScreen(output.terminal)
    if not output.as_json:
        screen.add(task.conversation_id)
    watch = TaskWatcher(connection, screen, NoAnswerer(output.terminal))
    try:
        await watch.follow(task.conversation_id, after=start.head, epoch=start.epoch)
        await connection.call(TASK_STOP, TaskIdParams(task_id=task.id))
        await watch.until_ended([task.id])
        return watch.tasks[task.id]
    finally:
        watch.close()
        output.terminal.clear_status()


class FollowTaskOptions(FollowOptions, frozen=True, kw_only=True):
    task_id: Annotated[str, Argument("ID", ID_HELP)]


async def attach(options: FollowTaskOptions, paths: Paths, output: CommandOutput) -> int:
    """Show a task's past and further events, until it ends or the person leaves."""
    async with await connect(paths, "errand attach") as connection:
        task = await find_task(connection, options.task_id)
        if task.outcome.ended_at is not None or task.activity.status == "interrupted":
            return _report_not_running(task, output)
        follower = TaskFollower(connection, output.terminal, as_json=output.as_json, thinking=not options.no_thinking)
        if not output.interactive:
            return await follower.watch_only(task)
        from errand.cli.terminal.prompt import LivePrompt  # prompt_toolkit takes 90 ms

        history, commands = paths.home / "chat_history", completions(ATTACHED_HELP)
        return await follower.steer(task, LivePrompt(output.style, lambda: output.width, history, commands))


_ATTACH_EPILOG = f"{EXIT_CODES_TEXT[:-1]} or left at work with Ctrl+C."
ATTACH = Command(FollowTaskOptions, attach, epilog=_ATTACH_EPILOG, json_help=FOLLOW_JSON_HELP)


async def resume(options: FollowTaskOptions, paths: Paths, output: CommandOutput) -> int:
    """Resume a paused or interrupted task and follow it to its end, as `errand run` does."""
    async with await connect(paths, "errand resume") as connection:
        task = await find_task(connection, options.task_id)

        async def begin() -> Task:
            return (await connection.call(TASK_RESUME, TaskIdParams(task_id=task.id))).task

        return await TaskFollower(
            connection, output.terminal, as_json=output.as_json, thinking=not options.no_thinking
        ).run_to_end(begin, is_new=False)


RESUME = Command(FollowTaskOptions, resume, epilog=EXIT_CODES_TEXT, json_help=FOLLOW_JSON_HELP)


async def pause(options: TaskIdOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand pause") as connection:
        task = await find_task(connection, options.task_id)
        task = (await connection.call(TASK_PAUSE, TaskIdParams(task_id=task.id))).task
    name = short_id(task.id)
    text = tr("Task {name} pauses after its current step. Resume it: errand resume {name}").format(name=name)
    output.result(task, text)
    return 0


PAUSE = Command(TaskIdOptions, pause, json_help=_TASK_JSON_HELP)


def _report_not_running(task: Task, output: CommandOutput) -> int:
    code = exit_code(task) if task.outcome.ended_at is not None else EXIT_ERROR
    name = short_id(task.id)
    if task.outcome.ended_at is not None:
        output.note(tr("errand: task {name} has ended: {task}").format(name=name, task=status_text(task)))
    else:
        output.note(
            tr("errand: task {name} was interrupted when its engine ended. Resume it: errand resume {name}").format(
                name=name
            )
        )
    if output.as_json:
        output.terminal.line(json_result(task, code))
    elif task.outcome.summary:
        output.line(plain(task.outcome.summary))
    return code


class ModeOptions(TaskIdOptions, frozen=True, kw_only=True):
    mode: Annotated[DecidedMode, Argument(None, "`task` runs until the work is complete, `chat` ends with each reply")]


async def set_mode(options: ModeOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand mode") as connection:
        task = await find_task(connection, options.task_id)
        params = TaskSetModeParams(task_id=task.id, mode=options.mode)
        current = (await connection.call(TASK_SET_MODE, params)).task
    output.result(current, mode_text(task.id, current))
    return 0


MODE = Command(ModeOptions, set_mode, json_help=_TASK_JSON_HELP)


class ApprovalOptions(TaskIdOptions, frozen=True, kw_only=True):
    mode: Annotated[ApproveMode, Argument(None, APPROVE_HELP)]


async def set_approvals(options: ApprovalOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand approvals") as connection:
        task = await find_task(connection, options.task_id)
        changed = await change_approvals(connection, task.conversation_id, options.mode)
        text = await approvals_text(connection, options.mode)
    output.result(changed, text)
    return 0


APPROVALS = Command(ApprovalOptions, set_approvals, json_help=marked("print the conversation as one JSON object"))
