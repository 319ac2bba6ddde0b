"""What a task starts from: which agent is to work, and how it begins once nobody else can have that agent."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import msgspec

from app.engine.agent import summarising
from app.engine.agent.assembly import Assembly
from app.engine.agent.beginnings import Beginning, Beginnings
from app.engine.agent.mode import as_task
from app.engine.agent.opening import check
from app.engine.agent.place import find_place
from app.engine.agent.retrying import as_start
from app.engine.agent.rounds import next_reply
from app.engine.agent.task import words
from app.engine.errors import Conflict, IllegalMove, NotFound
from app.engine.models.router import ModelRouter
from app.protocol.agents import Agent
from app.protocol.context import ConversationSummariseParams
from app.protocol.tasks import Task, TaskRetryParams, TaskSetModeParams, TaskStartParams


@dataclass(frozen=True, slots=True)
class Start:
    """`begin` is called with the agent as it is once it is claimed."""

    agent: Agent
    begin: Callable[[Agent], Awaitable[Beginning]]


class Starts:
    """Each refuses what cannot be started; nothing is on record before `begin`."""

    def __init__(self, assembly: Assembly, models: ModelRouter) -> None:
        self._assembly = assembly
        self._beginnings = Beginnings(assembly, models)

    async def new(self, params: TaskStartParams, version: int | None, remark: str) -> Start:
        """With a message, and a `remark` after it; with a `version` `begin` raises `Conflict` where it is another."""
        place = replace(await find_place(params, self._assembly.database, self._assembly.paths), remark=remark)

        async def begin(agent: Agent) -> Beginning:
            if version is not None and agent.version != version:
                raise Conflict(f"The agent has moved on: its version is {agent.version}, not {version}.")
            return await self._beginnings.new(params, place, agent)

        return Start(place.agent, begin)

    async def as_task(self, chat: Task, params: TaskSetModeParams) -> Start:
        """A task after a chat. The engine says so to the agent: the person has only chosen it."""
        start = await as_task(chat, params, self._assembly.database)
        place = replace(await find_place(start, self._assembly.database, self._assembly.paths), author="engine")
        return Start(place.agent, lambda agent: self._beginnings.new(start, place, agent, is_again=True))

    async def reply(self, params: TaskStartParams) -> Start:
        place = await find_place(params, self._assembly.database, self._assembly.paths)
        return Start(place.agent, lambda agent: self._beginnings.without_message(params, place, agent))

    async def retry(self, params: TaskRetryParams) -> Start:
        start, reply = await as_start(params, self._assembly.database)
        check(start)
        place = await find_place(start, self._assembly.database, self._assembly.paths)
        return Start(place.agent, lambda agent: self._beginnings.another_try(start, reply, place, agent))

    async def summary(self, params: ConversationSummariseParams) -> Start:
        start = await summarising.as_start(params, self._assembly.database)
        place = await find_place(start, self._assembly.database, self._assembly.paths)
        return Start(place.agent, lambda agent: self._beginnings.without_message(start, place, agent, summarises=True))

    async def next_reply(self, task: Task, agent: Agent) -> Start:
        """Of the agent that speaks next."""
        place, params = await next_reply(task, agent, self._assembly.database)
        return Start(agent, lambda agent: self._beginnings.without_message(params, place, agent, follows=task.id))

    async def resumed(self, task: Task) -> Start:
        if task.status != "interrupted":
            raise IllegalMove(f"A task that is {words(task.status)} cannot be resumed.")
        agent = await self._assembly.database.agents.get(task.agent_id)
        if agent is None:
            raise NotFound(
                "The agent of this task was deleted, so it cannot be resumed. Stop it, and go on with another agent."
            )
        fresh = msgspec.structs.replace(task, resumes=False)
        return Start(agent, lambda agent: self._beginnings.resumed(fresh, agent))
