"""The loaded part of the shown branch: nodes in order, forks, and the calls, asks and tasks of each node."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from msgspec.structs import force_setattr

from errand.client.conversation.branch_index import CallIndex, ForkIndex, TaskIndex
from errand.client.conversation.node_rows import AskAnchors, NodeExtras, node_rows
from errand.client.conversation.rows import (
    BranchEndRow,
    EditMessageRow,
    NoticeRow,
    Row,
    Speaker,
    SpeakerRow,
    StepRow,
    ToolCallRow,
    UserRow,
)
from errand.client.conversation.streaming import StreamingRows
from errand.protocol.blocks import ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Fork, Node
from errand.protocol.events import ToolOutput
from errand.protocol.tasks.task import Task
from errand.text.translation import tr

_REMOVED = Speaker(tr("Removed agent"), "")


class LoadedBranch:
    """The loaded nodes of one branch.

    Changes return the ids of the nodes whose rows must be updated, in display order.

    `drafts` are the streaming replies by node id.
    """

    def __init__(self) -> None:
        self.has_older = False
        self._order: list[str] = []
        self._nodes: dict[str, Node] = {}
        self.drafts: dict[str, StreamingRows] = {}
        self._calls = CallIndex()
        self.tasks = TaskIndex(self._nodes)
        self._forks = ForkIndex()
        self.asks = AskAnchors(self._order, self._nodes)
        self._names: dict[str, str] = {}
        self._edited: str | None = None
        self._is_locked = False
        self._speakers: Mapping[str, Speaker] = {}

    @property
    def ids(self) -> Sequence[str]:
        """Ids of the loaded nodes, oldest first."""
        return self._order

    @property
    def is_edited(self) -> bool:
        """True while a message is shown as an edit field."""
        return self._edited is not None

    def holds(self, node_id: str) -> bool:
        return node_id in self._nodes

    def node(self, node_id: str) -> Node:
        return self._nodes[node_id]

    def row_owner(self, node_id: str) -> str:
        """Return the node whose rows show this one: a result is shown with its call."""
        return next(iter(self._calls.owners(self._nodes[node_id])), None) or node_id

    def show(self, page: Sequence[Node], has_older: bool, forks: Iterable[Fork]) -> None:
        """Show the branch that ends with `page`. Loaded nodes above it are kept if they lead to it."""
        self._forks.put(forks)
        start = self._join_index(page)
        if start is None:
            self.has_older = has_older
            above: list[Node] = []
        else:
            above = [self._nodes[node_id] for node_id in self._order[:start]]
        self._order.clear()
        self._nodes.clear()
        self._names.clear()
        self.tasks.clear()
        self._calls.clear()
        for node in (*above, *page):
            self._append(node)
        self.drafts = {
            node_id: draft for node_id, draft in self.drafts.items() if _is_streaming(self._nodes.get(node_id))
        }
        self.asks.place_all()

    def prepend(self, page: Sequence[Node], has_older: bool, forks: Iterable[Fork]) -> Sequence[str]:
        """Insert an older page at the start. Returns its node ids, followed by other nodes to update."""
        self._forks.put(forks)
        later = [self._nodes[node_id] for node_id in self._order]
        unowned = [node.id for node in later if node.role == "tool_result" and None in self._calls.owners(node)]
        ends = self.tasks.last_nodes(later[0]) if later else ()
        named = _first_reply(later) if self._speakers else ()
        drafts = dict(self.drafts)
        self.has_older = has_older
        self._order.clear()
        self._calls.clear()
        self.tasks.clear()
        for node in (*page, *later):
            self._append(node)
        self.drafts.update(drafts)  # they have the text that was streamed after the node was loaded
        self.asks.place_all()
        return [*(node.id for node in page), *dict.fromkeys((*unowned, *ends, *named))]

    def put(self, node: Node, *, joins: bool = True) -> Sequence[str]:
        """Append a node or replace a streaming one; nothing if it belongs to another branch.

        A node that does not join starts a separate branch, even if its parent is the end of this one.
        """
        if node.id in self._nodes:
            self._take(node)
            self.asks.place_waiting(node)
            return self._calls.touched(node)
        if self._order and (node.parent_id != self._order[-1] or not joins):
            return self._add_fork(node)
        self._forks.add(node.parent_id, node.id, None)
        before = self._order[-1:]
        ended = self.tasks.last_nodes(node)
        self._append(node)
        self.asks.place_waiting(node)
        return [*dict.fromkeys((*ended, *before)), *self._calls.touched(node)]

    def put_task(self, task: Task) -> Sequence[str]:
        """Store a task; that of a sub-agent changes the row of its call."""
        owner = (
            self._calls.owner(task.origin.parent_id, task.origin.call_id) if task.origin.parent_id is not None else None
        )
        return [*dict.fromkeys((*self.tasks.put(task), *([owner] if owner is not None else [])))]

    def lock(self, is_locked: bool) -> Sequence[str]:
        """While an agent is writing here, branches cannot be switched and messages cannot be resent."""
        if is_locked == self._is_locked:
            return ()
        self._is_locked = is_locked
        return self._forked()

    def set_speakers(self, speakers: Mapping[str, Speaker]) -> Sequence[str]:
        """Set the agents' names to show above replies, by agent id; empty shows none."""
        if speakers == self._speakers:
            return ()
        self._speakers = speakers
        return [node_id for node_id in self._order if self._nodes[node_id].role in ("assistant", "user")]

    def is_behind(self, head_id: str, before_id: str | None) -> bool:
        """Return True if the head moved back on this branch, rather than forward by new nodes."""
        if head_id == self._order[-1]:
            return False
        if before_id not in self._nodes:
            return True
        return self._order.index(head_id) < self._order.index(before_id)

    def edit(self, node_id: str | None) -> Sequence[str]:
        """Show one message of the user as an edit field; None ends editing."""
        before, self._edited = self._edited, node_id
        return [each for each in (before, node_id) if each is not None and each in self._nodes]

    def last_task(self) -> Task | None:
        """Return the task that wrote the last node."""
        return self.tasks.get(self._nodes[self._order[-1]].task_id) if self._order else None

    def replies_since_user(self) -> int:
        """Return the number of tasks that have replied since the user's last message."""
        since = takewhile(lambda node: not node.is_from_person, (self._nodes[each] for each in reversed(self._order)))
        return len({node.task_id for node in since if node.role == "assistant"})

    @property
    def children_of_end(self) -> tuple[str, ...]:
        """The nodes that follow the last one, on other branches."""
        return self._forks.children_of(self._order[-1]) if self._order else ()

    def newest_fork(self, places: Collection[str] = ()) -> tuple[str, ...]:
        """Return the siblings at the newest fork of the loaded nodes, the end of the branch included; empty without
        one.

        A node of `places` counts as a fork, though another branch has yet to begin there.
        """
        if len(self.children_of_end) > 1:
            return self.children_of_end
        for node_id in reversed(self._order):
            siblings = self._forks.siblings(self._nodes[node_id])
            if siblings or self._nodes[node_id].parent_id in places:
                return siblings or (node_id,)
        return ()

    def last_message(self) -> str | None:
        """Return the user's last loaded message."""
        return next((node_id for node_id in reversed(self._order) if self._nodes[node_id].is_from_person), None)

    def add_output(self, delta: ToolOutput) -> Sequence[str]:
        owner = self._calls.owner(delta.task_id, delta.call_id)
        if owner is None:
            return ()
        self._calls.put_output(owner, delta.call_id, delta.text)
        return [owner]

    def rows(self, node_id: str) -> list[Row]:
        node = self._nodes[node_id]
        draft = self.drafts.get(node_id)
        if draft is not None:
            return draft.rows(self._headings(node) if draft.has_rows else self._speaker(node))
        extras = NodeExtras(
            self._calls.results(node_id),
            self._calls.outputs(node_id),
            self.asks.at(node_id),
            self.tasks.get(node.task_id),
        )
        rows: list[Row] = [
            _with_mentions(self._with_sub_agent(self.asks.with_others(row)), self._speakers)
            for row in node_rows(node, extras)
        ]
        if node_id == self._edited:
            rows = [_edited_row(row, locked=self._is_locked) for row in rows]
        end = self.tasks.end(node, self._order[0] if self.has_older else None)
        if end is not None and node_id in end.folded:
            rows = [row for row in rows if not isinstance(row, NoticeRow)]
        rows = [*self._headings(node), *rows] if rows else rows
        if end is not None and end.last_id == node_id:
            is_tip = node_id == self._order[-1]
            rows = [*rows, replace(end.row, fork_id=None if is_tip else node_id)]
        fork = self._forks.switch_row(node, locked=self._is_locked) if rows else None
        if fork is not None:
            rows = [*rows, fork] if fork.is_user else [fork, *rows]
        children = self._forks.children_of(node_id)
        if children and not self._is_locked and node_id == self._order[-1]:
            rows = [*rows, BranchEndRow(f"{node_id}/open", children)]
        return rows

    def _with_sub_agent(self, row: Row) -> Row:
        """Return the row of a call with the task of the sub-agent that it started."""
        if not isinstance(row, ToolCallRow):
            return row
        task = self.tasks.of_call(row.node, row.call.call_id)
        return row if task is None else replace(row, sub_agent=task)

    def _headings(self, node: Node) -> list[Row]:
        return [*self._speaker(node), *self._step(node)]

    def _step(self, node: Node) -> list[Row]:
        """Return the number of the turn. The first has none: it is not known yet whether others follow, and a
        heading that appears above a text later moves it down while it is read.
        """
        return [StepRow(f"{node.id}/step", node.turn)] if node.role == "assistant" and node.turn > 1 else []

    def _speaker(self, node: Node) -> list[Row]:
        """Return the name row above the first of an agent's successive replies, if there are several agents."""
        if not self._speakers or node.role != "assistant":
            return []
        above = self._nodes.get(node.parent_id or "")
        while above is not None and not (above.is_from_person or above.role == "assistant"):
            above = self._nodes.get(above.parent_id or "")
        if above is not None and above.author == node.author:
            return []
        speaker = self._speakers.get(node.author, _REMOVED)
        task = self.tasks.get(node.task_id)
        if task is not None and any(each.model for each in self._speakers.values()):
            speaker = replace(speaker, model=task.request.model)  # if any agent has a separate model, show all models
        return [SpeakerRow(f"{node.id}/speaker", node, speaker)]

    def _add_fork(self, node: Node) -> Sequence[str]:
        """Add a node of another branch; returns the node at which a fork appeared."""
        is_order = node.parent_id is None and node.author == "engine"  # the branch of a sub-agent
        if is_order or (node.parent_id is not None and node.parent_id not in self._nodes):
            return ()
        if self._order and node.parent_id == self._order[-1]:
            self._forks.add_below(self._order[-1], node.id)
            return self._order[-1:]
        sibling_id = next((each for each in self._order if self._nodes[each].parent_id == node.parent_id), None)
        return [sibling_id] if sibling_id is not None and self._forks.add(node.parent_id, node.id, sibling_id) else []

    def _forked(self) -> list[str]:
        """Return the nodes with a branch switch, the edited one, and the last one."""
        nodes = self._nodes
        forked = [each for each in self._order if self._forks.position(nodes[each].parent_id, each) is not None]
        edited = [self._edited] if self._edited in nodes else []
        return [*forked, *edited, *self._order[-1:]]

    def _join_index(self, page: Sequence[Node]) -> int | None:
        """Return the number of loaded nodes before `page`; None if they do not lead to it."""
        if not page or not self._order:
            return None
        first = page[0]
        if first.id in self._nodes:
            return self._order.index(first.id)
        return self._order.index(first.parent_id) + 1 if first.parent_id in self._nodes else None

    def _append(self, node: Node) -> None:
        self._order.append(node.id)
        self._take(node)
        self.tasks.add_node(node)

    def _take(self, node: Node) -> None:
        self._share_names(node)
        self._nodes[node.id] = node
        if node.status == "streaming":
            self.drafts[node.id] = StreamingRows(node)
            return
        self.drafts.pop(node.id, None)
        self._calls.put(node)

    def _share_names(self, node: Node) -> None:
        """Keep each name and id once: a decoded node has its own copies, a tenth of the memory of a long branch."""
        share = self._names.setdefault
        force_setattr(node, "id", share(node.id, node.id))
        force_setattr(node, "conversation_id", share(node.conversation_id, node.conversation_id))
        force_setattr(node, "author", share(node.author, node.author))
        if node.parent_id is not None:
            force_setattr(node, "parent_id", share(node.parent_id, node.parent_id))
        if node.task_id is not None:
            force_setattr(node, "task_id", share(node.task_id, node.task_id))
        for block in node.blocks:
            if isinstance(block, ToolCallBlock | ToolResultBlock):
                force_setattr(block, "tool", share(block.tool, block.tool))
                force_setattr(block, "call_id", share(block.call_id, block.call_id))
            if isinstance(block, ToolCallBlock):
                for name in ("running", "done"):
                    verb: str = getattr(block.display, name)
                    force_setattr(block.display, name, share(verb, verb))


