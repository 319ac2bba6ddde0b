"""One branch of a comparison: its rows, and what its tasks do and cost."""

import asyncio
from collections.abc import Mapping, Sequence

from PySide6.QtCore import Signal

from errand.client.conversation.branch import ComparedBranch
from errand.client.conversation.branch_rows import StreamingKind
from errand.client.conversation.row_list import RowSection
from errand.client.conversation.rows import Speaker
from errand.protocol.conversations import Node
from errand.protocol.events import TextDelta, ToolOutput
from errand.protocol.tasks import Task
from errand.window.stores.conversation.row_store import RowStore
from errand.window.stores.tasks import TaskStore, is_working

_BATCH = 25


class ComparedBranchStore(RowStore):
    """Emits `state_changed` when its tasks or what its model writes have changed.

    `left_out` counts the oldest nodes below the fork that are not shown.
    """

    state_changed = Signal()

    def __init__(self, compared: ComparedBranch, tasks: TaskStore) -> None:
        super().__init__(is_current=True)
        self.compared = compared
        self.left_out = 0
        self._known_tasks = tasks
        self._base_id: str | None = None
        self._streamed: StreamingKind = "none"
        self._speakers: Mapping[str, Speaker] = {}
        self.branch.lock(True)  # a comparison offers no branch switches or forks

    @property
    def leaf_id(self) -> str:
        """The current last node."""
        return self.branch.ids[-1] if self.branch.ids else self.compared.leaf_id

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that wrote the branch below the fork, and the one that has not written yet."""
        written, pending = self.branch.tasks.all, self._pending_task
        return (*written, pending) if pending is not None and pending not in written else written

    @property
    def task(self) -> Task | None:
        """The newest of its tasks."""
        return self.tasks[-1] if self.tasks else None

    @property
    def is_working(self) -> bool:
        return any(map(is_working, self.tasks))

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the branch's tasks, without duplicates."""
        return tuple(dict.fromkeys(task.model for task in self.tasks))

    async def show(
        self, nodes: Sequence[Node], base_id: str | None, speakers: Mapping[str, Speaker], left_out: int
    ) -> None:
        """Show the branch of these nodes below `base_id`, whose tasks and asks are loaded already.

        Builds the rows in batches: building those of a thousand nodes at once would block the window.
        """
        self._base_id, self.left_out = base_id, left_out
        self.is_current = False
        self.branch.show(nodes, False, ())
        self._speakers = speakers
        self.branch.set_speakers(self._shown_speakers)
        sections: list[RowSection] = []
        for number, node_id in enumerate(tuple(self.branch.ids), start=1):
            sections.append((node_id, self.branch.rows(node_id)))
            if number % _BATCH == 0:
                await asyncio.sleep(0)
        self.fill(sections)
        self._streamed = self.streams
        self.state_changed.emit()

    def set_speakers(self, speakers: Mapping[str, Speaker]) -> None:
        self._speakers = speakers
        self.touch(self.branch.set_speakers(self._shown_speakers))

    def put_node(self, node: Node, *, joins: bool) -> None:
        begins = joins and node.parent_id == self._base_id
        if self.branch.ids or begins:
            self.touch(self.branch.put(node, joins=joins))
            self.touch(self.branch.set_speakers(self._shown_speakers))
            self.state_changed.emit()

    def put_task(self, task: Task) -> None:
        self.touch(self.branch.put_task(task))
        if task in self.tasks:
            self.state_changed.emit()

    def put_delta(self, delta: TextDelta | ToolOutput) -> None:
        super().put_delta(delta)
        if self.streams != self._streamed:
            self._streamed = self.streams
            self.state_changed.emit()

    @property
    def _shown_speakers(self) -> Mapping[str, Speaker]:
        """The names of the agents, if several write on this branch."""
        authors = {node.author for node in map(self.branch.node, self.branch.ids) if node.role == "assistant"}
        return self._speakers if len(authors) > 1 else {}

    @property
    def _pending_task(self) -> Task | None:
        """The task of the branch's agent while it works: until its first reply no node tells of it."""
        agent_id = self.compared.agent_id
        task = self._known_tasks.of_agent(agent_id) if agent_id is not None else None
        return task if task is not None and is_working(task) else None
