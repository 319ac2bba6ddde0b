"""Model messages: what the loop works on and what is sent to a model. Protocol items are the other family."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.protocol.base import JsonObject

StopReason = Literal["stop", "tool_use", "length", "error", "aborted"]
ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]

# Stands for the name of a call that was written as text and whose own name cannot be read.
UNREADABLE_CALL = "unreadable_call"


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning text. `signature` is the provider's proof that it wrote it, sent back unchanged."""

    text: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: `data` is base64; empty where `path` names the file to read it from, before it goes to a model."""

    media_type: str
    data: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asked for. `invalid` holds the raw argument text when it is not a JSON object."""

    id: str
    name: str
    arguments: JsonObject
    invalid: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one model call. `input_tokens` includes the cached ones; cost is in US dollars.

    `estimated` where the provider did not count all of it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0
    estimated: bool = False


UserContent: TypeAlias = Text | Image
AssistantContent: TypeAlias = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True)
class UserMessage:
    content: tuple[UserContent, ...]
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class AssistantMessage:
    """A reply, whole or partial. `error` is set when `stop_reason` is error or aborted.

    `cut` says why the app itself ended the reply ("has more than …"), with the stop reason length.
    """

    content: tuple[AssistantContent, ...] = ()
    stop_reason: StopReason = "stop"
    error: str | None = None
    model: str = ""
    usage: Usage = Usage()
    cut: str = ""
    role: Literal["assistant"] = "assistant"

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolCall))


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ToolResultMessage:
    """The answer to one tool call. `details` is for people and the record; the model sees `content` only."""

    tool_call_id: str
    tool_name: str
    content: tuple[UserContent, ...]
    is_error: bool = False
    details: JsonObject | None = None
    role: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True)
class CustomMessage:
    """A message of a role of the application's own; the default conversion leaves it out of model calls."""

    role: str
    content: tuple[UserContent, ...] = ()
    details: JsonObject | None = None


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage
ModelMessage: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage


def user_text(text: str) -> UserMessage:
    return UserMessage((Text(text),))


def text_of(message: Message) -> str:
    """All text blocks of a message, joined without a separator."""
    return "".join(block.text for block in message.content if isinstance(block, Text))


async def to_model_messages(messages: Sequence[Message]) -> tuple[ModelMessage, ...]:
    """The default conversion: messages of the application's own roles are left out."""
    return tuple(message for message in messages if not isinstance(message, CustomMessage))
