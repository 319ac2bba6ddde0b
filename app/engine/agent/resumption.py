"""Going on in the turn in which a task was interrupted: nothing that is on record is done a second time."""

import msgspec

from app.engine.agent.asks import AskDesk
from app.engine.agent.context import UNKNOWN_OUTCOME
from app.engine.agent.executions import Executions
from app.engine.agent.hooks import NOT_BEGUN, Block
from app.engine.agent.live import LiveTask
from app.engine.agent.open_turn import Known, OpenTurn
from app.engine.agent.unknown import ask_about, has_effects
from app.engine.cancel import CancelSignal
from app.engine.messages import AssistantMessage, Text
from app.engine.storage.executions import Started
from app.engine.tools.base import Access, Look, ToolResult
from app.protocol.asks import RUN_AGAIN, STOP

_SKIPPED = ToolResult((Text(UNKNOWN_OUTCOME),), summary="skipped, outcome unknown", is_error=True)


class Resumption:
    """Of one task. Without an open turn there is nothing to go on with: a new task, or one cut off in a model call."""

    def __init__(self, live: LiveTask, desk: AskDesk, executions: Executions, turn: OpenTurn | None) -> None:
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
            self._desk.leave(self._live.task.id)
        else:
            self._live.move("thinking", "resumed")
        return reply

    async def past_of(self, call_id: str, look: Look, cancel: CancelSignal) -> ToolResult | Block | None:
        """What an earlier engine knows of a call that is about to run: its result, or why it must not run.

        None lets it go on as any other call does, through the policy. One that only reads is no matter for a person.
        """
        past = self._turn.past(call_id) if self._turn is not None else None
        if isinstance(past, Known):
            self._executions.known(call_id, past.execution_id)
            return past.result
        if past is None or not has_effects(access := await look()):
            return None
        return await self._settle(past, access, cancel)

    async def _settle(self, started: Started, access: Access, cancel: CancelSignal) -> ToolResult | Block | None:
        settled = await self._desk.put(ask_about(started, access, self._live.task), self._live, cancel)
        if settled.answer == RUN_AGAIN:
            return None
        if settled.answer == STOP:
            self._live.set(msgspec.structs.replace(self._live.task, stopping=True, activity="stopping"))
            cancel.set(f"Stopped by {settled.answered_by}")
        return NOT_BEGUN if cancel.is_set else _SKIPPED
