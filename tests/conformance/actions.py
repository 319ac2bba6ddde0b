"""Actions of scenarios during a run: steer, abort, clear, change a mode, sleep."""

import asyncio

from msgspec import UNSET

from errand.engine.agent.loop.agent import Agent
from errand.engine.agent.loop.run_state import QueueMode
from tests.conformance.clock import Clock
from tests.conformance.scenario import Action, Mode, SetMode, Step

MODES: dict[Mode, QueueMode] = {"all": "all", "one-at-a-time": "one_at_a_time"}


async def act(agent: Agent, clock: Clock, action: Action | Step) -> None:
    if action.steer is not UNSET:
        agent.steer(action.steer)
    if action.follow_up is not UNSET:
        agent.follow_up(action.follow_up)
    if action.abort:
        agent.abort()
    if action.clear_all:
        agent.clear_queues()
    if action.clear_steering:
        agent.clear_queues(follow_ups=False)
    if action.clear_follow_up:
        agent.clear_queues(steering=False)
    if action.set_mode is not None:
        _set_mode(agent, action.set_mode)
    if action.sleep is not UNSET:
        await clock.sleep(action.sleep)


def _set_mode(agent: Agent, modes: SetMode) -> None:
    if modes.steering is not None:
        agent.set_steering_mode(MODES[modes.steering])
    if modes.follow_up is not None:
        agent.set_follow_up_mode(MODES[modes.follow_up])


async def let_others_run() -> None:
    """An iteration of the event loop as in the recordings: ready tasks run first."""
    for _ in range(5):
        await asyncio.sleep(0)
