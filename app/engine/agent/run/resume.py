"""Resumes inside an interrupted turn.

Recorded replies and results are used again; calls with unknown outcome are asked about (decision 7).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from app.engine.agent.history.conversion import UNKNOWN_OUTCOME, result_of
from app.engine.agent.history.visible_history import summary_of
from app.engine.agent.loop.hooks import NOT_BEGUN, ToolRefusal
from app.engine.agent.run.control_tools import TaskComplete
from app.engine.agent.run.pending_asks import PendingAsks
from app.engine.agent.run.recorder import ToolExecutionLog
from app.engine.agent.run.task_state import TaskState
from app.engine.core.cancel import CancelSignal
from app.engine.core.ids import new_id
from app.engine.core.messages import AssistantMessage, ModelMessage, Text
from app.engine.storage.records.executions import ExecutionEnd, ExecutionStart, StoredExecution
from app.engine.tools.base import Access, AccessLookup, ToolResult
from app.protocol.asks import RUN_AGAIN, SKIP, STOP, Ask, UnknownCall
from app.protocol.blocks import ToolResultBlock
from app.protocol.conversations import Node
from app.protocol.tasks import Task

_TEXT = (
    "The engine was killed while this was under way. It may have taken effect in part, in whole, or not at all: "
    "look first, then choose."
)

_SKIPPED = ToolResult((Text(UNKNOWN_OUTCOME),), summary="skipped, outcome unknown", is_error=True)


def has_effects(access: Access) -> bool:
    """A call that only reads does no harm a second time."""
    return access.tier in ("write", "run")


def unknown_outcome_ask(started: ExecutionStart, access: Access, task: Task) -> Ask:
    """Asks the same about the same call, whichever engine raises it.

    `access` is of the call as it would run again, and it alone is shown: the record says only that it was begun.
    """
    return Ask(
        id=new_id("ask"),
        task_id=task.id,
        conversation_id=task.conversation_id,
        owner=task.owner,
        kind="unknown",
        text=_TEXT,
        created_at=datetime.now(UTC),
        choices=(RUN_AGAIN, SKIP, STOP),
        call_id=started.call_id,
        unknown=UnknownCall(
            execution_id=started.execution_id,
            call_id=started.call_id,
            tool=started.tool,
            text=access.text,
            started_at=started.at,
            command=access.command,
        ),
    )


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that has its result. `execution_id` is empty for one that had no record of its own."""

    result: ToolResult
    execution_id: str = ""


RecordedCalls: TypeAlias = RecordedCall | ExecutionStart


class InterruptedTurn:
    """`history` is what the model had read before. `stored` counts the messages of the turn that have their nodes."""

    def __init__(
        self, reply: AssistantMessage, history: tuple[ModelMessage, ...], past: Mapping[str, RecordedCalls], stored: int
    ) -> None:
        self.reply = reply
        self.history = history
        self.stored = stored
        self._past: Mapping[str, RecordedCalls] = past
        self._is_told = False

    def take_reply(self) -> AssistantMessage | None:
        """The reply, once. What is known of its calls is past when the next one is asked for."""
        if self._is_told:
            self._past = {}
            return None
        self._is_told = True
        return self.reply

    def past(self, call_id: str) -> RecordedCalls | None:
        """The result of a call, or that it was started and its outcome is not known; None if it was not begun."""
        return self._past.get(call_id)


def last_reply(path: Sequence[Node], task_id: str) -> int | None:
    """Where on the path the reply stands that the task was working on: nothing was said or summarised since."""
    for index in range(len(path) - 1, -1, -1):
        node = path[index]
        if node.role == "user" or summary_of(node) is not None:
            return None
        if node.role == "assistant":
            return index if node.status == "complete" and node.task_id == task_id else None
    return None


def recorded_calls(
    results: Sequence[Node], executions: Sequence[StoredExecution], turn: int
) -> dict[str, RecordedCalls]:
    """What is known of the calls of a turn, from the nodes of their results and from the record of what ran."""
    past: dict[str, RecordedCalls] = {}
    for execution in executions:
        started, finished = execution.started, execution.finished
        if started.turn == turn:
            past[started.call_id] = _of_record(finished) if finished is not None else started
    for node in results:
        for block in node.blocks:
            # The call that ends a task is made again: it touches nothing, and the end hangs on it.
            if isinstance(block, ToolResultBlock) and (block.tool != TaskComplete.name or block.is_error):
                past[block.call_id] = RecordedCall(result_of(block), block.execution_id)
    return past


def _of_record(finished: ExecutionEnd) -> RecordedCall:
    result = ToolResult((Text(finished.text),), finished.details, finished.summary, finished.is_error)
    return RecordedCall(result, finished.execution_id)


class TurnReplay:
    """Of one task. Without an open turn there is nothing to go on with: a new task, or one cut off in a model call."""

    def __init__(
        self, live: TaskState, desk: PendingAsks, executions: ToolExecutionLog, turn: InterruptedTurn | None
    ) -> None:
        self._live = live
        self._desk = desk
        self._executions = executions
        self._turn = turn

    def take_reply(self) -> AssistantMessage | None:
        """The reply of the open turn, in place of the first model call. With the next call that turn is over."""
        if self._turn is None:
            return None
        reply = self._turn.take_reply()
        if reply is None:
            self._turn = None
            self._desk.drop_task(self._live.task.id)
        else:
            self._live.move("thinking", "resumed")
        return reply

    async def past_of(self, call_id: str, look: AccessLookup, cancel: CancelSignal) -> ToolResult | ToolRefusal | None:
        """What an earlier engine knows of a call that is about to run: its result, or why it must not run.

        None lets it go on as any other call does, through the policy. One that only reads is no matter for a person.
        """
        past = self._turn.past(call_id) if self._turn is not None else None
        if isinstance(past, RecordedCall):
            self._executions.known(call_id, past.execution_id)
            return past.result
        if past is None or not has_effects(access := await look()):
            return None
        return await self._settle(past, access, cancel)

    async def _settle(
        self, started: ExecutionStart, access: Access, cancel: CancelSignal
    ) -> ToolResult | ToolRefusal | None:
        settled = await self._desk.raise_and_wait(
            unknown_outcome_ask(started, access, self._live.task), self._live, cancel
        )
        if settled.answer == RUN_AGAIN:
            return None
        if settled.answer == STOP:
            self._live.set(msgspec.structs.replace(self._live.task, stopping=True, activity="stopping"))
            cancel.set(f"Stopped by {settled.answered_by}")
        return NOT_BEGUN if cancel.is_set else _SKIPPED
