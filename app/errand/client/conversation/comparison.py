"""Two to four branches side by side: read once, then kept current by events and deltas."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from errand.client.conversation.agents import ConversationAgents
from errand.client.conversation.branch import ComparedBranch
from errand.client.conversation.branch_rows import BranchRows, RowListeners, StreamingKind
from errand.client.conversation.paging import Caller, SettledLoader
from errand.client.conversation.row_list import RowSection
from errand.client.conversation.rows import Speaker
from errand.client.conversation.task_states import KnownTasks, is_working
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import CONVERSATION_NODES, ConversationNodesParams, Node
from errand.protocol.events import AskUpdate, Delta, Event, TaskMessage, TaskUpdate, TextDelta, ToolOutput
from errand.protocol.tasks.task import Task

_PAGE = 100  # decoding one takes 3 to 5 ms
_MAX_TEXT = 2_000
_BATCH = 25
# A column never holds more: what is compared are the ends of long branches.
_MAX_NODES = 1_000


class ComparedRows(BranchRows):
    """The rows of one branch, and what its tasks do and cost.

    `on_state_changed` is called when its tasks or what its model writes have changed. `left_out` counts the oldest
    nodes below the fork that are not shown.
    """

    def __init__(
        self, compared: ComparedBranch, tasks: KnownTasks, listeners: RowListeners, on_state_changed: Callable[[], None]
    ) -> None:
        super().__init__(listeners, is_current=True)
        self.compared = compared
        self.left_out = 0
        self._known_tasks = tasks
        self._on_state_changed = on_state_changed
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
        return tuple(dict.fromkeys(task.request.model for task in self.tasks))

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
        self._on_state_changed()

    def set_speakers(self, speakers: Mapping[str, Speaker]) -> None:
        self._speakers = speakers
        self.touch(self.branch.set_speakers(self._shown_speakers))

    def put_node(self, node: Node, *, joins: bool) -> None:
        begins = joins and node.parent_id == self._base_id
        if self.branch.ids or begins:
            self.touch(self.branch.put(node, joins=joins))
            self.touch(self.branch.set_speakers(self._shown_speakers))
            self._on_state_changed()

    def put_task(self, task: Task) -> None:
        self.touch(self.branch.put_task(task))
        if task in self.tasks:
            self._on_state_changed()

    def put_delta(self, delta: TextDelta | ToolOutput) -> None:
        super().put_delta(delta)
        if self.streams != self._streamed:
            self._streamed = self.streams
            self._on_state_changed()

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


S = TypeVar("S", bound=ComparedRows)


class Comparison(Generic[S]):
    """The branches that are compared, a side for each. `branches` are all that a side can show.

    `common_text` is the last text before the branches diverge, "" if they have nothing in common. Events and deltas
    that come while the branches are being loaded are put once they are.
    """

    def __init__(
        self,
        caller: Caller,
        agents: ConversationAgents,
        tasks: KnownTasks,
        branches: Sequence[ComparedBranch],
        sides: Sequence[S],
    ) -> None:
        self.sides = tuple(sides)
        self.common_text = ""
        self.is_loaded = False
        self._caller = caller
        self._agents = agents
        self._tasks = tasks
        self._branches = tuple(branches)
        self._conversation_id = ""
        self._deferred: list[Event | Delta] = []
        self._load_number = 0

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
                for agent in self._agents.all
                if agent.head_id is not None and agent.id not in agents and agent.head_id not in leaves
            ),
        )

    def is_active(self, side: S) -> bool:
        """Return True for the branch on which the conversation is already."""
        active = self._agents.active
        return active is not None and side.compared.agent_id == active.id

    def begin_load(self, conversation_id: str) -> int:
        """Forget what is loaded; returns the number for `read`, which makes an earlier one outdated."""
        self._conversation_id = conversation_id
        self._load_number += 1
        self.is_loaded = False
        self._deferred.clear()
        return self._load_number

    def is_outdated(self, number: int) -> bool:
        """Return True if a later load has begun, or everything was dropped."""
        return number != self._load_number

    async def read(self, number: int) -> bool:
        """Read the branches until they meet, and show them; False if this load is outdated meanwhile."""
        paths = [BranchPath(self._caller, self._conversation_id, self._current(side)) for side in self.sides]
        fork_id = await read_to_fork(paths)
        below = [path.below(fork_id) for path in paths]
        newest = [nodes[-_MAX_NODES:] for nodes in below]
        for side, nodes in zip(self.sides, newest, strict=True):
            await SettledLoader(self._caller, side.branch).load(self._conversation_id, nodes)
        for side, nodes, all_below in zip(self.sides, newest, below, strict=True):
            if not self.is_outdated(number):
                await side.show(nodes, fork_id, self._agents.speakers, len(all_below) - len(nodes))
        if self.is_outdated(number):
            return False
        self.common_text = paths[0].last_text(fork_id)
        self.is_loaded = True
        for event in self._deferred:
            self._put(event)
        self._deferred.clear()
        return True

    def put(self, event: Event | Delta) -> None:
        """Events and deltas keep their order: a delta continues a node of an event or of the pages that are read."""
        if self.is_loaded:
            self._put(event)
        else:
            self._deferred.append(event)

    def update_speakers(self) -> None:
        """The agents have changed."""
        if self.is_loaded:
            for side in self.sides:
                side.set_speakers(self._agents.speakers)

    def _current(self, side: S) -> ComparedBranch:
        """Return a side's branch; without its agent, if that was removed."""
        if self._agents.get(side.compared.agent_id or "") is not None:
            return side.compared
        return replace(side.compared, agent_id=None)

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
        """Return the agent whose task a node belongs to: results and notices have no author of their own."""
        task = self._tasks.get(node.task_id or "")
        return task.agent_id if task is not None else None


