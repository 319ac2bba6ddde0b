"""The named hooks of the loop: permissions, recording, the context window and limits plug in here. All are optional."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import (
    AssistantMessage,
    Message,
    ModelMessage,
    ToolCall,
    ToolResultMessage,
    UserContent,
)
from errand.engine.tools.base import Access, AgentTool
from errand.engine.tools.results import ToolResult
from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import JsonObject
from errand.protocol.blocks import ResultMark


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call about to run. `arguments` are validated and coerced; `call` is as the model sent it.

    `access` is what it was approved to do, None until then.
    """

    message: AssistantMessage
    call: ToolCall
    tool: AgentTool
    arguments: JsonObject
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class ToolRefusal:
    """The call must not run. `reason` is for the model; `summary` is a shorter text for people, if needed.

    `terminate` as in `ToolResult`.
    """

    reason: str = ""
    terminate: bool = False
    summary: str = ""


NOT_STARTED = ToolRefusal("Operation aborted", summary="stopped before it began")


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call that ran, successfully or not; see `result.is_error`."""

    pending: PendingCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class ResultChange:
    """A change of a result; None leaves a field as it is."""

    content: tuple[UserContent, ...] | None = None
    details: JsonObject | None = None
    summary: str | None = None
    is_error: bool | None = None
    terminate: bool | None = None
    marks: tuple[ResultMark, ...] | None = None


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    """A turn whose tools are done. `messages` is the working list, `new_messages` what this run has added so far."""

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    messages: tuple[Message, ...]
    new_messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class NextTurn:
    """Changes for the next turn.

    `add` are messages that join the transcript before those from the queues. `messages` replaces the working list
    without touching the transcript that listeners hold. `model`, `thinking_level` and `tools` apply to the rest of the
    run.
    """

    add: tuple[Message, ...] = ()
    messages: tuple[Message, ...] | None = None
    model: str | None = None
    thinking_level: ThinkingLevel | None = None
    tools: tuple[AgentTool, ...] | None = None


TurnDecision: TypeAlias = Literal["end", "continue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Hooks that a caller may supply. A tool hook that raises makes an error result; any other hook fails the run.

    The interface of the published package (decision 5). The engine writes features instead: see `features.py`.
    """

    transform_context: Callable[[tuple[Message, ...], CancelSignal], Awaitable[Sequence[Message]]] | None = None
    """Before each model call: returns the messages for that call only."""
    convert_to_llm: Callable[[Sequence[Message]], Awaitable[Sequence[ModelMessage]]] | None = None
    """After `transform_context`: converts to model messages. The default drops custom roles."""
    get_api_key: Callable[[str], Awaitable[str | None]] | None = None
    """Before each model call, with the model's id: returns the API key."""
    before_tool_call: Callable[[PendingCall, CancelSignal], Awaitable[ToolRefusal | ToolResult | None]] | None = None
    """Before each valid call: a `ToolRefusal` stops it, a `ToolResult` replaces the execution.

    Called one at a time, in the order of the calls.
    """
    after_tool_call: Callable[[FinishedCall, CancelSignal], Awaitable[ResultChange | None]] | None = None
    """After each call that ran: returns changes to its result."""
    complete_result: Callable[[ToolCall, ToolResult], Awaitable[ToolResult]] | None = None
    """After each call, also one that could not run, such as one of an unknown tool: returns its result."""
    finish_turn: Callable[[FinishedTurn, CancelSignal], Awaitable[TurnDecision | None]] | None = None
    """Before each `TurnEnd`: `end` ends the run after it and leaves the queues; `continue` forces one more turn.

    Also called for failed and aborted replies, where the return value has no effect.
    """
    prepare_next_turn: Callable[[FinishedTurn, CancelSignal], Awaitable[NextTurn | None]] | None = None
    """Before each further turn, with the finished turn: returns changes for the next one."""
