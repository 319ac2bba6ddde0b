"""`errand mode`: a task taken for a chat, or a chat for a task."""

import msgspec

from app.cli.figures import short_id
from app.cli.options import Options
from app.cli.tasks import find_task
from app.cli.terminal import Terminal
from app.client.launch import connect
from app.paths import Paths
from app.protocol.tasks import DecidedMode, Task, TaskSetModeParams
from app.protocol.wire import TASK_SET_MODE


async def set_mode(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand mode")
    try:
        task = await find_task(connection, options.task_id)
        params = TaskSetModeParams(task_id=task.id, mode=msgspec.convert(options.mode, DecidedMode))
        taken = (await connection.call(TASK_SET_MODE, params)).task
    finally:
        await connection.close()
    terminal.line(taken_words(task, taken))
    return 0


def taken_words(task: Task, taken: Task) -> str:
    """What came of it: `taken` is the task itself, or the one that goes on where it ended."""
    if taken.id != task.id:
        name = short_id(taken.id)
        return f"It goes on as task {name}. Follow it: errand attach {name}"
    if taken.mode == "chat":
        return "It is a chat from the end of this turn on: it ends with its next answer."
    return "It is a task from the end of this turn on: it ends when it says that it is complete."
