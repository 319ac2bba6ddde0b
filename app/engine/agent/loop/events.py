"""What the loop tells its listeners, in the order of `specs/agent-loop.md`; frozen records, nothing live in them."""

from dataclasses import dataclass
from typing import TypeAlias

from app.engine.core.messages import AssistantMessage, Message, ToolResultMessage
from app.engine.models.base import BlockDelta, BlockEnd, BlockStart, ModelNotice, PartialReply, Retry
from app.engine.tools.base import ToolResult
from app.protocol.base import JsonObject

StreamEvent: TypeAlias = BlockStart | BlockDelta | BlockEnd | Retry | ModelNotice


@dataclass(frozen=True, slots=True)
class AgentStart:
    """A run begins; a `TurnStart` follows at once."""


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """The last event of a run. `messages` are those the run made, in order, never the ones that were there before.

    Where a hook or the stream function raised it is the failure alone, as the published loop has it.
    """

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TurnStart:
    """A turn begins: messages that were waiting follow, then one reply."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """A turn is over: its reply, and the results of the tools the reply called."""

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]


@dataclass(frozen=True, slots=True)
class MessageStart:
    """A message begins; a `MessageEnd` follows, for a reply with updates before it. A reply is partial here."""

    message: Message


@dataclass(frozen=True, slots=True)
class MessageUpdate:
    """A reply grew. `message` is the reply so far, `event` what the model sent.

    After a `Retry` the reply starts anew: what was streamed before is void, and no second `MessageStart` comes.
    """

    message: PartialReply
    event: StreamEvent


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """A message is final and part of the transcript."""

    message: Message


@dataclass(frozen=True, slots=True)
class ToolExecutionStart:
    """A tool call is taken up. `arguments` are as the model sent them; a `ToolExecutionEnd` always follows."""

    call_id: str
    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ToolExecutionUpdate:
    """A partial result of a running call, to show meanwhile."""

    call_id: str
    tool: str
    arguments: JsonObject
    result: ToolResult


@dataclass(frozen=True, slots=True)
class ToolExecutionEnd:
    """A call is settled; `result.is_error` says how. In a parallel batch these come in order of completion."""

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
