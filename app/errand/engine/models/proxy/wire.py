"""The wire format between a proxy and the machine that holds the keys: one request, and the events of its reply.

Unlike `ModelEvent`, the events carry no message so far: the receiver rebuilds it (`codec.py`). No field holds a key,
and unknown fields are refused. docs/sharing.md describes the format for other programs.
"""

from datetime import datetime
from typing import Literal, TypeAlias, assert_never

from errand.engine.core.messages import (
    AssistantContent,
    AssistantMessage,
    Image,
    ModelMessage,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from errand.engine.models.base import ModelOptions, ModelRequest, ToolDefinition
from errand.engine.models.catalog.providers import SHARED
from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import JsonObject, Wire
from errand.protocol.settings import Model

BlockKind = Literal["text", "thinking", "tool_call"]


class SentText(Wire, frozen=True, tag="text"):
    text: str


class SentThinking(Wire, frozen=True, omit_defaults=True, tag="thinking"):
    text: str
    signature: str = ""


class SentImage(Wire, frozen=True, tag="image"):
    media_type: str
    data: str


class SentCall(Wire, frozen=True, omit_defaults=True, tag="tool_call"):
    id: str
    name: str
    arguments: JsonObject
    invalid: str | None = None


SentUserContent: TypeAlias = SentText | SentImage
SentAssistantContent: TypeAlias = SentText | SentThinking | SentCall


class SentUser(Wire, frozen=True, tag="user", tag_field="role"):
    content: tuple[SentUserContent, ...]


class SentAssistant(Wire, frozen=True, omit_defaults=True, tag="assistant", tag_field="role"):
    content: tuple[SentAssistantContent, ...]
    model: str = ""
    stop_reason: StopReason = "stop"
    error: str | None = None


class SentResult(Wire, frozen=True, omit_defaults=True, tag="tool_result", tag_field="role"):
    tool_call_id: str
    tool_name: str
    content: tuple[SentUserContent, ...]
    is_error: bool = False


SentMessage: TypeAlias = SentUser | SentAssistant | SentResult


class SentTool(Wire, frozen=True):
    name: str
    description: str
    parameters: JsonObject


class SentContext(Wire, frozen=True):
    """`systemPrompt`, messages and tools of one model call."""

    system_prompt: str
    messages: tuple[SentMessage, ...]
    tools: tuple[SentTool, ...] = ()


class SentOptions(Wire, frozen=True, omit_defaults=True):
    thinking_level: ThinkingLevel = "off"
    temperature: float | None = None
    max_tokens: int | None = None
    session_id: str | None = None
    thinking_budget: int | None = None


class StreamRequest(Wire, frozen=True):
    """The body of `POST /api/stream`."""

    model: str
    context: SentContext
    options: SentOptions = SentOptions()


class ReplyStarted(Wire, frozen=True, tag="start"):
    """A reply begins: the first one, or another attempt after `retry`."""


class BlockStarted(Wire, frozen=True, omit_defaults=True, tag="block_start"):
    """`id` and `name` are a tool call's; the name may still be empty."""

    kind: BlockKind
    index: int
    id: str = ""
    name: str = ""


class BlockGrew(Wire, frozen=True, tag="block_delta"):
    index: int
    delta: str


class BlockEnded(Wire, frozen=True, omit_defaults=True, tag="block_end"):
    """`signature` is of thinking, `name` of a tool call."""

    index: int
    signature: str = ""
    name: str = ""


class AttemptRetried(Wire, frozen=True, tag="retry"):
    """Discard everything streamed so far."""

    attempt: int
    max_attempts: int
    delay_s: float
    reason: str


class NoticeSent(Wire, frozen=True, tag="remark"):
    """A message for the user, before any content."""

    text: str


class SentUsage(Wire, frozen=True, omit_defaults=True):
    """Like `Usage` of model messages."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0
    estimated: bool = False


class SentLater(Wire, frozen=True, omit_defaults=True):
    """Like `RetryLater` of model events."""

    reason: str
    at: datetime | None = None


class ReplyEnded(Wire, frozen=True, omit_defaults=True, tag="end"):
    """The last event.

    `content` is given only if it differs from the preceding blocks. `cut` says why an overlong reply was ended.
    """

    model: str
    stop_reason: StopReason
    error: str | None = None
    cut: str = ""
    usage: SentUsage = SentUsage()
    later: SentLater | None = None
    is_too_long: bool = False
    passes_elsewhere: bool = False
    content: tuple[SentAssistantContent, ...] | None = None


SharedEvent: TypeAlias = ReplyStarted | BlockStarted | BlockGrew | BlockEnded | AttemptRetried | NoticeSent | ReplyEnded


class SharedModels(Wire, frozen=True):
    """The answer of `GET /api/models`: the models available with this token, and the default one."""

    models: tuple[Model, ...]
    default: str | None = None


def request_to_wire(request: ModelRequest) -> StreamRequest:
    """Convert a request: ids without `proxy/`, no keys."""
    options = request.options
    return StreamRequest(
        model=request.model.removeprefix(SHARED),
        context=SentContext(
            system_prompt=request.system_prompt,
            messages=tuple(_message_to_wire(message) for message in request.messages),
            tools=tuple(
                SentTool(name=tool.name, description=tool.description, parameters=tool.parameters)
                for tool in request.tools
            ),
        ),
        options=SentOptions(
            thinking_level=options.thinking_level,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            session_id=options.session_id,
            thinking_budget=options.thinking_budget,
        ),
    )


def request_from_wire(sent: StreamRequest) -> ModelRequest:
    options = sent.options
    return ModelRequest(
        sent.model,
        sent.context.system_prompt,
        tuple(_message_from_wire(message) for message in sent.context.messages),
        tuple(ToolDefinition(tool.name, tool.description, tool.parameters) for tool in sent.context.tools),
        ModelOptions(
            None,
            options.thinking_level,
            options.temperature,
            options.max_tokens,
            options.session_id,
            thinking_budget=options.thinking_budget,
        ),
    )


def content_to_wire(content: tuple[AssistantContent, ...]) -> tuple[SentAssistantContent, ...]:
    return tuple(_block_to_wire(block) for block in content)


def content_from_wire(content: tuple[SentAssistantContent, ...]) -> tuple[AssistantContent, ...]:
    return tuple(_block_from_wire(block) for block in content)


def _message_to_wire(message: ModelMessage) -> SentMessage:
    match message:
        case UserMessage():
            return SentUser(content=tuple(_content_to_wire(block) for block in message.content))
        case AssistantMessage():
            return SentAssistant(
                content=content_to_wire(message.content),
                model=message.model.removeprefix(SHARED),
                stop_reason=message.stop_reason,
                error=message.error,
            )
        case ToolResultMessage():
            return SentResult(
                tool_call_id=message.tool_call_id,
                tool_name=message.tool_name,
                content=tuple(_content_to_wire(block) for block in message.content),
                is_error=message.is_error,
            )
        case _:
            assert_never(message)


def _message_from_wire(sent: SentMessage) -> ModelMessage:
    match sent:
        case SentUser():
            return UserMessage(tuple(_content_from_wire(block) for block in sent.content))
        case SentAssistant():
            return AssistantMessage(content_from_wire(sent.content), sent.stop_reason, sent.error, sent.model)
        case SentResult():
            content = tuple(_content_from_wire(block) for block in sent.content)
            return ToolResultMessage(sent.tool_call_id, sent.tool_name, content, sent.is_error)
        case _:
            assert_never(sent)


def _content_to_wire(block: UserContent) -> SentUserContent:
    if isinstance(block, Text):
        return SentText(text=block.text)
    return SentImage(media_type=block.media_type, data=block.data)


def _content_from_wire(block: SentUserContent) -> UserContent:
    return Text(block.text) if isinstance(block, SentText) else Image(block.media_type, block.data)


def _block_to_wire(block: AssistantContent) -> SentAssistantContent:
    match block:
        case Text():
            return SentText(text=block.text)
        case Thinking():
            return SentThinking(text=block.text, signature=block.signature)
        case ToolCall():
            return SentCall(id=block.id, name=block.name, arguments=block.arguments, invalid=block.invalid)
        case _:
            assert_never(block)


def _block_from_wire(block: SentAssistantContent) -> AssistantContent:
    match block:
        case SentText():
            return Text(block.text)
        case SentThinking():
            return Thinking(block.text, block.signature)
        case SentCall():
            return ToolCall(block.id, block.name, block.arguments, block.invalid)
        case _:
            assert_never(block)
