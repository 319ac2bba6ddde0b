"""The durable record of a task's tool calls: the intent before, the result after."""

from datetime import UTC, datetime

from app.engine.agent.events import ToolExecutionEnd
from app.engine.ids import new_id
from app.engine.messages import Text, ToolCall
from app.engine.storage import executions
from app.engine.storage.journal import Journal
from app.engine.tools.base import Access


class Executions:
    """Writes the audit rows of one task. A call that never ran (unknown tool, wrong arguments, refused) has none."""

    def __init__(self, task_id: str, journal: Journal) -> None:
        self._task_id = task_id
        self._journal = journal
        self._open: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._ended: dict[str, tuple[str, str]] = {}

    def started(self, call: ToolCall, access: Access, turn: int, node_id: str) -> None:
        """Put the intent; the caller waits for it to be committed."""
        self._open[call.id] = new_id("exec")
        row = executions.Started(
            execution_id=self._open[call.id],
            task_id=self._task_id,
            turn=turn,
            node_id=node_id,
            call_id=call.id,
            tool=call.name,
            arguments=call.arguments,
            at=datetime.now(UTC),
            text=access.text,
        )
        self._journal.put(executions.started(row))

    def known(self, call_id: str, execution_id: str) -> None:
        """The call ran in an earlier engine: its result is on record already."""
        self._known[call_id] = execution_id

    def ended(self, event: ToolExecutionEnd) -> None:
        """Put the result of a call that was started; any call's summary is kept for its node."""
        execution_id = self._open.pop(event.call_id, "")
        known = self._known.pop(event.call_id, "")
        self._ended[event.call_id] = (execution_id or known, event.result.summary)
        if not execution_id:
            return
        row = executions.Finished(
            execution_id=execution_id,
            task_id=self._task_id,
            text="".join(block.text for block in event.result.content if isinstance(block, Text)),
            summary=event.result.summary,
            details=event.result.details,
            is_error=event.result.is_error,
            at=datetime.now(UTC),
        )
        self._journal.put(executions.finished(row))

    def take(self, call_id: str) -> tuple[str, str]:
        """Execution id and summary of an ended call, for its node; empty for one that never ran."""
        return self._ended.pop(call_id, ("", ""))
