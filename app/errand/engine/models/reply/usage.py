"""Token usage of a reply: the provider's count, else a marked estimate."""

from dataclasses import replace

import msgspec

from errand.engine.core.messages import (
    AssistantContent,
    AssistantMessage,
    Image,
    ModelMessage,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from errand.engine.models.base import ModelRequest, ToolDefinition
from errand.engine.models.catalog.model_facts import with_cost

# For English and code with OpenAI's tokenizers.
CHARACTERS_A_TOKEN = 4
# Providers charge for a picture by its area, about 1,500 tokens for a large one, regardless of its bytes.
_PICTURE = 6_000

_encoder = msgspec.json.Encoder()


def usage_or_estimate(request: ModelRequest, message: AssistantMessage) -> Usage:
    """Return the usage of a started reply, with its cost if that is known.

    Some servers count the request in their first chunk, and the reply only at its end, which a stopped one never has.
    """
    usage = message.usage
    if not (usage.input_tokens or usage.output_tokens):
        usage = estimate(request, message.content)
    elif not usage.output_tokens and (written := estimate(request, message.content).output_tokens):
        usage = replace(usage, output_tokens=written, estimated=True)
    return with_cost(message.model or request.model, usage)


def estimate(request: ModelRequest, content: tuple[AssistantContent, ...]) -> Usage:
    """Estimate from the length of request and reply."""
    sent = len(request.system_prompt) + sum(map(characters_of, request.messages))
    sent += sum(map(characters_of_tool, request.tools))
    came = sum(map(_block, content))
    return Usage(sent // CHARACTERS_A_TOKEN, came // CHARACTERS_A_TOKEN, estimated=True)


def add_usage(first: Usage, second: Usage) -> Usage:
    """Return the sum; estimated if any part is."""
    return Usage(
        first.input_tokens + second.input_tokens,
        first.output_tokens + second.output_tokens,
        first.cache_read_tokens + second.cache_read_tokens,
        first.cache_write_tokens + second.cache_write_tokens,
        first.cost_usd + second.cost_usd,
        first.estimated or second.estimated,
    )


def with_usage(message: AssistantMessage, usage: Usage) -> AssistantMessage:
    return message if message.usage == usage else replace(message, usage=usage)


def characters_of(message: ModelMessage) -> int:
    return sum(map(_block, message.content))


def characters_of_tool(tool: ToolDefinition) -> int:
    return len(tool.name) + len(tool.description) + len(_encoder.encode(tool.parameters))


def _block(block: Text | Image | Thinking | ToolCall) -> int:
    match block:
        case Text(text) | Thinking(text):
            return len(text)
        case Image():
            return _PICTURE
        case ToolCall():
            return len(block.name) + len(block.invalid or _encoder.encode(block.arguments))
