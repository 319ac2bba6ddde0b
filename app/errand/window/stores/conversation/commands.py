"""Commands in one conversation: start, steer, follow up, stop, answer."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, Signal

from errand.client.conversation.branch import ComparedBranch, LoadedBranch
from errand.client.conversation.task_states import can_pause, is_paused, is_working
from errand.client.errors import CallError
from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.comparisons import TASK_COMPARE_MODELS, TaskCompareModelsParams
from errand.protocol.conversations import CONVERSATION_CHANGE, Conversation, ConversationChangeParams
from errand.protocol.memory import MEMORY_WARM_UP, MemoryWarmUpParams
from errand.protocol.settings import MODEL_WARM_UP, ModelWarmUpParams
from errand.protocol.tasks.groups import ApproveMode, DecidedMode
from errand.protocol.tasks.methods import (
    TASK_FOLLOW_UP,
    TASK_PAUSE,
    TASK_RESUME,
    TASK_SET_MODE,
    TASK_START,
    TASK_STEER,
    TASK_STOP,
    TASK_TRY_NOW,
    TaskIdParams,
    TaskMessageParams,
    TaskSetModeParams,
)
from errand.protocol.tasks.task import Task
from errand.text.translation import tr
from errand.window.stores.asks import AskStore
from errand.window.stores.conversation.agents import AgentStore
from errand.window.stores.session import EngineSession
from errand.window.stores.task_options import TaskOptions
from errand.window.stores.tasks import TaskStore

_WITH_ANSWER = "This goes with my answer."
_SEE_FILES = "See what is attached."
_STARTING = tr("The task is starting. Try again in a moment.")
_NOTHING_RUNS = tr("No task is running here.")
_NO_FOLDER = tr("Not started: no working folder was confirmed.")


@dataclass(frozen=True, slots=True)
class Unsent:
    """A message on its way to the engine; `TaskCommands.return_unsent` returns it to the input if the call fails."""

    text: str
    attachments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkspaceQuestion:
    """Asks where an imported conversation should work: in the `proposed` folder from its file, or in its `own` new one.

    Call `answer` with the chosen folder, or with None to cancel the command.
    """

    proposed: str
    own: str
    answer: Callable[[str | None], None]


class TaskCommands(QObject):
    """Emits `stored` with the id of a new conversation when its first task has started.

    Emits `unsent` with a text that was not accepted and the paths of its attachments, and `failed` with the reason;
    `compared` with a tuple of the branches (`ComparedBranch`) of the models that were asked; `workspace_requested` with
    a `WorkspaceQuestion` before the first task of an imported conversation that names a folder.
    """

    stored = Signal(str)
    compared = Signal(object)
    workspace_requested = Signal(object)
    unsent = Signal(str, object)
    failed = Signal(str)

    def __init__(
        self,
        session: EngineSession,
        tasks: TaskStore,
        asks: AskStore,
        agents: AgentStore,
        branch: LoadedBranch,
        conversation_id: str | None,
    ) -> None:
        super().__init__()
        self.conversation_id = conversation_id
        self.options = TaskOptions()
        self._conversation: Conversation | None = None
        self._session = session
        self._tasks = tasks
        self._asks = asks
        self._agents = agents
        self._branch = branch
        self._is_starting = False

    def put_conversation(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def confirm_workspace(self) -> None:
        """Ask which folder an imported conversation works in, once. Raises CallError if none is chosen."""
        from asyncio import get_running_loop  # not needed for the first paint

        conversation = self._conversation
        if conversation is None or not conversation.proposed_workspace:
            return
        chosen = get_running_loop().create_future()

        def settle(workspace: str | None) -> None:
            if not chosen.done():  # cancelled at the end of the session
                chosen.set_result(workspace)

        self.workspace_requested.emit(
            WorkspaceQuestion(conversation.proposed_workspace, conversation.workspace, settle)
        )
        workspace: str | None = await chosen
        if workspace is None:
            raise CallError("no_workspace", _NO_FOLDER)
        params = ConversationChangeParams(conversation_id=conversation.id, workspace=workspace)
        self._conversation = (await self._session.call(CONVERSATION_CHANGE, params)).conversation

    @property
    def task(self) -> Task | None:
        """The newest task of the selected agent, or a running one at the end of its branch."""
        selected = self._agents.shown
        if selected is None:
            return self._tasks.of_conversation(self.conversation_id) if self.conversation_id is not None else None
        own = self._tasks.of_agent(selected.id)
        if own is not None and is_working(own):
            return own
        last = self._branch.last_task()
        return last if last is not None and is_working(last) else own

    @property
    def steers(self) -> bool:
        """True if a message goes to the running task, rather than to another selected agent."""
        task, chosen = self.task, self._agents.chosen_id
        if task is None or not is_working(task):
            return False
        return chosen in (None, task.agent_id) or self._agents.is_in_round

    @property
    def question(self) -> Ask | None:
        """The open question of the selected task."""
        task = self.task
        own = self._asks.of_task(task.id) if task is not None else ()
        return next((ask for ask in own if ask.kind == "question"), None)

    @property
    def waiting(self) -> tuple[Ask, ...]:
        """The open asks of this conversation, oldest first."""
        return self._asks.of_conversation(self.conversation_id) if self.conversation_id is not None else ()

    def prepare(self, model: str) -> None:
        """A message to this model is being written: the engine gets ready for it. Without an answer it is slower."""
        self._session.spawn(self._session.call(MEMORY_WARM_UP, MemoryWarmUpParams()), lambda reason: None)
        self.prepare_model(model)

    def prepare_model(self, model: str) -> None:
        """This model was chosen for the next message; empty for the default one."""
        params = ModelWarmUpParams(model=model or None)
        self._session.spawn(self._session.call(MODEL_WARM_UP, params), lambda reason: None)

    def send(self, text: str, attachments: tuple[str, ...] = ()) -> None:
        """Answer the open question, or steer the running task, or start a task.

        A new task goes to a mentioned agent, if there is one. An answer contains text only: its attachments are queued
        and read right after it.
        """
        message, question, task = Unsent(text, attachments), self.question, self.task
        if question is not None:
            self._session.spawn(self._answer(question, message), partial(self.return_unsent, message))
        elif task is not None and self.steers and not self._is_for_another(text, task):
            self._session.send(TASK_STEER, _task_message(task, message), partial(self.return_unsent, message))
        else:
            self._session.spawn(self._start(message), partial(self.return_unsent, message))

    def ask_models(self, text: str, models: tuple[str, ...], attachments: tuple[str, ...] = ()) -> None:
        """Send a message to several models, each on a separate branch."""
        message = Unsent(text, attachments)
        self._session.spawn(self._ask_models(message, models), partial(self.return_unsent, message))

    def follow_up(self, text: str, attachments: tuple[str, ...] = ()) -> None:
        """Queue a message for the end of the current work; starts a task if none is running."""
        task, message = self.task, Unsent(text, attachments)
        if task is None or not self.steers:
            self.send(text, attachments)
        else:
            self._session.send(TASK_FOLLOW_UP, _task_message(task, message), partial(self.return_unsent, message))

    def stop(self) -> None:
        """Stop the selected task and its processes."""
        task = self.task
        if task is not None and task.outcome.ended_at is None and not task.activity.stopping:
            self._session.send(TASK_STOP, TaskIdParams(task_id=task.id), self.failed.emit)

    def pause_or_resume(self) -> None:
        """Pause the selected task before its next step; resume a paused or interrupted one."""
        task = self.task
        if task is not None and is_paused(task):
            self._session.send(TASK_RESUME, TaskIdParams(task_id=task.id), self.failed.emit)
        elif task is not None and can_pause(task):
            self._session.send(TASK_PAUSE, TaskIdParams(task_id=task.id), self.failed.emit)
        else:
            self.failed.emit(_NOTHING_RUNS)

    def stop_task(self, task_id: str) -> None:
        """Stop one task, such as that of a sub-agent."""
        self._session.send(TASK_STOP, TaskIdParams(task_id=task_id), self.failed.emit)

    def stop_all(self) -> None:
        """Stop every task of this conversation."""
        for task in self._tasks.at_work(self.conversation_id or ""):
            if not task.activity.stopping:
                self._session.send(TASK_STOP, TaskIdParams(task_id=task.id), self.failed.emit)

    def set_mode(self, mode: DecidedMode) -> None:
        """Change the mode of the selected task; an ended chat continues as a task."""
        task = self.task
        if task is not None:
            self._session.spawn(self._set_mode(TaskSetModeParams(task_id=task.id, mode=mode)), self.failed.emit)

    def set_approve(self, mode: ApproveMode) -> None:
        """Change the approval mode of the conversation and of its running tasks."""
        if self.conversation_id is not None:
            params = ConversationChangeParams(conversation_id=self.conversation_id, approve=mode)
            self._session.send(CONVERSATION_CHANGE, params, self.failed.emit)

    def try_now(self) -> None:
        """Retry the model call of the selected task instead of waiting for a rate limit."""
        task = self.task
        if task is not None and task.activity.retry_at is not None:
            self._session.send(TASK_TRY_NOW, TaskIdParams(task_id=task.id), self.failed.emit)

    def _is_for_another(self, text: str, task: Task) -> bool:
        """Return True if a text mentions agents, but not the running one."""
        named = self._agents.named_in(text)
        return bool(named) and task.agent_id not in named

    def _spoke_last(self) -> str | None:
        task = self._tasks.of_conversation(self.conversation_id) if self.conversation_id is not None else None
        return task.agent_id if task is not None else None

    def _addressee(self, text: str) -> str | None:
        """Return the agent that a message goes to; None lets the engine decide by mentions and turn order."""
        return None if self._agents.named_in(text) or self._agents.is_in_round else self._agents.chosen_id

    def return_unsent(self, message: Unsent, reason: str) -> None:
        """Return a message that was not accepted to the input, with the reason."""
        self.unsent.emit(message.text, message.attachments)
        self.failed.emit(reason)

    @asynccontextmanager
    async def _starting(self) -> AsyncGenerator[None]:
        """Allow one start at a time until the conversation exists: a second message would create another one."""
        if self._is_starting:
            raise CallError("starting", _STARTING)
        self._is_starting = True
        try:
            await self.confirm_workspace()
            self._is_starting = self.conversation_id is None
            yield
        finally:
            self._is_starting = False

    async def _start(self, message: Unsent) -> None:
        async with self._starting():
            params = self.options.start(
                message.text,
                self.conversation_id,
                attachments=message.attachments,
                agent_id=self._addressee(message.text),
                is_for_another=self._agents.is_for_another(message.text, self._spoke_last()),
            )
            self._adopt_conversation((await self._session.call(TASK_START, params)).task)

    async def _ask_models(self, message: Unsent, models: tuple[str, ...]) -> None:
        async with self._starting():
            start = self.options.start(
                message.text,
                self.conversation_id,
                attachments=message.attachments,
                agent_id=self._agents.chosen_id,
            )
            params = TaskCompareModelsParams(models=models, start=start)
            result = await self._session.call(TASK_COMPARE_MODELS, params)
            self._adopt_conversation(result.tasks[0])
        self.compared.emit(tuple(ComparedBranch(result.node_id, task.agent_id) for task in result.tasks))

    def _adopt_conversation(self, task: Task) -> None:
        """Take over the id of a new conversation from its first task."""
        if self.conversation_id is None:
            self.conversation_id = task.conversation_id
            self.stored.emit(task.conversation_id)

    async def _answer(self, question: Ask, message: Unsent) -> None:
        """Files are sent first: the task continues with the answer and reads its queue before the next turn."""
        task, text = self._tasks.get(question.task_id), message.text
        if message.attachments and task is not None and is_working(task):
            await self._session.call(TASK_STEER, _task_message(task, Unsent(_WITH_ANSWER, message.attachments)))
        elif message.attachments:  # an interrupted task takes no message: name the files in the answer
            text = "\n".join((text, *message.attachments))
        await self._asks.send_answer(AskAnswerParams(ask_id=question.id, text=text or _SEE_FILES))

    async def _set_mode(self, params: TaskSetModeParams) -> None:
        await self.confirm_workspace()
        await self._session.call(TASK_SET_MODE, params)


def _task_message(task: Task, message: Unsent) -> TaskMessageParams:
    return TaskMessageParams(task_id=task.id, text=message.text, attachments=message.attachments)
