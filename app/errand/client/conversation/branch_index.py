"""Indexes over the nodes of a loaded branch: their forks, their tool calls, and their tasks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from errand.client.conversation.node_rows import CallResult, FoldedTaskEnd, task_end
from errand.client.conversation.rows import BranchSwitchRow
from errand.protocol.blocks import ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Fork, Node
from errand.protocol.tasks.groups import CallProgress
from errand.protocol.tasks.task import Task

# The last two nodes of a task contain its end: a reply that broke off, and the engine's notice.
_MAX_FOLDED = 2


@dataclass(frozen=True, slots=True)
class ForkPosition:
    """A node among its siblings, oldest first: `number` counts from 1."""

    parent_id: str | None
    number: int
    count: int
    previous_id: str | None
    next_id: str | None


class ForkIndex:
    """The known children of nodes. Nodes are never removed, so an entry stays valid."""

    def __init__(self) -> None:
        self._children: dict[str | None, tuple[str, ...]] = {}

    def put(self, forks: Iterable[Fork]) -> None:
        for fork in forks:
            self._children[fork.parent_id] = fork.child_ids

    def add(self, parent_id: str | None, child_id: str, shown_id: str | None) -> bool:
        """Add a child of a node whose shown child is `shown_id`; False if it was known, or if no sibling is known."""
        children = self._children.get(parent_id, () if shown_id is None else (shown_id,))
        if child_id in children or not children:
            return False
        self._children[parent_id] = (*children, child_id)
        return True

    def add_below(self, parent_id: str, child_id: str) -> None:
        """Add a child of the last shown node that is not shown itself."""
        children = self._children.get(parent_id, ())
        if child_id not in children:
            self._children[parent_id] = (*children, child_id)

    def children_of(self, node_id: str) -> tuple[str, ...]:
        """Return the known children of a node; complete for the end of a branch."""
        return self._children.get(node_id, ())

    def position(self, parent_id: str | None, node_id: str) -> ForkPosition | None:
        """Return the node's position in its fork; None without siblings."""
        children = self._children.get(parent_id, ())
        if len(children) < 2 or node_id not in children:
            return None
        index = children.index(node_id)
        before = children[index - 1] if index else None
        after = children[index + 1] if index + 1 < len(children) else None
        return ForkPosition(parent_id, index + 1, len(children), before, after)

    def siblings(self, node: Node) -> tuple[str, ...]:
        """Return a node and its siblings, oldest first; empty without any."""
        children = self._children.get(node.parent_id, ())
        return children if len(children) > 1 and node.id in children else ()

    def switch_row(self, node: Node, *, locked: bool) -> BranchSwitchRow | None:
        """Return the branch switch of a node; None without siblings."""
        position = self.position(node.parent_id, node.id)
        if position is None:
            return None
        return BranchSwitchRow(
            f"{position.parent_id}/fork",  # the same key on all siblings, so that the row keeps the focus
            position.number,
            position.count,
            position.previous_id,
            position.next_id,
            is_user=node.is_from_person,
            locked=locked,
            node_ids=self._children[node.parent_id],
        )


