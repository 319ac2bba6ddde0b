"""Rounds of several agents: after a reply, starts the next agent's turn."""

import logging
from collections.abc import Collection, Sequence

import msgspec

from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.history.participants import SpeakingRound, next_speaker
from errand.engine.agent.tasks.approval_modes import inherited
from errand.engine.agent.tasks.locks import AgentLocks
from errand.engine.agent.tasks.task_target import TaskTarget, personality_of
from errand.engine.core.errors import NotFound, StorageError
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.protocol.agents import Agent
from errand.protocol.blocks import NoticeBlock, TextBlock
from errand.protocol.conversations import Node, TurnTaking
from errand.protocol.events import AgentUpdate
from errand.protocol.notices import RoundEnded
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task

_logger = logging.getLogger(__name__)

_BATCH = 200


class Rounds:
    """Only agents on the same node take turns; an agent moved elsewhere follows its own branch."""

    def __init__(self, log: EventLog, database: Database, locks: AgentLocks) -> None:
        self._log = log
        self._database = database
        self._locks = locks

    async def on_task_started(self, before: Agent, now: Agent) -> None:
        """An agent has started a task: agents on the same node follow it."""
        try:
            await self._move_agents_along(now, {before.head_id})
        except StorageError as error:
            _logger.warning("the other agents stay where they were: %s", error)

    async def on_task_ended(self, task: Task) -> Agent | None:
        """Return the agent that follows after a task has ended; None if it is the user's turn."""
        try:
            return await self._next_speaker(task)
        except StorageError as error:
            _logger.warning("the round ends with task %s: %s", task.id, error)
            return None

    async def report_not_started(self, task: Task, agent: Agent, why: str) -> None:
        """Add a notice that the next agent could not start."""
        try:
            await self._notice(task, RoundEnded(reason="not_started", next_agent=agent.name, error=why))
        except StorageError as error:
            _logger.warning("%s could not begin, and that is not on record: %s", agent.name, error)

    async def _next_speaker(self, task: Task) -> Agent | None:
        speaker = await self._database.agents.get(task.agent_id)
        if speaker is None or speaker.head_id is None or speaker.beside is not None:
            return None
        if not await self._has_others(speaker):
            return None
        path = await self._path_since_prompt(speaker.head_id, task)
        together = await self._move_agents_along(speaker, _nodes_of(path, task))
        conversation = await self._database.conversations.get(task.conversation_id)
        if conversation is None or task.activity.status not in ("completed", "error") or not _has_spoken(path, task):
            return None
        so_far = _round(path, task)
        agent = next_speaker(conversation.turn_taking, together, so_far)
        if agent is None or self._locks.is_at_work(task.conversation_id):
            return None
        end = _round_end(task, speaker, agent, so_far, conversation.turn_taking)
        if end is not None:
            await self._notice(task, end)
        return agent if end is None else None

    async def _has_others(self, agent: Agent) -> bool:
        every = await self._database.agents.list(agent.conversation_id)
        return any(other.id != agent.id and other.beside is None for other in every)

    async def _path_since_prompt(self, leaf_id: str, task: Task) -> tuple[Node, ...]:
        """Return the end of a branch that includes the last prompt of a user and all nodes of `task`."""
        path, more = await self._database.nodes.branch(leaf_id, _BATCH)
        while more and (_last_prompt(path) < 1 or path[0].task_id == task.id):
            older, more = await self._database.nodes.branch(leaf_id, _BATCH, path[0].id)
            path = (*older, *path)
        return path

    async def _move_agents_along(self, agent: Agent, node_ids: Collection[str | None]) -> tuple[Agent, ...]:
        """Move the agents on `stood` along; returns all agents on the same node, in order of joining."""
        if agent.beside is not None:
            return ()
        together: list[Agent] = []
        for other in await self._database.agents.list(agent.conversation_id):
            if other.id == agent.id:
                together.append(agent)
            elif other.beside is None:
                async with self._locks.while_idle(other) as free:
                    if free is not None and free.head_id in (*node_ids, agent.head_id):
                        together.append(await self._move(free, agent.head_id))
        return tuple(together)

    async def _move(self, agent: Agent, head_id: str | None) -> Agent:
        if agent.head_id == head_id:
            return agent
        moved = msgspec.structs.replace(agent, head_id=head_id, version=agent.version + 1)
        self._log.publish(AgentUpdate(agent=moved))
        await self._log.flush()
        return moved

    async def _notice(self, task: Task, data: RoundEnded) -> None:
        """Add a notice at the speaker's head if it is idle, and move the other agents there."""
        speaker = await self._database.agents.get(task.agent_id)
        if speaker is None:
            return
        async with self._locks.while_idle(speaker) as free:
            if free is None:
                return
            branch = BranchWriter(free, self._log)
            notice = NoticeBlock(kind="info", data=data)
            branch.append(branch.draft("system", "engine", (notice,), task_id=task.id))
            branch.announce_head()
            await self._log.flush()
        await self._move_agents_along(branch.agent, {free.head_id})


