"""Branches side by side as a store with Qt signals, and the choice of one of them."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal

from errand.client.conversation.branch import MAX_COMPARED, ComparedBranch
from errand.client.conversation.branch_rows import RowListeners
from errand.client.conversation.comparison import ComparedRows, Comparison
from errand.client.conversation.task_states import is_working
from errand.protocol.tasks.methods import TASK_STOP, TaskIdParams
from errand.protocol.tasks.task import Task
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.session import EngineSession
from errand.window.stores.tasks import TaskStore


class ComparedBranchStore(ComparedRows, QObject):
    """One side. Emits what a `RowStore` emits, and `state_changed` when its tasks or streaming have changed."""

    reset = Signal()
    inserted = Signal(int, int)
    changed = Signal(int)
    removed = Signal(int, int)
    state_changed = Signal()

    def __init__(self, compared: ComparedBranch, tasks: TaskStore) -> None:
        QObject.__init__(self)
        listeners = RowListeners(self.reset.emit, self.inserted.emit, self.changed.emit, self.removed.emit)
        ComparedRows.__init__(self, compared, tasks, listeners, self.state_changed.emit)


class ComparisonStore(Comparison[ComparedBranchStore], QObject):
    """Emits `loaded` when all branches are shown, `failed` with a text if something fails.

    Emits `chosen` when the conversation continues with one of them.
    """

    loaded = Signal()
    chosen = Signal()
    failed = Signal(str)

    def __init__(
        self, store: ConversationStore, session: EngineSession, tasks: TaskStore, branches: Sequence[ComparedBranch]
    ) -> None:
        QObject.__init__(self)
        sides = [ComparedBranchStore(branch, tasks) for branch in branches[:MAX_COMPARED]]
        super().__init__(session, store.agents, tasks, branches, sides)
        self.store = store
        self._session = session
        self._task_store = tasks
        self._is_closed = False
        self._chosen: ComparedBranchStore | None = None
        session.event_received.connect(self.put)
        session.delta_received.connect(self.put)
        session.resync.connect(self.load)
        store.agents.changed.connect(self.update_speakers)
        tasks.taskUpdate.connect(self._on_task_update)

    def load(self) -> None:
        """Load all sides, initially or again, once the events of the conversation arrive."""
        if self._is_closed:  # while it waited for the conversation to be followed
            return
        if not self.store.is_followed:
            self.store.followed.connect(self.load, Qt.ConnectionType.SingleShotConnection)
            return
        number = self.begin_load(self.store.conversation_id or "")
        self._session.spawn(self._load(number), partial(self._on_load_failed, number))

    def show_branch(self, number: int, branch: ComparedBranch) -> None:
        """Show another branch on one side."""
        self.sides[number].compared = branch
        self.load()

    def close(self) -> None:
        """Stop following; the comparison cannot be used afterwards."""
        self._is_closed = True
        self.begin_load("")  # outdates one that is under way
        self._session.event_received.disconnect(self.put)
        self._session.delta_received.disconnect(self.put)
        self._session.resync.disconnect(self.load)
        self.store.agents.changed.disconnect(self.update_speakers)
        self._task_store.taskUpdate.disconnect(self._on_task_update)

    def stop(self, side: ComparedBranchStore) -> None:
        """Stop the tasks of one side."""
        for task in side.tasks:
            self._stop(task)

    def stop_all(self) -> None:
        for side in self.sides:
            self.stop(side)

    def can_continue(self, side: ComparedBranchStore) -> bool:
        """False while there is nothing to continue, or while an agent writes there that stays on its own branch."""
        return bool(side.branch.ids) and (not side.is_working or self.is_active(side)) and self._chosen is None

    def continue_with(self, side: ComparedBranchStore) -> None:
        """Continue the conversation with one branch; the others that are still written are stopped."""
        if not self.can_continue(side):
            return
        self._chosen = side
        for other in self.sides:
            if other is not side:
                self.stop(other)
        self._continue_once_idle()

    def _continue_once_idle(self) -> None:
        """The head of an agent cannot move before its task has ended."""
        side, active = self._chosen, self.store.agents.active
        if side is None or active is None:
            return
        if not self.is_active(side):
            task = self._task_store.of_agent(active.id)
            if task is not None and is_working(task):
                return
            self.store.agents.continue_with(side.leaf_id)
        elif self.store.agents.shown != active:
            self.store.agents.show_agent(active.id)
        self._chosen = None
        self.chosen.emit()

    def _stop(self, task: Task) -> None:
        if is_working(task) and not task.activity.stopping:
            self._session.send(TASK_STOP, TaskIdParams(task_id=task.id), self._on_stop_failed)

    def _on_stop_failed(self, reason: str) -> None:
        self._chosen = None  # it can be chosen again
        self.failed.emit(reason)

    def _on_load_failed(self, number: int, reason: str) -> None:
        if not self.is_outdated(number):
            self.failed.emit(reason)

    async def _load(self, number: int) -> None:
        if await self.read(number):
            self.loaded.emit()

    def _on_task_update(self, task: Task) -> None:
        if task.conversation_id == self.store.conversation_id:
            self._continue_once_idle()