class BranchPath:
    """The loaded part of a stored branch, oldest first; it is read page by page from its end."""

    def __init__(self, caller: Caller, conversation_id: str, branch: ComparedBranch) -> None:
        self._caller = caller
        self._conversation_id = conversation_id
        self._branch = branch
        self._pages: list[Sequence[Node]] = []  # newest first
        self._positions: dict[str, int] = {}  # index from the end, which never changes
        self.has_more = True

    async def read_more(self) -> None:
        if not self.has_more:
            return
        is_first = not self._pages
        has_agent = is_first and self._branch.agent_id is not None
        params = ConversationNodesParams(
            conversation_id=self._conversation_id,
            leaf_id=None if has_agent else self._oldest_id or self._branch.leaf_id,
            agent_id=self._branch.agent_id if has_agent else None,
            to_leaf=self._branch.to_leaf and is_first,
            before_id=self._oldest_id,
            limit=_PAGE,
        )
        page = await self._caller.call(CONVERSATION_NODES, params)
        for node in reversed(page.nodes):
            self._positions[node.id] = len(self._positions)
        self._pages.append(page.nodes)
        self.has_more = page.has_more

    def newest_common(self, others: Sequence["BranchPath"]) -> str | None:
        """Return the newest node that all of them have."""
        ids = (node.id for page in self._pages for node in reversed(page))
        return next((node_id for node_id in ids if all(other.has(node_id) for other in others)), None)

    def has(self, node_id: str) -> bool:
        return node_id in self._positions

    def below(self, node_id: str | None) -> list[Node]:
        return self._nodes[self._end_of(node_id) :]

    def last_text(self, node_id: str | None) -> str:
        """Return the beginning of the last text up to a node, on one line."""
        above = self._nodes[: self._end_of(node_id)]
        texts = (block.text for node in reversed(above) for block in node.blocks if isinstance(block, TextBlock))
        return " ".join(next((text for text in texts if text.strip()), "")[:_MAX_TEXT].split())

    @property
    def _nodes(self) -> list[Node]:
        return [node for page in reversed(self._pages) for node in page]

    @property
    def _oldest_id(self) -> str | None:
        return self._pages[-1][0].id if self._pages and self._pages[-1] else None

    def _end_of(self, node_id: str | None) -> int:
        """Return the index after a node; 0 without one."""
        return 0 if node_id is None else len(self._positions) - self._positions[node_id]


async def read_to_fork(paths: Sequence[BranchPath]) -> str | None:
    """Read the branches until they meet; returns the newest common node, None if they have none."""
    first, *others = paths
    while True:
        await asyncio.gather(*(path.read_more() for path in paths))
        fork_id = first.newest_common(others)
        if fork_id is not None or not any(path.has_more for path in paths):
            return fork_id
