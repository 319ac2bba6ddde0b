"""Two branches side by side: read once, then kept current by events."""

import asyncio
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QObject, Signal

from errand.client.number_format import count, duration, elapsed, money
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import CONVERSATION_NODES, ConversationNodesParams, ConversationNodesResult, Node
from errand.protocol.events import AskUpdate, Delta, Event, TaskMessage, TaskUpdate
from errand.protocol.tasks import Task
from errand.protocol.usage import Usage
from errand.window.rows.row import Speaker
from errand.window.stores.conversation.branch import ComparedBranch
from errand.window.stores.conversation.branch_rows import BranchRows
from errand.window.stores.conversation.paging import SettledLoader
from errand.window.stores.conversation.row_list import RowSection
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.session import EngineSession
from errand.window.stores.tasks import is_working

_BATCH = 50

_PAGE = 500  # the engine's maximum
_MAX_TEXT = 200


class ComparedBranchStore(BranchRows):
    """One side of a comparison. Emits `figures_changed` when its figures change."""

    figures_changed = Signal()

    def __init__(self, compared: ComparedBranch) -> None:
        super().__init__(is_current=True)
        self.compared = compared
        self._base_id: str | None = None
        self.branch.lock(True)  # a comparison offers no branch switches or forks

    @property
    def leaf_id(self) -> str:
        """The current last node."""
        return self.branch.ids[-1] if self.branch.ids else self.compared.leaf_id

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.branch.tasks.all

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the branch's tasks, without duplicates."""
        return tuple(dict.fromkeys(task.model for task in self.tasks))

    @property
    def figures(self) -> str:
        """Number, tokens, cost and time of the tasks; cost only if every price is known."""
        tasks = self.tasks
        used = sum(task.usage.input_tokens + task.usage.output_tokens for task in tasks)
        costs = [task.usage.cost_usd for task in tasks if task.usage.cost_usd is not None]
        parts = (
            count(len(tasks), "task") if tasks else "",
            count(used, "token") if used else "",
            money(Usage(cost_usd=sum(costs))) if costs and len(costs) == len(tasks) else "",
            duration(sum(map(elapsed, tasks))) if tasks else "",
            "at work" if any(map(is_working, tasks)) else "",
        )
        return " · ".join(part for part in parts if part) or "No task worked here"

    async def show(self, nodes: Sequence[Node], base_id: str | None, speakers: Mapping[str, Speaker]) -> None:
        """Show the branch of these nodes below `base_id`, whose tasks and asks are loaded already.

        Builds the rows in batches: building those of a thousand nodes at once would block the window.
        """
        self._base_id = base_id
        self.branch.show(nodes, False, ())
        self.branch.set_speakers(speakers)
        sections: list[RowSection] = []
        for number, node_id in enumerate(tuple(self.branch.ids), start=1):
            sections.append((node_id, self.branch.rows(node_id)))
            if number % _BATCH == 0:
                await asyncio.sleep(0)
        self.fill(sections)
        self.figures_changed.emit()

    def set_speakers(self, speakers: Mapping[str, Speaker]) -> None:
        self.touch(self.branch.set_speakers(speakers))

    def put_node(self, node: Node, *, joins: bool) -> None:
        begins = joins and node.parent_id == self._base_id
        if self.branch.ids or begins:
            self.touch(self.branch.put(node, joins=joins))
            self.figures_changed.emit()

    def put_task(self, task: Task) -> None:
        self.touch(self.branch.put_task(task))
        if task in self.branch.tasks.all:
            self.figures_changed.emit()


