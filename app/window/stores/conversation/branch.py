"""The loaded part of the shown branch: nodes in order, forks, and the calls, asks and tasks of each node."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from app.protocol.blocks import ToolCallBlock, ToolResultBlock
from app.protocol.conversations import Fork, Node
from app.protocol.events import TextDelta, ToolOutput
from app.protocol.tasks import Task
from app.window.rows.row import (
    BranchEndRow,
    BranchSwitchRow,
    EditMessageRow,
    NoticeRow,
    Row,
    Speaker,
    SpeakerRow,
    UserRow,
)
from app.window.stores.conversation.node_rows import AskAnchors, FoldedTaskEnd, NodeExtras, node_rows, task_end
from app.window.stores.conversation.streaming import RowTail, StreamingRows
from app.window.stores.tasks import is_interrupted

# A task's end is told by its last two nodes: a reply that broke off, and the engine's remark.
_MOST_FOLDED = 2
_REMOVED = Speaker("An agent that was removed", "")


@dataclass(frozen=True, slots=True)
class ForkPosition:
    """A node among its siblings, oldest first: `number` counts from 1."""

    parent_id: str | None
    number: int
    count: int
    previous_id: str | None
    next_id: str | None


class ForkIndex:
    """Nodes are never taken away, so what was told once stays true."""

    def __init__(self) -> None:
        self._children: dict[str | None, tuple[str, ...]] = {}

    def put(self, forks: Iterable[Fork]) -> None:
        for fork in forks:
            self._children[fork.parent_id] = fork.child_ids

    def add(self, parent_id: str | None, child_id: str, shown_id: str | None) -> bool:
        """Take a node that was added below a parent of which `shown_id` is seen; False if nothing is new by it."""
        known = self._children.get(parent_id, () if shown_id is None else (shown_id,))
        if child_id in known or not known:
            return False
        self._children[parent_id] = (*known, child_id)
        return True

    def add_below(self, parent_id: str, child_id: str) -> None:
        """Take a node that was added below the end of what is seen, and is not seen."""
        known = self._children.get(parent_id, ())
        if child_id not in known:
            self._children[parent_id] = (*known, child_id)

    def below(self, node_id: str) -> tuple[str, ...]:
        """What follows a node, as far as it is known; all of it for the end of a branch."""
        return self._children.get(node_id, ())

    def place(self, parent_id: str | None, node_id: str) -> ForkPosition | None:
        """None where a node has no siblings."""
        children = self._children.get(parent_id, ())
        if len(children) < 2 or node_id not in children:
            return None
        index = children.index(node_id)
        before = children[index - 1] if index else None
        after = children[index + 1] if index + 1 < len(children) else None
        return ForkPosition(parent_id, index + 1, len(children), before, after)

    def switch_row(self, node: Node, *, locked: bool) -> BranchSwitchRow | None:
        """The switch between a node and its siblings."""
        place = self.place(node.parent_id, node.id)
        if place is None:
            return None
        return BranchSwitchRow(
            f"{place.parent_id}/fork",  # the same key on all siblings, so that the row keeps the focus
            place.number,
            place.count,
            place.previous_id,
            place.next_id,
            is_user=node.is_from_person,
            locked=locked,
        )


class CallIndex:
    """Which loaded node has a tool call, and the results and live outputs of its calls."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str | None, str], str] = {}  # task and call: the newest node that has the call
        self._results: dict[str, dict[str, ToolResultBlock]] = {}
        self._outputs: dict[str, dict[str, str]] = {}

    def clear(self) -> None:
        """Forget the owners; results stay for nodes that are loaded again."""
        self._owners.clear()

    def put(self, node: Node) -> None:
        for block in node.blocks:
            if isinstance(block, ToolCallBlock):
                self._owners[node.task_id, block.call_id] = node.id
            elif isinstance(block, ToolResultBlock) and (owner := self.owner(node.task_id, block.call_id)) is not None:
                self._results.setdefault(owner, {})[block.call_id] = block
                self._outputs.get(owner, {}).pop(block.call_id, None)

    def put_output(self, owner: str, call_id: str, text: str) -> None:
        self._outputs.setdefault(owner, {})[call_id] = text

    def owner(self, task_id: str | None, call_id: str) -> str | None:
        return self._owners.get((task_id, call_id))

    def owners(self, node: Node) -> list[str | None]:
        """The nodes of the calls that a node has results for, in order; None for a call that is not loaded."""
        return [self.owner(node.task_id, block.call_id) for block in node.blocks if isinstance(block, ToolResultBlock)]

    def touched(self, node: Node) -> list[str]:
        """The nodes whose rows a node changes: those with the calls of its results, and itself."""
        return [*filter(None, self.owners(node)), node.id]

    def results(self, node_id: str) -> Mapping[str, ToolResultBlock]:
        return self._results.get(node_id, {})

    def outputs(self, node_id: str) -> Mapping[str, str]:
        return self._outputs.get(node_id, {})