async def next_reply(task: Task, agent: Agent, database: Database) -> tuple[TaskTarget, TaskStartParams]:
    """Return the params for the next speaker: the same task, with its own model if it has one."""
    personality = await personality_of(None, agent, database)
    conversation = await database.conversations.get(task.conversation_id)
    if conversation is None:
        raise NotFound("This conversation was deleted.")
    params = TaskStartParams(
        prompt=task.request.prompt,
        conversation_id=task.conversation_id,
        agent_id=agent.id,
        model_if_none=task.request.model,
        api_base=task.request.api_base,
        mode=task.options.mode,
        approve=inherited(task),
        attended=task.options.attended,
        max_turns=task.budget.max_turns,
        budget_usd=_budget_left(task),
        max_minutes=task.budget.max_minutes,
        max_tokens=task.budget.max_tokens,
    )
    return TaskTarget(conversation, agent, personality), params


def _round_end(task: Task, speaker: Agent, agent: Agent, so_far: SpeakingRound, rule: TurnTaking) -> RoundEnded | None:
    """Why the round ends before the next agent; None if it continues."""
    if task.activity.status == "error":
        return RoundEnded(reason="failed", next_agent=agent.name, speaker=speaker.name)
    if _budget_left(task) == 0:
        return RoundEnded(reason="budget", next_agent=agent.name)
    if len(so_far.speakers) >= rule.limit:
        return RoundEnded(reason="limit", next_agent=agent.name, replies=rule.limit)
    return None


def _budget_left(task: Task) -> float | None:
    """Return what is left of the budget, which covers all replies of the round; None without a budget."""
    budget = (task.budget.allowance and task.budget.allowance.budget_usd) or task.budget.budget_usd
    return max(budget - (task.progress.usage.cost_usd or 0.0), 0.0) if budget is not None else None


def _has_spoken(path: Sequence[Node], task: Task) -> bool:
    """Return False for a task that only made a summary."""
    return any(node.role == "assistant" and node.task_id == task.id for node in path)


def _nodes_of(path: Sequence[Node], task: Task) -> set[str | None]:
    """Return the nodes of a task, and the node it started from."""
    own = [node for node in path if node.task_id == task.id]
    return {node.id for node in own} | ({own[0].parent_id} if own else set())


def _round(path: Sequence[Node], task: Task) -> SpeakingRound:
    """Return the messages since a user started a task; `task` counts as the last speaker, with or without a reply."""
    nodes = path[max(_last_prompt(path), 0) :]
    replies = [node for node in nodes if node.role == "assistant"]
    by_task = {node.task_id: node.author for node in replies if node.task_id != task.id}
    message = "\n".join(_text(node) for node in nodes if node.role == "user")
    reply = _text(replies[-1]) if replies else ""
    return SpeakingRound(message, (*by_task.values(), task.agent_id), f"{reply}\n{task.outcome.summary}")


def _last_prompt(path: Sequence[Node]) -> int:
    """Index of the last message that started a task, or -1. Messages sent during a task do not count."""
    for index in range(len(path) - 1, -1, -1):
        if path[index].role == "user" and (index == 0 or path[index - 1].task_id != path[index].task_id):
            return index
    return -1


def _text(node: Node) -> str:
    return "\n".join(block.text for block in node.blocks if isinstance(block, TextBlock))
