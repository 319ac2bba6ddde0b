"""Creates stored, ready-to-run tasks: new, retried, resumed, summary, next speaker."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import msgspec

from app.engine.agent.history.branch import BranchWriter
from app.engine.agent.history.conversion import message_of, user_message
from app.engine.agent.history.participants import Participants, participants_of
from app.engine.agent.history.visible_history import branch_messages, recent_path
from app.engine.agent.prompt.texts import engine_message
from app.engine.agent.run.resume import InterruptedTurn, last_reply, recorded_calls
from app.engine.agent.run.task_builder import TaskBuilder
from app.engine.agent.run.task_run import TaskRun
from app.engine.agent.run.task_state import status_text, with_status
from app.engine.agent.tasks import manual_summary
from app.engine.agent.tasks.follow_up_tasks import retry_params, task_after_chat
from app.engine.agent.tasks.new_task import check_start_params, new_task, publish_message, publish_task
from app.engine.agent.tasks.rounds import next_reply
from app.engine.agent.tasks.task_target import TaskTarget, find_target, make_workspace, personality_of, with_personality
from app.engine.core.errors import Conflict, IllegalMove, InvalidParams, NotFound
from app.engine.core.messages import AssistantMessage, ModelMessage, UserMessage
from app.engine.models.base import ChatModel
from app.engine.models.router import ModelRouter
from app.protocol.agents import Agent
from app.protocol.context import ConversationSummariseParams
from app.protocol.conversations import Node
from app.protocol.events import TaskUpdate
from app.protocol.notices import NoticeData
from app.protocol.tasks import Task, TaskRetryParams, TaskSetModeParams, TaskStartParams


@dataclass(frozen=True, slots=True)
class StartedTask:
    """A stored task that is ready to run: from a message, an interrupted turn, or the existing branch."""

    run: TaskRun
    opening: UserMessage | InterruptedTurn | None


class TaskStarter:
    def __init__(self, assembly: TaskBuilder, models: ModelRouter) -> None:
        self._assembly = assembly
        self._models = models

    async def new(
        self, params: TaskStartParams, place: TaskTarget, agent: Agent, *, is_again: bool = False
    ) -> StartedTask:
        """Start from a message, after the agent's head or as a sibling of `sibling_of`.

        `is_again`: the model's address comes from an earlier task instead of this request.
        """
        place = replace(place, agent=await with_personality(agent, place.personality, self._assembly.database))
        after = await self._before_sibling(params) if params.sibling_of is not None else agent.head_id
        task = await new_task(params, place, self._assembly.settings.values, self._models)
        opened = self._models.open_again if is_again else self._models.open
        model = opened(task.model, task.api_base, params.api_key)
        attachments = await self._assembly.attachments.store(params.attachments)
        message = self._assembly.attachments.blocks(task.prompt, attachments)
        company = await participants_of(place.agent, self._assembly.database)
        history = await self._history(after, place, company)
        await make_workspace(place.conversation)
        branch = publish_task(task, place, self._assembly.log)
        branch.position = branch.position.advance(after)
        has_price = self._models.has_price(task.model)
        publish_message(task, message, branch, place, has_price=has_price)
        await self._assembly.log.flush()
        personality = company.with_introduction(place.personality)
        run = self._assembly.build(task, branch, personality, model, history, 1, company.as_messages)
        return StartedTask(run, user_message(message))

    async def another_try(self, params: TaskStartParams, reply: Node, place: TaskTarget, agent: Agent) -> StartedTask:
        """Retry a reply as its sibling: the head moves to the reply's parent, and no message is added.

        Drops a budget that cannot be enforced.
        """
        assert reply.parent_id is not None, "a reply follows something"
        place = replace(place, agent=await with_personality(agent, place.personality, self._assembly.database))
        task = await new_task(params, place, self._assembly.settings.values, self._models)
        model = self._models.open_again(task.model, task.api_base, params.api_key)
        if not self._models.has_price(task.model):  # a notice about it would separate the reply from its sibling
            task = msgspec.structs.replace(task, budget_usd=None)
        return await self._start_at(task, place, model, reply.parent_id)

    async def without_message(
        self,
        params: TaskStartParams,
        place: TaskTarget,
        agent: Agent,
        *,
        summarises: bool = False,
        follows: str | None = None,
    ) -> StartedTask:
        """Start at the agent's head without a message: answer the last message, or summarise the history."""
        assert agent.head_id is not None, "somebody has spoken"
        place = replace(place, agent=agent)
        task = await new_task(params, place, self._assembly.settings.values, self._models)
        model = self._models.open_again(task.model, task.api_base, params.api_key)
        task = msgspec.structs.replace(task, summarises=summarises, follows=follows)
        return await self._start_at(task, place, model, agent.head_id)

    async def _start_at(self, task: Task, place: TaskTarget, model: ChatModel, after: str) -> StartedTask:
        company = await participants_of(place.agent, self._assembly.database)
        history = await self._history(after, place, company)
        await make_workspace(place.conversation)
        branch = publish_task(task, place, self._assembly.log)
        branch.set_head(after, branch.agent.version)
        await self._assembly.log.flush()
        personality = company.with_introduction(place.personality)
        run = self._assembly.build(task, branch, personality, model, history, 0, company.as_messages)
        return StartedTask(run, _continuation(history))

    async def resumed(self, task: Task, agent: Agent) -> StartedTask:
        """Resume a task from its last finished step."""
        personality = await personality_of(None, agent, self._assembly.database)
        model = self._models.open_again(task.model, task.api_base)
        conversation = await self._assembly.database.conversations.get(task.conversation_id)
        assert conversation is not None, "it holds the task"
        company = await participants_of(agent, self._assembly.database)
        kept = conversation.kept
        path = await recent_path(self._assembly.database.nodes, agent.head_id, kept)
        personality = company.with_introduction(personality)
        await self._check_branch(task, path)
        turn = await self._open_turn(task, path, kept, company)
        task = msgspec.structs.replace(with_status(task, "running"), activity="resumed", own_key=False)
        branch = BranchWriter(agent, self._assembly.log)
        if turn is None:
            self._assembly.desk.drop_task(task.id)
        history = turn.history if turn is not None else await branch_messages(path, kept, company.as_messages)
        stored = turn.stored if turn is not None else 0
        run = self._assembly.build(task, branch, personality, model, history, stored, company.as_messages, turn)
        # Stored before the response: a client that follows the task next must not find it interrupted.
        self._assembly.log.publish(TaskUpdate(task=task))
        await self._assembly.log.flush()
        return StartedTask(run, turn if turn is not None else _continuation(history))

    async def _open_turn(
        self, task: Task, path: tuple[Node, ...], kept: tuple[str, ...], company: Participants
    ) -> InterruptedTurn | None:
        """The interrupted turn, if its reply is stored. Asks of that turn are repeated only if unanswered."""
        at = last_reply(path, task.id)
        if at is None:
            return None
        reply, history = message_of(path[at]), await branch_messages(path[:at], kept, company.as_messages)
        if not isinstance(reply, AssistantMessage) or not history or history[-1].role == "assistant":
            return None
        database, results = self._assembly.database, [node for node in path[at:] if node.role == "tool_result"]
        past = recorded_calls(results, await database.executions.of_task(task.id), path[at].turn)
        asks = await database.asks.page(task_ids=(task.id,))
        self._assembly.desk.resume(task.id, (ask for ask in asks if ask.created_at >= path[at].created_at))
        return InterruptedTurn(reply, history, past, stored=1 + len(results))

    async def _history(self, leaf_id: str | None, place: TaskTarget, company: Participants) -> tuple[ModelMessage, ...]:
        kept = place.conversation.kept
        path = await recent_path(self._assembly.database.nodes, leaf_id, kept)
        return await branch_messages(path, kept, company.as_messages)

    async def _before_sibling(self, params: TaskStartParams) -> str | None:
        assert params.sibling_of is not None
        node = await self._assembly.database.nodes.get(params.sibling_of)
        if node is None or node.conversation_id != params.conversation_id:
            raise NotFound(f"There is no node {params.sibling_of!r} in this conversation.")
        if node.role != "user":
            raise InvalidParams(
                "Only a message of a person can be sent again in another form. To retry a reply there is task/retry."
            )
        return node.parent_id

    async def _check_branch(self, task: Task, path: tuple[Node, ...]) -> None:
        """Raises `IllegalMove` if the task worked on another branch than the agent's current one."""
        if any(node.task_id == task.id for node in path):
            return
        outline = await self._assembly.database.trees.outline(task.conversation_id)
        if any(node.task_id == task.id for node in outline.nodes):
            raise IllegalMove("The agent is on another branch now. Go back to the branch of this task, then resume it.")


