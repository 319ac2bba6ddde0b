"""Finds a task that turns in circles: tells the model and the user, then asks the user, or ends the task.

`RepeatedResults` counts how often the same call had the same result since the task last did something new: a call that
succeeded with a result that it had not had before. A test that runs again after a change begins anew, and a loop of any
length is found in its third round. What waits is not counted: looks at background commands, commands that sleep, and
calls of two seconds or more.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from errand.engine.agent.loop.events import AgentEvent, MessageEnd, ToolExecutionEnd, ToolExecutionStart, TurnStart
from errand.engine.agent.loop.features import Feature
from errand.engine.agent.loop.hooks import FinishedTurn, PendingCall, TurnDecision
from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.agent.run.pending_asks import can_be_asked
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.core.cancel import CancelSignal, stopped_by
from errand.engine.core.ids import new_id
from errand.engine.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from errand.engine.tools.control.task_messages import SendUpdate, TaskComplete
from errand.engine.tools.control.todo import Todo
from errand.engine.tools.results import ToolResult
from errand.engine.tools.shell.tool import Shell
from errand.protocol.asks import Ask
from errand.protocol.base import JsonObject
from errand.protocol.notices import NoticeData, RepeatedCall, TaskStuck
from errand.text.redaction import redact, short_line

_HINT_AT = 3
# The user is asked each time, or the task ends.
_STUCK_AT = 5
_WAIT_MS = 2_000
_MAX_CALL_LENGTH = 160
_MAX_LOOP_CALLS = 50
_CALLS = ("call", "two calls", "three calls", "four calls")
_CUT = "(cut at the limit of the reply)"
# They change nothing: that a task says something new does not bring it further.
_MESSAGES = frozenset((SendUpdate.name, Todo.name))
# Durations that programs print, such as "3 passed in 0.02s". A longer one is no duration of a call that is counted: it
# may be the time that is left.
_DURATIONS = re.compile(r"(?<![\d.])(?:\d++(?:\.\d++)?+\s?ms|[01](?:\.\d++)?+\s?(?:s|secs?|seconds))\b")
_SLEEP = re.compile(r"\bsleep\s+\d*+\.?+\d")

# Hashes of a call and of its result.
_Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Call:
    """`key` is a hash of the call, `text` its beginning for people."""

    tool: str
    key: int
    text: str
    is_wait: bool


@dataclass(frozen=True, slots=True)
class _Repetition:
    """`calls` are the repeated call and what came between it and its last repetition, `count` is how often it came."""

    count: int
    calls: tuple[str, ...]


class _RepeatedResults:
    """Counts of calls with the same result, since the last message of a person."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._pairs: set[_Pair] = set()
        # Since the task last did something new; 1 for other known pairs.
        self._counts: dict[_Pair, int] = {}
        self._last_results: dict[int, int] = {}
        self._in_turn: set[_Pair] = set()
        self._newest: deque[tuple[_Pair, str]] = deque(maxlen=_MAX_LOOP_CALLS)
        self.has_hinted = False

    def begin_turn(self) -> None:
        """Equal calls of one turn count once."""
        self._in_turn.clear()

    def add(self, call: _Call, result: int, duration_ms: int, *, is_error: bool) -> _Repetition | None:
        """Count a result; return the repetition that it continues, None if it is new or not counted."""
        pair = (call.key, result)
        self._last_results[call.key] = result
        is_new = pair not in self._pairs
        self._pairs.add(pair)
        if is_new and not is_error and call.tool not in _MESSAGES:
            self._counts.clear()
            self._newest.clear()
            self.has_hinted = False
        if call.is_wait or duration_ms >= _WAIT_MS or pair in self._in_turn:
            return None
        self._in_turn.add(pair)
        count = 1 if is_new else self._counts.get(pair, 1) + 1
        self._counts[pair] = count
        repetition = None if is_new else _Repetition(count, self._loop(pair, call.text))
        self._newest.append((pair, call.text))
        return repetition

    def expected(self, call: _Call) -> _Repetition | None:
        """Return the repetition that this call will be if its result is that of the last time."""
        result = self._last_results.get(call.key)
        if result is None or call.is_wait:
            return None
        pair = (call.key, result)
        return _Repetition(self._counts.get(pair, 1) + 1, self._loop(pair, call.text))

    def _loop(self, pair: _Pair, text: str) -> tuple[str, ...]:
        between: list[str] = []
        for other, other_text in reversed(self._newest):
            if other == pair:
                break
            if other_text not in (text, *between):
                between.append(other_text)
        return (text, *reversed(between[: len(_CALLS) - 1]))


