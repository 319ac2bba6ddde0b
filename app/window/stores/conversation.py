"""One opened conversation: the rows of its transcript, kept current, and what a person can do in it."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import uuid4

from PySide6.QtCore import QObject, Signal

from app.protocol.asks import Ask, AskAnswerParams, AskListParams, Remember
from app.protocol.blocks import ToolCallBlock
from app.protocol.conversations import Conversation, ConversationNodesParams, Node
from app.protocol.engine import Snapshot
from app.protocol.events import AgentUpdate, TextDelta, ToolOutput
from app.protocol.tasks import (
    ApproveMode,
    Task,
    TaskIdParams,
    TaskListParams,
    TaskMessageParams,
    TaskMode,
    TaskStartParams,
)
from app.protocol.wire import ASK_LIST, CONVERSATION_NODES, TASK_FOLLOW_UP, TASK_LIST, TASK_START, TASK_STEER, TASK_STOP
from app.window.rows import Row
from app.window.stores.asks import AskStore
from app.window.stores.branch import Branch
from app.window.stores.row_list import RowList
from app.window.stores.session import Session
from app.window.stores.tasks import TaskStore

NEW_TITLE = "New conversation"

_PAGE = 50
_SEEKING_PAGE = 500  # the most that the engine gives at once
# As many as one answer of the engine holds; the end of an older task is not shown.
_MOST_TASKS = 500
# Two frames of a 60 Hz screen.
_FLUSH_S = 0.033


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What a task is started with; None leaves it to the engine. `workspace` counts for a new conversation."""

    model: str | None = None
    workspace: str | None = None
    mode: TaskMode = "auto"
    approve: ApproveMode = "ask"


