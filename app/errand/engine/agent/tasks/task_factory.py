"""Creates stored, ready-to-run tasks: new, retried, resumed, summary, next speaker."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.history.conversion import message_of, user_message
from errand.engine.agent.history.participants import Participants, participants_of
from errand.engine.agent.history.visible_history import branch_messages, environment_in, recent_path, was_planning
from errand.engine.agent.prompt.environment import environment_for_task
from errand.engine.agent.prompt.plan_mode import plan_message, with_plan_mode
from errand.engine.agent.prompt.texts import engine_message
from errand.engine.agent.run.resume import InterruptedTurn, last_reply, recorded_calls
from errand.engine.agent.run.task_builder import TaskBuilder
from errand.engine.agent.run.task_run import TaskRun
from errand.engine.agent.run.task_state import ended_task, status_text, with_status
from errand.engine.agent.tasks import manual_summary
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.agent.tasks.follow_up_tasks import retry_params, task_after_chat
from errand.engine.agent.tasks.new_task import check_start_params, new_task, publish_message, publish_task
from errand.engine.agent.tasks.rounds import next_reply
from errand.engine.agent.tasks.sub_agents import Calling, as_sub_task, sub_agent_target, with_sub_agent_prompt
from errand.engine.agent.tasks.task_target import (
    TaskTarget,
    find_target,
    make_workspace,
    personality_of,
    with_personality,
)
from errand.engine.core.errors import Conflict, IllegalMove, InvalidParams, NotFound, StorageError
from errand.engine.core.messages import AssistantMessage, ModelMessage, UserMessage
from errand.engine.models.base import ChatModel
from errand.engine.models.router import ModelRouter
from errand.engine.tools.context import SubAgentOrder
from errand.protocol.agents import Agent, ThinkingLevel
from errand.protocol.blocks import Block, TextBlock
from errand.protocol.context import ConversationSummariseParams
from errand.protocol.conversations import Node
from errand.protocol.events import TaskUpdate
from errand.protocol.notices import NoticeData, ReplyNotice, ThinkingNotSent, UnknownPrice
from errand.protocol.tasks.groups import TodoItem
from errand.protocol.tasks.methods import TaskRetryParams, TaskSetModeParams, TaskStartParams
from errand.protocol.tasks.task import Task, replace_fields


@dataclass(frozen=True, slots=True)
class StartedTask:
    """A stored task that is ready to run: from a message, an interrupted turn, or the existing branch."""

    run: TaskRun
    opening: UserMessage | InterruptedTurn | None


class TaskStarter:
    def __init__(self, builder: TaskBuilder, models: ModelRouter, changes: ConversationChanges) -> None:
        self._build = builder.build
        self._log = builder.log
        self._database = builder.database
        self._settings = builder.settings
        self._attachments = builder.attachments
        self._asks = builder.asks
        self._models = models
        self._changes = changes
        # Of the conversations: the models whose user was told that a thinking level is not sent.
        self._told: set[tuple[str, str, ThinkingLevel]] = set()

    async def new(
        self, params: TaskStartParams, target: TaskTarget, agent: Agent, *, is_again: bool = False
    ) -> StartedTask:
        """Start from a message, after the agent's head or as a sibling of `sibling_of`.

        `is_again`: the model's address comes from an earlier task instead of this request.
        """
        target = replace(target, agent=await with_personality(agent, target.personality, self._database))
        after = await self._before_sibling(params) if params.sibling_of is not None else agent.head_id
        task = replace_fields(await self._new_task(params, target), todo=await self._todo_at(after, agent))
        opened = self._models.open_again if is_again else self._models.open
        model = opened(task.request.model, task.request.api_base, params.api_key)
        await self._ask_server(task)
        attachments = await self._attachments.store(params.attachments)
        participants = await participants_of(target.agent, self._database)
        kept_ids = target.conversation.kept
        path = await recent_path(self._database.nodes, after, kept_ids)
        history = await branch_messages(path, kept_ids, participants.as_messages)
        await make_workspace(target.conversation)
        message = (
            *self._attachments.blocks(task.request.prompt, attachments),
            *await _environment(task, path),
        )
        branch = await publish_task(task, target, self._log, self._changes)
        branch.position = branch.position.advance(after)
        chosen = None if is_again else params.thinking_level
        publish_message(task, message, branch, target, tuple(self._about_model(task, chosen)))
        await self._store(task)
        personality = participants.with_introduction(target.personality)
        run = self._build(task, branch, personality, model, history, 1, participants.as_messages)
        return StartedTask(run, user_message(message))

    def _about_model(self, task: Task, chosen: ThinkingLevel | None) -> Iterator[ReplyNotice]:
        """Yield notices on a budget or, once for each conversation, a thinking level without effect."""
        if task.budget.budget_usd is not None and not self._models.has_price(task.request.model):
            yield UnknownPrice(model=task.request.model)
        if chosen is None or (task.conversation_id, task.request.model, chosen) in self._told:
            return
        if (why := self._models.obstacle_to_thinking(task.request.model, chosen, task.request.api_base)) is not None:
            self._told.add((task.conversation_id, task.request.model, chosen))
            yield ThinkingNotSent(model=task.request.model, level=chosen, why=why)

    async def sub_agent(
        self, params: TaskStartParams, target: TaskTarget, agent: Agent, order: SubAgentOrder, calling: Calling
    ) -> StartedTask:
        """Start a sub-agent on a branch of its own, which begins with its order."""
        target = replace(target, agent=agent)
        task = await new_task(params, target, self._settings.values, self._models)
        task = as_sub_task(task, order, calling)
        model = (
            calling.model
            if task.request.own_key
            else self._models.open_again(task.request.model, task.request.api_base)
        )
        await self._ask_server(task)
        message = (TextBlock(text=order.prompt, task_from=target.caller), *await _environment(task, ()))
        branch = await publish_task(task, target, self._log, self._changes)
        publish_message(task, message, branch, target)
        await self._store(task)
        participants = await participants_of(target.agent, self._database)
        personality = with_sub_agent_prompt(task, target.personality)
        run = self._build(task, branch, personality, model, (), 1, participants.as_messages)
        return StartedTask(run, user_message(message))

    async def retry(self, params: TaskStartParams, reply: Node, target: TaskTarget, agent: Agent) -> StartedTask:
        """Retry a reply as its sibling: the head moves to the reply's parent, and no message is added.

        Drops a budget that cannot be enforced.
        """
        assert reply.parent_id is not None, "a reply follows something"
        target = replace(target, agent=await with_personality(agent, target.personality, self._database))
        task = await self._new_task(params, target)
        model = self._models.open_again(task.request.model, task.request.api_base, params.api_key)
        if not self._models.has_price(
            task.request.model
        ):  # a notice about it would separate the reply from its sibling
            task = replace_fields(task, budget_usd=None)
        return await self._start_at(task, target, model, reply.parent_id)

    async def without_message(
        self,
        params: TaskStartParams,
        target: TaskTarget,
        agent: Agent,
        *,
        summarises: bool = False,
        follows: str | None = None,
    ) -> StartedTask:
        """Start at the agent's head without a message: answer the last message, or summarise the history."""
        assert agent.head_id is not None, "somebody has spoken"
        target = replace(target, agent=agent)
        task = await self._new_task(params, target)
        model = self._models.open_again(task.request.model, task.request.api_base, params.api_key)
        task = replace_fields(task, summarises=summarises, follows=follows)
        return await self._start_at(task, target, model, agent.head_id)

    async def _start_at(self, task: Task, target: TaskTarget, model: ChatModel, after: str) -> StartedTask:
        await self._ask_server(task)
        participants = await participants_of(target.agent, self._database)
        path = await recent_path(self._database.nodes, after, target.conversation.kept)
        history = await branch_messages(path, target.conversation.kept, participants.as_messages)
        await make_workspace(target.conversation)
        branch = await publish_task(task, target, self._log, self._changes)
        branch.set_head(after, branch.agent.version)
        await self._store(task)
        personality = participants.with_introduction(target.personality)
        run = self._build(task, branch, personality, model, history, 0, participants.as_messages)
        mode = plan_message(task.options.approve, was_planning=was_planning(path))
        return StartedTask(run, mode or _continuation(history))

    async def _ask_server(self, task: Task) -> None:
        """Ask what the server of the task's model says of it, which decides what the task sends.

        Called once the model is open: before, nobody may have chosen the address.
        """
        await self._models.servers.status_for_request(task.request.model, task.request.api_base)

    async def _store(self, task: Task) -> None:
        """Raises `StorageError` if a part of the start was refused; the task ends then, and does not stay running."""
        try:
            await self._log.flush()
        except StorageError as error:
            self._log.publish(TaskUpdate(task=ended_task(task, "error", "error", str(error))))
            with suppress(StorageError):
                await self._log.flush()
            raise

    async def resumed(self, task: Task, agent: Agent) -> StartedTask:
        """Resume a task from its last finished step."""
        personality = await personality_of(None, agent, self._database)
        model = self._models.open_again(task.request.model, task.request.api_base)
        await self._ask_server(task)
        conversation = await self._database.conversations.get(task.conversation_id)
        assert conversation is not None, "it holds the task"
        participants = await participants_of(agent, self._database)
        kept_ids = conversation.kept
        path = await recent_path(self._database.nodes, agent.head_id, kept_ids)
        personality = with_sub_agent_prompt(task, participants.with_introduction(personality))
        await self._check_branch(task, path)
        turn = await self._open_turn(task, path, kept_ids, participants)
        task = replace_fields(with_status(task, "running"), detail="resumed", own_key=False, pausing=False)
        branch = BranchWriter(agent, self._log)
        if turn is None:
            self._asks.drop_task(task.id)
        history = turn.history if turn is not None else await branch_messages(path, kept_ids, participants.as_messages)
        stored = turn.stored if turn is not None else 0
        run = self._build(task, branch, personality, model, history, stored, participants.as_messages, turn)
        if run.delegation is not None and (below := await self._database.tasks.children(task)):
            run.delegation.add_ended(below)
        if was_planning(path) != (task.options.approve == "plan"):  # changed, and not read of
            run.announce_plan_mode(is_on=task.options.approve == "plan")
        # Stored before the response: a client that follows the task next must not find it interrupted.
        self._log.publish(TaskUpdate(task=task))
        await self._log.flush()
        return StartedTask(run, turn if turn is not None else _continuation(history))

    async def _open_turn(
        self, task: Task, path: tuple[Node, ...], kept: tuple[str, ...], participants: Participants
    ) -> InterruptedTurn | None:
        """Return the interrupted turn, if its reply is stored. Asks of that turn are repeated only if unanswered."""
        at = last_reply(path, task.id)
        if at is None:
            return None
        reply, history = message_of(path[at]), await branch_messages(path[:at], kept, participants.as_messages)
        if not isinstance(reply, AssistantMessage) or not history or history[-1].role == "assistant":
            return None
        database, results = self._database, [node for node in path[at:] if node.role == "tool_result"]
        past = recorded_calls(results, await database.executions.of_task(task.id), path[at].turn)
        asks = await database.asks.page(task_ids=(task.id,))
        self._asks.resume(task.id, (ask for ask in asks if ask.created_at >= path[at].created_at))
        return InterruptedTurn(reply, history, past, stored=1 + len(results))

    async def _new_task(self, params: TaskStartParams, target: TaskTarget) -> Task:
        """Return the new task, which begins in the folder in which the conversation's last task has ended."""
        task = await new_task(params, target, self._settings.values, self._models)
        last = await self._database.tasks.newest(1, task.conversation_id)
        if not last or last[0].request.workspace != task.request.workspace:
            return task
        return replace_fields(task, working_dir=last[0].progress.working_dir)

    async def _todo_at(self, leaf_id: str | None, agent: Agent) -> tuple[TodoItem, ...]:
        """Return the agent's to-do list at the end of its task before, if something of it is left to do."""
        node = await self._database.nodes.get(leaf_id) if leaf_id is not None else None
        if node is None or node.task_id is None:
            return ()
        last = await self._database.tasks.get(node.task_id)
        if last is None or last.agent_id != agent.id or all(item.status == "done" for item in last.todo):
            return ()
        return last.todo

    async def _before_sibling(self, params: TaskStartParams) -> str | None:
        assert params.sibling_of is not None
        node = await self._database.nodes.get(params.sibling_of)
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
        outline = await self._database.trees.outline(task.conversation_id)
        if any(node.task_id == task.id for node in outline.nodes):
            raise IllegalMove("The agent is on another branch now. Go back to the branch of this task, then resume it.")


