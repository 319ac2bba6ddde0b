"""Tool executions: the append-only audit log, one record for each call, written before it runs and after it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from sqlalchemy import bindparam, select
from sqlalchemy.sql.expression import Executable

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, from_json, to_json, to_text
from errand.engine.storage.sql.tables import tool_executions
from errand.protocol.base import JsonObject
from errand.protocol.blocks import ResultMark

_ADD = tool_executions.insert()
_columns = select(tool_executions.c.phase, tool_executions.c.body)
_OF_TASK = _columns.where(tool_executions.c.task_id == bindparam("task_id")).order_by(tool_executions.c.number)
# What the model wrote is escaped in the body, so that no argument looks like this.
_RAN = (tool_executions.c.phase == "started", tool_executions.c.body.not_like('%"tier":"refused"%'))
_NEWEST = select(tool_executions.c.body).where(*_RAN).order_by(tool_executions.c.number.desc()).limit(bindparam("most"))
_NEWEST_JUDGED = _NEWEST.where(tool_executions.c.body.not_like('%"tier":"free"%'))
_OF_EXECUTION = _columns.where(tool_executions.c.execution_id == bindparam("execution_id")).order_by(
    tool_executions.c.number
)

ExecutionTier: TypeAlias = Literal["", "free", "read", "write", "run", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionStart:
    """A call about to run, or one that was refused. `node_id` is the node it follows, `text` describes the call.

    `address`, `service` and `language` (of code) are effects of calls that are neither command nor file; `operation`
    is theirs. `working_dir` is where a command runs. They depend on what was open then, so that the arguments alone do
    not tell them. `tier` is what it was approved as; "refused" for a call that never ran: unknown, malformed, denied or
    skipped. Rows of earlier versions have none.
    """

    execution_id: str
    task_id: str
    turn: int
    node_id: str
    call_id: str
    tool: str
    arguments: JsonObject
    at: datetime
    text: str = ""
    address: str = ""
    service: str = ""
    language: str = ""
    operation: str = ""
    working_dir: str = ""
    tier: ExecutionTier = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionEnd:
    """The result of a call. `text` is what the model reads."""

    execution_id: str
    task_id: str
    text: str
    summary: str
    details: JsonObject | None
    is_error: bool
    at: datetime
    marks: tuple[ResultMark, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredExecution:
    """`finished` is None while the call runs, and permanently after a crash: the outcome is unknown then."""

    started: ExecutionStart
    finished: ExecutionEnd | None


def started(row: ExecutionStart) -> Write:
    """Return the intent: put and flushed before the tool runs."""
    return _write(row, "started")


def finished(row: ExecutionEnd) -> Write:
    return _write(row, "finished")


def _write(row: ExecutionStart | ExecutionEnd, phase: str) -> Write:
    return Write(
        _ADD,
        {
            "execution_id": row.execution_id,
            "phase": phase,
            "task_id": row.task_id,
            "at": to_text(row.at),
            "body": to_json(row),
        },
    )


class ExecutionStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, execution_id: str) -> StoredExecution | None:
        executions = await self._read(_OF_EXECUTION, {"execution_id": execution_id})
        return executions[0] if executions else None

    async def of_task(self, task_id: str) -> tuple[StoredExecution, ...]:
        """Return the executions of a task in the order of their start."""
        return await self._read(_OF_TASK, {"task_id": task_id})

    async def newest(self, most: int) -> tuple[ExecutionStart, ...]:
        """Return the calls of all tasks that ran last, newest first."""
        return await self._reader.structs(_NEWEST, ExecutionStart, {"most": most})

    async def newest_judged(self, most: int) -> tuple[ExecutionStart, ...]:
        """`newest` without calls that no rule judges."""
        return await self._reader.structs(_NEWEST_JUDGED, ExecutionStart, {"most": most})

    async def unfinished(self, task_id: str) -> tuple[StoredExecution, ...]:
        """Executions without a recorded result."""
        return tuple(execution for execution in await self.of_task(task_id) if execution.finished is None)

    async def _read(self, statement: Executable, parameters: dict[str, str]) -> tuple[StoredExecution, ...]:
        begun: list[ExecutionStart] = []
        ended: dict[str, ExecutionEnd] = {}
        for row in await self._reader.rows(statement, parameters):
            if row.phase == "started":
                begun.append(from_json(row.body, ExecutionStart))
            else:
                end = from_json(row.body, ExecutionEnd)
                ended[end.execution_id] = end
        return tuple(StoredExecution(execution, ended.get(execution.execution_id)) for execution in begun)
