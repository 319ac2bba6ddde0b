"""Detects repeated identical calls: tells the model, then asks the user, then ends the task."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from app.engine.agent.loop.events import AgentEvent, MessageEnd, ToolExecutionStart, TurnStart
from app.engine.agent.loop.features import Feature
from app.engine.agent.loop.hooks import FinishedCall, FinishedTurn, PendingCall, TurnDecision
from app.engine.agent.prompt.texts import prompt_text
from app.engine.agent.run.pending_asks import can_be_asked
from app.engine.agent.run.task_context import TaskContext
from app.engine.core.cancel import CancelSignal, stopped_by
from app.engine.core.ids import new_id
from app.engine.core.messages import AssistantMessage, Message, Text, UserMessage
from app.engine.tools.base import ToolResult
from app.engine.tools.control_tools import AskUser
from app.protocol.asks import Ask
from app.protocol.base import JsonObject
from app.protocol.notices import NoticeData, RepeatedCall, TaskStuck

_HINT_AT = 3
_ASK_EVERY = 5
_END_AT = 2 * _ASK_EVERY
_LONGEST_CALL = 160
_CUT = "(cut at the limit of the reply)"
_ABOUT_TO = "It is about to make the same call for the"
_TRIED = "It has tried to make the same call, which cannot be made, for the"


class RepeatDetector(Feature):
    """`history` are the messages before the task; `tell` adds a notice to the conversation.

    `end` is called with a notice if nobody can be asked and the task must end with this turn.
    """

    def __init__(
        self,
        context: TaskContext,
        history: Iterable[Message],
        publish: Callable[[NoticeData], None],
        end: Callable[[TaskStuck], None],
    ) -> None:
        self._state = context.state
        self._asks = context.asks
        self._publish = publish
        self._end = end
        self._is_cut = False
        self._call = ""
        self._count = 0
        self._counts: dict[str, int] = {}
        self._remark: RepeatedCall | None = None
        self._is_due = False
        for message in history:
            self._read(message)

    async def on_event(self, event: AgentEvent) -> None:
        match event:
            case MessageEnd(message=UserMessage()):
                self._reset()
            case MessageEnd(message=AssistantMessage(stop_reason=reason)):
                self._is_cut = reason == "length"
            case ToolExecutionStart(call_id=call_id, tool=tool, arguments=arguments):
                self._begin(call_id, tool, arguments)
            case TurnStart():
                self._counts.clear()
                self._publish_remark()
            case _:
                pass

    async def before_tool_call(self, pending: PendingCall, cancel: CancelSignal) -> PendingCall:
        """Ask the user before a repeated call."""
        await self._ask_if_due(pending.call.id, cancel)
        return pending

    async def after_tool_call(self, finished: FinishedCall, cancel: CancelSignal) -> ToolResult:
        """Append a hint for the model to the result."""
        result = finished.result
        if self._counts.get(finished.pending.call.id) != _HINT_AT or "repeated" in result.marks:  # from a record
            return result
        hint = Text(f"\n\n{prompt_text('repeated')}")
        return replace(result, content=(*result.content, hint), marks=(*result.marks, "repeated"))

    async def finish_turn(self, turn: FinishedTurn, cancel: CancelSignal) -> TurnDecision | None:
        """Ask the user about repeated calls that could not be made."""
        await self._ask_if_due(None, cancel)
        return None

    def _read(self, message: Message) -> None:
        if isinstance(message, UserMessage):
            self._reset()
        elif isinstance(message, AssistantMessage):
            self._is_cut = message.stop_reason == "length"
            for call in message.tool_calls:
                self._add(call.name, call.arguments)

    def _begin(self, call_id: str, tool: str, arguments: JsonObject) -> None:
        self._add(tool, arguments)
        self._counts[call_id] = self._count
        self._is_due = self._count > 0 and self._count % _ASK_EVERY == 0
        if self._count == _HINT_AT:
            self._remark = RepeatedCall(count=self._count, call=_shown(self._call))

    def _add(self, tool: str, arguments: JsonObject) -> None:
        if tool == AskUser.name:  # the user's answer ends the repetition
            self._reset()
            return
        # The arguments of a truncated call depend on the output limit: they cannot be compared.
        shown = _CUT if self._is_cut else msgspec.json.encode(arguments, order="deterministic").decode()
        call = f"{tool} {shown}"
        self._count = self._count + 1 if call == self._call else 1
        self._call = call

    def _reset(self) -> None:
        self._call, self._count = "", 0

    def _publish_remark(self) -> None:
        """Publish the notice. Call it at the start of a turn: later it would separate a reply from its results."""
        if self._remark is not None:
            self._publish(self._remark)
            self._remark = None

    async def _ask_if_due(self, call_id: str | None, cancel: CancelSignal) -> None:
        """Ask the user. If nobody can be asked, only the tenth call that cannot be made ends the task.

        Valid repeated calls may be polling for something; the limits of the task end them.
        """
        if not self._is_due or cancel.is_set:
            return
        self._is_due = False
        if can_be_asked(self._state.task):
            await self._ask(call_id, cancel)
        elif call_id is None and self._count >= _END_AT:
            self._end(TaskStuck(count=self._count, call=_shown(self._call)))

    async def _ask(self, call_id: str | None, cancel: CancelSignal) -> None:
        ask = Ask(
            id=new_id("ask"),
            task_id=self._state.task.id,
            conversation_id=self._state.task.conversation_id,
            owner=self._state.task.owner,
            kind="limit",
            text=f"{_ABOUT_TO if call_id is not None else _TRIED} {self._count}th time in a row: {_shown(self._call)}",
            created_at=datetime.now(UTC),
            choices=("Go on", "Stop here"),
            call_id=call_id,
        )
        settled = await self._asks.raise_and_wait(ask, self._state, cancel)
        if settled.status == "answered" and not settled.allowed:
            cancel.set(stopped_by(settled.answered_by))


def _shown(call: str) -> str:
    return call if len(call) <= _LONGEST_CALL else f"{call[: _LONGEST_CALL - 1]}…"
