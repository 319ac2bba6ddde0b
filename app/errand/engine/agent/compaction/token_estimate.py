"""Token estimates from characters, and the size of each part of a request.

Calibrated with the provider's token counts (decision 13).
"""

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from errand.engine.agent.history.visible_history import SummaryMessage, length_of, visible_history
from errand.engine.core.messages import ContextText, ModelMessage, ToolResultMessage
from errand.engine.models.base import ModelRequest, ToolDefinition
from errand.engine.models.message_cache import BeginningCache, MessageCache
from errand.engine.models.reply.usage import characters_of, characters_of_tool
from errand.engine.storage.records.turns import PartSize
from errand.engine.tools.mcp.tool import is_tool_of_servers
from errand.protocol.blocks import (
    EnvironmentBlock,
    FileBlock,
    ImageBlock,
    RecallBlock,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from errand.protocol.blocks import NoticeBlock as Notice
from errand.protocol.blocks import ToolResultBlock as Result
from errand.protocol.context import ContextItem, ContextPart
from errand.protocol.conversations import Node
from errand.text.redaction import redact, short_line

# Typical of English, code and JSON with OpenAI's tokenizers; used until the first reply reports a count.
_TOKENS_A_CHARACTER = 1 / 4
# A count outside this range does not cover the whole text: some servers omit cached tokens.
_MIN_TOKENS_PER_CHARACTER, _MAX_TOKENS_PER_CHARACTER = 1 / 16, 2.0

# Cached, since a request is measured for fitting, for the record, and for calibration, and has most of the one before.
_measured: MessageCache[tuple[PartSize, ...]] = MessageCache()
_message_sizes: "BeginningCache[_MessageSize]" = BeginningCache()
_tools: MessageCache[int] = MessageCache()

_MAX_LABEL_LENGTH = 80


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """`tokens` is the provider's count for the newest request, `characters` its length; 0 before the first."""

    characters: int = 0
    tokens: int = 0

    def tokens_of(self, characters: int) -> int:
        return round(characters * self._rate)

    def characters_of(self, tokens: float) -> int:
        return round(tokens / self._rate)

    @property
    def _rate(self) -> float:
        if not self.characters or not self.tokens:
            return _TOKENS_A_CHARACTER
        return min(max(self.tokens / self.characters, _MIN_TOKENS_PER_CHARACTER), _MAX_TOKENS_PER_CHARACTER)


def request_sizes(request: ModelRequest) -> tuple[PartSize, ...]:
    """Return the sizes of the non-empty parts of a request."""
    return _measured.get(request, lambda: _sizes(request))


def _sizes(request: ModelRequest) -> tuple[PartSize, ...]:
    first = request.messages[0] if request.messages else None
    summary = (first,) if isinstance(first, SummaryMessage) else ()
    after = len(summary) + (first.kept_count if isinstance(first, SummaryMessage) else 0)
    size = _size_of_messages(request.messages, after)
    parts = (
        PartSize("system", len(request.system_prompt), 1),
        _part("tools", (_size_of_tool(tool) for tool in request.tools if not is_tool_of_servers(tool.name))),
        _part("services", (_size_of_tool(tool) for tool in request.tools if is_tool_of_servers(tool.name))),
        _part("summary", map(characters_of, summary)),
        _part("kept", map(characters_of, request.messages[len(summary) : after])),
        PartSize("environment", size.environment, size.environments),
        PartSize("history", size.history, size.entries),
        PartSize("results", size.results, size.calls),
        PartSize("memory", size.memory, size.recalls),
    )
    return tuple(part for part in parts if part.characters)


def with_findable(sizes: tuple[PartSize, ...], tools: Sequence[ToolDefinition]) -> tuple[PartSize, ...]:
    """Return the sizes with those of the tools that the model finds when it needs them."""
    characters = sum(map(_size_of_tool, tools))
    return tuple(
        msgspec.structs.replace(size, findable_items=len(tools), findable_characters=characters)
        if size.part == "tools"
        else size
        for size in sizes
    )


@dataclass(frozen=True, slots=True)
class _MessageSize:
    """The characters and numbers of the messages from `after` on: by people and agents, results, and their context."""

    after: int
    history: int = 0
    entries: int = 0
    results: int = 0
    calls: int = 0
    environment: int = 0
    environments: int = 0
    memory: int = 0
    recalls: int = 0


def _size_of_messages(messages: tuple[ModelMessage, ...], after: int) -> _MessageSize:
    known_count, before = _message_sizes.find(messages) or (0, None)
    if before is None or before.after != after:
        count, before = after, _MessageSize(after)
    else:
        count = known_count
    new = messages[count:]
    results = [_own_size(message) for message in new if isinstance(message, ToolResultMessage)]
    others = [_own_size(message) for message in new if not isinstance(message, ToolResultMessage)]
    environments, recalls = _context_sizes(new, "environment"), _context_sizes(new, "memory")
    size = _MessageSize(
        after,
        before.history + sum(others),
        before.entries + len(others),
        before.results + sum(results),
        before.calls + len(results),
        before.environment + sum(environments),
        before.environments + len(environments),
        before.memory + sum(recalls),
        before.recalls + len(recalls),
    )
    _message_sizes.put(messages, size, covered=known_count)
    return size


def _own_size(message: ModelMessage) -> int:
    context = sum(len(block.text) for block in message.content if isinstance(block, ContextText))
    return characters_of(message) - context


def _context_sizes(messages: Sequence[ModelMessage], part: ContextPart) -> list[int]:
    return [
        len(block.text)
        for message in messages
        for block in message.content
        if isinstance(block, ContextText) and block.part == part
    ]


def _size_of_tool(tool: ToolDefinition) -> int:
    return _tools.get(tool, lambda: characters_of_tool(tool))


def _part(part: ContextPart, sizes: Iterable[int]) -> PartSize:
    counted = tuple(sizes)
    return PartSize(part, sum(counted), len(counted))


def before_turn(path: Sequence[Node], task_id: str, turn: int) -> tuple[Node, ...]:
    """Return the nodes before a turn's reply; empty if the reply is on another branch."""
    reply_index = next(
        (i for i, node in enumerate(path) if (node.role, node.task_id, node.turn) == ("assistant", task_id, turn)), 0
    )
    return tuple(path[:reply_index])


def largest_of(
    path: Sequence[Node], kept: Collection[str], count: int, tokens_a_character: float
) -> tuple[ContextItem, ...]:
    history = visible_history(path, kept)
    kept_ids = {node.id for node in history.kept_nodes}
    sized = ((length_of((node,)), node) for node in (*history.kept_nodes, *history.rest))
    largest = heapq.nlargest(count, sized, key=lambda one: one[0])
    return tuple(
        ContextItem(
            node_id=node.id,
            part=_part_of_node(node, kept_ids),
            tokens=round(size * tokens_a_character),
            text=_beginning(node),
        )
        for size, node in largest
        if size
    )


def _part_of_node(node: Node, kept: Collection[str]) -> ContextPart:
    if node.id in kept:
        return "kept"
    return "results" if node.role == "tool_result" else "history"


def _beginning(node: Node) -> str:
    return short_line(" ".join(_block_text(block) for block in node.blocks), _MAX_LABEL_LENGTH, redact)


def _block_text(
    block: TextBlock
    | ThinkingBlock
    | ImageBlock
    | FileBlock
    | ToolCallBlock
    | Result
    | Notice
    | SummaryBlock
    | RecallBlock
    | EnvironmentBlock,
) -> str:
    match block:
        case TextBlock(text=text) | SummaryBlock(text=text) | Notice(text=text):
            return text[: 4 * _MAX_LABEL_LENGTH]
        case ThinkingBlock() | EnvironmentBlock():
            return ""
        case ImageBlock(name=name):
            return f"[picture {name}]".replace(" ]", "]")
        case FileBlock(name=name):
            return f"[file {name}]"
        case ToolCallBlock(tool=tool):
            return f"[calls {tool}]"
        case RecallBlock(entries=entries):
            return f"[recalled {len(entries)}]"
        case Result(tool=tool, text=text):
            return f"{tool}: {text[: 4 * _MAX_LABEL_LENGTH]}"