class ComparisonStore(QObject):
    """Emits `loaded` when both sides are shown, and `failed` with a text if loading fails.

    `common_text` is the last text before the branches diverge, "" if they have nothing in common.
    """

    loaded = Signal()
    failed = Signal(str)

    def __init__(
        self, store: ConversationStore, session: EngineSession, left: ComparedBranch, right: ComparedBranch
    ) -> None:
        super().__init__()
        self.store = store
        self.sides = (ComparedBranchStore(left), ComparedBranchStore(right))
        self.common_text = ""
        self.is_loaded = False
        self._session = session
        self._deferred: list[Event] = []
        self._load_number = 0
        session.event_received.connect(self._on_event)
        session.delta_received.connect(self._on_delta)
        session.resync.connect(self.load)
        store.agents.changed.connect(self._on_agents_changed)

    def load(self) -> None:
        """Load both sides, initially or again."""
        self._load_number += 1
        self.is_loaded = False
        self._deferred.clear()
        self._session.spawn(self._load(self._load_number), self.failed.emit)

    def show_branch(self, number: int, compared: ComparedBranch) -> None:
        """Show another branch on one side."""
        self.sides[number].compared = compared
        self.load()

    def close(self) -> None:
        """Disconnect from all events; the sides cannot be used afterwards."""
        self._load_number += 1
        self._session.event_received.disconnect(self._on_event)
        self._session.delta_received.disconnect(self._on_delta)
        self._session.resync.disconnect(self.load)
        self.store.agents.changed.disconnect(self._on_agents_changed)

    async def _load(self, number: int) -> None:
        left, right = [_BranchPath(self._session, self._conversation_id, self._end_of(side)) for side in self.sides]
        for path in (left, right):
            await path.read_more()
        while (fork_id := left.newest_common(right)) is None and (left.has_more or right.has_more):
            for path in (left, right):
                await path.read_more()
        paths = (left.below(fork_id), right.below(fork_id))
        for side, nodes in zip(self.sides, paths, strict=True):
            await SettledLoader(self._session, side.branch).load(self._conversation_id, nodes)
        for side, nodes in zip(self.sides, paths, strict=True):
            if number == self._load_number:  # otherwise a later load has started
                await side.show(nodes, fork_id, self.store.agents.speakers)
        if number != self._load_number:
            return
        self.common_text = _last_text(left.until(fork_id))
        self.is_loaded = True
        for event in self._deferred:
            self._put(event)
        self.loaded.emit()

    def _end_of(self, side: ComparedBranchStore) -> str:
        """The end of a side's branch, with the current head of its agent."""
        agent = self.store.agents.get(side.compared.agent_id or "")
        return agent.head_id if agent is not None and agent.head_id is not None else side.compared.leaf_id

    @property
    def _conversation_id(self) -> str:
        return self.store.conversation_id or ""

    def _on_event(self, event: Event) -> None:
        if self.is_loaded:
            self._put(event)
        else:
            self._deferred.append(event)

    def _put(self, event: Event) -> None:
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
            case _:
                pass

    def _agent_of(self, node: Node) -> str | None:
        """The agent whose task a node belongs to: results and notices have no author of their own."""
        task = self.sides[0].branch.tasks.get(node.task_id) or self.sides[1].branch.tasks.get(node.task_id)
        return task.agent_id if task is not None else None

    def _on_delta(self, delta: Delta) -> None:
        if self.is_loaded and delta.conversation_id == self._conversation_id:
            for side in self.sides:
                side.put_delta(delta)

    def _on_agents_changed(self) -> None:
        if self.is_loaded:
            for side in self.sides:
                side.set_speakers(self.store.agents.speakers)


class _BranchPath:
    """The loaded part of a branch, from its end towards the root."""

    def __init__(self, session: EngineSession, conversation_id: str, leaf_id: str) -> None:
        self._session = session
        self._conversation_id = conversation_id
        self._leaf_id = leaf_id
        self._nodes: list[Node] = []
        self._positions: dict[str, int] = {}  # index from the end, which never changes
        self.has_more = True

    async def read_more(self) -> None:
        if not self.has_more:
            return
        page = await self._page(self._nodes[0].id if self._nodes else None)
        for node in reversed(page.nodes):
            self._positions[node.id] = len(self._positions)
        self._nodes = [*page.nodes, *self._nodes]
        self.has_more = page.has_more

    def newest_common(self, other: "_BranchPath") -> str | None:
        """The newest common node."""
        return next((node.id for node in reversed(self._nodes) if other.has(node.id)), None)

    def has(self, node_id: str) -> bool:
        return node_id in self._positions

    def below(self, node_id: str | None) -> list[Node]:
        if node_id is None:
            return self._nodes
        return self._nodes[len(self._nodes) - self._positions[node_id] :]

    def until(self, node_id: str | None) -> list[Node]:
        return self._nodes[: len(self._nodes) - self._positions[node_id]] if node_id is not None else []

    async def _page(self, before_id: str | None) -> ConversationNodesResult:
        params = ConversationNodesParams(
            conversation_id=self._conversation_id, leaf_id=self._leaf_id, before_id=before_id, limit=_PAGE
        )
        return await self._session.call(CONVERSATION_NODES, params)


def _last_text(nodes: list[Node]) -> str:
    """The beginning of the last text."""
    texts = (block.text for node in reversed(nodes) for block in node.blocks if isinstance(block, TextBlock))
    return " ".join(next((text for text in texts if text.strip()), "")[:_MAX_TEXT].split())
