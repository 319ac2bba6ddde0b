"""Single chat messages to an agent. If it is busy or its head has moved, a side-branch agent answers instead."""

from collections.abc import Awaitable
from typing import Protocol

from errand.engine.agent.tasks.conversation_agents import ConversationAgents
from errand.engine.agent.tasks.locks import KeyedLock
from errand.engine.core.errors import AgentBusy, Conflict, EngineError
from errand.engine.core.ids import new_id
from errand.engine.storage.database import Database
from errand.protocol.agents import Agent
from errand.protocol.conversations import AgentChatParams, AgentChatResult, Position
from errand.protocol.notices import AnsweredBeside, NoticeData
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task

_PAGE = 50


class ChatStarter(Protocol):
    """Starts tasks. Raises `Conflict` if `version` is outdated, `AgentBusy` if the agent is running a task."""

    def start(
        self, params: TaskStartParams, version: int | None = None, remark: NoticeData | None = None
    ) -> Awaitable[Task]: ...


class Chats:
    def __init__(self, database: Database, agents: ConversationAgents, runner: ChatStarter) -> None:
        self._database = database
        self._agents = agents
        self._runner = runner
        self._task_locks = KeyedLock()

    async def chat(self, params: AgentChatParams) -> AgentChatResult:
        """Start a task for one reply; returns once the message is stored."""
        async with self._task_locks.lock(params.task_id or new_id("task")):
            task = await self._database.tasks.get(params.task_id) if params.task_id is not None else None
            if task is None:
                task = await self._start(params)
            message_position = await self._first_message(task)
        agent = await self._agents.get(task.agent_id)
        return AgentChatResult(
            agent=agent, task=task, position=message_position[0], branched=task.agent_id != params.agent_id
        )

    async def _start(self, params: AgentChatParams) -> Task:
        agent = await self._agents.get(params.agent_id)
        try:
            return await self._runner.start(_start_params(params, agent), params.version)
        except (AgentBusy, Conflict):
            return await self._start_on_side_branch(agent, params)

    async def _start_on_side_branch(self, agent: Agent, params: AgentChatParams) -> Task:
        seen = params.node_id or await self._before_last_task(agent)
        another = await self._agents.create_on_side_branch(agent, seen)
        remark = AnsweredBeside(agent=agent.name, other=another.name)
        try:
            return await self._runner.start(_start_params(params, another), remark=remark)
        except EngineError:
            await self._agents.delete(another.id)
            raise

    async def _before_last_task(self, agent: Agent) -> str | None:
        """Return the agent's position before its newest task: most likely what the client showed when the user
        wrote.
        """
        task = await self._database.tasks.last_of(agent)
        return (await self._first_message(task))[1] if task is not None else agent.head_id

    async def _first_message(self, task: Task) -> tuple[Position, str | None]:
        """Return a task's first message and its parent: searched upwards from the agent's head, then in the whole
        tree.
        """
        agent = await self._database.agents.get(task.agent_id)
        position = Position(conversation_id=task.conversation_id, node_id=None)
        before, more = None, agent is not None and agent.head_id is not None
        while more and agent is not None and agent.head_id is not None:
            page, more = await self._database.nodes.branch(agent.head_id, _PAGE, before)
            for node in page:
                if node.task_id == task.id and node.role == "user":
                    return position.advance(node.id), node.parent_id
            before = page[0].id if page else None
        outline = await self._database.trees.outline(task.conversation_id)
        first = next((node for node in outline.nodes if node.task_id == task.id and node.role == "user"), None)
        return (position.advance(first.id), first.parent_id) if first is not None else (position, None)


def _start_params(params: AgentChatParams, agent: Agent) -> TaskStartParams:
    return TaskStartParams(
        prompt=params.prompt,
        task_id=params.task_id,
        conversation_id=agent.conversation_id,
        agent_id=agent.id,
        model=params.model,
        api_base=params.api_base,
        api_key=params.api_key,
        mode="chat",
        approve=params.approve,
        attachments=params.attachments,
    )
