"""Model messages, used by the loop and sent to models. The other family is the protocol items."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from errand.protocol.base import JsonObject
from errand.protocol.blocks import EngineMessageKind, ResultMark

StopReason = Literal["stop", "tool_use", "length", "error", "aborted"]

# Name of a text-based call whose own name cannot be parsed.
UNREADABLE_CALL = "unreadable_call"
# In the place of a picture for a model without vision.
PICTURE_OMITTED = "[A picture stood here, which this model cannot see.]"
# Name of the call that ends a task: models without tool calls make it by answering.
TASK_COMPLETE = "task_complete"


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class ContextText(Text):
    """Text that the engine adds to a message: where the agent works, or what memory has for it.

    `brief` is what a small model reads in its place, None for the same.
    """

    part: Literal["environment", "memory"]
    brief: str | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning text. `signature` is the provider's proof of origin, sent back unchanged."""

    text: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image. `data` is base64; if empty, it is loaded from the file `path` before a model call.

    `name` says in a few words what it shows, for people ("Figure 1").
    """

    media_type: str
    data: str
    path: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by the model. `invalid` is the raw argument text if it is not a JSON object."""

    id: str
    name: str
    arguments: JsonObject
    invalid: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one model call. `input_tokens` includes cached ones; the cost is in US dollars.

    `estimated`: the provider did not report all of it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0
    estimated: bool = False


UserContent: TypeAlias = Text | Image
AssistantContent: TypeAlias = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True, weakref_slot=True)
class UserMessage:
    """`kind` is set if the engine wrote it during a task."""

    content: tuple[UserContent, ...]
    role: Literal["user"] = "user"
    kind: EngineMessageKind | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class AssistantMessage:
    """A reply, complete or partial. `error` is set if `stop_reason` is error or aborted.

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
    """The answer to one tool call. `details` is for users and the record; the model sees `content` only."""

    tool_call_id: str
    tool_name: str
    content: tuple[UserContent, ...]
    is_error: bool = False
    details: JsonObject | None = None
    role: Literal["tool_result"] = "tool_result"
    marks: tuple[ResultMark, ...] = ()


@dataclass(frozen=True, slots=True)
class CustomMessage:
    """A message with an application-defined role; the default conversion leaves it out of model calls."""

    role: str
    content: tuple[UserContent, ...] = ()
    details: JsonObject | None = None


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage
ModelMessage: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage


def user_text(text: str) -> UserMessage:
    return UserMessage((Text(text),))


def text_of(message: Message) -> str:
    """Return all text blocks of a message, joined without a separator."""
    return "".join(block.text for block in message.content if isinstance(block, Text))


def own_text_of(message: Message) -> str:
    """Return the same without what the engine added to the message."""
    texts = [block for block in message.content if isinstance(block, Text) and not isinstance(block, ContextText)]
    return "".join(block.text for block in texts)


def in_tags(text: str, tag: str = "tool_output") -> str:
    """Return the text of a tool as a block that it can neither close nor open again: such tags in it are broken."""
    inside = re.sub(rf"<(?=[\s/]{{0,8}}{tag})", r"<\\", text, flags=re.IGNORECASE)
    return f"<{tag}>\n{inside}\n</{tag}>"


async def to_model_messages(messages: Sequence[Message]) -> tuple[ModelMessage, ...]:
    """Return the default conversion: leaves out messages with application-defined roles."""
    return tuple([message for message in messages if not isinstance(message, CustomMessage)])
