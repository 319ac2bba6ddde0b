"""Runs one scenario with a real Agent and returns its trace."""

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import UNSET

from errand.engine.agent.loop.agent import Agent
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import Message
from errand.engine.tools.results import ToolResult
from errand.protocol.base import JsonObject
from tests.conformance.actions import act
from tests.conformance.clock import Clock
from tests.conformance.messages import initial
from tests.conformance.options import agent_options
from tests.conformance.provider import ScriptedProvider
from tests.conformance.scenario import Action, MessageSpec, Profile, Scenario, Step
from tests.conformance.tools import ScriptedTool
from tests.conformance.trace import Recorder

Prompt: TypeAlias = str | list[Message]


async def play(scenario: Scenario, profile: Profile) -> JsonObject:
    return await _Play(scenario, profile).run()


class _Play:
    def __init__(self, scenario: Scenario, profile: Profile) -> None:
        self._scenario = scenario
        self._clock = Clock()
        self._detached: set[asyncio.Task[ToolResult]] = set()
        self._started: list[asyncio.Task[None]] = []
        self._provider = ScriptedProvider(scenario.replies, self._act)
        tools = tuple(ScriptedTool(spec, self._act, self._clock, self._detached) for spec in scenario.tools)
        self._agent = Agent(agent_options(scenario, profile, self._provider.stream, tools, self._abort))
        self._recorder = Recorder(self._agent, self._clock, scenario.on_event)
        self._agent.subscribe(self._recorder.listen)

    async def run(self) -> JsonObject:
        try:
            for number, step in enumerate(self._scenario.steps):
                try:
                    await self._step(step)
                except EngineError as error:
                    self._recorder.fail(number, str(error))
            return self._recorder.trace(self._provider.calls)
        finally:
            await _cancel([*self._started, *self._detached])

    async def _step(self, step: Step) -> None:
        if step.prompt is not UNSET:
            await self._agent.prompt(_prompt(step.prompt))
        elif step.start_prompt is not UNSET:
            self._started.append(asyncio.create_task(self._agent.prompt(_prompt(step.start_prompt))))
            await asyncio.sleep(0)
        elif step.join:
            await self._join()
        elif step.continue_:
            await self._agent.continue_()
        elif step.reset:
            self._agent.reset()
        elif step.wait_for_idle:
            await self._agent.wait_for_idle()
        elif step.wait_event is not None:
            await self._recorder.wait(step.wait_event)
        elif step.drop_last_message:
            self._agent.set_messages(self._agent.state.messages[:-1])
        else:
            await self._act(step)

    async def _join(self) -> None:
        while self._started:
            await self._started.pop(0)

    async def _act(self, action: Action | Step) -> None:
        await act(self._agent, self._clock, action)

    def _abort(self) -> None:
        self._agent.abort()


def _prompt(prompt: str | list[MessageSpec]) -> Prompt:
    return prompt if isinstance(prompt, str) else [initial(message) for message in prompt]


async def _cancel(tasks: Sequence[asyncio.Task[None] | asyncio.Task[ToolResult]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
