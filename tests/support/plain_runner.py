"""A task runner without models: it starts tasks that do nothing, counts what it is told, and can be made to wait."""

import asyncio
from datetime import UTC, datetime

import msgspec

from app.engine.broadcast import EventLog
from app.engine.errors import AgentBusy, Conflict, NotFound
from app.protocol.asks import Ask, AskAnswerParams, AskAnswerResult
from app.protocol.context import ConversationSummariseParams
from app.protocol.conversations import Conversation
from app.protocol.events import AskUpdate, ConversationUpdate, TaskUpdate
from app.protocol.tasks import (
    QueuedKind,
    Task,
    TaskMessageParams,
    TaskQueueChangeParams,
    TaskQueueRemoveParams,
    TaskRetryParams,
    TaskSetModeParams,
    TaskStartParams,
)


class PlainRunner:
    """`gate` is open; cleared, it holds every start until it is set. `asks` are those that can be answered."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.gate = asyncio.Event()
        self.gate.set()
        self.starting = asyncio.Event()
        self.tasks: dict[str, Task] = {}
        self.started: list[str] = []
        self.steered: list[str] = []
        self.asks: dict[str, Ask] = {}
        self.answers: list[AskAnswerParams] = []

    async def drain(self, seconds: float) -> None:
        pass

    def hand_over(self) -> None:
        pass

    def take_over(self) -> None:
        pass

    def under_way(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks.values() if task.ended_at is None)

    async def start(self, params: TaskStartParams, version: int | None = None, remark: str = "") -> Task:
        if params.prompt == "fail":
            raise ZeroDivisionError("a bug")
        self.started.append(params.prompt)
        self.starting.set()
        await self.gate.wait()
        now = datetime.now(UTC)
        number = len(self.tasks) + 1
        conversation_id = params.conversation_id or f"c{number}"
        conversation = Conversation(id=conversation_id, title=params.prompt, created_at=now, updated_at=now)
        task = Task(
            id=params.task_id or f"t{number}",
            conversation_id=conversation_id,
            agent_id="a1",
            prompt=params.prompt,
            status="running",
            model="scripted/none",
            workspace="",
            started_at=now,
        )
        self.tasks[task.id] = task
        self._log.publish(ConversationUpdate(conversation=conversation))
        self._log.publish(TaskUpdate(task=task))
        return task

    async def reply(self, params: TaskStartParams) -> Task:
        return await self.start(params)

    async def retry(self, params: TaskRetryParams) -> Task:
        raise NotFound(f"There is no node {params.node_id!r}.")

    async def summarise(self, params: ConversationSummariseParams) -> Task:
        raise NotFound(f"There is no conversation {params.conversation_id!r}.")

    async def stop(self, task_id: str, by: str) -> Task:
        return self._change(msgspec.structs.replace(self._task(task_id), stopping=True))

    async def pause(self, task_id: str) -> Task:
        return self._change(msgspec.structs.replace(self._task(task_id), status="paused"))

    async def resume(self, task_id: str) -> Task:
        return self._change(msgspec.structs.replace(self._task(task_id), status="running"))

    async def try_now(self, task_id: str) -> Task:
        return self._change(msgspec.structs.replace(self._task(task_id), retry_at=None))

    async def set_mode(self, params: TaskSetModeParams) -> Task:
        return self._change(msgspec.structs.replace(self._task(params.task_id), mode=params.mode))

    async def say(self, params: TaskMessageParams, kind: QueuedKind) -> Task:
        if kind == "follow_up":
            raise AgentBusy("The agent is at work.")
        self.steered.append(params.text)
        return self._task(params.task_id)

    async def change_queued(self, params: TaskQueueChangeParams) -> Task:
        raise Conflict("The agent has read it.")

    async def remove_queued(self, params: TaskQueueRemoveParams) -> Task:
        raise Conflict("The agent has read it.")

    async def after(self, task_id: str) -> Task | None:
        """Nobody takes turns here."""

    async def answer(self, params: AskAnswerParams, by: str) -> AskAnswerResult:
        self.answers.append(params)
        if params.ask_id not in self.asks:
            raise NotFound(f"There is no ask {params.ask_id!r}.")
        settled = msgspec.structs.replace(
            self.asks.pop(params.ask_id), status="answered", answer=params.text, allowed=params.allow, answered_by=by
        )
        self._log.publish(AskUpdate(ask=settled))
        return AskAnswerResult(won=True, ask=settled)

    async def close(self) -> None:
        """Nothing is under way here that would go on."""

    def _task(self, task_id: str) -> Task:
        if task_id not in self.tasks:
            raise NotFound(f"There is no task {task_id!r}.")
        return self.tasks[task_id]

    def _change(self, task: Task) -> Task:
        self.tasks[task.id] = task
        self._log.publish(TaskUpdate(task=task))
        return task