def _first_reply(nodes: Sequence[Node]) -> Sequence[str]:
    """Return the first reply, if no message of a person comes before it: its name row depends on the nodes above."""
    first = next((node for node in nodes if node.is_from_person or node.role == "assistant"), None)
    return [first.id] if first is not None and first.role == "assistant" else []


def _is_streaming(node: Node | None) -> bool:
    return node is not None and node.status == "streaming"


def _with_mentions(row: Row, speakers: Mapping[str, Speaker]) -> Row:
    """Return the user's row with the agents that its text mentions."""
    if not isinstance(row, UserRow) or not speakers or "@" not in row.text:
        return row
    text = row.text.casefold()
    return replace(
        row, mentions=tuple(speaker for speaker in speakers.values() if f"@{speaker.name.casefold()}" in text)
    )


def _edited_row(row: Row, *, locked: bool) -> Row:
    return EditMessageRow(f"{row.node.id}/edit", row.node, row.text, locked=locked) if isinstance(row, UserRow) else row


MAX_COMPARED = 4
"""The number of branches that a comparison shows side by side."""


@dataclass(frozen=True, slots=True)
class ComparedBranch:
    """A branch, identified by its last node; with `to_leaf` it goes on to the newest leaf below that node.

    With an agent there, its new nodes extend the branch. `number` is its position in a fork, 0 if it is not known.
    """

    leaf_id: str
    agent_id: str | None = None
    to_leaf: bool = False
    number: int = 0