def _waits(arguments: JsonObject) -> bool:
    return arguments.get("action", "run") != "run" or _SLEEP.search(str(arguments.get("command", ""))) is not None


def _hash(content: tuple[UserContent, ...]) -> int:
    """Hash a result without the hint of this feature and without durations."""
    text = "".join(block.text for block in content if isinstance(block, Text))
    for name in ("repeated", "repeated_in_turn"):
        text = text.replace(f"\n\n{prompt_text(name)}", "")
    others = tuple(block.data or block.path for block in content if not isinstance(block, Text))
    return hash((_DURATIONS.sub("", text), others))


def _duration_ms(details: JsonObject | None) -> int:
    duration = (details or {}).get("duration_ms")
    return duration if isinstance(duration, int) else 0


class RepeatDetector(Feature):
    """`history` are the messages before the task; `publish` adds a notice to the conversation.

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
        self._results = _RepeatedResults()
        # By id: calls without a result, and what the user must be asked about.
        self._open: dict[str, _Call] = {}
        self._due: dict[str, _Repetition] = {}
        # Calls of this turn that the user was asked about.
        self._asked: set[int] = set()
        self._remark: RepeatedCall | None = None
        self._stuck: _Repetition | None = None
        for message in history:
            self._read(message)

    async def on_event(self, event: AgentEvent) -> None:
        match event:
            case MessageEnd(message=UserMessage(kind=None)):
                self._results.reset()
            case MessageEnd(message=AssistantMessage(stop_reason=reason)):
                self._is_cut = reason == "length"
            case ToolExecutionStart(call_id=call_id, tool=tool, arguments=arguments):
                self._begin(call_id, tool, arguments)
            case ToolExecutionEnd(call_id=call_id, result=result):
                self._count(call_id, result)
            case TurnStart():
                self._begin_turn()
                self._publish_remark()
            case _:
                pass

    async def before_tool_call(self, pending: PendingCall, cancel: CancelSignal) -> PendingCall:
        """Ask the user before a repeated call."""
        await self._ask_if_due(pending.call.id, cancel, can_be_made=True)
        return pending

    async def complete_result(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Append a hint for the model to the result, and mark that of a call that asks to wait."""
        open_call = self._open.get(call.id)
        if open_call is not None and open_call.is_wait and "waited" not in result.marks:
            result = replace(result, marks=(*result.marks, "waited"))
        repetition = self._count(call.id, result)
        if repetition is None or "repeated" in result.marks:  # from a record
            return result
        hint = Text(f"\n\n{prompt_text('repeated' if len(repetition.calls) == 1 else 'repeated_in_turn')}")
        return replace(result, content=(*result.content, hint), marks=(*result.marks, "repeated"))

    async def finish_turn(self, turn: FinishedTurn, cancel: CancelSignal) -> TurnDecision | None:
        """Ask the user about repeated calls that could not be made; end the task if nobody can be asked."""
        for call_id in tuple(self._due)[:1]:
            await self._ask_if_due(call_id, cancel, can_be_made=False)
        self._due.clear()
        stuck, self._stuck = self._stuck, None
        is_over = any(call.name == TaskComplete.name for call in turn.message.tool_calls) or cancel.is_set
        if stuck is not None and not is_over and not can_be_asked(self._state.task) and not self._state.task.queue:
            first, *others = stuck.calls
            self._end(TaskStuck(count=stuck.count, call=first, others=tuple(others)))
        return None

    def _read(self, message: Message) -> None:
        if isinstance(message, UserMessage) and message.kind is None:
            self._results.reset()
        elif isinstance(message, ToolResultMessage) and (call := self._open.pop(message.tool_call_id, None)):
            duration_ms = _duration_ms(message.details)
            self._results.add(call, _hash(message.content), duration_ms, is_error=message.is_error)
            self._results.has_hinted |= "repeated" in message.marks
        elif isinstance(message, AssistantMessage):
            self._is_cut = message.stop_reason == "length"
            self._begin_turn()
            for call in message.tool_calls:
                self._add(call.id, call.name, call.arguments)

    def _begin_turn(self) -> None:
        self._open.clear()
        self._asked.clear()
        self._results.begin_turn()

    def _begin(self, call_id: str, tool: str, arguments: JsonObject) -> None:
        call = self._add(call_id, tool, arguments)
        expected = self._results.expected(call)
        if expected is not None and expected.count % _STUCK_AT == 0:
            if call.key not in self._asked:
                self._due[call_id] = expected
            self._asked.add(call.key)

    def _add(self, call_id: str, tool: str, arguments: JsonObject) -> _Call:
        # The arguments of a truncated call depend on the output limit: they cannot be compared.
        arguments_text = _CUT if self._is_cut else msgspec.json.encode(arguments, order="deterministic").decode()
        text = f"{tool} {arguments_text}"
        is_wait = tool == Shell.name and _waits(arguments)
        call = _Call(tool, hash(text), short_line(text, _MAX_CALL_LENGTH, redact), is_wait)
        self._open[call_id] = call
        return call

    def _count(self, call_id: str, result: ToolResult) -> _Repetition | None:
        """Count the result of a call, once; return the repetition that the model is to be told about."""
        call = self._open.pop(call_id, None)
        if call is None:
            return None
        repetition = self._results.add(
            call, _hash(result.content), _duration_ms(result.details), is_error=result.is_error
        )
        if repetition is None:
            return None
        if repetition.count >= _STUCK_AT:
            self._stuck = repetition
        if repetition.count != _HINT_AT or self._results.has_hinted:
            return None
        self._results.has_hinted = True
        first, *others = repetition.calls
        self._remark = RepeatedCall(count=repetition.count, call=first, others=tuple(others))
        return repetition

    def _publish_remark(self) -> None:
        """Publish the notice. Call it at the start of a turn: later it would separate a reply from its results."""
        if self._remark is not None:
            self._publish(self._remark)
            self._remark = None

    async def _ask_if_due(self, call_id: str, cancel: CancelSignal, *, can_be_made: bool) -> None:
        due = self._due.pop(call_id, None)
        if due is None or cancel.is_set or not can_be_asked(self._state.task):
            return
        ask = Ask(
            id=new_id("ask"),
            task_id=self._state.task.id,
            conversation_id=self._state.task.conversation_id,
            owner=self._state.task.owner,
            kind="limit",
            text=_question(due, can_be_made=can_be_made),
            created_at=datetime.now(UTC),
            choices=("Go on", "Stop here"),
            call_id=call_id if can_be_made else None,
        )
        settled = await self._asks.raise_and_wait(ask, self._state, cancel)
        if settled.status == "answered" and not settled.allowed:
            cancel.set(stopped_by(settled.answered_by))


def _question(due: _Repetition, *, can_be_made: bool) -> str:
    calls = _CALLS[len(due.calls) - 1]
    begin = "It is about to make" if can_be_made else "It has tried to make"
    return f"{begin} the same {calls} for the {due.count}th time: {'; then '.join(due.calls)}"
