"""Streamed text between two flushes: joined for each block, and kept so that a late client can catch up.

Knows no clock and no client; `broadcast.py` says when to flush and to whom.
"""

from dataclasses import dataclass
from typing import TypeAlias, assert_never

import msgspec

from app.protocol.blocks import ToolResultBlock
from app.protocol.conversations import Node
from app.protocol.events import Delta, TextDelta, ToolOutput

# Of the output of a running call no more than its end is passed on; the rest is only in the result.
_MOST_OUTPUT = 64 * 1024

# Node and block, or task and call with -1: models count their calls anew in every task.
_Key: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class _Pending:
    first: Delta
    pieces: list[str]
    after: int


class DeltaBuffer:
    """What is to be sent, and what has been sent of nodes that still stream."""

    def __init__(self) -> None:
        self._pending: dict[_Key, _Pending] = {}
        self._sent: dict[_Key, tuple[TextDelta, list[str]]] = {}

    @property
    def is_empty(self) -> bool:
        return not self._pending

    def add(self, delta: Delta, after: int) -> None:
        """Keep `delta` for the next flush, which leaves it out until event number `after` is committed."""
        key = _key(delta)
        pending = self._pending.get(key)
        if pending is None or _replaces(delta):
            self._forget_from(key) if _replaces(delta) else None
            self._pending[key] = _Pending(delta, [delta.text], after)
            return
        pending.pieces.append(delta.text)

    def take(self, committed: int) -> list[Delta]:
        """All that may be sent now, one delta for each block and tool call."""
        ready = [(key, pending) for key, pending in self._pending.items() if pending.after <= committed]
        for key, _ in ready:
            del self._pending[key]
        return [self._send(key, pending) for key, pending in ready]

    def so_far(self, conversation_id: str | None) -> list[TextDelta]:
        """All text already sent of nodes that still stream, from offset 0; of every conversation for None."""
        return [
            _with_text(first, 0, "".join(pieces))
            for first, pieces in self._sent.values()
            if conversation_id in (None, first.conversation_id)
        ]

    def finish(self, node: Node) -> None:
        """Drop what belongs to a node that is complete now: the node itself carries it."""
        if node.status == "streaming":
            return
        self._forget_from((node.id, 0))
        for block in node.blocks:
            if isinstance(block, ToolResultBlock):
                self._pending.pop(_call_key(node.task_id or "", block.call_id), None)

    def _send(self, key: _Key, pending: _Pending) -> Delta:
        text = "".join(pending.pieces)
        match pending.first:
            case TextDelta() as first:
                self._sent.setdefault(key, (first, []))[1].append(text)
                return _with_text(first, first.offset, text)
            case ToolOutput() as first:
                return msgspec.structs.replace(first, text=text[-_MOST_OUTPUT:])
            case _:
                assert_never(pending.first)

    def _forget_from(self, start: _Key) -> None:
        """Drop a node's blocks from one on: a retry makes the later ones void too."""
        for kept in (self._pending, self._sent):
            for key in [key for key in kept if key[0] == start[0] and key[1] >= start[1]]:
                del kept[key]


def _key(delta: Delta) -> _Key:
    return (delta.node_id, delta.block) if isinstance(delta, TextDelta) else _call_key(delta.task_id, delta.call_id)


def _call_key(task_id: str, call_id: str) -> _Key:
    return (f"{task_id} {call_id}", -1)


def _replaces(delta: Delta) -> bool:
    """True if all that came before under the same key is void: a reply begins anew; output is told as a whole."""
    return isinstance(delta, ToolOutput) or delta.offset == 0


def _with_text(first: TextDelta, offset: int, text: str) -> TextDelta:
    return TextDelta(
        conversation_id=first.conversation_id,
        task_id=first.task_id,
        node_id=first.node_id,
        block=first.block,
        kind=first.kind,
        offset=offset,
        text=text,
    )
