"""Sends one message to several models, each on its own branch, and compares two branches."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

import msgspec

from errand.engine.agent.tasks.conversation_agents import ConversationAgents
from errand.engine.agent.tasks.locks import KeyedLock
from errand.engine.core.errors import EngineError, InvalidParams, NotFound
from errand.engine.core.ids import new_id
from errand.engine.core.settings import Settings
from errand.engine.models.catalog.configured import default_api_base
from errand.engine.models.router import ModelRouter
from errand.engine.storage.database import Database
from errand.engine.tools.call_display import with_displays
from errand.protocol.comparisons import (
    BranchSide,
    ConversationCompareParams,
    ConversationCompareResult,
    TaskCompareModelsParams,
    TaskCompareModelsResult,
)
from errand.protocol.conversations import Node
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage, add_usage

_MIN_MODELS, _MAX_MODELS = 2, 8

_BATCH = 100


class ComparisonStarter(Protocol):
    """`start` adds a message, `reply` does not. A known `task_id` returns the existing task."""

    def start(self, params: TaskStartParams) -> Awaitable[Task]: ...
    def reply(self, params: TaskStartParams) -> Awaitable[Task]: ...


class ModelComparison:
    def __init__(
        self,
        database: Database,
        agents: ConversationAgents,
        runner: ComparisonStarter,
        models: ModelRouter,
        settings: Settings,
    ) -> None:
        self._database = database
        self._agents = agents
        self._runner = runner
        self._models = models
        self._settings = settings
        self._task_locks = KeyedLock()

    async def ask(self, params: TaskCompareModelsParams) -> TaskCompareModelsResult:
        """Start one task per model; returns once all have started. Starts none if one of the models cannot be used."""
        if not _MIN_MODELS <= len(params.models) <= _MAX_MODELS:
            raise InvalidParams(f"models: {_MIN_MODELS} to {_MAX_MODELS} of them, and there are {len(params.models)}.")
        name = params.start.task_id or new_id("task")
        starts = [
            self._start_params_for(params, model, name, number) for number, model in enumerate(params.models, start=1)
        ]
        for start in starts:
            model = start.model or ""
            address = start.api_base or default_api_base(model, self._settings.values)
            self._models.open(model, address, start.api_key)
        async with self._task_locks.lock(name):
            first = await self._runner.start(starts[0])
            message = await self._user_message_id(first)
            others = [await self._start_on_side_branch(first, start, message) for start in starts[1:]]
        return TaskCompareModelsResult(tasks=(first, *others), node_id=message)

    def _start_params_for(self, params: TaskCompareModelsParams, model: str, name: str, number: int) -> TaskStartParams:
        start, is_first = params.start, number == 1
        has_key = model.partition("/")[0] == params.models[0].partition("/")[0]
        # Only the first task warns about an unenforceable budget: the others' warning would precede the reply.
        has_budget = is_first or self._models.has_price(model)
        return msgspec.structs.replace(
            start,
            task_id=name if is_first else f"{name}_{number}",
            model=model,
            api_base=start.api_base if model.startswith("openai_compatible/") else None,
            api_key=start.api_key if has_key else None,
            budget_usd=start.budget_usd if has_budget else None,
        )

    async def _start_on_side_branch(self, first: Task, start: TaskStartParams, message: str) -> Task:
        """Answer with a new agent on a side branch; deletes the agent if its task cannot start."""
        assert start.task_id is not None
        stored = await self._database.tasks.get(start.task_id)
        if stored is not None:
            return stored
        another = await self._agents.create_on_side_branch(await self._agents.get(first.agent_id), message, start.model)
        try:
            return await self._runner.reply(
                msgspec.structs.replace(
                    start, conversation_id=first.conversation_id, agent_id=another.id, workspace=None, sibling_of=None
                )
            )
        except EngineError:
            await self._agents.delete(another.id)
            raise

    async def _user_message_id(self, task: Task) -> str:
        outline = await self._database.trees.outline(task.conversation_id)
        for node in outline.nodes:
            if node.task_id == task.id and node.role == "user":
                return node.id
        raise NotFound("The message is not there any more: its conversation was deleted.")


async def compare_branches(params: ConversationCompareParams, database: Database) -> ConversationCompareResult:
    """Raises `NotFound` for an unknown node, `InvalidParams` for nodes of different conversations."""
    a, b = await _node(params.a_node_id, database), await _node(params.b_node_id, database)
    conversation_id = a.conversation_id
    if b.conversation_id != conversation_id:
        raise InvalidParams("The two nodes are of different conversations. Only branches of one can be compared.")
    parents = dict(await database.nodes.links(conversation_id))
    path_a, path_b = _path(parents, a.id), _path(parents, b.id)
    shared = _common_length(path_a, path_b)
    tasks = await database.tasks.of_conversation(conversation_id)
    return ConversationCompareResult(
        conversation_id=conversation_id,
        ancestor_id=path_a[shared - 1] if shared else None,
        a=await _branch_side(path_a[shared:], tasks, params.limit, database),
        b=await _branch_side(path_b[shared:], tasks, params.limit, database),
    )


async def _node(node_id: str, database: Database) -> Node:
    node = await database.nodes.get(node_id)
    if node is None:
        raise NotFound(f"There is no node {node_id!r}.")
    return node


def _path(parents: Mapping[str, str | None], node_id: str | None) -> list[str]:
    path: list[str] = []
    while node_id is not None:
        path.append(node_id)
        node_id = parents[node_id]
    return path[::-1]


def _common_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the number of nodes at the start of both paths that are equal."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((at for at, (mine, other) in pairs if mine != other), min(len(a), len(b)))


async def _branch_side(ids: Sequence[str], tasks: Sequence[Task], limit: int, database: Database) -> BranchSide:
    """Reads in batches: a branch may be too long to hold in memory."""
    wrote: set[str | None] = set()
    answers: list[Node] = []
    usage = Usage()
    for first in range(0, len(ids), _BATCH):
        for node in await database.nodes.several(ids[first : first + _BATCH]):
            wrote.add(node.task_id)
            usage = add_usage(usage, node.usage) if node.usage is not None else usage
            if len(answers) < limit:
                answers.append(with_displays(node))
    return BranchSide(
        nodes=tuple(answers),
        count=len(ids),
        tasks=tuple(task for task in reversed(tasks) if task.id in wrote),
        usage=usage,
    )
