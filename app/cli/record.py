"""`errand record`: writes all that a task did into a file, to be played again with `errand replay`."""

from pathlib import Path

from app.cli.options import Options
from app.cli.run import UsageError
from app.cli.tasks import find_task
from app.cli.terminal import Terminal
from app.client.launch import connect
from app.paths import Paths
from app.protocol.tasks import TaskIdParams
from app.protocol.wire import TASK_RECORD
from app.regular_file import check_place, written_whole


async def record(options: Options, paths: Paths, terminal: Terminal) -> int:
    file = Path(options.to)
    connection = await connect(paths, "errand record")
    try:
        task = await find_task(connection, options.task_id)
        lines = (await connection.call(TASK_RECORD, TaskIdParams(task_id=task.id))).lines
    finally:
        await connection.close()
    _write(file, "".join(f"{line}\n" for line in lines), paths)
    terminal.line(f"Wrote {file}: {len(lines)} lines. Play it with: errand replay {file}")
    terminal.note(
        "It holds what was said, file contents that the agent saw, and no key. Read it before you pass it on."
    )
    return 0


def _write(file: Path, text: str, paths: Paths) -> None:
    """For its owner alone, as the texts of a conversation are."""
    try:
        check_place(file, paths, overwrite=False)
        with written_whole(file, overwrite=False) as opened:
            opened.write(text.encode())
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}. Choose another place.") from error
