"""A reply while it streams: sends deltas to clients and saves the text in batches."""

import asyncio

import msgspec

from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.history.conversion import blocks_of_reply
from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.messages import AssistantContent, AssistantMessage
from errand.engine.event_log import EventLog
from errand.engine.models.base import BlockDelta, PartialReply
from errand.engine.storage.records import nodes
from errand.engine.storage.sql.journal import Journal
from errand.protocol.conversations import Node
from errand.protocol.events import TextDelta

# A faster reply is never shown partially.
_SHOWN_AFTER_S = 0.03
# Including the following commit, a crash loses less than 250 ms of streamed text.
_SAVED_EACH_S = 0.2
# Each save writes the whole reply: a reply with more characters is saved less often.
_USUAL_LENGTH = 256 * 1024


class StreamingReply:
    """The node of the current reply. Enters the tree as `streaming` after a short delay; the final node replaces it."""

    def __init__(self, state: TaskState, branch: BranchWriter, log: EventLog, journal: Journal) -> None:
        self._state = state
        self._branch = branch
        self._log = log
        self._journal = journal
        self._partial: PartialReply = AssistantMessage()
        self._node: Node | None = None
        self._offsets: dict[int, int] = {}
        self._length = 0
        self._pending_deltas: list[TextDelta] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def content(self) -> tuple[AssistantContent, ...]:
        """The content received so far."""
        return self._partial.content

    @property
    def is_shown(self) -> bool:
        """True if it has a node in the tree."""
        return self._node is not None

    def delta(self, delta: BlockDelta) -> None:
        self._partial = delta.partial
        offset = self._offsets.get(delta.content_index, 0)
        self._offsets[delta.content_index] = offset + len(delta.delta)
        self._length += len(delta.delta)
        text = TextDelta(
            conversation_id=self._state.task.conversation_id,
            task_id=self._state.task.id,
            node_id=self._node.id if self._node is not None else "",
            block=delta.content_index,
            kind="toolCall" if delta.kind == "tool_call" else delta.kind,
            offset=offset,
            text=delta.delta,
        )
        if self._node is not None:
            self._log.deltas.add(text, after=self._log.head)
        else:
            self._pending_deltas.append(text)
        if self._timer is None:
            wait = _SHOWN_AFTER_S if self._node is None else _SAVED_EACH_S * max(1.0, self._length / _USUAL_LENGTH)
            self._timer = asyncio.get_running_loop().call_later(wait, self._save)

    def restart(self) -> None:
        """After a retry: discards the streamed content."""
        self._partial, self._length = AssistantMessage(), 0
        self._offsets.clear()
        self._pending_deltas.clear()
        if self._node is not None:
            self._branch.show(self._node)

    def finish(self) -> str | None:
        """Reset; returns the id of the node if it entered the tree."""
        if self._timer is not None:
            self._timer.cancel()
        node_id = self._node.id if self._node is not None else None
        self._node, self._timer, self._partial, self._length = None, None, AssistantMessage(), 0
        self._offsets.clear()
        self._pending_deltas.clear()
        return node_id

    def _save(self) -> None:
        self._timer = None
        if self._node is None:
            self._node = self._show()
        self._journal.put(nodes.save(msgspec.structs.replace(self._node, blocks=blocks_of_reply(self._partial))))

    def _show(self) -> Node:
        """Publish an empty node: the deltas carry all of its text, so clients that join late get the whole."""
        task = self._state.task
        node = self._branch.draft(
            "assistant",
            task.agent_id,
            (),
            task_id=task.id,
            turn=task.progress.step_count,
            status="streaming",
            model=task.request.model,
        )
        self._branch.show(node)
        for delta in self._pending_deltas:
            self._log.deltas.add(msgspec.structs.replace(delta, node_id=node.id), after=self._log.head)
        self._pending_deltas.clear()
        return node
