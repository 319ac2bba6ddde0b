"""`ChatModel` and `ModelProvider`, their request, and the events of a streamed reply."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantContent, AssistantMessage, ModelMessage
from errand.engine.models.failures import FailedAttempt, FailureKind
from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import JsonObject
from errand.protocol.notices import NoticeData

CallForm: TypeAlias = Literal["native", "json"]

# The most tokens of thought of each level, about as providers that take both give them.
_BUDGETS: tuple[tuple[ThinkingLevel, int], ...] = (
    ("off", 0),
    ("minimal", 1_024),
    ("low", 4_096),
    ("medium", 10_000),
    ("high", 32_000),
)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ToolDefinition:
    """A tool as described to the model; `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Settings of one model call.

    `session_id` lets a provider keep its prompt cache for a conversation. `thinking_summary` asks for what people can
    read of encrypted thoughts, where a provider gives that. `thinking_budget` is how many tokens the model may think,
    for models that take a number; `thinking_level` is what the others are told. `left_out` are fields of requests that
    the server has refused, `required` those of thoughts that it requires back with every message. `prompt_progress`
    asks for `PromptProgress`, of servers that are known to report it. `call_form` is how the model calls tools: by the
    interface of its server, or as JSON that a schema constrains. `is_small`: the model may write without end, so its
    replies are held shorter.
    """

    api_key: str | None = field(default=None, repr=False)
    thinking_level: ThinkingLevel = "off"
    temperature: float | None = None
    max_tokens: int | None = None
    session_id: str | None = None
    thinking_summary: bool = True
    thinking_budget: int | None = None
    left_out: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    prompt_progress: bool = False
    call_form: CallForm = "native"
    is_small: bool = False


def level_for(thinking_budget: int) -> ThinkingLevel:
    """Return the level that comes nearest to a number of tokens."""
    for level, most in _BUDGETS:
        if thinking_budget <= most:
            return level
    return "xhigh"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ModelRequest:
    """One model call. `model` is the id `provider/model`. The purpose is not sent.

    `reply_schema` is a JSON Schema to which the server holds the reply, for servers with constrained decoding.
    """

    model: str
    system_prompt: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()
    options: ModelOptions = ModelOptions()
    purpose: Literal["reply", "summary", "title"] = "reply"
    reply_schema: JsonObject | None = None


class PartialReply(Protocol):
    """The message so far. `text` and `content` may be joined on each access."""

    @property
    def content(self) -> tuple[AssistantContent, ...]: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ReplyStart:
    """The first event of a reply. `partial` is the message so far, here and in the events below."""

    partial: AssistantMessage


@dataclass(frozen=True, slots=True)
class BlockStart:
    kind: Literal["text", "thinking", "tool_call"]
    content_index: int
    partial: PartialReply


@dataclass(frozen=True, slots=True)
class BlockDelta:
    """More of a block: text, thinking, or a piece of a tool call's raw JSON arguments."""

    kind: Literal["text", "thinking", "tool_call"]
    content_index: int
    delta: str
    partial: PartialReply


@dataclass(frozen=True, slots=True)
class BlockEnd:
    kind: Literal["text", "thinking", "tool_call"]
    content_index: int
    partial: PartialReply


@dataclass(frozen=True, slots=True)
class Retry:
    """The attempt failed; the next one starts after `delay_s`. Discard everything streamed so far."""

    attempt: int
    max_attempts: int
    delay_s: float
    reason: str
    partial: AssistantMessage


@dataclass(frozen=True, slots=True)
class ModelNotice:
    """A notice for the user about how this reply is made, such as a change of model. Precedes all content."""

    data: NoticeData
    partial: AssistantMessage


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """The server has read so many tokens of the request, before it replies. For display; comes before all content."""

    processed: int
    total: int
    partial: PartialReply


@dataclass(frozen=True, slots=True)
class RetryLater:
    """A provider's rate limit that ends by itself; `reason` is a short text for the user.

    `at` is when the limit ends, None if the provider did not say.
    """

    reason: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RefusedSize:
    """The sizes, in tokens, that a server named when it refused a request as too long: of the request, of its window.

    `request` is None if it named only the window.
    """

    request: int | None
    window: int


@dataclass(frozen=True, slots=True)
class ReplyEnd:
    """The last event. A failed or aborted reply is a message too: stop reason error or aborted, with `error` set.

    `failure` is why it failed, None if no provider was at fault. `retry_later`: the same request may be sent again
    after a wait that is too long for a model call. `size`: the request was too long, and the server said by how much.
    `call_text` is the text to look for calls in, with marks in tokens of a chat template that the model wrote as text;
    None for that of the message.
    """

    message: AssistantMessage
    retry_later: RetryLater | None = None
    failure: FailureKind | None = None
    size: RefusedSize | None = None
    call_text: str | None = None


ModelEvent: TypeAlias = (
    ReplyStart | PromptProgress | BlockStart | BlockDelta | BlockEnd | Retry | ModelNotice | ReplyEnd
)
AttemptEvent: TypeAlias = ModelEvent | FailedAttempt


class ModelProvider(Protocol):
    """Sends requests to one provider. `recovery/driver.py` makes a `ChatModel` of it."""

    def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        """Send the request once: `ReplyStart`, block events, then `ReplyEnd` or `FailedAttempt` as the last event.

        Errors of the provider, the network or the model are never raised. When `stop` is set, the request is closed at
        once and the reply ends as aborted. Tool calls are assembled by id; arguments that are not a JSON object set
        `ToolCall.invalid`.
        """
        ...


class ChatModel(Protocol):
    """A model that always ends a reply, with an error if necessary. Created once, shared by concurrent tasks."""

    def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply: `ReplyStart`, block events, `ReplyEnd` last.

        Errors of the provider, the network or the model are never raised: they end as a `ReplyEnd` whose message has
        the stop reason error. When `cancel` is set, the request is closed at once and the reply ends with the stop
        reason aborted and the content so far. A reply beyond the limits of `reply/content.py` is closed too: it ends
        with the stop reason length, the content so far and `cut`. Tool calls are assembled by id; arguments that are
        not a JSON object set `ToolCall.invalid`.
        """
        ...

    async def close(self) -> None:
        """Close connections; active streams end as aborted."""
        ...
