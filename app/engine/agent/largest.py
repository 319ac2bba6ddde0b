"""The largest entries of what a turn was sent: what to release, or to keep out, when the context fills up."""

import heapq
from collections.abc import Collection, Sequence

from app.engine.agent.reach import reach_of
from app.engine.agent.summary import length_of
from app.protocol.blocks import FileBlock, ImageBlock, SummaryBlock, TextBlock, ThinkingBlock, ToolCallBlock
from app.protocol.blocks import NoticeBlock as Notice
from app.protocol.blocks import ToolResultBlock as Result
from app.protocol.context import ContextItem, ContextPart
from app.protocol.conversations import Node

_LONGEST = 80


def before_turn(path: Sequence[Node], task_id: str, turn: int) -> tuple[Node, ...]:
    """What stood before the reply of a turn; nothing where that is on another branch."""
    place = next(
        (i for i, node in enumerate(path) if (node.role, node.task_id, node.turn) == ("assistant", task_id, turn)), 0
    )
    return tuple(path[:place])


def largest_of(
    path: Sequence[Node], kept: Collection[str], count: int, tokens_a_character: float
) -> tuple[ContextItem, ...]:
    reach = reach_of(path, kept)
    kept_ids = {node.id for node in reach.kept}
    sized = ((length_of((node,)), node) for node in (*reach.kept, *reach.rest))
    largest = heapq.nlargest(count, sized, key=lambda one: one[0])
    return tuple(
        ContextItem(
            node_id=node.id,
            part=_part(node, kept_ids),
            tokens=round(size * tokens_a_character),
            text=_beginning(node),
        )
        for size, node in largest
        if size
    )


def _part(node: Node, kept: Collection[str]) -> ContextPart:
    if node.id in kept:
        return "kept"
    return "results" if node.role == "tool_result" else "history"


def _beginning(node: Node) -> str:
    said = " ".join(" ".join(_words(block) for block in node.blocks).split())
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"


def _words(
    block: TextBlock | ThinkingBlock | ImageBlock | FileBlock | ToolCallBlock | Result | Notice | SummaryBlock,
) -> str:
    match block:
        case TextBlock(text=text) | SummaryBlock(text=text) | Notice(text=text):
            return text[: 4 * _LONGEST]
        case ThinkingBlock():
            return ""
        case ImageBlock(name=name):
            return f"[picture {name}]".replace(" ]", "]")
        case FileBlock(name=name):
            return f"[file {name}]"
        case ToolCallBlock(tool=tool):
            return f"[calls {tool}]"
        case Result(tool=tool, text=text):
            return f"{tool}: {text[: 4 * _LONGEST]}"
