"""A watch of tasks: shows the messages of their conversations, has their asks answered, and waits for their ends."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

import msgspec

from errand.client.connection import Connection
from errand.client.conversation.history import snapshot_records
from errand.client.errors import EngineUnreachable
from errand.client.subscription import ConnectionDown, ConnectionMessage, ConnectionRestored
from errand.protocol.asks import ASK_ANSWER, Ask, AskAnswerParams
from errand.protocol.engine import Condition, HealthUpdate
from errand.protocol.events import AskUpdate, Delta, EventRecord, Resync, TaskUpdate, conversation_of
from errand.protocol.tasks.task import Task

ShownMessage: TypeAlias = EventRecord | Delta

# The engine limits its queue per client; this limits the messages that wait for a blocked display.
MAX_WAITING_MESSAGES = 10_000


class TaskDisplay(Protocol):
    """Receives the messages of the watched conversations."""

    def show(self, conversation_id: str, message: ShownMessage) -> None: ...

    def connection(self, *, lost: bool) -> None:
        """The connection was lost or restored."""
        ...

    def health(self, conditions: tuple[Condition, ...]) -> None:
        """The current conditions of the engine; empty once all have ended."""
        ...

    def tick(self) -> None:
        """Called about once a second: update running times."""
        ...


class Answerer(Protocol):
    """Settles asks, one at a time. `is_person`: somebody reads the ask, so that it is shown when it is its turn."""

    is_person: bool

    async def answer(self, ask: Ask, task: Task | None) -> AskAnswerParams:
        """May take as long as a person takes; cancelled when the ask is settled elsewhere.

        `task` is the one that asks, if several ask at once.
        """
        ...


class TaskWatcher:
    """Connects a client's display and answerer to the events of its conversations.

    `tasks` has the newest state of each task seen. `on_ended` is called with each task that was seen at work and has
    ended.
    """

    def __init__(
        self,
        connection: Connection,
        display: TaskDisplay,
        answers: Answerer,
        on_ended: Callable[[Task], None] | None = None,
    ) -> None:
        self._on_ended = on_ended
        self._connection = connection
        self._display = display
        self._answers = answers
        self._waiting: asyncio.Queue[ConnectionMessage] = asyncio.Queue(MAX_WAITING_MESSAGES)
        self._overflowed = False
        self._has_conditions = False
        self._followed: dict[str, str | None] = {}
        self._settled: set[str] = set()
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._later: dict[str, EventRecord] = {}  # asks that are not shown yet
        self._one_at_a_time = asyncio.Lock()
        self._unsubscribe = connection.subscribe(self._put)
        self.tasks: dict[str, Task] = {}

    def close(self) -> None:
        self._unsubscribe()

    async def follow(
        self, conversation_id: str, task_id: str | None = None, after: int | None = None, epoch: str | None = None
    ) -> bool:
        """Show a conversation: its events after a sequence number, or a snapshot followed by new events.

        `task_id` limits the snapshot to that task. True if there are messages before those of the snapshot.
        """
        self._followed[conversation_id] = task_id
        self._health(self._connection.welcome.health)
        result = await self._connection.subscribe_scope(conversation_id, "full", after=after, epoch=epoch)
        if result.snapshot is None:
            return False
        at_work = {task.id for task in self.tasks.values() if task.outcome.ended_at is None}
        for record in snapshot_records(result.snapshot, result.epoch, task_id, at_work):
            self._put(record)
        return result.snapshot.has_more_nodes

    def _health(self, conditions: tuple[Condition, ...]) -> None:
        if conditions or self._has_conditions:
            self._display.health(conditions)
        self._has_conditions = bool(conditions)

    async def until_ended(self, task_ids: Iterable[str]) -> None:
        """Show and settle until each of the tasks has ended.

        Raises `CallError`, `ConnectionLost`, and what the display raises.
        """
        watched_ids = frozenset(task_ids)
        await self.until(lambda: all(self._has_ended(task_id) for task_id in watched_ids))

    async def until_shown(self) -> None:
        """Show and settle all waiting messages."""
        await self.until(self._waiting.empty)

    async def until(self, is_done: Callable[[], bool]) -> None:
        """Show and settle until `is_done` returns true; checked after each message."""
        try:
            async with asyncio.TaskGroup() as group:
                ticker = group.create_task(self._tick())
                while not is_done():
                    await self._message(await self._waiting.get(), group)
                ticker.cancel()
                for asking in self._asking.values():
                    asking.cancel()
        except BaseExceptionGroup as errors:
            # Simultaneous errors have one cause here: a lost connection or a closed terminal.
            raise errors.exceptions[0] from None

    def _has_ended(self, task_id: str) -> bool:
        task = self.tasks.get(task_id)
        return task is not None and (task.outcome.ended_at is not None or task.activity.status == "interrupted")

    def _put(self, message: ConnectionMessage) -> None:
        if self._waiting.full():
            self._overflowed = True
        else:
            self._waiting.put_nowait(message)

    async def _message(self, message: ConnectionMessage, group: asyncio.TaskGroup) -> None:
        match message:
            case Resync():
                await self._follow_again()
            case ConnectionDown(gave_up=True):
                working = [task.id for task in self.tasks.values() if task.outcome.ended_at is None]
                raise EngineUnreachable(message.reason, working[-1] if working else None)
            case ConnectionDown():
                self._display.connection(lost=True)
            case ConnectionRestored():
                self._display.connection(lost=False)
            case HealthUpdate(conditions=conditions):
                self._health(conditions)
            case _:
                self._show(message, group)
        if self._overflowed and self._waiting.empty():
            self._overflowed = False
            await self._follow_again()

    async def _follow_again(self) -> None:
        for conversation_id, task_id in tuple(self._followed.items()):
            await self.follow(conversation_id, task_id)

    def _show(self, message: ShownMessage, group: asyncio.TaskGroup) -> None:
        is_event = isinstance(message, EventRecord)
        conversation_id = conversation_of(message.event) if is_event else message.conversation_id
        if conversation_id is None or conversation_id not in self._followed:
            return
        if not self._is_for_later(message):
            self._display.show(conversation_id, message)
        if isinstance(message, EventRecord):
            match message.event:
                case TaskUpdate(task=task):
                    before = self.tasks.get(task.id)
                    self.tasks[task.id] = task
                    has_ended = (
                        before is not None and before.outcome.ended_at is None and task.outcome.ended_at is not None
                    )
                    if self._on_ended is not None and has_ended:
                        self._on_ended(task)
                case AskUpdate(ask=ask):
                    self._on_ask(ask, group)
                case _:
                    pass

    def _is_for_later(self, message: ShownMessage) -> bool:
        """Return a further ask to a person: it is shown when those before it are answered."""
        if not isinstance(message, EventRecord) or not isinstance(message.event, AskUpdate):
            return False
        ask = message.event.ask
        if ask.status != "waiting":
            return self._later.pop(ask.id, None) is not None
        is_new = ask.id not in self._asking and ask.id not in self._settled
        if is_new and self._asking and self._answers.is_person:
            self._later[ask.id] = message
        return ask.id in self._later

    def _on_ask(self, ask: Ask, group: asyncio.TaskGroup) -> None:
        if ask.status != "waiting":
            self._settled.add(ask.id)
            asking = self._asking.pop(ask.id, None)
            if asking is not None:
                asking.cancel()
        elif ask.id not in self._asking and ask.id not in self._settled:
            self._asking[ask.id] = group.create_task(self._answer(ask))

    async def _answer(self, ask: Ask) -> None:
        async with self._one_at_a_time:
            later = self._later.pop(ask.id, None)
            if later is not None:
                self._display.show(ask.conversation_id, later)
            is_one_of_several = later is not None or len(self._asking) > 1
            reply = await self._answers.answer(ask, self.tasks.get(ask.task_id) if is_one_of_several else None)
        if ask.approval is not None:  # bound to what was shown
            reply = msgspec.structs.replace(reply, basis=ask.approval.basis)
        self._asking.pop(ask.id, None)  # from here on the update about this answer must not cancel the call
        await self._connection.call(ASK_ANSWER, reply)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._display.tick()
