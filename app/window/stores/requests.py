"""What a person asks for in one conversation: to start, steer, stop, answer. What comes of it is told by events."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.protocol.asks import Ask, AskAnswerParams, Remember
from app.protocol.tasks import Task, TaskIdParams, TaskMessageParams, TaskStartParams
from app.protocol.wire import TASK_FOLLOW_UP, TASK_START, TASK_STEER, TASK_STOP
from app.window.stores.asks import AskStore
from app.window.stores.session import Session
from app.window.stores.task_options import TaskOptions
from app.window.stores.tasks import TaskStore

_STARTING = "The task is just being started. Send this again in a moment."


class Requests(QObject):
    """A new conversation has no id until its first task is started: `stored` tells it.

    `unsent` gives back a text that was not taken, and `failed` the words why.
    """

    stored = Signal(str)
    unsent = Signal(str)
    failed = Signal(str)

    def __init__(self, session: Session, tasks: TaskStore, asks: AskStore, conversation_id: str | None) -> None:
        super().__init__()
        self.conversation_id = conversation_id
        self.options = TaskOptions()
        self._session = session
        self._tasks = tasks
        self._asks = asks
        self._is_starting = False

    @property
    def task(self) -> Task | None:
        """The newest task."""
        return self._tasks.of_conversation(self.conversation_id) if self.conversation_id is not None else None

    @property
    def waiting(self) -> tuple[Ask, ...]:
        """The asks that wait here, oldest first."""
        return self._asks.of_conversation(self.conversation_id) if self.conversation_id is not None else ()

    def send(self, text: str) -> None:
        """Answer the question that waits; else steer the task at work; else start one."""
        question = next((ask for ask in self.waiting if ask.kind == "question"), None)
        task = self.task
        if question is not None:
            answer = AskAnswerParams(ask_id=question.id, text=text)
            self._session.spawn(self._asks.settle(answer), self._give_back(text))
        elif task is not None and is_working(task):
            self._session.spawn(self._steer(task, text), self._give_back(text))
        else:
            self._begin(self.options.start(text, self.conversation_id))

    def follow_up(self, text: str) -> None:
        """Have it read when the work at hand is done; starts a task where none is at work."""
        task = self.task
        if task is None or not is_working(task):
            self.send(text)
            return
        self._session.spawn(self._follow_up(task, text), self._give_back(text))

    def stop(self) -> None:
        """Stop the newest task and all that it started."""
        task = self.task
        if task is not None and task.ended_at is None and not task.stopping:
            self._session.spawn(self._stop(task), self.failed.emit)

    def answer(self, ask_id: str, *, text: str = "", allow: bool | None = None, remember: Remember = "once") -> None:
        self._asks.answer(ask_id, text=text, allow=allow, remember=remember)

    def _begin(self, params: TaskStartParams) -> None:
        give_back = self._give_back(params.prompt)
        if self._is_starting:
            give_back(_STARTING)
            return
        self._is_starting = True
        self._session.spawn(self._start(params), give_back)

    def _give_back(self, text: str) -> Callable[[str], None]:
        return _Refusal(self, text)

    async def _start(self, params: TaskStartParams) -> None:
        try:
            task = (await self._session.call(TASK_START, params)).task
        finally:
            self._is_starting = False
        if self.conversation_id is None:
            self.conversation_id = task.conversation_id
            self.stored.emit(task.conversation_id)

    async def _steer(self, task: Task, text: str) -> None:
        await self._session.call(TASK_STEER, TaskMessageParams(task_id=task.id, text=text))

    async def _follow_up(self, task: Task, text: str) -> None:
        await self._session.call(TASK_FOLLOW_UP, TaskMessageParams(task_id=task.id, text=text))

    async def _stop(self, task: Task) -> None:
        await self._session.call(TASK_STOP, TaskIdParams(task_id=task.id))


class _Refusal:
    """What happens when a text was not taken: it is given back, with the words why."""

    def __init__(self, requests: Requests, text: str) -> None:
        self._requests = requests
        self._text = text

    def __call__(self, why: str) -> None:
        self._requests.unsent.emit(self._text)
        self._requests.failed.emit(why)


def is_working(task: Task) -> bool:
    """True while a task takes words: it has not ended and was not interrupted."""
    return task.ended_at is None and task.status != "interrupted"
