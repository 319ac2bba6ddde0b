"""How much of each kind a model call sends, in characters: kept with its turn, to explain what the provider counted."""

from collections.abc import Iterable

import msgspec

from app.engine.messages import Image, ModelMessage, Text, Thinking, ToolCall, ToolResultMessage
from app.engine.models.base import ModelRequest, ToolDefinition
from app.engine.storage.turns import PartSize
from app.protocol.context import ContextPart

# Providers charge a picture by its area, about 1,500 tokens for a large one; its bytes say nothing.
_PICTURE = 6_000

_encoder = msgspec.json.Encoder()


def sizes_of(request: ModelRequest) -> tuple[PartSize, ...]:
    """The parts of a request that are not empty."""
    results = [message for message in request.messages if isinstance(message, ToolResultMessage)]
    spoken = [message for message in request.messages if not isinstance(message, ToolResultMessage)]
    parts = (
        PartSize("system", len(request.system_prompt), 1),
        _part("tools", map(_definition, request.tools)),
        _part("history", map(_message, spoken)),
        _part("results", map(_message, results)),
    )
    return tuple(part for part in parts if part.characters)


def _part(part: ContextPart, sizes: Iterable[int]) -> PartSize:
    counted = tuple(sizes)
    return PartSize(part, sum(counted), len(counted))


def _definition(tool: ToolDefinition) -> int:
    return len(tool.name) + len(tool.description) + len(_encoder.encode(tool.parameters))


def _message(message: ModelMessage) -> int:
    return sum(map(_block, message.content))


def _block(block: Text | Image | Thinking | ToolCall) -> int:
    match block:
        case Text(text) | Thinking(text):
            return len(text)
        case Image():
            return _PICTURE
        case ToolCall():
            return len(block.name) + len(block.invalid or _encoder.encode(block.arguments))