async def _environment(task: Task, path: Sequence[Node]) -> tuple[Block, ...]:
    """Return what a message after this branch says of the workspace and of plan mode, if anything."""
    before = environment_in(path)
    changes = await environment_for_task(Path(task.request.workspace), before)
    block = with_plan_mode(changes, before, task.options.approve, was_planning=was_planning(path))
    return () if block is None else (block,)


def _continuation(history: tuple[ModelMessage, ...]) -> UserMessage | None:
    """Return a prompt to continue after a cut reply: models cannot continue from their own message."""
    return engine_message("resume") if history and history[-1].role == "assistant" else None


@dataclass(frozen=True, slots=True)
class TaskStart:
    """Call `begin` with the current version of the locked agent."""

    agent: Agent
    begin: Callable[[Agent], Awaitable[StartedTask]]


class TaskFactory:
    """Prepares task starts. Each method checks first; nothing is stored before `begin`."""

    def __init__(self, builder: TaskBuilder, models: ModelRouter, changes: ConversationChanges) -> None:
        self._database = builder.database
        self._paths = builder.paths
        self._starter = TaskStarter(builder, models, changes)

    async def new(self, params: TaskStartParams, version: int | None, remark: NoticeData | None) -> TaskStart:
        """Prepare a task with a message and an optional `remark`; its `begin` raises `Conflict` on a version
        mismatch.
        """
        target = replace(await find_target(params, self._database, self._paths), remark=remark)

        async def begin(agent: Agent) -> StartedTask:
            if version is not None and agent.version != version:
                raise Conflict(f"The agent has moved on: its version is {agent.version}, not {version}.")
            return await self._starter.new(params, target, agent)

        return TaskStart(target.agent, begin)

    async def after_chat(self, chat: Task, params: TaskSetModeParams) -> TaskStart:
        """Return a task after a chat. Its message is from the engine: the user only chose the mode."""
        start = await task_after_chat(chat, params, self._database)
        target = replace(await find_target(start, self._database, self._paths), author="engine")
        return TaskStart(target.agent, lambda agent: self._starter.new(start, target, agent, is_again=True))

    async def reply(self, params: TaskStartParams) -> TaskStart:
        target = await find_target(params, self._database, self._paths)
        return TaskStart(target.agent, lambda agent: self._starter.without_message(params, target, agent))

    async def retry(self, params: TaskRetryParams) -> TaskStart:
        start, reply = await retry_params(params, self._database)
        await check_start_params(start)
        target = await find_target(start, self._database, self._paths)
        return TaskStart(target.agent, lambda agent: self._starter.retry(start, reply, target, agent))

    async def summary(self, params: ConversationSummariseParams) -> TaskStart:
        start = await manual_summary.summary_params(params, self._database)
        target = await find_target(start, self._database, self._paths)
        return TaskStart(
            target.agent, lambda agent: self._starter.without_message(start, target, agent, summarises=True)
        )

    async def next_reply(self, task: Task, agent: Agent) -> TaskStart:
        """Return the next speaker's task in a round."""
        target, params = await next_reply(task, agent, self._database)
        return TaskStart(agent, lambda agent: self._starter.without_message(params, target, agent, follows=task.id))

    async def sub_agent(self, order: SubAgentOrder, calling: Calling) -> TaskStart:
        """Return the task of a sub-agent. Raises `NotFound` or `InvalidParams` for a wrong order."""
        target, params, allowed_order = await sub_agent_target(order, calling, self._database)
        return TaskStart(
            target.agent, lambda agent: self._starter.sub_agent(params, target, agent, allowed_order, calling)
        )

    async def resumed(self, task: Task) -> TaskStart:
        if task.activity.status != "interrupted":
            raise IllegalMove(f"A task that is {status_text(task.activity.status)} cannot be resumed.")
        agent = await self._database.agents.get(task.agent_id)
        if agent is None:
            raise NotFound(
                "The agent of this task was deleted, so it cannot be resumed. Stop it, and go on with another agent."
            )
        fresh = replace_fields(task, resumes=False)
        return TaskStart(agent, lambda agent: self._starter.resumed(fresh, agent))
