"""`errand attach`, `errand resume` and `errand pause`: a task that was begun elsewhere or earlier."""

from app.cli.figures import short_id
from app.cli.follow import Follower
from app.cli.options import Options
from app.cli.outcome import EXIT_ERROR, exit_code, result_line
from app.cli.plain import plain
from app.cli.tasks import find_task, status_words
from app.cli.terminal import Terminal
from app.client.launch import connect
from app.paths import Paths
from app.protocol.tasks import Task, TaskIdParams
from app.protocol.wire import TASK_PAUSE, TASK_RESUME


async def attach(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Show what a task has done and does, until it ends or one leaves it."""
    connection = await connect(paths, "errand attach")
    try:
        task = await find_task(connection, options.task_id)
        if task.ended_at is not None or task.status == "interrupted":
            return _not_under_way(task, options, terminal)
        return await Follower(connection, terminal, as_json=options.json).as_onlooker(task)
    finally:
        await connection.close()


async def resume(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Go on with a paused or interrupted task and follow it to its end, as `errand run` does."""
    connection = await connect(paths, "errand resume")
    try:
        task = await find_task(connection, options.task_id)

        async def begin() -> Task:
            return (await connection.call(TASK_RESUME, TaskIdParams(task_id=task.id))).task

        return await Follower(connection, terminal, as_json=options.json).to_its_end(begin, is_new=False)
    finally:
        await connection.close()


async def pause(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand pause")
    try:
        task = await find_task(connection, options.task_id)
        await connection.call(TASK_PAUSE, TaskIdParams(task_id=task.id))
    finally:
        await connection.close()
    name = short_id(task.id)
    terminal.line(f"Task {name} pauses when the step at hand is done. Go on with it: errand resume {name}")
    return 0


def _not_under_way(task: Task, options: Options, terminal: Terminal) -> int:
    code = exit_code(task) if task.ended_at is not None else EXIT_ERROR
    name = short_id(task.id)
    if task.ended_at is not None:
        terminal.note(f"errand: task {name} has ended: {status_words(task)}")
    else:
        terminal.note(f"errand: task {name} was interrupted when its engine ended. Go on with it: errand resume {name}")
    if options.json:
        terminal.line(result_line(task, code))
    elif task.summary:
        terminal.line(plain(task.summary))
    return code
