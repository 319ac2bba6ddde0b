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
    """True for a message of the person, and for the task that an agent gave to its sub-agent."""
    return node.is_from_person or bool(node.task_from)


def kept_messages(nodes: Sequence[Node], room: int) -> dict[str, Node]:
    """Return the orders among `nodes` that stay within `room` characters, by id.

    The first and the newest stay always, then those before the newest. A long message loses its middle, and pictures
    become their names.
    """
    orders = [without_pictures(node) for node in nodes if is_order(node)]
    sizes = [_size(order) for order in orders]
    lengths = dict[int, int]()
    for index in _by_importance(len(orders)):
        left = room - sum(lengths.values())
        if len(lengths) < 2:  # the newest and the first
            lengths[index] = min(sizes[index], max(room // 2, _MIN_CHARACTERS))
        elif left < min(sizes[index], _MIN_CHARACTERS):
            break
        else:
            lengths[index] = min(sizes[index], left)
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


def _by_importance(count: int) -> list[int]:
    newest_first = list(reversed(range(count)))[:MAX_MESSAGES]
    return list(dict.fromkeys((*newest_first[:1], *(range(count)[:1]), *newest_first)))


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
