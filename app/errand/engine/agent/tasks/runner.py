"""Entry point for task requests: starts tasks, controls and steers running ones, and ends them at shutdown."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from errand.engine.agent.run.delegation import Delegation
from errand.engine.agent.run.task_builder import TaskBuilder
from errand.engine.agent.run.task_state import ended_task, status_text
from errand.engine.agent.tasks.approval_modes import ApprovalModes
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.agent.tasks.locks import AgentLocks, KeyedLock
from errand.engine.agent.tasks.new_task import check_start_params
from errand.engine.agent.tasks.restart import TaskResumption
from errand.engine.agent.tasks.rounds import Rounds
from errand.engine.agent.tasks.running_tasks import RunningTasks
from errand.engine.agent.tasks.sub_agents import Calling, sub_task_id
from errand.engine.agent.tasks.task_factory import TaskFactory, TaskStart
from errand.engine.agent.tasks.titles import ConversationTitles
from errand.engine.agent.tasks.unread_messages import UnreadMessages
from errand.engine.background import Background
from errand.engine.core.errors import EngineError, IllegalMove
from errand.engine.core.ids import new_id
from errand.engine.models.router import ModelRouter
from errand.engine.tools.context import SubAgentOrder
from errand.protocol.context import ConversationSummariseParams
from errand.protocol.events import TaskUpdate
from errand.protocol.notices import NoticeData
from errand.protocol.tasks.methods import TaskRetryParams, TaskSetModeParams, TaskStartParams
from errand.protocol.tasks.task import Task, replace_fields

# A following task is among this many newest ones of its conversation, since it starts right after.
_NEWEST_TASKS = 20


class AgentTaskRunner:
    """Runs each task as an asyncio task in `background`; one task at a time per agent.

    `running` are the running tasks, `messages` what their agents have not read yet, `modes` the approval modes of
    conversations, `changes` the changes of conversations, `resumption` resumes tasks that an engine's end interrupted.
    """

    def __init__(self, builder: TaskBuilder, locks: AgentLocks, models: ModelRouter, background: Background) -> None:
        builder = replace(builder, sub_agents=self)
        self._log = builder.log
        self._database = builder.database
        self._asks = builder.asks
        self._sessions = builder.tools.sessions
        self._locks = locks
        self._background = background
        self.changes = ConversationChanges(builder.log, builder.database)
        self._task_locks = KeyedLock()
        self.modes = ApprovalModes(
            builder.log, builder.database, self.changes, builder.asks, self._task_locks, lambda: self.running.all
        )
        self._factory = TaskFactory(builder, models, self.changes)
        self._titles = ConversationTitles(
            builder.log, builder.database, builder.settings, models, self.changes, builder.models.daily_budget
        )
        self._rounds = Rounds(builder.log, builder.database, locks)
        self.running = RunningTasks(locks, builder.asks, builder.database, self._on_ended)
        self.messages = UnreadMessages(builder, self.running, self._task_locks)
        self.resumption = TaskResumption(
            builder.log,
            builder.database,
            locks,
            self._task_locks,
            lambda task_id: self.running.get(task_id) is not None,
            self.resume,
            background,
        )

    async def start(
        self, params: TaskStartParams, version: int | None = None, remark: NoticeData | None = None
    ) -> Task:
        """Start a task; returns once it is stored. A known `task_id` returns the existing task.

        Raises `Conflict` if `version` is not the agent's version. A `remark` follows the message.
        """
        await check_start_params(params)
        async with self._once(params.task_id) as existing:
            if existing is not None:
                return existing
            if params.conversation_id is not None and params.approve not in (None, "never"):
                await self.modes.change(params.conversation_id, params.approve, "a new task", attended=False)
            return await self._begin(await self._factory.new(params, version, remark))

    async def reply(self, params: TaskStartParams) -> Task:
        """Let an agent reply at its head, without a new message. A known `task_id` returns the existing task."""
        async with self._once(params.task_id) as existing:
            return existing or await self._begin(await self._factory.reply(params))

    async def retry(self, params: TaskRetryParams) -> Task:
        """Retry a reply on a sibling branch. A known `task_id` returns the existing task."""
        async with self._once(params.task_id) as existing:
            return existing or await self._begin(await self._factory.retry(params))

    async def summarise(self, params: ConversationSummariseParams) -> Task:
        """Summarise the older part of a branch. A known `task_id` returns the existing task."""
        async with self._once(params.task_id) as existing:
            return existing or await self._begin(await self._factory.summary(params))

    async def stop(self, task_id: str, by: str) -> Task:
        """Request a stop. Cancels an interrupted task. Raises `IllegalMove` for an ended one."""
        run = self.running.get(task_id)
        if run is None:
            async with self._task_locks.lock(task_id):
                run = self.running.get(task_id)
                if run is None:
                    return await self._cancel_interrupted(await self.running.stored_task(task_id))
        run.stop(by)
        return run.task

    async def pause(self, task_id: str) -> Task:
        """Pause a task, and with it the sub-agents below it."""
        run = await self.running.require(task_id)
        run.pause()
        for below in self.running.below(task_id):
            with suppress(IllegalMove):  # paused already, or ending
                below.pause()
        return run.task

    async def resume(self, task_id: str) -> Task:
        """Resume a paused task, or an interrupted one from its last finished step."""
        async with self._task_locks.lock(task_id):
            run = self.running.get(task_id)
            if run is None:
                return await self._begin(await self._factory.resumed(await self.running.stored_task(task_id)))
        run.resume()
        for below in self.running.below(task_id):
            with suppress(IllegalMove):
                below.resume()
        return run.task

    async def try_now(self, task_id: str) -> Task:
        """Retry the model call now instead of waiting for a rate limit; also resumes an interrupted task."""
        async with self._task_locks.lock(task_id):
            run = self.running.get(task_id)
            if run is None:
                task = await self.running.stored_task(task_id)
                if task.activity.retry_at is None:
                    raise IllegalMove(f"The task is {status_text(task.activity.status)}; it does not wait for a limit.")
                task = replace_fields(task, retry_at=None)
                return await self._begin(await self._factory.resumed(task))
        run.try_now()
        return run.task

    async def set_mode(self, params: TaskSetModeParams) -> Task:
        """Change the mode of a running or interrupted task; a finished chat continues in a new task."""
        new = await self.running.find_task(params.new_task_id) if params.new_task_id is not None else None
        if new is not None:
            return new
        async with self._task_locks.lock(params.task_id):
            run = self.running.get(params.task_id)
            task = await self.running.stored_task(params.task_id) if run is None else run.task
            if task.outcome.ended_at is not None:
                async with self._once(params.new_task_id) as existing:
                    return existing or await self._begin(await self._factory.after_chat(task, params))
            if run is None:
                task = replace_fields(task, mode=params.mode, decided=params.mode)
                self._log.publish(TaskUpdate(task=task))
            else:
                run.set_mode(params.mode)
                task = run.task
            await self._log.flush()
        return task

    async def next_in_round(self, task_id: str) -> Task | None:
        """Return the task that followed this one in a round, if any; waits until this one is over and its successor
        known.
        """
        await self.running.wait_ended(task_id)
        task = await self.running.stored_task(task_id)
        newest = await self._database.tasks.newest(_NEWEST_TASKS, task.conversation_id)
        return next((later for later in newest if later.origin.follows == task.id), None)

    async def start_sub_agent(self, order: SubAgentOrder, parent: Task, call_id: str) -> Task:
        """Start the sub-agent of a call; resume the one that an earlier engine started, return the one that ended."""
        run = self.running.get(parent.id)
        assert run is not None and run.delegation is not None, "it calls"
        calling = Calling(parent, call_id, run.model, run.delegation.limits_left())
        async with self._once(sub_task_id(parent, call_id)) as existing:
            task = existing or await self._begin(await self._factory.sub_agent(order, calling))
        return await self.resume(task.id) if task.activity.status == "interrupted" else task

    async def wait_sub_agent(self, task_id: str) -> Task:
        """Return the newest record of a task that has ended or was interrupted."""
        run = self.running.get(task_id)
        await self.running.wait_ended(task_id)
        return run.task if run is not None else await self.running.stored_task(task_id)

    def stop_sub_agent(self, task_id: str, by: str) -> None:
        run = self.running.get(task_id)
        if run is not None:
            run.stop(by)

    def delegation_of(self, task_id: str | None) -> Delegation | None:
        run = self.running.get(task_id) if task_id is not None else None
        return run.delegation if run is not None else None

    async def close(self) -> None:
        """Interrupt all running tasks and wait for them; no task can start afterwards."""
        self._locks.close()
        self._asks.close()
        self._database.journal.set_waits_saved(False)
        await self.running.close()

    async def drain(self, seconds: float) -> None:
        """Let running tasks finish their current step, for at most `seconds`; no task can start afterwards."""
        self._locks.close()
        await self.running.drain(seconds)

    @asynccontextmanager
    async def _once(self, task_id: str | None) -> AsyncGenerator[Task | None]:
        """Lock the id of a task that is to start; the task of a request that was sent before already exists."""
        async with self._task_locks.lock(task_id or new_id("task")):
            yield await self.running.find_task(task_id) if task_id is not None else None

    async def _begin(self, start: TaskStart) -> Task:
        """Lock the agent and run its task; the lock is held until the task ends or fails to start."""
        agent = start.agent
        await self._locks.acquire(agent)
        try:
            newest = await self._locks.current(agent)
            started = await start.begin(newest)
        except BaseException:
            self._locks.release(agent.id)
            raise
        run = started.run
        begun = run.branch.agent
        self.running.add(run)
        self._background.start(self.running.run_to_end(started), name=f"task {run.task.id}")
        self.modes.follow(run)
        await self._rounds.on_task_started(newest, begun)
        return run.task

    async def _on_ended(self, task: Task) -> None:
        if self._titles.is_wanted(task):
            self._background.start(self._titles.shorten(task), name=f"title of {task.conversation_id}")
        await self._close_sessions(task.conversation_id)
        await self._next_reply(task)

    async def _close_sessions(self, conversation_id: str) -> None:
        """After the last task of a conversation: close what its tools do not need any more.

        That is everything if the conversation was archived meanwhile.
        """
        sessions = self._sessions
        if any(run.task.conversation_id == conversation_id for run in self.running.all):
            return
        if not self._locks.is_at_work(conversation_id):  # nothing starts there
            await sessions.rest(conversation_id)
        if conversation_id not in sessions.conversations():
            return
        conversation = await self._database.conversations.get(conversation_id)
        if conversation is not None and conversation.archived:
            await sessions.close_conversation(conversation_id)

    async def _next_reply(self, task: Task) -> None:
        """Start the next speaker's task after a task, if there is one."""
        agent = await self._rounds.on_task_ended(task)
        if agent is None:
            return
        try:
            await self._begin(await self._factory.next_reply(task, agent))
        except EngineError as error:
            await self._rounds.report_not_started(task, agent, str(error))

    async def _cancel_interrupted(self, task: Task) -> Task:
        if task.activity.status != "interrupted":
            raise IllegalMove(f"The task is {status_text(task.activity.status)} already.")
        self._asks.drop_task(task.id)
        task = ended_task(task, "cancelled", "manual_stop")
        self._log.publish(TaskUpdate(task=task))
        for child in await self._database.tasks.children(task):
            if child.activity.status == "interrupted" and self.running.get(child.id) is None:
                await self._cancel_interrupted(child)
        await self._log.flush()
        return task
