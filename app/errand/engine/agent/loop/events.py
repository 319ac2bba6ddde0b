"""The events that the loop emits, in the order of `specs/agent-loop.md`: frozen records without live objects."""

from dataclasses import dataclass
from typing import TypeAlias

from errand.engine.core.messages import AssistantMessage, Message, ToolResultMessage
from errand.engine.models.base import BlockDelta, BlockEnd, BlockStart, ModelNotice, PartialReply, PromptProgress, Retry
from errand.engine.tools.results import ToolResult
from errand.protocol.base import JsonObject

StreamEvent: TypeAlias = PromptProgress | BlockStart | BlockDelta | BlockEnd | Retry | ModelNotice


@dataclass(frozen=True, slots=True)
class AgentStart:
    """A run begins; a `TurnStart` follows immediately."""


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """The last event of a run. `messages` are those the run added, in order, without earlier ones.

    If a hook or the stream function raised, it holds only the failure message, as in the published loop.
    """

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TurnStart:
    """A turn begins: queued messages follow, then one reply."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """A turn is over: its reply, and the results of its tool calls."""

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]


@dataclass(frozen=True, slots=True)
class MessageStart:
    """A message begins; a `MessageEnd` follows. For a reply, the message is partial, and updates come in between."""

    message: Message


@dataclass(frozen=True, slots=True)
class MessageUpdate:
    """A reply grew. `message` is the reply so far, `event` the model's event.

    After a `Retry` the reply starts again: earlier content is void, and no second `MessageStart` comes.
    """

    message: PartialReply
    event: StreamEvent


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """A message is final and part of the transcript."""

    message: Message


@dataclass(frozen=True, slots=True)
class ToolExecutionStart:
    """A tool call begins. `arguments` are as the model sent them; a `ToolExecutionEnd` always follows."""

    call_id: str
    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ToolExecutionUpdate:
    """A partial result of a running call, for display."""

    call_id: str
    tool: str
    arguments: JsonObject
    result: ToolResult


@dataclass(frozen=True, slots=True)
class ToolExecutionEnd:
    """A call has ended; `result.is_error` tells success from failure. Parallel calls emit this in completion order."""

    call_id: str
    tool: str
    result: ToolResult


AgentEvent: TypeAlias = (
    AgentStart
    | AgentEnd
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
)
