"""A conversation as another program kept it, before it is one of ours: a tree of what was said, by its own ids."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.engine.numbers import past_moment
from app.protocol.blocks import Block
from app.protocol.conversations import Role

# Larger numbers are milliseconds: in seconds this is the year 5138.
_LARGEST_S = 100_000_000_000


@dataclass(slots=True)
class ForeignNode:
    id: str
    parent_id: str | None
    role: Role
    blocks: list[Block]
    at: datetime | None = None
    model: str = ""


@dataclass(slots=True)
class ForeignConversation:
    """`links` lead from records that are no nodes to what came before them: a node may name any of both as its parent.

    `head_id` is where the conversation stood; None is the node that came last.
    """

    source_id: str
    title: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    folder: str = ""
    head_id: str | None = None
    nodes: list[ForeignNode] = field(default_factory=list[ForeignNode])
    links: dict[str, str | None] = field(default_factory=dict[str, str | None])

    def add(self, node: ForeignNode) -> None:
        """A node without content is only a link."""
        if node.blocks:
            self.nodes.append(node)
        else:
            self.links[node.id] = node.parent_id


class Chain:
    """Adds nodes one after the other: what an agent says and calls is one node until a result or a person comes.

    Their ids begin with `key`, which no other chain of the conversation has.
    """

    def __init__(self, conversation: ForeignConversation, key: str, after: str | None = None) -> None:
        self._conversation = conversation
        self._key = key
        self._open: ForeignNode | None = None
        self._count = 0
        self.last_id = after

    def user(self, blocks: Sequence[Block], at: datetime | None) -> None:
        if blocks:
            self._add("user", blocks, at, "")

    def agent(self, blocks: Sequence[Block], at: datetime | None, model: str) -> None:
        if self._open is not None:
            self._open.blocks += blocks
        elif blocks:
            self._open = self._add("assistant", blocks, at, model)

    def result(self, block: Block, at: datetime | None) -> None:
        self._add("tool_result", (block,), at, "")

    def end_reply(self) -> None:
        """What the agent says next is another node."""
        self._open = None

    def _add(self, role: Role, blocks: Sequence[Block], at: datetime | None, model: str) -> ForeignNode:
        self._count += 1
        self._open = None
        node = ForeignNode(f"{self._key}:{self._count}", self.last_id, role, list(blocks), at, model)
        self._conversation.nodes.append(node)
        self.last_id = node.id
        return node


def moment(value: str | float | None) -> datetime | None:
    """A time as programs write it: ISO text, or seconds or milliseconds since 1970. None for what is no time."""
    try:
        if isinstance(value, str):
            return past_moment(datetime.fromisoformat(value))
        if value is None or value <= 0:
            return None
        return past_moment(datetime.fromtimestamp(value / 1000 if value > _LARGEST_S else value, UTC))
    except (ValueError, OverflowError, OSError):
        return None
