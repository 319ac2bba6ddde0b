"""Measures the loop alone, without model, storage and protocol: CPU of a turn with one tool, and of a delta."""

import time
from collections.abc import AsyncGenerator

from app.engine.agent.loop.agent import Agent, AgentOptions
from app.engine.agent.loop.events import AgentEvent
from app.engine.core.cancel import CancelSignal
from app.engine.core.messages import AssistantMessage, Text, ToolCall
from app.engine.models.base import BlockDelta, ModelEvent, ModelRequest, ReplyEnd, ReplyStart
from tests.benchmarks.bench import Row
from tests.support.loop_parts import EchoTool

_RUNS = 10
_TURNS = 200
_DELTAS = 100_000

_REPLY = AssistantMessage((Text("x"),))
_CALL = AssistantMessage((ToolCall("c", "echo", {"value": "1"}),), "tool_use")
_DELTA = BlockDelta("text", 0, "x", _REPLY)


async def loop_alone() -> list[Row]:
    return [
        Row("loop alone, a turn with a tool (CPU)", await _turn(), "µs", 150),
        Row("loop alone, a delta (CPU)", await _delta(), "µs", 10),
    ]


async def _turn() -> float:
    agent = _agent(_StepStream())
    started = time.process_time()
    for _ in range(_RUNS):
        agent.reset()
        await agent.prompt("go")
    return (time.process_time() - started) / (_RUNS * _TURNS) * 1e6


async def _delta() -> float:
    agent = _agent(_DeltaStream())
    started = time.process_time()
    await agent.prompt("go")
    return (time.process_time() - started) / _DELTAS * 1e6


def _agent(stream: "_StepStream | _DeltaStream") -> Agent:
    agent = Agent(AgentOptions(stream=stream, model="bench/model", tools=(EchoTool(),)))
    agent.subscribe(_listen)
    return agent


async def _listen(event: AgentEvent) -> None:
    pass


class _StepStream:
    """Calls a tool in every turn except the last of a run."""

    def __init__(self) -> None:
        self._calls = 0

    async def __call__(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        self._calls += 1
        yield ReplyStart(_REPLY)
        yield ReplyEnd(_REPLY if self._calls % _TURNS == 0 else _CALL)


class _DeltaStream:
    async def __call__(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        yield ReplyStart(_REPLY)
        for _ in range(_DELTAS):
            yield _DELTA
        yield ReplyEnd(_REPLY)
