"""A summary before it is made: which entries it is to stand for, and how these are put before a model.

The entries go as one text, not as messages: no model has to take another one's calls and thoughts, and nothing in them
can be taken for a request.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import Template
from typing import assert_never

import msgspec

from app.engine.agent.context import message_of
from app.engine.agent.prompting import text
from app.engine.agent.reach import Reach, steps_of
from app.engine.messages import Image, ModelMessage, Text, Thinking, ToolCall, ToolResultMessage, user_text
from app.engine.models.base import ModelRequest
from app.engine.models.usage import characters_of
from app.protocol.blocks import SummaryBlock
from app.protocol.conversations import Node

# How much of one text is told, tried in this order until the whole has room.
_LONGEST = (8_000, 2_000, 500, 120)


@dataclass(frozen=True, slots=True)
class Older:
    """What a summary is to stand for: entries, and the summary they begin with. `characters` are those of all."""

    earlier: SummaryBlock | None
    nodes: tuple[Node, ...]
    characters: int


def older_of(reach: Reach, room: int) -> Older:
    """All but the newest whole steps, which have about `room` characters; never what was said last."""
    steps = steps_of(reach.rest)
    first, left = len(steps), room
    while first > 0 and (size := length_of(steps[first - 1])) <= left:
        left -= size
        first -= 1
    if steps and first == len(steps) and (steps[-1][0].role == "user" or length_of(steps[-1]) <= 2 * room):
        first -= 1
    older = tuple(node for step in steps[:first] for node in step)
    earlier = len(reach.summary.text) if reach.summary is not None else 0
    return Older(reach.summary, older, earlier + length_of(older))


def length_of(nodes: Iterable[Node]) -> int:
    """How many characters a model reads of these."""
    messages = (message_of(node) for node in nodes)
    return sum(characters_of(message) for message in messages if message is not None)


def request_for(model: str, earlier: str, nodes: Sequence[Node], room: int, words: int) -> ModelRequest:
    """`room` are the characters that the record may have: its texts are shortened, then the oldest left out."""
    system = Template(text("summarise")).substitute(words=words)
    return ModelRequest(model, system, (user_text(record_of(earlier, nodes, room)),))


def is_request(request: ModelRequest) -> bool:
    """True of what `request_for` makes."""
    return request.system_prompt.startswith(text("summarise").partition("$")[0])


def record_of(earlier: str, nodes: Sequence[Node], room: int) -> str:
    messages = [(node, message) for node in nodes if (message := message_of(node)) is not None]
    told: list[str] = []
    for longest in _LONGEST:
        told = [_told(node, message, longest) for node, message in messages]
        if len(earlier) + sum(map(len, told)) <= room:
            break
    begin, left_out = [f"# Earlier summary\n\n{earlier}"] if earlier else [], 0
    left = room - sum(map(len, begin)) - sum(map(len, told))
    while left < 0 and left_out < len(told) - 1:
        left += len(told[left_out])
        left_out += 1
    if left_out:
        begin.append(f"[{left_out} entries are left out here.]")
    return "\n\n".join((*begin, *told[left_out:]))


def _told(node: Node, message: ModelMessage, longest: int) -> str:
    match message.role:
        case "user":
            heading = "# Person" if node.is_from_person else "# App"  # no wish of theirs
        case "assistant":
            heading = "# Agent"
        case "tool_result":
            assert isinstance(message, ToolResultMessage)
            heading = f"# {'Error' if message.is_error else 'Result'} of {message.tool_name}"
        case _:
            assert_never(message.role)
    return "\n\n".join((heading, *(said for block in message.content if (said := _said(block, longest)))))


def _said(block: Text | Image | Thinking | ToolCall, longest: int) -> str:
    match block:
        case Text(text=said):
            return shortened(said, longest)
        case Image():
            return "[a picture]"
        case Thinking():
            return ""
        case ToolCall():
            given = block.invalid or msgspec.json.encode(block.arguments).decode()
            return f"[calls {block.name}: {shortened(given, longest)}]"
        case _:
            assert_never(block)


def shortened(said: str, longest: int) -> str:
    """Its beginning and its end, which say most: what was run, and how it came out."""
    if len(said) <= longest:
        return said
    begin, end = longest * 2 // 3, longest // 3
    return f"{said[:begin]}\n[… {len(said) - begin - end:,} characters left out …]\n{said[-end:]}"
