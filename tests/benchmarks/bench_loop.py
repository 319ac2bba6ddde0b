"""Measures the loop alone: CPU of a turn with one tool, and of a delta; and sub-agents beside plain tasks."""

import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from errand.engine.agent.loop.agent import Agent, AgentOptions
from errand.engine.agent.loop.events import AgentEvent
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage, Text, ToolCall
from errand.engine.models.base import BlockDelta, ModelEvent, ModelRequest, ReplyEnd, ReplyStart
from tests.benchmarks.row import Row
from tests.support.engine_parts import engine_parts
from tests.support.loop_parts import EchoTool
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

_RUNS = 10
_TURNS = 200
_DELTAS = 100_000

_REPLY = AssistantMessage((Text("x"),))
_CALL = AssistantMessage((ToolCall("c", "echo", {"value": "1"}),), "tool_use")
_DELTA = BlockDelta("text", 0, "x", _REPLY)

_AT_ONCE, _STEPS = 20, 20
_ALL = "All of it"


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


async def sub_agents() -> list[Row]:
    """Twenty sub-agents at once under one task, beside twenty plain tasks with the same steps."""
    plain, below = await _steps_per_second(plain=True), await _steps_per_second(plain=False)
    return [
        Row(
            "20 sub-agents under one task, of the steps/s of 20 tasks",
            100 * below / plain,
            "%",
            80,
            more_is_better=True,
        )
    ]


async def _steps_per_second(*, plain: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with engine_parts(Path(folder), ModelServer(answer=_answer)) as engine:
            started = time.perf_counter()
            prompts = [f"Do {number}" for number in range(_AT_ONCE)] if plain else [_ALL]
            tasks = [await engine.start(prompt, max_turns=10_000) for prompt in prompts]
            for task in tasks:
                await engine.services.runner.next_in_round(task.id)  # returns when it has ended
            return _AT_ONCE * (_STEPS + 1) / (time.perf_counter() - started)


def _answer(request: ReceivedRequest) -> Reply:
    prompt = next(str(message["content"]) for message in request.messages if message["role"] == "user")
    if prompt == _ALL and request.turn == 0:
        numbers = range(_AT_ONCE)
        return Reply(calls=tuple(Call("task", {"description": f"{n}", "prompt": f"Do {n}"}) for n in numbers))
    if prompt == _ALL or request.turn == _STEPS:
        return Reply(calls=(Call("task_complete", {"summary": "done"}),))
    return Reply(calls=(Call("code", {"action": "list", "glob": f"*{request.turn}"}),))
