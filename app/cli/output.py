"""`errand output`: the tool calls of a task, and all that one of them gave."""

import codecs
from base64 import b64decode

import msgspec

from app.cli.options import Options
from app.cli.plain import one_line, plain
from app.cli.run import UsageError
from app.cli.tasks import find_task
from app.cli.terminal import Terminal
from app.client.connection import Connection
from app.client.figures import file_size
from app.client.launch import connect
from app.paths import Paths
from app.protocol.executions import Execution, ExecutionListParams, ExecutionOutputParams, OutputName
from app.protocol.wire import EXECUTION_LIST, EXECUTION_OUTPUT


async def output(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand output")
    try:
        task = await find_task(connection, options.task_id)
        found = (await connection.call(EXECUTION_LIST, ExecutionListParams(task_id=task.id))).executions
        if options.number is None:
            _list(found, options, terminal)
        elif not 1 <= options.number <= len(found):
            raise UsageError(f"This task has {len(found)} tool calls. See them with: errand output {options.task_id}")
        else:
            await _show(connection, found[options.number - 1], terminal)
    finally:
        await connection.close()
    return 0


def _list(found: tuple[Execution, ...], options: Options, terminal: Terminal) -> None:
    if not found and not options.json:
        terminal.line("This task has run no tool.")
    for number, execution in enumerate(found, 1):
        if options.json:
            terminal.line(msgspec.json.encode(execution).decode())
            continue
        style = terminal.style
        about = one_line(execution.about or execution.tool, max(20, terminal.width - 40))
        gave = execution.summary if execution.ended_at is not None else "no result on record"
        largest = max((output.size for output in execution.outputs), default=0)
        terminal.line(f"{number:>3}  {about}  {style.dim(style.join(one_line(gave, 60), file_size(largest)))}")


async def _show(connection: Connection, execution: Execution, terminal: Terminal) -> None:
    """Streams that were kept whole, or else the text that the model has read."""
    whole: list[OutputName] = [output.name for output in execution.outputs if output.name != "text"]
    for name in whole or ["text"]:
        if len(whole) > 1:
            terminal.note(f"errand: {name}")
        await _write(connection, execution.id, name, terminal)


async def _write(connection: Connection, execution_id: str, name: OutputName, terminal: Terminal) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a piece may end within a character
    offset: int | None = 0
    while offset is not None:
        params = ExecutionOutputParams(execution_id=execution_id, name=name, offset=offset)
        piece = await connection.call(EXECUTION_OUTPUT, params)
        text = decoder.decode(b64decode(piece.data), final=piece.next_offset is None)
        terminal.write_raw(plain(text) if terminal.interactive else text)
        offset = piece.next_offset
