"""A reply while it streams: deltas to clients, text so far to storage in groups."""

import asyncio

import msgspec

from app.engine.agent.history.branch import BranchWriter
from app.engine.agent.history.conversion import blocks_of_reply
from app.engine.agent.run.task_state import TaskState
from app.engine.core.messages import AssistantContent, AssistantMessage
from app.engine.event_log import EventLog
from app.engine.models.base import BlockDelta, PartialReply
from app.engine.storage.records import nodes
from app.engine.storage.sqlite.journal import Journal
from app.protocol.conversations import Node
from app.protocol.events import TextDelta

# A reply that is quicker than this is never shown half.
_SHOWN_AFTER_S = 0.03
# With the commit that follows, less than 250 ms of streamed text can be lost in a crash.
_SAVED_EACH_S = 0.2
# All of the reply is written each time: one with more characters is saved less often.
_USUAL_LENGTH = 256 * 1024


class StreamingReply:
    """The node of the reply under way. It enters the tree as `streaming` once it lasts, and is replaced at its end."""

    def __init__(self, live: TaskState, branch: BranchWriter, log: EventLog, journal: Journal) -> None:
        self._live = live
        self._branch = branch
        self._log = log
        self._journal = journal
        self._partial: PartialReply = AssistantMessage()
        self._node: Node | None = None
        self._offsets: dict[int, int] = {}
        self._length = 0
        self._held: list[tuple[BlockDelta, int]] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def content(self) -> tuple[AssistantContent, ...]:
        """What has come so far."""
        return self._partial.content

    @property
    def is_shown(self) -> bool:
        """It has a node in the tree."""
        return self._node is not None

    def delta(self, delta: BlockDelta) -> None:
        self._partial = delta.partial
        offset = self._offsets.get(delta.content_index, 0)
        self._offsets[delta.content_index] = offset + len(delta.delta)
        self._length += len(delta.delta)
        if self._node is not None:
            self._send(self._node, delta, offset)
        else:
            self._held.append((delta, offset))
        if self._timer is None:
            wait = _SHOWN_AFTER_S if self._node is None else _SAVED_EACH_S * max(1.0, self._length / _USUAL_LENGTH)
            self._timer = asyncio.get_running_loop().call_later(wait, self._save)

    def restart(self) -> None:
        """After a retry: what was streamed is void."""
        self._partial, self._length = AssistantMessage(), 0
        self._offsets.clear()
        self._held.clear()
        if self._node is not None:
            self._branch.show(self._node)

    def finish(self) -> str | None:
        """Forget the reply; the id of its node if it entered the tree."""
        if self._timer is not None:
            self._timer.cancel()
        shown = self._node.id if self._node is not None else None
        self._node, self._timer, self._partial, self._length = None, None, AssistantMessage(), 0
        self._offsets.clear()
        self._held.clear()
        return shown

    def _send(self, node: Node, delta: BlockDelta, offset: int) -> None:
        self._log.stream(
            TextDelta(
                conversation_id=node.conversation_id,
                task_id=self._live.task.id,
                node_id=node.id,
                block=delta.content_index,
                kind="toolCall" if delta.kind == "tool_call" else delta.kind,
                offset=offset,
                text=delta.delta,
            )
        )

    def _save(self) -> None:
        self._timer = None
        if self._node is None:
            self._node = self._show()
        self._journal.put(nodes.save(msgspec.structs.replace(self._node, blocks=blocks_of_reply(self._partial))))

    def _show(self) -> Node:
        """Put the node, empty: all of its text goes as deltas, so that they hold the whole of it for late clients."""
        task = self._live.task
        node = self._branch.draft(
            "assistant",
            task.agent_id,
            (),
            task_id=task.id,
            turn=task.step_count,
            status="streaming",
            model=task.model,
        )
        self._branch.show(node)
        for delta, offset in self._held:
            self._send(node, delta, offset)
        self._held.clear()
        return node
