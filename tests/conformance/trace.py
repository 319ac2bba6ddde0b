"""Records the trace of a scenario in the expected format, and runs the actions attached to events."""

import asyncio
from typing import assert_never

from errand.engine.agent.loop.agent import Agent
from errand.engine.agent.loop.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from errand.engine.core.messages import ModelMessage, Text
from errand.engine.models.base import BlockDelta, ModelNotice, PromptProgress, Retry
from errand.engine.tools.results import ToolResult
from errand.protocol.base import JsonObject, JsonValue
from tests.conformance.actions import act
from tests.conformance.clock import Clock
from tests.conformance.messages import shown
from tests.conformance.scenario import EventSpec

_KINDS = {"text": "text", "thinking": "thinking", "tool_call": "toolcall"}
_PHASES = {"BlockStart": "start", "BlockDelta": "delta", "BlockEnd": "end"}


class Recorder:
    """A listener. `events` and `errors` are parts of the trace."""

    def __init__(self, agent: Agent, clock: Clock, reactions: list[EventSpec]) -> None:
        self.events: list[JsonValue] = []
        self.errors: list[JsonValue] = []
        self._agent = agent
        self._clock = clock
        self._reactions = reactions
        self._counts: dict[str, int] = {}
        self._waiting: list[tuple[str, int, asyncio.Event]] = []

    async def listen(self, event: AgentEvent) -> None:
        record = _record(event)
        kind = str(record["type"])
        self.events.append(record)
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        for name, nth, reached in self._waiting:
            if name == kind and nth == count:
                reached.set()
        for reaction in self._reactions:
            if reaction.event == kind and reaction.nth == count:
                for action in reaction.do:
                    await act(self._agent, self._clock, action)
                    await asyncio.sleep(0)
        if kind == "agent_start":
            # A run that is not awaited lets the following steps run first, as in the recordings.
            await asyncio.sleep(0)

    async def wait(self, spec: EventSpec) -> None:
        if self._counts.get(spec.event, 0) >= spec.nth:
            return
        reached = asyncio.Event()
        self._waiting.append((spec.event, spec.nth, reached))
        await reached.wait()

    def fail(self, step: int, message: str) -> None:
        # The recordings use the method's JavaScript name.
        self.errors.append({"step": step, "message": message.replace("follow_up()", "followUp()")})

    def trace(self, calls: list[tuple[ModelMessage, ...]]) -> JsonObject:
        state = self._agent.state
        return {
            "events": self.events,
            "llm_calls": [[shown(message) for message in call] for call in calls],
            "errors": self.errors,
            "final_messages": [shown(message) for message in state.messages],
            "final_error": state.error,
        }


def _record(event: AgentEvent) -> JsonObject:
    match event:
        case AgentStart():
            return {"type": "agent_start"}
        case TurnStart():
            return {"type": "turn_start"}
        case MessageStart(message):
            return {"type": "message_start", **shown(message)}
        case MessageEnd(message):
            return {"type": "message_end", **shown(message)}
        case MessageUpdate():
            return _update(event)
        case TurnEnd():
            return _turn_end(event)
        case AgentEnd(messages):
            roles: list[JsonValue] = [message.role for message in messages]
            return {"type": "agent_end", "roles": roles}
        case _:
            return _execution(event)


def _execution(event: ToolExecutionStart | ToolExecutionUpdate | ToolExecutionEnd) -> JsonObject:
    base: JsonObject = {"id": event.call_id, "tool": event.tool}
    match event:
        case ToolExecutionStart():
            return {"type": "tool_execution_start", **base, "args": event.arguments}
        case ToolExecutionUpdate():
            return {"type": "tool_execution_update", **base, "text": _text(event.result)}
        case ToolExecutionEnd(result=result):
            return {"type": "tool_execution_end", **base, "is_error": result.is_error, "text": _text(result)}
        case _:
            assert_never(event)


def _update(event: MessageUpdate) -> JsonObject:
    source = event.event
    if isinstance(source, Retry):
        return {"type": "message_update", "kind": "retry"}
    if isinstance(source, ModelNotice):
        return {"type": "message_update", "kind": "remark"}
    if isinstance(source, PromptProgress):
        return {"type": "message_update", "kind": "prompt_progress"}
    kind = f"{_KINDS[source.kind]}_{_PHASES[type(source).__name__]}"
    update: JsonObject = {"type": "message_update", "kind": kind, "content_index": source.content_index}
    return update | ({"delta": source.delta} if isinstance(source, BlockDelta) else {})


def _turn_end(event: TurnEnd) -> JsonObject:
    return {
        "type": "turn_end",
        "text": event.message.text,
        "stop_reason": event.message.stop_reason,
        "tool_results": [result.tool_call_id for result in event.tool_results],
    }


def _text(result: ToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, Text))