class CallIndex:
    """Maps tool calls to the loaded nodes that contain them, with their results and live outputs."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str | None, str], str] = {}  # task and call: the newest node that has the call
        self._results: dict[str, dict[str, CallResult]] = {}
        self._outputs: dict[str, dict[str, str]] = {}

    def clear(self) -> None:
        """Drop the owners; results stay for nodes that are loaded again."""
        self._owners.clear()

    def put(self, node: Node) -> None:
        for block in node.blocks:
            if isinstance(block, ToolCallBlock):
                self._owners[node.task_id, block.call_id] = node.id
            elif isinstance(block, ToolResultBlock) and (owner := self.owner(node.task_id, block.call_id)) is not None:
                self._results.setdefault(owner, {})[block.call_id] = CallResult(node.id, block)
                self._outputs.get(owner, {}).pop(block.call_id, None)

    def put_output(self, owner: str, call_id: str, text: str) -> None:
        self._outputs.setdefault(owner, {})[call_id] = text

    def owner(self, task_id: str | None, call_id: str) -> str | None:
        return self._owners.get((task_id, call_id))

    def owners(self, node: Node) -> list[str | None]:
        """Return the nodes of the calls that a node has results for, in order; None for a call that is not loaded."""
        return [self.owner(node.task_id, block.call_id) for block in node.blocks if isinstance(block, ToolResultBlock)]

    def touched(self, node: Node) -> list[str]:
        """Return the nodes whose rows a node changes: those with the calls of its results, and itself."""
        return [*filter(None, self.owners(node)), node.id]

    def results(self, node_id: str) -> Mapping[str, CallResult]:
        return self._results.get(node_id, {})

    def outputs(self, node_id: str) -> Mapping[str, str]:
        return self._outputs.get(node_id, {})


class TaskIndex:
    """The known tasks, and the loaded nodes of each."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        """`nodes` belong to the branch."""
        self._nodes = nodes
        self._tasks: dict[str, Task] = {}
        self._of_task: dict[str, list[str]] = {}
        self._of_call: dict[tuple[str | None, int, str], Task] = {}

    @property
    def all(self) -> tuple[Task, ...]:
        """The known tasks of the loaded nodes, in branch order."""
        return tuple(self._tasks[task_id] for task_id in self._of_task if task_id in self._tasks)

    def get(self, task_id: str | None) -> Task | None:
        """Return a known task, also of another branch."""
        return self._tasks.get(task_id or "")

    def of_call(self, node: Node, call_id: str) -> Task | None:
        """Return the task of the sub-agent that a call has started."""
        return self._of_call.get((node.task_id, node.turn, call_id))

    def put(self, task: Task) -> Sequence[str]:
        """Store a task; returns the nodes whose rows it changes."""
        before = self._tasks.get(task.id)
        self._tasks[task.id] = task
        if task.origin.parent_id is not None:
            self._of_call[task.origin.parent_id, task.origin.call_turn, task.origin.call_id] = task
        touched = self._of_task.get(task.id, [])[-_MAX_FOLDED:] if task.outcome.ended_at is not None else []
        if _call_states(task) != _call_states(before):
            touched = [*dict.fromkeys((*self._last_reply(task.id), *touched))]
        if _has_steps(task) and not _has_steps(before):
            touched = [*dict.fromkeys((*self._of_task.get(task.id, [])[:_MAX_FOLDED], *touched))]
        return touched

    def clear(self) -> None:
        """Forget the nodes, but not the tasks."""
        self._of_task.clear()

    def add_node(self, node: Node) -> None:
        """A node was appended to the branch."""
        if node.task_id is not None:
            self._of_task.setdefault(node.task_id, []).append(node.id)

    def last_nodes(self, node: Node) -> Sequence[str]:
        """Return the last nodes of the node's task, which show how it ended."""
        return self._of_task.get(node.task_id or "", [])[-_MAX_FOLDED:]

    def end(self, node: Node, cut_at: str | None) -> FoldedTaskEnd | None:
        """Return the end of the node's task, if the node is one of the task's last ones.

        `cut_at` is the oldest loaded node if older ones exist: a task that starts there may not be loaded completely.
        """
        task = self.get(node.task_id)
        if task is None or task.outcome.ended_at is None or node.id not in self.last_nodes(node):
            return None
        ids = self._of_task[task.id]
        return task_end(task, [self._nodes[node_id] for node_id in ids], is_whole=ids[0] != cut_at)

    def _last_reply(self, task_id: str) -> list[str]:
        """Return the task's last reply: its calls may have no result yet."""
        ids = reversed(self._of_task.get(task_id, []))
        reply = next((each for each in ids if self._nodes[each].role == "assistant"), None)
        return [] if reply is None else [reply]


def _has_steps(task: Task | None) -> bool:
    """Return True if the turns of the task have headings."""
    return task is not None and task.progress.step_count > 1


def _call_states(task: Task | None) -> tuple[bool, bool, tuple[CallProgress, ...]]:
    """Return the fields that decide the states of the calls without a result."""
    return (
        (False, False, ())
        if task is None
        else (task.activity.status == "interrupted", task.outcome.ended_at is not None, task.activity.calls)
    )
