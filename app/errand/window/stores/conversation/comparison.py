"""Two to four branches side by side: read once, then kept current by events and deltas."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal

from errand.client.conversation.branch import MAX_COMPARED, ComparedBranch
from errand.client.conversation.branch_path import BranchPath, read_to_fork
from errand.client.conversation.paging import SettledLoader
from errand.protocol.conversations import Node
from errand.protocol.events import AskUpdate, Delta, Event, TaskMessage, TaskUpdate, TextDelta, ToolOutput
from errand.protocol.tasks import TASK_STOP, Task, TaskIdParams
from errand.window.stores.conversation.compared_branch import ComparedBranchStore
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.session import EngineSession
from errand.window.stores.tasks import TaskStore, is_working

# A column never holds more: what is compared are the ends of long branches.
_MAX_NODES = 1_000


class ComparisonStore(QObject):
    """Emits `loaded` when all branches are shown, `failed` with a text if something fails.

    Emits `chosen` when the conversation continues with one of them.
    `common_text` is the last text before the branches diverge, "" if they have nothing in common.
    """

    loaded = Signal()
    chosen = Signal()
    failed = Signal(str)

    def __init__(
        self, store: ConversationStore, session: EngineSession, tasks: TaskStore, branches: Sequence[ComparedBranch]
    ) -> None:
        super().__init__()
        self.store = store
        self._branches = tuple(branches)
        self.sides = tuple(ComparedBranchStore(branch, tasks) for branch in branches[:MAX_COMPARED])
        self.common_text = ""
        self.is_loaded = False
        self._session = session
        self._tasks = tasks
        self._deferred: list[Event | Delta] = []
        self._load_number = 0
        self._is_closed = False
        self._chosen: ComparedBranchStore | None = None
        session.event_received.connect(self._on_event)
        session.delta_received.connect(self._on_delta)
        session.resync.connect(self.load)
        store.agents.changed.connect(self._on_agents_changed)
        tasks.taskUpdate.connect(self._on_task_update)

    @property
    def is_working(self) -> bool:
        return any(side.is_working for side in self.sides)

    @property
    def others(self) -> tuple[ComparedBranch, ...]:
        """The branches that no side shows, those of agents included."""
        side_branches = [side.compared for side in self.sides]
        agents, leaves = {compared.agent_id for compared in side_branches}, {side.leaf_id for side in self.sides}
        hidden = sorted(
            (each for each in self._branches if each not in side_branches), key=lambda branch: branch.number
        )
        agents |= {branch.agent_id for branch in hidden}
        return (
            *hidden,
            *(
                ComparedBranch(agent.head_id, agent.id)
                for agent in self.store.agents.all
                if agent.head_id is not None and agent.id not in agents and agent.head_id not in leaves
            ),
        )

    def load(self) -> None:
        """Load all sides, initially or again, once the events of the conversation arrive."""
        if self._is_closed:  # while it waited for the conversation to be followed
            return
        if not self.store.is_followed:
            self.store.followed.connect(self.load, Qt.ConnectionType.SingleShotConnection)
            return
        self._load_number += 1
        self.is_loaded = False
        self._deferred.clear()
        self._session.spawn(self._load(self._load_number), partial(self._on_load_failed, self._load_number))

    def show_branch(self, number: int, branch: ComparedBranch) -> None:
        """Show another branch on one side."""
        self.sides[number].compared = branch
        self.load()

    def close(self) -> None:
        """Stop following; the comparison cannot be used afterwards."""
        self._is_closed = True
        self._load_number += 1
        self.is_loaded = False
        self._session.event_received.disconnect(self._on_event)
        self._session.delta_received.disconnect(self._on_delta)
        self._session.resync.disconnect(self.load)
        self.store.agents.changed.disconnect(self._on_agents_changed)
        self._tasks.taskUpdate.disconnect(self._on_task_update)

    def stop(self, side: ComparedBranchStore) -> None:
        """Stop the tasks of one side."""
        for task in side.tasks:
            self._stop(task)

    def stop_all(self) -> None:
        for side in self.sides:
            self.stop(side)

    def can_continue(self, side: ComparedBranchStore) -> bool:
        """False while there is nothing to continue, or while an agent writes there that stays on its own branch."""
        return bool(side.branch.ids) and (not side.is_working or self._is_active(side)) and self._chosen is None

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
        if not self._is_active(side):
            task = self._tasks.of_agent(active.id)
            if task is not None and is_working(task):
                return
            self.store.agents.continue_with(side.leaf_id)
        elif self.store.agents.shown != active:
            self.store.agents.show_agent(active.id)
        self._chosen = None
        self.chosen.emit()

    def _is_active(self, side: ComparedBranchStore) -> bool:
        """True for the branch on which the conversation is already."""
        active = self.store.agents.active
        return active is not None and side.compared.agent_id == active.id

    def _stop(self, task: Task) -> None:
        if is_working(task) and not task.stopping:
            self._session.send(TASK_STOP, TaskIdParams(task_id=task.id), self._on_stop_failed)

    def _on_stop_failed(self, reason: str) -> None:
        self._chosen = None  # it can be chosen again
        self.failed.emit(reason)

    def _on_load_failed(self, number: int, reason: str) -> None:
        if number == self._load_number:
            self.failed.emit(reason)

    async def _load(self, number: int) -> None:
        paths = [BranchPath(self._session, self._conversation_id, self._current(side)) for side in self.sides]
        fork_id = await read_to_fork(paths)
        below = [path.below(fork_id) for path in paths]
        newest = [nodes[-_MAX_NODES:] for nodes in below]
        for side, nodes in zip(self.sides, newest, strict=True):
            await SettledLoader(self._session, side.branch).load(self._conversation_id, nodes)
        for side, nodes, all_below in zip(self.sides, newest, below, strict=True):
            if number == self._load_number:  # otherwise a later load has started
                await side.show(nodes, fork_id, self.store.agents.speakers, len(all_below) - len(nodes))
        if number != self._load_number:
            return
        self.common_text = paths[0].last_text(fork_id)
        self.is_loaded = True
        for event in self._deferred:
            self._put(event)
        self._deferred.clear()
        self.loaded.emit()

    def _current(self, side: ComparedBranchStore) -> ComparedBranch:
        """A side's branch; without its agent, if that was removed."""
        if self.store.agents.get(side.compared.agent_id or "") is not None:
            return side.compared
        return replace(side.compared, agent_id=None)

    @property
    def _conversation_id(self) -> str:
        return self.store.conversation_id or ""

    def _on_event(self, event: Event) -> None:
        self._take(event)

    def _on_delta(self, delta: Delta) -> None:
        self._take(delta)

    def _take(self, event: Event | Delta) -> None:
        """Events and deltas keep their order: a delta continues a node of an event or of the pages that are read."""
        if self.is_loaded:
            self._put(event)
        else:
            self._deferred.append(event)

    def _put(self, event: Event | Delta) -> None:
        match event:
            case TaskMessage(node=node) if node.conversation_id == self._conversation_id:
                for side in self.sides:
                    side.put_node(node, joins=side.compared.agent_id in (None, node.author, self._agent_of(node)))
            case TaskUpdate(task=task) if task.conversation_id == self._conversation_id:
                for side in self.sides:
                    side.put_task(task)
            case AskUpdate(ask=ask) if ask.conversation_id == self._conversation_id:
                for side in self.sides:
                    side.put_ask(ask)
            case TextDelta() | ToolOutput() if event.conversation_id == self._conversation_id:
                for side in self.sides:
                    side.put_delta(event)
            case _:
                pass

    def _agent_of(self, node: Node) -> str | None:
        """The agent whose task a node belongs to: results and notices have no author of their own."""
        task = self._tasks.get(node.task_id or "")
        return task.agent_id if task is not None else None

    def _on_agents_changed(self) -> None:
        if self.is_loaded:
            for side in self.sides:
                side.set_speakers(self.store.agents.speakers)

    def _on_task_update(self, task: Task) -> None:
        if task.conversation_id == self._conversation_id:
            self._continue_once_idle()