def _continuation(history: tuple[ModelMessage, ...]) -> UserMessage | None:
    """A prompt to continue after a cut reply: models cannot continue from their own message."""
    return engine_message("resume") if history and history[-1].role == "assistant" else None


@dataclass(frozen=True, slots=True)
class TaskStart:
    """Call `begin` with the current version of the locked agent."""

    agent: Agent
    begin: Callable[[Agent], Awaitable[StartedTask]]


class TaskFactory:
    """Prepares task starts. Each method checks first; nothing is stored before `begin`."""

    def __init__(self, assembly: TaskBuilder, models: ModelRouter) -> None:
        self._assembly = assembly
        self._starter = TaskStarter(assembly, models)

    async def new(self, params: TaskStartParams, version: int | None, remark: NoticeData | None) -> TaskStart:
        """A task with a message and an optional `remark`; `begin` raises `Conflict` on a version mismatch."""
        place = replace(await find_target(params, self._assembly.database, self._assembly.paths), remark=remark)

        async def begin(agent: Agent) -> StartedTask:
            if version is not None and agent.version != version:
                raise Conflict(f"The agent has moved on: its version is {agent.version}, not {version}.")
            return await self._starter.new(params, place, agent)

        return TaskStart(place.agent, begin)

    async def as_task(self, chat: Task, params: TaskSetModeParams) -> TaskStart:
        """A task after a chat. Its message is from the engine: the user only chose the mode."""
        start = await task_after_chat(chat, params, self._assembly.database)
        place = replace(await find_target(start, self._assembly.database, self._assembly.paths), author="engine")
        return TaskStart(place.agent, lambda agent: self._starter.new(start, place, agent, is_again=True))

    async def reply(self, params: TaskStartParams) -> TaskStart:
        place = await find_target(params, self._assembly.database, self._assembly.paths)
        return TaskStart(place.agent, lambda agent: self._starter.without_message(params, place, agent))

    async def retry(self, params: TaskRetryParams) -> TaskStart:
        start, reply = await retry_params(params, self._assembly.database)
        check_start_params(start)
        place = await find_target(start, self._assembly.database, self._assembly.paths)
        return TaskStart(place.agent, lambda agent: self._starter.another_try(start, reply, place, agent))

    async def summary(self, params: ConversationSummariseParams) -> TaskStart:
        start = await manual_summary.summary_params(params, self._assembly.database)
        place = await find_target(start, self._assembly.database, self._assembly.paths)
        return TaskStart(place.agent, lambda agent: self._starter.without_message(start, place, agent, summarises=True))

    async def next_reply(self, task: Task, agent: Agent) -> TaskStart:
        """The next speaker's task in a round."""
        place, params = await next_reply(task, agent, self._assembly.database)
        return TaskStart(agent, lambda agent: self._starter.without_message(params, place, agent, follows=task.id))

    async def resumed(self, task: Task) -> TaskStart:
        if task.status != "interrupted":
            raise IllegalMove(f"A task that is {status_text(task.status)} cannot be resumed.")
        agent = await self._assembly.database.agents.get(task.agent_id)
        if agent is None:
            raise NotFound(
                "The agent of this task was deleted, so it cannot be resumed. Stop it, and go on with another agent."
            )
        fresh = msgspec.structs.replace(task, resumes=False)
        return TaskStart(agent, lambda agent: self._starter.resumed(fresh, agent))
