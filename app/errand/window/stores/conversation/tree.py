"""The whole tree of the conversation for the tree panel: loaded when it opens, then kept current by events."""

from PySide6.QtCore import QObject, QTimer, Signal

from errand.client.conversation.branch import ComparedBranch
from errand.client.conversation.rows import Speaker
from errand.client.conversation.tree_layout import TreeLine, branch_parent, newest_leaf, path_to, tree_lines
from errand.protocol.agents import Agent
from errand.protocol.blocks import TextBlock, ToolCallBlock
from errand.protocol.conversations import (
    CONVERSATION_TREE,
    ConversationTreeParams,
    ConversationTreeResult,
    Node,
    TreeNode,
)
from errand.protocol.events import AgentUpdate, Event
from errand.protocol.tasks.task import Task
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.session import EngineSession

_THROTTLE_MS = 200  # a running agent changes the tree often: limits how often the lines are rebuilt
_READ_CHARACTERS, _MAX_TEXT = 180, 120


class TreeStore(QObject):
    """Emits `changed` when `lines` changed, and `failed` with a text if loading fails.

    It follows the conversation only while it is open.
    """

    changed = Signal()
    failed = Signal(str)

    def __init__(self, store: ConversationStore, session: EngineSession) -> None:
        super().__init__()
        self.lines: tuple[TreeLine, ...] = ()
        self.is_loaded = False
        self._store = store
        self._session = session
        self._nodes: dict[str, TreeNode] = {}
        self._nearest_listed: dict[str, str | None] = {}
        self._tasks: dict[str, Task] = {}
        self._is_open = False
        self._deferred: list[Node | Task | Agent] | None = None
        self._is_stale = False
        self._pending_node_id = ""
        self._redraw_timer = QTimer(self, singleShot=True, interval=_THROTTLE_MS)
        self._redraw_timer.timeout.connect(self._on_redraw)
        self._arrival_timer = QTimer(self, singleShot=True, interval=0)
        self._arrival_timer.timeout.connect(self._on_arrival)
        store.taskMessage.connect(self._on_change)
        store.taskUpdate.connect(self._on_change)
        session.event_received.connect(self._on_event)
        session.resync.connect(self._on_resync)
        for signal in (store.reset, store.inserted, store.removed):
            signal.connect(self._arrival_timer.start)
        store.agents.changed.connect(self._on_agents_changed)

    @property
    def has_forks(self) -> bool:
        """True if there is more than one branch, those of sub-agents included."""
        return any(line.count or line.task_from for line in self.lines)

    def open(self) -> None:
        """Load the tree and follow it from now on."""
        self._is_open = True
        if self._store.conversation_id is None:
            self.changed.emit()  # there is nothing to load before the first task
        self._load()

    def close(self) -> None:
        """Stop following; the next `open` reloads the tree."""
        self._is_open = False
        self._redraw_timer.stop()

    def go_to(self, node_id: str) -> None:
        """Scroll to a message; if it is on another branch, move the agent's head to the end of that branch.

        For a message on the branch of a sub-agent, selects the sub-agent.
        """
        self._pending_node_id = ""
        if node_id in path_to(self._head_id, self._nodes):
            self._store.seeker.seek(node_id)
            return
        sub_agent_id, selected = self._sub_agent_at(node_id), self._store.agents.shown
        is_called = sub_agent_id is not None and selected is not None and selected.id != sub_agent_id
        if is_called or not self._store.branches.locked:
            self._pending_node_id = node_id
        if is_called and sub_agent_id is not None:
            self._store.agents.show_agent(sub_agent_id)
        else:
            self._store.branches.switch(node_id)

    def compared_with_shown(self, node_id: str) -> tuple[ComparedBranch, ComparedBranch] | None:
        """Return the shown branch and the newest one through this node; None if they are the same."""
        front, other = self._head_id, newest_leaf(node_id, self._nodes)
        if front is None or other in path_to(front, self._nodes):
            return None
        return self._compared(front), self._compared(other)

    def compare_versions(self, node_id: str) -> None:
        """Show the branches that part where this one begins side by side."""
        parent_id = branch_parent(self._nodes[node_id])
        siblings = (node.id for node in self._nodes.values() if not node.task_from and branch_parent(node) == parent_id)
        self._store.branches.compare(tuple(siblings))

    def end_of(self, node_id: str) -> str:
        """Return the last node of the newest branch through this node."""
        return self._compared(newest_leaf(node_id, self._nodes)).leaf_id

    def _sub_agent_at(self, node_id: str) -> str | None:
        """Return the sub-agent on whose branch a node is, unless it was deleted."""
        at: str | None = node_id
        while at in self._nodes and not self._nodes[at].task_from:
            at = self._nodes[at].parent_id
        task = self._tasks.get(self._nodes[at].task_id or "") if at in self._nodes else None
        return task.agent_id if task is not None and self._store.agents.get(task.agent_id) is not None else None

    def _compared(self, leaf_id: str) -> ComparedBranch:
        """Return the branch with the agent at its end; the selected agent takes precedence."""
        selected = self._store.agents.shown
        agents = [agent for agent in self._store.agents.all if self._nearest_listed.get(agent.head_id or "") == leaf_id]
        agent = selected if selected in agents else next(iter(agents), None)
        end = agent.head_id if agent is not None else None
        return ComparedBranch(end or leaf_id, agent.id if agent is not None else None)

    @property
    def _head_id(self) -> str | None:
        """The nearest listed node at the selected agent's head."""
        agent = self._store.agents.shown
        return self._nearest_listed.get(agent.head_id or "") if agent is not None else None

    @property
    def _heads(self) -> dict[str, tuple[Speaker, ...]]:
        """The agents by the node of their head, if there are several."""
        heads: dict[str, tuple[Speaker, ...]] = {}
        for agent_id, speaker in self._store.agents.speakers.items():
            agent = self._store.agents.get(agent_id)
            node_id = self._nearest_listed.get(agent.head_id or "") if agent is not None else None
            if node_id is not None:
                heads[node_id] = (*heads.get(node_id, ()), speaker)
        return heads

    def _load(self) -> None:
        if self._store.conversation_id is not None and self._deferred is None:
            self._deferred = []
            self._session.spawn(self._read(self._store.conversation_id), self.failed.emit)

    async def _read(self, conversation_id: str) -> None:
        """Events that arrive during the call may be newer than its answer."""
        try:
            tree = await self._session.call(CONVERSATION_TREE, ConversationTreeParams(conversation_id=conversation_id))
        finally:
            deferred, self._deferred = self._deferred or [], None
        self._take(tree)
        for change in deferred:
            self._put(change)
        self._draw()

    def _take(self, tree: ConversationTreeResult) -> None:
        self._is_stale = False
        self._nodes = {node.id: node for node in tree.nodes}
        self._tasks = {task.id: task for task in tree.tasks}
        self._nearest_listed = {node_id: node_id for node_id in self._nodes}
        for agent, head in zip(tree.agents, tree.heads, strict=True):
            if agent.head_id is not None:
                self._nearest_listed[agent.head_id] = head.node_id

    def _draw(self) -> None:
        self._redraw_timer.stop()
        self.lines = tree_lines(self._nodes, self._head_id, self._tasks, self._heads)
        self.is_loaded = True
        self.changed.emit()

    def _put(self, change: Node | Task | Agent) -> None:
        match change:
            case Node():
                self._put_node(change)
            case Task():
                self._tasks[change.id] = change
            case Agent():
                self._put_agent(change)
        if not self._redraw_timer.isActive():
            self._redraw_timer.start()

    def _put_node(self, node: Node) -> None:
        if node.parent_id is not None and node.parent_id not in self._nearest_listed:
            self._is_stale = True  # its parent, a result or a notice, is unknown here: reload
            return
        if node.task_from:
            self._is_stale = True  # the engine knows the reply that called the sub-agent
            return
        above = self._nearest_listed[node.parent_id] if node.parent_id is not None else None
        is_written = node.is_from_person or node.role == "assistant"
        self._nearest_listed[node.id] = node.id if is_written else above
        if is_written:
            self._nodes[node.id] = _tree_node(node, above)

    def _put_agent(self, agent: Agent) -> None:
        if agent.head_id is not None and agent.head_id not in self._nearest_listed:
            self._is_stale = True

    def _on_change(self, change: Node | Task | Agent | None) -> None:
        if change is None:
            return
        if self._deferred is not None:
            self._deferred.append(change)
        elif self._is_open and not self.is_loaded:
            self._load()  # the first task of a new conversation was started
        elif self._is_open:
            self._put(change)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, AgentUpdate) and event.agent.conversation_id == self._store.conversation_id:
            self._on_change(event.agent)
            if self._is_open:
                self._arrival_timer.start()

    def _on_agents_changed(self) -> None:
        if self._is_open and self.is_loaded and not self._redraw_timer.isActive():
            self._redraw_timer.start()

    def _on_resync(self) -> None:
        if self._is_open:
            self._load()

    def _on_redraw(self) -> None:
        if self._is_stale:
            self._load()
        else:
            self._draw()

    def _on_arrival(self) -> None:
        """The transcript shows the requested branch: scroll to the message."""
        agent = self._store.agents.shown
        if self._pending_node_id and agent is not None and self._store.branch.ids[-1:] == [agent.head_id]:
            node_id, self._pending_node_id = self._pending_node_id, ""
            self._store.seeker.seek(node_id)


def _tree_node(node: Node, parent_id: str | None) -> TreeNode:
    """Return a node from an event, in the form that the engine uses in trees."""
    text = next(
        (block.text.lstrip() for block in node.blocks if isinstance(block, TextBlock) and block.text.strip()), ""
    )
    tools = ", ".join(block.tool for block in node.blocks if isinstance(block, ToolCallBlock))
    return TreeNode(
        id=node.id,
        parent_id=parent_id,
        role=node.role,
        status=node.status,
        created_at=node.created_at,
        text=" ".join(text[:_READ_CHARACTERS].split())[:_MAX_TEXT] or tools or node.error or "",
        task_id=node.task_id,
    )
