"""Detects repeated calls and cycles of two or three: tells the model, then asks the user, then ends the task.

A cycle counts only while its results repeat as well; a direct repetition counts whatever the results are.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec

from errand.engine.agent.loop.events import AgentEvent, MessageEnd, ToolExecutionEnd, ToolExecutionStart, TurnStart
from errand.engine.agent.loop.features import Feature
from errand.engine.agent.loop.hooks import FinishedCall, FinishedTurn, PendingCall, TurnDecision
from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.agent.run.pending_asks import can_be_asked
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.core.cancel import CancelSignal, stopped_by
from errand.engine.core.ids import new_id
from errand.engine.core.messages import AssistantMessage, Message, Text, ToolResultMessage, UserContent, UserMessage
from errand.engine.tools.control.task_messages import AskUser
from errand.engine.tools.results import ToolResult
from errand.protocol.asks import Ask
from errand.protocol.base import JsonObject
from errand.protocol.notices import NoticeData, RepeatedCall, TaskStuck
from errand.text.redaction import redact, short_line

_HINT_AT = 3
_ASK_EVERY = 5
_END_AT = 2 * _ASK_EVERY
_MAX_CALL_LENGTH = 160
_CUT = "(cut at the limit of the reply)"
_PERIODS = (1, 2, 3)
_CALLS = {1: "call", 2: "two calls", 3: "three calls"}


@dataclass(slots=True)
class _Call:
    """`result` is a hash, None while it is not known. `is_made` is false for a call that cannot be made."""

    id: str
    text: str
    is_made: bool
    result: int | None = None


@dataclass(frozen=True, slots=True)
class _Repetition:
    """The newest call is part of the `count`th round of `calls`: as its first one, its last one, or both."""

    count: int
    calls: tuple[_Call, ...]
    is_first: bool
    is_last: bool

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(_shown(call.text) for call in self.calls)


class _RecentCalls:
    """The calls of the current turn and the few before it.

    For each period, counts how many calls in a row were equal to the call that many places before.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._calls: list[_Call] = []
        self._matches = dict.fromkeys(_PERIODS, 0)

    def begin_turn(self) -> None:
        del self._calls[: -max(_PERIODS)]

    def add(self, call: _Call) -> None:
        for period in _PERIODS:
            is_same = len(self._calls) >= period and self._calls[-period].text == call.text
            self._matches[period] = self._matches[period] + 1 if is_same else 0
        self._calls.append(call)

    def mark_made(self, call_id: str) -> None:
        at = self._find(call_id)
        if at is not None:
            self._calls[at].is_made = True

    def set_result(self, call_id: str, content: tuple[UserContent, ...]) -> None:
        """A result that differs from the one a round earlier ends the cycle; equal calls in a row go on."""
        at = self._find(call_id)
        if at is None:
            return
        self._calls[at].result = _hash(content)
        for period in _PERIODS[1:]:
            for later in (at, at + period):
                if self._differs(later, period):
                    self._matches[period] = min(self._matches[period], len(self._calls) - 1 - later)

    def is_changed(self, call_id: str, period: int) -> bool:
        """Return whether the result differs from the one a round earlier; False for equal calls in a row."""
        at = self._find(call_id)
        return period > 1 and at is not None and self._differs(at, period)

    def repetitions(self) -> Iterator[_Repetition]:
        """Yield the repetitions that end with the newest call. A cycle is made of different calls."""
        for period in _PERIODS:
            matches, calls = self._matches[period], self._calls[-period:]
            if matches < period or (period > 1 and len({call.text for call in calls}) == 1):
                continue
            is_first, is_last = (matches - 1) % period == 0, matches % period == 0
            ordered = calls if is_last else [calls[-1], *calls[:-1]]
            yield _Repetition((matches - 1) // period + 2, tuple(ordered), is_first, is_last)

    def _find(self, call_id: str) -> int | None:
        return next((at for at in range(len(self._calls) - 1, -1, -1) if self._calls[at].id == call_id), None)

    def _differs(self, at: int, period: int) -> bool:
        if not period <= at < len(self._calls):
            return False
        results = {self._calls[at].result, self._calls[at - period].result} - {None}
        return len(results) > 1


def _hash(content: tuple[UserContent, ...]) -> int:
    """Without a hint of this feature, which is not part of the result."""
    text = "".join(block.text for block in content if isinstance(block, Text))
    for name in ("repeated", "repeated_in_turn"):
        text = text.removesuffix(f"\n\n{prompt_text(name)}")
    return hash((text, tuple(block.data or block.path for block in content if not isinstance(block, Text))))


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
        self._recent = _RecentCalls()
        # By call id: what the result of the call ends.
        self._hints: dict[str, _Repetition] = {}
        self._remark: RepeatedCall | None = None
        self._due: _Repetition | None = None
        for message in history:
            self._read(message)

    async def on_event(self, event: AgentEvent) -> None:
        match event:
            case MessageEnd(message=UserMessage()):
                self._recent.reset()
            case MessageEnd(message=AssistantMessage(stop_reason=reason)):
                self._is_cut = reason == "length"
            case ToolExecutionStart(call_id=call_id, tool=tool, arguments=arguments):
                self._begin(call_id, tool, arguments)
            case ToolExecutionEnd(call_id=call_id, result=result):
                self._end_call(call_id, result)
            case TurnStart():
                self._hints.clear()
                self._recent.begin_turn()
                self._publish_remark()
            case _:
                pass

    async def before_tool_call(self, pending: PendingCall, cancel: CancelSignal) -> PendingCall:
        """Ask the user before a repeated call."""
        self._recent.mark_made(pending.call.id)
        await self._ask_if_due(pending.call.id, cancel)
        return pending

    async def after_tool_call(self, finished: FinishedCall, cancel: CancelSignal) -> ToolResult:
        """Append a hint for the model to the result."""
        result, call_id = finished.result, finished.pending.call.id
        self._recent.set_result(call_id, result.content)
        repetition = self._hint(call_id)
        if repetition is None or "repeated" in result.marks:  # from a record
            return result
        hint = Text(f"\n\n{prompt_text('repeated' if len(repetition.calls) == 1 else 'repeated_in_turn')}")
        return replace(result, content=(*result.content, hint), marks=(*result.marks, "repeated"))

    async def finish_turn(self, turn: FinishedTurn, cancel: CancelSignal) -> TurnDecision | None:
        """Ask the user about repeated calls that could not be made."""
        await self._ask_if_due(None, cancel)
        return None

    def _read(self, message: Message) -> None:
        if isinstance(message, UserMessage):
            self._recent.reset()
        elif isinstance(message, ToolResultMessage):
            self._recent.set_result(message.tool_call_id, message.content)
        elif isinstance(message, AssistantMessage):
            self._is_cut = message.stop_reason == "length"
            self._recent.begin_turn()
            for call in message.tool_calls:
                self._add(call.id, call.name, call.arguments, is_made=True)

    def _begin(self, call_id: str, tool: str, arguments: JsonObject) -> None:
        self._add(call_id, tool, arguments, is_made=False)
        repetitions = list(self._recent.repetitions())
        self._due = next(
            (repetition for repetition in repetitions if repetition.is_first and repetition.count % _ASK_EVERY == 0),
            None,
        )
        hint = next(
            (repetition for repetition in repetitions if repetition.is_last and repetition.count == _HINT_AT), None
        )
        if hint is not None:
            self._hints[call_id] = hint

    def _end_call(self, call_id: str, result: ToolResult) -> None:
        self._recent.set_result(call_id, result.content)
        hint = self._hint(call_id)
        if hint is not None:
            first, *others = hint.shown
            self._remark = RepeatedCall(count=hint.count, call=first, others=tuple(others))

    def _hint(self, call_id: str) -> _Repetition | None:
        """Return the repetition to tell about at the result of this call, which must be known."""
        hint = self._hints.get(call_id)
        return hint if hint is not None and not self._recent.is_changed(call_id, len(hint.calls)) else None

    def _add(self, call_id: str, tool: str, arguments: JsonObject, *, is_made: bool) -> None:
        if tool == AskUser.name:  # the user's answer ends the repetition
            self._recent.reset()
            return
        # The arguments of a truncated call depend on the output limit: they cannot be compared.
        arguments_text = _CUT if self._is_cut else msgspec.json.encode(arguments, order="deterministic").decode()
        self._recent.add(_Call(call_id, f"{tool} {arguments_text}", is_made))

    def _publish_remark(self) -> None:
        """Publish the notice. Call it at the start of a turn: later it would separate a reply from its results."""
        if self._remark is not None:
            self._publish(self._remark)
            self._remark = None

    async def _ask_if_due(self, call_id: str | None, cancel: CancelSignal) -> None:
        """Ask the user. If nobody can be asked, only the tenth round of calls that cannot be made ends the task.

        Valid repeated calls may be polling for something; the limits of the task end them.
        """
        due, self._due = self._due, None
        if due is None or cancel.is_set:
            return
        if can_be_asked(self._state.task):
            await self._ask(due, call_id, cancel)
        elif call_id is None and due.count >= _END_AT and not any(call.is_made for call in due.calls):
            first, *others = due.shown
            self._end(TaskStuck(count=due.count, call=first, others=tuple(others)))

    async def _ask(self, due: _Repetition, call_id: str | None, cancel: CancelSignal) -> None:
        ask = Ask(
            id=new_id("ask"),
            task_id=self._state.task.id,
            conversation_id=self._state.task.conversation_id,
            owner=self._state.task.owner,
            kind="limit",
            text=_question(due, can_be_made=call_id is not None),
            created_at=datetime.now(UTC),
            choices=("Go on", "Stop here"),
            call_id=call_id,
        )
        settled = await self._asks.raise_and_wait(ask, self._state, cancel)
        if settled.status == "answered" and not settled.allowed:
            cancel.set(stopped_by(settled.answered_by))


def _shown(call: str) -> str:
    """Return the beginning of a call in one line, without keys."""
    return short_line(call, _MAX_CALL_LENGTH, redact)


def _question(due: _Repetition, *, can_be_made: bool) -> str:
    calls = _CALLS[len(due.calls)]
    if can_be_made:
        begin = f"It is about to make the same {calls}"
    elif len(due.calls) == 1:
        begin = "It has tried to make the same call, which cannot be made,"
    else:
        begin = f"It has begun to make the same {calls}, not all of which can be made,"
    return f"{begin} for the {due.count}th time in a row: {'; then '.join(due.shown)}"
