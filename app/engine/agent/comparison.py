"""The same asked of several models at once: one message, and a reply of each on a branch of its own."""

from collections.abc import Awaitable
from typing import Protocol

import msgspec

from app.engine.agent.roster import Roster
from app.engine.agent.turnstile import Turnstile
from app.engine.errors import EngineError, InvalidParams, NotFound
from app.engine.ids import new_id
from app.engine.models.providers import default_api_base
from app.engine.models.router import ModelRouter
from app.engine.settings import Settings
from app.engine.storage.database import Database
from app.protocol.comparisons import TaskCompareModelsParams, TaskCompareModelsResult
from app.protocol.tasks import Task, TaskStartParams

_FEWEST, _MOST = 2, 8


class Starter(Protocol):
    """`start` with a message, `reply` where the agent stands; the same `task_id` again gives the task that is there."""

    def start(self, params: TaskStartParams) -> Awaitable[Task]: ...
    def reply(self, params: TaskStartParams) -> Awaitable[Task]: ...


class Comparison:
    def __init__(
        self, database: Database, roster: Roster, runner: Starter, models: ModelRouter, settings: Settings
    ) -> None:
        self._database = database
        self._roster = roster
        self._runner = runner
        self._models = models
        self._settings = settings
        self._one_of_a_task = Turnstile()

    async def ask(self, params: TaskCompareModelsParams) -> TaskCompareModelsResult:
        """Return once all are asked. Nothing is begun where one of the models cannot be."""
        if not _FEWEST <= len(params.models) <= _MOST:
            raise InvalidParams(f"models: {_FEWEST} to {_MOST} of them, and there are {len(params.models)}.")
        name = params.start.task_id or new_id("task")
        starts = [self._start_of(params, model, name, number) for number, model in enumerate(params.models, start=1)]
        for start in starts:
            model = start.model or ""
            address = start.api_base or default_api_base(model, self._settings.values)
            self._models.open(model, address, start.api_key)
        async with self._one_of_a_task.one(name):
            first = await self._runner.start(starts[0])
            message = await self._message_of(first)
            others = [await self._beside(first, start, message) for start in starts[1:]]
        return TaskCompareModelsResult(tasks=(first, *others), node_id=message)

    def _start_of(self, params: TaskCompareModelsParams, model: str, name: str, number: int) -> TaskStartParams:
        start, is_first = params.start, number == 1
        has_key = model.partition("/")[0] == params.models[0].partition("/")[0]
        # Of a budget that cannot be kept the first one is told; for the others the remark would stand above the reply.
        has_budget = is_first or self._models.has_price(model)
        return msgspec.structs.replace(
            start,
            task_id=name if is_first else f"{name}_{number}",
            model=model,
            api_base=start.api_base if model.startswith("openai_compatible/") else None,
            api_key=start.api_key if has_key else None,
            budget_usd=start.budget_usd if has_budget else None,
        )

    async def _beside(self, first: Task, start: TaskStartParams, message: str) -> Task:
        """An agent beside the first one answers; it goes again if it could not begin."""
        assert start.task_id is not None
        known = await self._database.tasks.get(start.task_id)
        if known is not None:
            return known
        another = await self._roster.beside(await self._roster.get(first.agent_id), message, start.model)
        try:
            return await self._runner.reply(
                msgspec.structs.replace(
                    start, conversation_id=first.conversation_id, agent_id=another.id, workspace=None, sibling_of=None
                )
            )
        except EngineError:
            await self._roster.delete(another.id)
            raise

    async def _message_of(self, task: Task) -> str:
        outline = await self._database.trees.outline(task.conversation_id)
        for node in outline.nodes:
            if node.task_id == task.id and node.role == "user":
                return node.id
        raise NotFound("The message is not there any more: its conversation was deleted.")