class LoadedBranch:
    """Changes return the ids of the nodes whose rows they touch, in the order in which to show them."""

    def __init__(self) -> None:
        self.has_older = False
        self._order: list[str] = []
        self._nodes: dict[str, Node] = {}
        self._drafts: dict[str, StreamingRows] = {}
        self._calls = CallIndex()
        self._tasks: dict[str, Task] = {}
        self._of_task: dict[str, list[str]] = {}
        self._forks = ForkIndex()
        self.asks = AskAnchors(self._order, self._nodes)
        self._edited: str | None = None
        self._is_locked = False
        self._speakers: Mapping[str, Speaker] = {}

    @property
    def ids(self) -> Sequence[str]:
        """Of the loaded nodes, oldest first."""
        return self._order

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Those of the loaded nodes that are known, in the order of the branch."""
        return tuple(self._tasks[task_id] for task_id in self._of_task if task_id in self._tasks)

    def task(self, task_id: str | None) -> Task | None:
        """One that was heard of, on this branch or not."""
        return self._tasks.get(task_id or "")

    def holds(self, node_id: str) -> bool:
        return node_id in self._nodes

    def node(self, node_id: str) -> Node:
        return self._nodes[node_id]

    def shown_at(self, node_id: str) -> str:
        """The node whose rows show this one: a result stands at its call."""
        return next(iter(self._calls.owners(self._nodes[node_id])), None) or node_id

    def show(self, page: Sequence[Node], has_older: bool, forks: Iterable[Fork]) -> None:
        """Become the branch that ends with `page`. What is loaded above it stays if it leads there."""
        self._forks.put(forks)
        start = self._joint(page)
        if start is None:
            self.has_older = has_older
            kept: list[Node] = []
        else:
            kept = [self._nodes[node_id] for node_id in self._order[:start]]
        self._order.clear()
        self._nodes.clear()
        self._of_task.clear()
        self._calls.clear()
        for node in (*kept, *page):
            self._append(node)
        self._drafts = {
            node_id: draft for node_id, draft in self._drafts.items() if _is_streaming(self._nodes.get(node_id))
        }
        self.asks.place_all()

    def prepend(self, page: Sequence[Node], has_older: bool, forks: Iterable[Fork]) -> Sequence[str]:
        """Put an older page above. Returns its nodes' ids, then those of others that it touches."""
        self._forks.put(forks)
        later = [self._nodes[node_id] for node_id in self._order]
        unowned = [node.id for node in later if node.role == "tool_result" and None in self._calls.owners(node)]
        ends = (*self._end_of(later[0]), *([later[0].id] if self._speakers else ())) if later else ()
        self.has_older = has_older
        self._order.clear()
        self._calls.clear()
        self._of_task.clear()
        for node in (*page, *later):
            self._append(node)
        self.asks.place_all()
        return [*(node.id for node in page), *unowned, *(each for each in ends if each not in unowned)]

    def put(self, node: Node, *, joins: bool = True) -> Sequence[str]:
        """Add a node at the end, or finish a streaming one; nothing if it belongs to another branch.

        One that does not join begins a branch of its own, also where it follows the end of this one.
        """
        if node.id in self._nodes:
            self._take(node)
            self.asks.place_lost(node)
            return self._calls.touched(node)
        if self._order and (node.parent_id != self._order[-1] or not joins):
            return self._beside(node)
        self._forks.add(node.parent_id, node.id, None)
        before = self._order[-1:]
        ended = self._end_of(node)
        self._append(node)
        self.asks.place_lost(node)
        return [*dict.fromkeys((*ended, *before)), *self._calls.touched(node)]

    def put_task(self, task: Task) -> Sequence[str]:
        before = self._tasks.get(task.id)
        self._tasks[task.id] = task
        touched = self._of_task.get(task.id, [])[-_MOST_FOLDED:] if task.ended_at is not None else []
        if is_interrupted(task) != is_interrupted(before):
            touched = [*dict.fromkeys((*self._last_reply(task.id), *touched))]
        return touched

    def lock(self, is_locked: bool) -> Sequence[str]:
        """While an agent writes here nothing can be switched or sent in another form."""
        if is_locked == self._is_locked:
            return ()
        self._is_locked = is_locked
        return self._forked()

    def name(self, speakers: Mapping[str, Speaker]) -> Sequence[str]:
        """Say above the replies whose they are, by the ids of agents; of no speakers nothing is said."""
        if speakers == self._speakers:
            return ()
        self._speakers = speakers
        return [node_id for node_id in self._order if self._nodes[node_id].role in ("assistant", "user")]

    def is_back(self, head_id: str, before_id: str | None) -> bool:
        """True for a head on this branch that is not its end and did not come there by writing."""
        if head_id == self._order[-1]:
            return False
        if before_id not in self._nodes:
            return True
        return self._order.index(head_id) < self._order.index(before_id)

    def edit(self, node_id: str | None) -> Sequence[str]:
        """Show a person's message as a field to edit it in, no other one; None ends it."""
        before, self._edited = self._edited, node_id
        return [each for each in (before, node_id) if each is not None and each in self._nodes]

    def last_task(self) -> Task | None:
        """The task that wrote the end of the branch."""
        return self._tasks.get(self._nodes[self._order[-1]].task_id or "") if self._order else None

    def replies_since_user(self) -> int:
        """How many tasks wrote since a person's last word."""
        since = takewhile(lambda node: not node.is_from_person, (self._nodes[each] for each in reversed(self._order)))
        return len({node.task_id for node in since if node.role == "assistant"})

    def last_message(self) -> str | None:
        """What a person said last, as far as it is loaded."""
        return next((node_id for node_id in reversed(self._order) if self._nodes[node_id].is_from_person), None)

    def add_text(self, delta: TextDelta) -> RowTail | None:
        """Take streamed text; returns the rows that it changes."""
        draft = self._drafts.get(delta.node_id)
        tail = draft.add(delta) if draft is not None else None
        if tail is None or not self._speakers:
            return tail
        return replace(tail, first=tail.first + len(self._speaker(self._nodes[delta.node_id])))

    def add_output(self, delta: ToolOutput) -> Sequence[str]:
        owner = self._calls.owner(delta.task_id, delta.call_id)
        if owner is None:
            return ()
        self._calls.put_output(owner, delta.call_id, delta.text)
        return [owner]

    def rows(self, node_id: str) -> list[Row]:
        node = self._nodes[node_id]
        draft = self._drafts.get(node_id)
        if draft is not None:
            return [*self._speaker(node), *draft.rows]
        belongings = NodeExtras(
            self._calls.results(node_id),
            self._calls.outputs(node_id),
            self.asks.at(node_id),
            is_interrupted(self._tasks.get(node.task_id or "")),
        )
        rows: list[Row] = [
            _with_mentions(self.asks.with_others(row), self._speakers) for row in node_rows(node, belongings)
        ]
        if node_id == self._edited:
            rows = [_edited_row(row, locked=self._is_locked) for row in rows]
        rows = [*self._speaker(node), *rows] if rows else rows
        end = self._end(node)
        if end is not None and node_id in end.folded:
            rows = [row for row in rows if not isinstance(row, NoticeRow)]
        if end is not None and end.last_id == node_id:
            is_tip = node_id == self._order[-1]
            rows = [*rows, replace(end.row, fork_id=None if is_tip else node_id)]
        fork = self._forks.switch_row(node, locked=self._is_locked) if rows else None
        if fork is not None:
            rows = [*rows, fork] if fork.is_user else [fork, *rows]
        children = self._forks.below(node_id)
        if children and not self._is_locked and node_id == self._order[-1]:
            rows = [*rows, BranchEndRow(f"{node_id}/open", children)]
        return rows

    def _speaker(self, node: Node) -> list[Row]:
        """The name above the first reply of an agent in a row, where several could have written it."""
        if not self._speakers or node.role != "assistant":
            return []
        above = self._nodes.get(node.parent_id or "")
        while above is not None and not (above.is_from_person or above.role == "assistant"):
            above = self._nodes.get(above.parent_id or "")
        if above is not None and above.author == node.author:
            return []
        speaker = self._speakers.get(node.author, _REMOVED)
        task = self._tasks.get(node.task_id or "")
        if task is not None and any(one.model for one in self._speakers.values()):
            speaker = replace(speaker, model=task.model)  # where one has a model of its own the others' are news too
        return [SpeakerRow(f"{node.id}/speaker", node, speaker)]

    def _last_reply(self, task_id: str) -> list[str]:
        """Whose calls may have no result yet."""
        replies = (each for each in reversed(self._of_task.get(task_id, [])) if self._nodes[each].role == "assistant")
        return [*islice(replies, 1)]

    def _end(self, node: Node) -> FoldedTaskEnd | None:
        """The end of the task that this is one of the last nodes of."""
        task = self._tasks.get(node.task_id or "")
        ids = self._of_task.get(node.task_id or "", [])
        if task is None or task.ended_at is None or node.id not in ids[-_MOST_FOLDED:]:
            return None
        is_whole = not self.has_older or ids[0] != self._order[0]
        return task_end(task, [self._nodes[node_id] for node_id in ids], is_whole=is_whole)

    def _end_of(self, node: Node) -> Sequence[str]:
        """The last nodes of a node's task: they show how it ended."""
        return self._of_task.get(node.task_id or "", [])[-_MOST_FOLDED:]

    def _beside(self, node: Node) -> Sequence[str]:
        """A node of another branch: where that leaves this one there is a fork now."""
        if node.parent_id is not None and node.parent_id not in self._nodes:
            return ()
        if self._order and node.parent_id == self._order[-1]:
            self._forks.add_below(self._order[-1], node.id)
            return self._order[-1:]
        shown = next((each for each in self._order if self._nodes[each].parent_id == node.parent_id), None)
        return [shown] if shown is not None and self._forks.add(node.parent_id, node.id, shown) else []

    def _forked(self) -> list[str]:
        """The nodes with a switch, the one that is edited, and the last one."""
        nodes = self._nodes
        forked = [each for each in self._order if self._forks.place(nodes[each].parent_id, each) is not None]
        edited = [self._edited] if self._edited in nodes else []
        return [*forked, *edited, *self._order[-1:]]

    def _joint(self, page: Sequence[Node]) -> int | None:
        """How many of the loaded nodes lead to `page`; None when they do not."""
        if not page or not self._order:
            return None
        first = page[0]
        if first.id in self._nodes:
            return self._order.index(first.id)
        return self._order.index(first.parent_id) + 1 if first.parent_id in self._nodes else None

    def _append(self, node: Node) -> None:
        self._order.append(node.id)
        self._take(node)
        if node.task_id is not None:
            self._of_task.setdefault(node.task_id, []).append(node.id)

    def _take(self, node: Node) -> None:
        self._nodes[node.id] = node
        if node.status == "streaming":
            self._drafts[node.id] = StreamingRows(node)
            return
        self._drafts.pop(node.id, None)
        self._calls.put(node)


def _is_streaming(node: Node | None) -> bool:
    return node is not None and node.status == "streaming"


def _with_mentions(row: Row, speakers: Mapping[str, Speaker]) -> Row:
    """A user's row with the agents that its text names."""
    if not isinstance(row, UserRow) or not speakers or "@" not in row.text:
        return row
    text = row.text.casefold()
    return replace(row, mentions=tuple(one for one in speakers.values() if f"@{one.name.casefold()}" in text))


def _edited_row(row: Row, *, locked: bool) -> Row:
    return EditMessageRow(f"{row.node.id}/edit", row.node, row.text, locked=locked) if isinstance(row, UserRow) else row


@dataclass(frozen=True, slots=True)
class ComparedBranch:
    """A branch by its end. Where an agent stands there, what it writes goes on with it."""

    leaf_id: str
    agent_id: str | None = None
