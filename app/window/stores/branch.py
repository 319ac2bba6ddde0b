"""The loaded part of a conversation's branch: its nodes in order, and what of calls, asks and tasks belongs to each."""

from collections.abc import Iterable, Sequence

import msgspec

from app.protocol.asks import Ask
from app.protocol.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from app.protocol.conversations import Node
from app.protocol.events import TextDelta, ToolOutput
from app.protocol.tasks import Task
from app.window.rows import EndRow, NoticeRow, Row
from app.window.stores.draft import Draft
from app.window.stores.node_rows import Belongings, node_rows

# Of a running call's output the end is kept; the whole is in the result.
_MOST_OUTPUT = 64 * 1024


class Branch:
    """Changes return the ids of the nodes whose rows they touch, in the order in which to show them."""

    def __init__(self) -> None:
        self.has_older = False
        self._order: list[str] = []
        self._nodes: dict[str, Node] = {}
        self._drafts: dict[str, Draft] = {}
        self._owners: dict[tuple[str | None, str], str] = {}  # task and call: the newest node that has the call
        self._results: dict[str, dict[str, ToolResultBlock]] = {}
        self._outputs: dict[str, dict[str, str]] = {}
        self._tasks: dict[str, Task] = {}
        self._last_of_task: dict[str, str] = {}
        self._asks: dict[str, Ask] = {}
        self._asks_at: dict[str, list[str]] = {}
        self._lost: set[str] = set()  # asks whose node is not loaded

    @property
    def ids(self) -> Sequence[str]:
        """Of the loaded nodes, oldest first."""
        return self._order

    @property
    def task_ids(self) -> frozenset[str]:
        return frozenset(self._last_of_task)

    def knows_task(self, task_id: str) -> bool:
        return task_id in self._tasks

    def holds(self, node_id: str) -> bool:
        return node_id in self._nodes

    def node(self, node_id: str) -> Node:
        return self._nodes[node_id]

    def shown_at(self, node_id: str) -> str:
        """The node whose rows show this one: a result stands at its call."""
        node = self._nodes[node_id]
        for block in node.blocks:
            if isinstance(block, ToolResultBlock):
                return self._owners.get((node.task_id, block.call_id), node_id)
        return node_id

    def show(self, page: Sequence[Node], has_older: bool) -> None:
        """Become the branch that ends with `page`. What is loaded above it stays if it leads there."""
        start = self._joint(page)
        if start is None:
            self.has_older = has_older
            kept: list[Node] = []
        else:
            kept = [self._nodes[node_id] for node_id in self._order[:start]]
        self._order.clear()
        self._nodes.clear()
        self._last_of_task.clear()
        self._owners.clear()
        for node in (*kept, *page):
            self._append(node)
        self._drafts = {node_id: draft for node_id, draft in self._drafts.items() if self._is_streaming(node_id)}
        self._place_asks()

    def prepend(self, page: Sequence[Node], has_older: bool) -> Sequence[str]:
        """Put an older page above. Returns its nodes' ids, then those of others that it touches."""
        later = [self._nodes[node_id] for node_id in self._order]
        unowned = [node for node in later if node.role == "tool_result" and not self._is_owned(node)]
        self.has_older = has_older
        self._order.clear()
        self._owners.clear()
        self._last_of_task.clear()
        for node in (*page, *later):
            self._append(node)
        self._place_asks()
        return [*(node.id for node in page), *(node.id for node in unowned)]

    def put(self, node: Node) -> Sequence[str]:
        """Add a node at the end, or finish a streaming one; nothing if it belongs to another branch."""
        if node.id in self._nodes:
            self._take(node)
            self._place_lost(node)
            return self._touched(node)
        if self._order and node.parent_id != self._order[-1]:
            return ()
        before = self._last_of_task.get(node.task_id or "")
        self._append(node)
        self._place_lost(node)
        return [*([before] if before else []), *self._touched(node)]

    def put_task(self, task: Task) -> Sequence[str]:
        self._tasks[task.id] = task
        last = self._last_of_task.get(task.id)
        if last is not None and task.error and task.ended_at is not None:
            return [node_id for node_id in self._order if self._nodes[node_id].task_id == task.id]  # see _is_said
        return [last] if last else []

    def put_ask(self, ask: Ask) -> Sequence[str]:
        known = self._asks.get(ask.id)
        if known is not None and ask.status == "waiting":
            return ()  # read before it was settled, or said again
        self._asks[ask.id] = ask
        place = self._place(ask)
        return [place] if place else []

    def add_text(self, delta: TextDelta) -> Sequence[str]:
        draft = self._drafts.get(delta.node_id)
        if draft is None:
            return ()
        draft.add(delta)
        return [delta.node_id]

    def add_output(self, delta: ToolOutput) -> Sequence[str]:
        owner = self._owners.get((delta.task_id, delta.call_id))
        if owner is None:
            return ()
        outputs = self._outputs.setdefault(owner, {})
        outputs[delta.call_id] = (outputs.get(delta.call_id, "") + delta.text)[-_MOST_OUTPUT:]
        return [owner]

    def rows(self, node_id: str) -> list[Row]:
        node = self._nodes[node_id]
        asks = [self._asks[ask_id] for ask_id in self._asks_at.get(node_id, ())]
        asks.sort(key=lambda ask: (ask.created_at, ask.id))
        draft = self._drafts.get(node_id)
        if draft is not None:
            return draft.rows()
        belongings = Belongings(self._results.get(node_id, {}), self._outputs.get(node_id, {}), asks)
        rows = [row for row in node_rows(node, belongings) if not self._is_said(row)]
        return [*rows, *self._end(node)]

    def _is_said(self, row: Row) -> bool:
        """The end of a failed task says why: the remarks above it that say the same are left out."""
        task = self._tasks.get(row.node.task_id or "") if isinstance(row, NoticeRow) else None
        return (
            isinstance(row, NoticeRow)
            and task is not None
            and task.ended_at is not None
            and row.notice.text == task.error
        )

    def _end(self, node: Node) -> list[Row]:
        task = self._tasks.get(node.task_id or "")
        if task is None or task.ended_at is None or self._last_of_task.get(task.id) != node.id:
            return []
        return [EndRow(f"{task.id}/end", self._without_echo(task))]

    def _without_echo(self, task: Task) -> Task:
        """A task without a summary of its own has its last words as summary: they stand right above."""
        for node_id in reversed(self._order):
            node = self._nodes[node_id]
            if node.task_id == task.id and node.role == "assistant":
                said = "".join(block.text for block in node.blocks if isinstance(block, TextBlock))
                return msgspec.structs.replace(task, summary="") if said and said == task.summary else task
        return task

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
            self._last_of_task[node.task_id] = node.id

    def _take(self, node: Node) -> None:
        self._nodes[node.id] = node
        if node.status == "streaming":
            self._drafts[node.id] = Draft(node)
            return
        self._drafts.pop(node.id, None)
        for block in node.blocks:
            if isinstance(block, ToolCallBlock):
                self._owners[node.task_id, block.call_id] = node.id
            elif isinstance(block, ToolResultBlock):
                self._take_result(node, block)

    def _take_result(self, node: Node, result: ToolResultBlock) -> None:
        owner = self._owners.get((node.task_id, result.call_id))
        if owner is not None:
            self._results.setdefault(owner, {})[result.call_id] = result
            self._outputs.get(owner, {}).pop(result.call_id, None)

    def _touched(self, node: Node) -> list[str]:
        owners = [
            self._owners.get((node.task_id, block.call_id))
            for block in node.blocks
            if isinstance(block, ToolResultBlock)
        ]
        return [*(owner for owner in owners if owner), node.id]

    def _is_owned(self, node: Node) -> bool:
        calls = [block.call_id for block in node.blocks if isinstance(block, ToolResultBlock)]
        return all((node.task_id, call_id) in self._owners for call_id in calls)

    def _is_streaming(self, node_id: str) -> bool:
        return node_id in self._nodes and self._nodes[node_id].status == "streaming"

    def _place_asks(self) -> None:
        self._asks_at.clear()
        self._lost.clear()
        for ask in self._asks.values():
            self._place(ask)

    def _place_lost(self, node: Node) -> None:
        """After a loss of the line asks are replayed before the nodes that they belong to."""
        for ask_id in tuple(self._lost):
            if self._asks[ask_id].task_id == node.task_id:
                self._place(self._asks[ask_id])

    def _place(self, ask: Ask) -> str | None:
        """The node after which it was raised: for a call the reply that has it."""
        for node_id in self._candidates(ask):
            node = self._nodes[node_id]
            if node.task_id == ask.task_id and node.created_at <= ask.created_at and self._can_raise(node, ask):
                placed = self._asks_at.setdefault(node_id, [])
                if ask.id not in placed:
                    placed.append(ask.id)
                self._lost.discard(ask.id)
                return node_id
        self._lost.add(ask.id)
        return None

    def _candidates(self, ask: Ask) -> Iterable[str]:
        known = next((node_id for node_id, asks in self._asks_at.items() if ask.id in asks), None)
        return reversed(self._order) if known is None else (known,)

    def _can_raise(self, node: Node, ask: Ask) -> bool:
        return ask.kind == "limit" or (node.role == "assistant" and node.status != "streaming")
