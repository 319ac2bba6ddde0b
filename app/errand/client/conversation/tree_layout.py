"""A tree of nodes as lines from top to bottom with lanes for branches. Pure."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from errand.client.conversation.rows import Speaker
from errand.protocol.conversations import NodeStatus, Role, TreeNode
from errand.protocol.tasks.task import Task

ROOT = ""
"""What the first messages follow."""


class TreeLine(msgspec.Struct, frozen=True, gc=False):
    """One line of the tree. A struct: a large tree has thousands, and each is made three times as fast as a dataclass.

    `depth` counts levels of indentation. `lanes` has an entry for each level to the left: whether the line drawn there
    belongs to the active branch, or None if the line ends above. `heads` are the agents here, if there are several.
    `number` of `count` is the position in a fork, 0 without one. `turns` counts the folded replies; `tasks` are those
    that started here. `is_side`: it leaves the line to its left; `goes_on`: its own line continues below;
    `goes_on_in_front`: the active branch continues below. `task_from` is the caller of the sub-agent that starts here,
    whose title is the text then.
    """

    node_id: str
    role: Role
    status: NodeStatus
    text: str
    depth: int
    lanes: tuple[bool | None, ...]
    number: int
    count: int
    turns: int
    tasks: tuple[Task, ...]
    is_side: bool
    is_first: bool
    is_in_front: bool
    is_head: bool
    heads: tuple[Speaker, ...]
    goes_on: bool
    goes_on_in_front: bool
    task_from: str = ""


def branch_parent(node: TreeNode) -> str | None:
    """Return the node before this one on its branch. A sub-agent's branch begins below the call that made it."""
    return None if node.task_from else node.parent_id


def path_to(head_id: str | None, nodes: dict[str, TreeNode]) -> frozenset[str]:
    """Return the branch that ends at this node."""
    path: set[str] = set()
    while head_id is not None and head_id in nodes:
        path.add(head_id)
        head_id = branch_parent(nodes[head_id])
    return frozenset(path)


def newest_leaf(node_id: str, nodes: dict[str, TreeNode]) -> str:
    """Return the newest leaf of a branch below a node; `nodes` as for `tree_lines`."""
    below = {node_id}
    newest = node_id
    for node in nodes.values():
        if branch_parent(node) in below:
            below.add(node.id)
            newest = node.id
    return newest


def tree_lines(
    nodes: dict[str, TreeNode],
    head_id: str | None,
    tasks: dict[str, Task],
    heads: Mapping[str, tuple[Speaker, ...]] = MappingProxyType({}),
) -> tuple[TreeLine, ...]:
    """`nodes` in the order of storage: parents before children. `heads` by node id."""
    return _Lines(nodes, head_id, tasks, heads).drawn()


class _Start(msgspec.Struct, frozen=True, gc=False):
    """A line to draw: its first node and its position."""

    node_id: str
    depth: int
    lanes: tuple[bool | None, ...]
    number: int
    count: int
    is_side: bool


class _Lines:
    def __init__(
        self,
        nodes: dict[str, TreeNode],
        head_id: str | None,
        tasks: dict[str, Task],
        heads: Mapping[str, tuple[Speaker, ...]],
    ) -> None:
        self._nodes = nodes
        self._heads = heads
        self._tasks = _at_work(nodes, tasks)
        self._titles = {task.id: task.origin.title for task in tasks.values()}
        self._head_id = head_id
        self._front = path_to(head_id, nodes)
        self._children = _children_of(nodes.values())
        self._newest = _newest_below(nodes)

    def drawn(self) -> tuple[TreeLine, ...]:
        lines: list[TreeLine] = []
        waiting = self._next(ROOT, -1, ())
        while waiting:
            start = waiting.pop()
            segment = self._segment(start.node_id)
            below = self._next(segment[-1], start.depth, start.lanes)
            lines.append(self._line(start, segment, below, is_first=not lines))
            waiting.extend(below)
        return tuple(lines)

    def _next(self, node_id: str, depth: int, lanes: tuple[bool | None, ...]) -> list[_Start]:
        """Return the lines after a node in reverse drawing order.

        Sub-agents that it called and side branches, oldest first, are drawn before the continuation.
        """
        every = self._children.get(node_id, [])
        if not every:
            return []
        called = [child for child in every if self._nodes[child].task_from and node_id != ROOT]
        children = [child for child in every if child not in called] if called else every
        straight, count = max(depth, 0), len(children)
        if count < 2:
            starts = [_Start(child, straight, lanes, 0, 0, False) for child in children]
            goes_past = any(child in self._front for child in children) if children else None
        else:
            trunk = max(children, key=self._newest.__getitem__)
            starts = [_Start(trunk, straight, lanes, children.index(trunk) + 1, count, False)]
            goes_past = trunk in self._front
            for number in range(count, 0, -1):
                child = children[number - 1]
                if child != trunk:
                    starts.append(_Start(child, straight + 1, (*lanes, goes_past), number, count, True))
                    goes_past = goes_past or child in self._front
        for child in reversed(called):
            starts.append(_Start(child, straight + 1, (*lanes, goes_past), 0, 0, True))
            goes_past = bool(goes_past)
        return starts

    def _segment(self, first: str) -> list[str]:
        """Return the nodes folded into one line."""
        segment, below, nodes = [first], self._children, self._nodes
        while True:
            children = below.get(segment[-1])
            if children is None or len(children) != 1 or nodes[children[0]].role == "user":
                return segment
            segment.append(children[0])

    def _line(self, start: _Start, segment: list[str], below: list[_Start], *, is_first: bool) -> TreeLine:
        node = self._nodes[start.node_id]
        return TreeLine(
            node_id=node.id,
            role=node.role,
            status=self._nodes[segment[-1]].status,
            text=(self._titles.get(node.task_id or "") if node.task_from else "") or node.text,
            depth=start.depth,
            lanes=start.lanes,
            number=start.number,
            count=start.count,
            turns=len(segment) - (node.role == "user"),
            tasks=tuple([self._tasks[node_id] for node_id in segment if node_id in self._tasks]) if self._tasks else (),
            is_side=start.is_side,
            is_first=is_first,
            is_in_front=node.id in self._front,
            is_head=self._head_id in segment,
            heads=tuple([speaker for member_id in segment for speaker in self._heads.get(member_id, ())])
            if self._heads
            else (),
            goes_on=bool(below),
            goes_on_in_front=any(line.node_id in self._front for line in below),
            task_from=node.task_from,
        )


def _at_work(nodes: dict[str, TreeNode], tasks: dict[str, Task]) -> dict[str, Task]:
    """Tasks by the node of their first reply, or of their message while there is no reply.

    That node identifies the branch of the task.
    """
    first: dict[str, TreeNode] = {}
    for node in nodes.values():
        if node.task_id in tasks:
            first_node = first.setdefault(node.task_id, node)
            if first_node.role == "user" and node.role != "user":
                first[node.task_id] = node
    return {node.id: tasks[task_id] for task_id, node in first.items()}


def _children_of(nodes: Iterable[TreeNode]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for node in nodes:
        children.setdefault(node.parent_id or ROOT, []).append(node.id)
    return children


def _newest_below(nodes: dict[str, TreeNode]) -> dict[str, int]:
    """Return the index of the newest node of a branch below each node."""
    newest = {node_id: number for number, node_id in enumerate(nodes)}
    for node_id in reversed(nodes):
        parent_id = branch_parent(nodes[node_id])
        if parent_id is not None:
            newest[parent_id] = max(newest[parent_id], newest[node_id])
    return newest
