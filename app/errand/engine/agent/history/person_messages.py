"""The person's older messages, which stay in requests word for word when what is around them is summarised or left out.

Decision 76.
"""

from collections.abc import Sequence

import msgspec

from errand.engine.agent.history.conversion import message_of
from errand.engine.agent.history.shortening import shorten
from errand.engine.models.reply.usage import characters_of
from errand.protocol.blocks import Block, ImageBlock, TextBlock
from errand.protocol.conversations import Node

# Share of the context window, and characters where the window is unknown, such as for summaries of older versions.
WINDOW_SHARE = 0.2
DEFAULT_CHARACTERS = 8_000
# Maximum number of older messages that are read and kept.
MAX_MESSAGES = 200
# The first and the newest message have at least this many characters, however small the window is.
_MIN_CHARACTERS = 300


def is_order(node: Node) -> bool:
    """Return True for a message of the person, and for the task that an agent gave to its sub-agent."""
    return node.is_from_person or bool(node.task_from)


def kept_messages(nodes: Sequence[Node], room: int) -> dict[str, Node]:
    """Return the orders among `nodes` that stay within `room` characters, by id.

    The first and the newest stay always, then those before the newest. A long message loses its middle, and pictures
    become their names.
    """
    orders = [without_pictures(node) for node in nodes if is_order(node)]
    sizes = [_size(order) for order in orders]
    lengths = _lengths_of_outer(sizes, room)
    for index in list(reversed(range(len(orders))))[1:MAX_MESSAGES]:
        left = room - sum(lengths.values())
        if left < min(sizes[index], _MIN_CHARACTERS):
            break
        lengths.setdefault(index, min(sizes[index], left))
    return {orders[index].id: shortened(orders[index], length) for index, length in sorted(lengths.items())}


def shortened(node: Node, length: int) -> Node:
    """Return the message with at most about `length` characters: each text loses its middle."""
    size = _size(node)
    if size <= length:
        return node
    blocks = tuple(_shortened_block(block, length / size) for block in node.blocks)
    return msgspec.structs.replace(node, blocks=blocks)


def without_pictures(node: Node) -> Node:
    """Return the message with the names of its pictures in their place."""
    return msgspec.structs.replace(node, blocks=tuple(map(_named, node.blocks)))


def _lengths_of_outer(sizes: Sequence[int], room: int) -> dict[int, int]:
    """Return the lengths of the first and the newest message: half of the room for each, or what the other leaves of
    it.
    """
    if len(sizes) < 2:
        return {index: min(size, max(room, _MIN_CHARACTERS)) for index, size in enumerate(sizes)}
    half = max(room // 2, _MIN_CHARACTERS)
    first = min(sizes[0], max(half, room - sizes[-1]))
    return {0: first, len(sizes) - 1: min(sizes[-1], max(half, room - first))}


def _size(node: Node) -> int:
    message = message_of(node)
    return characters_of(message) if message is not None else 0


def _named(block: Block) -> Block:
    if not isinstance(block, ImageBlock):
        return block
    return TextBlock(text=f"[Attached picture: {block.name}]" if block.name else "[A picture was attached here.]")


def _shortened_block(block: Block, share: float) -> Block:
    if not isinstance(block, TextBlock):
        return block
    return msgspec.structs.replace(block, text=shorten(block.text, int(share * len(block.text))))