class ConversationStore(QObject):
    """Made by `Stores.open`. A new one has no id until its first task is started: `stored` tells it.

    As a row source: `reset` says that all rows are new; `inserted(first, count)`, `changed(index)` and
    `removed(first, count)` come right after each change. `reached` and `missed` answer `seek`. `unsent` gives back a
    text that was not taken, and `failed` the words why.
    """

    reset = Signal()
    inserted = Signal(int, int)
    changed = Signal(int)
    removed = Signal(int, int)
    taskUpdate = Signal(object)
    taskMessage = Signal(object)
    title_changed = Signal()
    loaded = Signal()
    reached = Signal(int)
    missed = Signal()
    stored = Signal(str)
    unsent = Signal(str)
    failed = Signal(str)

    def __init__(self, session: Session, tasks: TaskStore, asks: AskStore, conversation_id: str | None) -> None:
        super().__init__()
        self.conversation_id = conversation_id
        self.conversation: Conversation | None = None
        self.options = TaskOptions()
        self._session = session
        self._tasks = tasks
        self._asks = asks
        self._branch = Branch()
        self._rows = RowList(self.inserted.emit, self.changed.emit, self.removed.emit)
        self._is_loaded = conversation_id is None
        self._is_loading_older = False
        self._sought: tuple[str, int] | None = None
        self._is_starting = False
        self._is_held = False
        self._has_listed = False
        self._with_past: set[str] = set()
        self._touched: dict[str, None] = {}
        self._flushed_at = 0.0
        self._flush: asyncio.TimerHandle | None = None

    @property
    def is_loaded(self) -> bool:
        """False until the first rows are there; `loaded` says when."""
        return self._is_loaded

    @property
    def title(self) -> str:
        return self.conversation.title if self.conversation is not None else NEW_TITLE

    @property
    def task(self) -> Task | None:
        """The newest task."""
        return self._tasks.of_conversation(self.conversation_id) if self.conversation_id is not None else None

    @property
    def waiting(self) -> tuple[Ask, ...]:
        """The asks that wait here, oldest first."""
        return self._asks.of_conversation(self.conversation_id) if self.conversation_id is not None else ()

    @property
    def has_older(self) -> bool:
        return self._branch.has_older

    def count(self) -> int:
        return len(self._rows)

    def row(self, index: int) -> Row:
        return self._rows[index]

    @property
    def is_seeking(self) -> bool:
        return self._sought is not None

    def place_of(self, index: int) -> tuple[str, int]:
        """The node that a row belongs to and the row's number among the node's: what `seek` takes."""
        return self._rows.place_of(index)

    def seek(self, node_id: str, number: int = 0) -> None:
        """Load what is needed to show a row of this node: `reached` tells where it is, `missed` that there is none."""
        self._sought = (node_id, number)
        self._go_on_seeking()

    def send(self, text: str) -> None:
        """Answer the question that waits; else steer the task at work; else start one."""
        question = next((ask for ask in self.waiting if ask.kind == "question"), None)
        task = self.task
        if question is not None:
            answer = AskAnswerParams(ask_id=question.id, text=text)
            self._session.spawn(self._asks.settle(answer), self._give_back(text))
        elif task is not None and is_working(task):
            self._session.spawn(self._steer(task, text), self._give_back(text))
        elif not self._is_starting:
            self._is_starting = True
            self._session.spawn(self._start(text), self._give_back(text))
        else:
            self._give_back(text)("The task is just being started. Send this again in a moment.")

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

    def load_older(self) -> None:
        """Read the page above the oldest row, if there is one."""
        if self.has_older and not self._is_loading_older and self.conversation_id is not None:
            self._is_loading_older = True
            self._session.spawn(self._load_older(self.conversation_id), self._on_older_failed)

    def load(self) -> None:
        """Follow the conversation, from now or anew after events were missed."""
        if self.conversation_id is not None:
            self._session.spawn(self._load(self.conversation_id), self.failed.emit)

    def close(self) -> None:
        """Called by `Stores.close`: the store is of no use after this."""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None

    def put_conversation(self, conversation: Conversation) -> None:
        old = self.title
        self.conversation = conversation
        if self.title != old:
            self.title_changed.emit()

    def put_task(self, task: Task) -> None:
        self._touch(self._branch.put_task(task))
        self.taskUpdate.emit(task)

    def put_node(self, node: Node) -> None:
        self._touch(self._branch.put(node))
        self.taskMessage.emit(node)

    def put_ask(self, ask: Ask) -> None:
        self._touch(self._branch.put_ask(ask))

    def put_agent(self, update: AgentUpdate) -> None:
        """A head that moved to a node that is not here, or back while nobody works, shows another branch."""
        head = update.agent.head_id
        if head is None or not self._is_loaded:
            return
        is_tip = bool(self._branch.ids) and self._branch.ids[-1] == head
        at_work = self.task is not None and self.task.ended_at is None
        if not self._branch.holds(head) or not (is_tip or at_work):
            self.load()

    def put_delta(self, delta: TextDelta | ToolOutput) -> None:
        """Take streamed text; the rows follow within 33 ms."""
        touched = self._branch.add_text(delta) if isinstance(delta, TextDelta) else self._branch.add_output(delta)
        if not touched:
            return
        self._touched |= dict.fromkeys(touched)
        if self._flush is None:
            loop = asyncio.get_running_loop()
            wait = self._flushed_at + _FLUSH_S - loop.time()
            if wait <= 0:
                self._flush_rows()
            else:
                self._flush = loop.call_later(wait, self._flush_rows)

    def _flush_rows(self) -> None:
        self._flushed_at = asyncio.get_running_loop().time()
        self._flush = None
        touched, self._touched = self._touched, {}
        self._touch(touched)

    def _touch(self, node_ids: Iterable[str]) -> None:
        """Make the rows of these nodes anew."""
        if self._is_loaded and not self._is_held:
            for node_id in node_ids:
                self._touched.pop(node_id, None)
                self._rows.put(node_id, self._branch.rows(node_id))

    def _go_on_seeking(self) -> None:
        if self._sought is None or not self._is_loaded or self._is_held:
            return
        node_id, number = self._sought
        if self._branch.holds(node_id):
            self._sought = None
            self.reached.emit(self._rows.index_of(self._branch.shown_at(node_id), number))
        elif self.has_older:
            self.load_older()
        else:
            self._sought = None
            self.missed.emit()

    def _on_older_failed(self, why: str) -> None:
        self._sought = None
        self.failed.emit(why)

    def _give_back(self, text: str) -> "_Refusal":
        return _Refusal(self, text)

    async def _start(self, text: str) -> None:
        options = self.options
        params = TaskStartParams(
            prompt=text,
            task_id=f"task_{uuid4().hex}",
            conversation_id=self.conversation_id,
            model=options.model,
            workspace=options.workspace if self.conversation_id is None else None,
            mode=options.mode,
            approve=options.approve,
        )
        try:
            task = (await self._session.call(TASK_START, params)).task
        finally:
            self._is_starting = False
        if self.conversation_id is None:
            self.conversation_id = task.conversation_id
            self.stored.emit(task.conversation_id)
            await self._load(task.conversation_id)

    async def _steer(self, task: Task, text: str) -> None:
        await self._session.call(TASK_STEER, TaskMessageParams(task_id=task.id, text=text))

    async def _follow_up(self, task: Task, text: str) -> None:
        await self._session.call(TASK_FOLLOW_UP, TaskMessageParams(task_id=task.id, text=text))

    async def _stop(self, task: Task) -> None:
        await self._session.call(TASK_STOP, TaskIdParams(task_id=task.id))

    async def _load(self, conversation_id: str) -> None:
        result = await self._session.follow(conversation_id)
        snapshot = result.snapshot
        assert snapshot is not None, "following without a place to go on from gives a snapshot"
        self._take_snapshot(snapshot)
        # The rows wait for what was settled in the past, so that they do not jump when it comes.
        self._is_held = True
        try:
            await self._load_past(conversation_id, snapshot.nodes)
        finally:
            self._is_held = False
            self._show()

    def _take_snapshot(self, snapshot: Snapshot) -> None:
        for conversation in snapshot.conversations:
            self.put_conversation(conversation)
        for task in snapshot.tasks:
            self._tasks.put(task)
            self._branch.put_task(task)
        for ask in snapshot.asks:
            self._branch.put_ask(ask)
        self._branch.show(snapshot.nodes, snapshot.has_more_nodes)

    def _show(self) -> None:
        sections = [(node_id, self._branch.rows(node_id)) for node_id in self._branch.ids]
        if self._is_loaded and len(self._rows):
            self._rows.replace(sections)
        else:
            self._rows.fill(sections)
            self._is_loaded = True
            self.reset.emit()
            self.loaded.emit()
        self._go_on_seeking()

    async def _load_older(self, conversation_id: str) -> None:
        before, leaf = self._branch.ids[0], self._branch.ids[-1]
        limit = _SEEKING_PAGE if self.is_seeking else _PAGE
        params = ConversationNodesParams(conversation_id=conversation_id, leaf_id=leaf, before_id=before, limit=limit)
        try:
            page = await self._session.call(CONVERSATION_NODES, params)
            await self._load_past(conversation_id, page.nodes)
        finally:
            self._is_loading_older = False
        if self._is_held or self._branch.ids[0] != before:
            self._go_on_seeking()
            return  # the branch was read anew meanwhile
        touched = self._branch.prepend(page.nodes, page.has_more)
        older = touched[: len(page.nodes)]
        self._rows.prepend([(node_id, self._branch.rows(node_id)) for node_id in older])
        self._touch(touched[len(page.nodes) :])
        self._go_on_seeking()

    async def _load_past(self, conversation_id: str, nodes: Collection[Node]) -> None:
        """The tasks of these nodes, and what was asked in them: only a task that called tools can have asked."""
        task_ids = {node.task_id for node in nodes if node.task_id is not None}
        if not self._has_listed and any(not self._branch.knows_task(task_id) for task_id in task_ids):
            self._has_listed = True
            params = TaskListParams(conversation_id=conversation_id, limit=_MOST_TASKS)
            for task in (await self._session.call(TASK_LIST, params)).tasks:
                self._branch.put_task(task)
        asking = {node.task_id for node in nodes if node.task_id is not None and _may_ask(node)} - self._with_past
        await asyncio.gather(*(self._load_asks(task_id) for task_id in asking))

    async def _load_asks(self, task_id: str) -> None:
        result = await self._session.call(ASK_LIST, AskListParams(waiting=False, task_id=task_id))
        for ask in result.asks:
            self._branch.put_ask(ask)
        self._with_past.add(task_id)


class _Refusal:
    """What happens when a text was not taken: it is given back, with the words why."""

    def __init__(self, store: ConversationStore, text: str) -> None:
        self._store = store
        self._text = text

    def __call__(self, why: str) -> None:
        self._store.unsent.emit(self._text)
        self._store.failed.emit(why)


def is_working(task: Task) -> bool:
    """True while a task takes words: it has not ended and was not interrupted."""
    return task.ended_at is None and task.status != "interrupted"


def _may_ask(node: Node) -> bool:
    """True for a reply with calls, and for the later ones that follow only where a limit could be reached."""
    return node.turn > 1 or any(isinstance(block, ToolCallBlock) for block in node.blocks)
