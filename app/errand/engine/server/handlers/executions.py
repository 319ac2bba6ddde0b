"""Handlers of tool executions and their output: long streams are read from their files in pieces."""

import asyncio
from base64 import b64encode
from pathlib import Path

from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.engine.storage.records import executions
from errand.engine.storage.records.executions import ExecutionEnd
from errand.engine.tools.call_display import summary_with_time
from errand.protocol.executions import (
    EXECUTION_LIST,
    EXECUTION_OUTPUT,
    Execution,
    ExecutionListParams,
    ExecutionListResult,
    ExecutionOutcome,
    ExecutionOutput,
    ExecutionOutputParams,
    ExecutionOutputResult,
    OutputName,
)
from errand.system.regular_file import open_regular

_MAX_OFFSET_BYTES = 2**48
_PIECE = 256 * 1024
_FILES: tuple[tuple[OutputName, str], ...] = (("stdout", "stdout_file"), ("stderr", "stderr_file"))


async def list_executions(
    services: Services, session: ClientSession, params: ExecutionListParams
) -> ExecutionListResult:
    if await services.database.tasks.get(params.task_id) is None:
        raise NotFound(f"There is no task {params.task_id!r}.")
    executions = await services.database.executions.of_task(params.task_id)
    return ExecutionListResult(
        executions=await asyncio.to_thread(
            lambda: tuple(_shown(execution, services.paths.outputs) for execution in executions)
        )
    )


async def output(services: Services, session: ClientSession, params: ExecutionOutputParams) -> ExecutionOutputResult:
    execution = await services.database.executions.get(params.execution_id)
    if execution is None or execution.finished is None:
        raise NotFound(f"There is no result of a tool call {params.execution_id!r}.")
    if not 0 <= params.offset <= _MAX_OFFSET_BYTES:
        raise InvalidParams("offset: a place in the output, from 0.")
    if params.name == "text":
        text = execution.finished.text.encode()
        data, size = text[params.offset :][:_PIECE], len(text)
    else:
        files = await asyncio.to_thread(_files, execution.finished, services.paths.outputs)
        if (file := files.get(params.name)) is None:
            raise NotFound(f"No {params.name} of this call is kept apart: the text has all of it.")
        data, size = await asyncio.to_thread(_piece, file, params.offset)
    end = params.offset + len(data)
    return ExecutionOutputResult(
        data=b64encode(data).decode(), size=size, next_offset=end if data and end < size else None
    )


def _shown(execution: executions.StoredExecution, outputs: Path) -> Execution:
    started, finished = execution.started, execution.finished
    return Execution(
        id=started.execution_id,
        task_id=started.task_id,
        node_id=started.node_id,
        turn=started.turn,
        tool=started.tool,
        arguments=started.arguments,
        about=started.text,
        started_at=started.at,
        ended_at=finished.at if finished is not None else None,
        is_error=finished is not None and finished.is_error,
        outcome=_outcome(execution),
        summary=summary_with_time(finished.summary, finished.details) if finished is not None else "",
        outputs=_outputs(finished, outputs) if finished is not None else (),
    )


def _outcome(execution: executions.StoredExecution) -> ExecutionOutcome:
    finished = execution.finished
    if execution.started.tier == "refused":
        return "refused"
    if finished is None:
        return "open"
    if "stopped" in finished.marks:
        return "stopped"
    return "failed" if finished.is_error else "done"


def _outputs(finished: ExecutionEnd, outputs: Path) -> tuple[ExecutionOutput, ...]:
    files = _files(finished, outputs).items()
    text = ExecutionOutput(name="text", size=len(finished.text.encode()))
    return (text, *(ExecutionOutput(name=name, size=file.stat().st_size) for name, file in files))


def _files(finished: ExecutionEnd, outputs: Path) -> dict[OutputName, Path]:
    """Return the existing files of long streams.

    Only files in the task's folder: an imported record may name any path.
    """
    folder = outputs / finished.task_id
    stored = {file.name: file for file in folder.iterdir()} if folder.parent == outputs and folder.is_dir() else {}
    files: dict[OutputName, Path] = {}
    for name, key in _FILES:
        path = (finished.details or {}).get(key)
        if isinstance(path, str) and (file := stored.get(Path(path).name)) is not None:
            files[name] = file
    return files


def _piece(file: Path, offset: int) -> tuple[bytes, int]:
    try:
        with open_regular(file, follow_links=False) as opened:
            opened.seek(offset)
            return opened.read(_PIECE), file.stat().st_size
    except OSError as error:
        raise NotFound(f"The output is not there any more: {error.strerror}.") from error


HANDLERS = (Route(EXECUTION_LIST, list_executions), Route(EXECUTION_OUTPUT, output))
