"""Features of an agent: objects that implement some of its hooks, combined in one order."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TypeAlias

from errand.engine.agent.loop.events import AgentEvent
from errand.engine.agent.loop.hooks import (
    NOT_STARTED,
    FinishedCall,
    FinishedTurn,
    Hooks,
    NextTurn,
    PendingCall,
    ResultChange,
    ToolRefusal,
    TurnDecision,
)
from errand.engine.agent.loop.run_state import Emit, StreamFunction
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage, Message, ModelMessage, ToolCall
from errand.engine.models.base import ChatModel, ModelEvent, ModelRequest, ReplyEnd, Retry
from errand.engine.models.failures import ABORTED
from errand.engine.tools.base import AgentTool
from errand.engine.tools.results import ToolResult

Convert: TypeAlias = Callable[[Sequence[Message]], Awaitable[Sequence[ModelMessage]]]


@dataclass(frozen=True, slots=True)
class RepeatRequest:
    """Repeat the model call. `retry` is the event that announces it, None for a silent repetition."""

    retry: Retry | None = None


class Feature:
    """A part of a task that hooks into its agent. Hooks that a class does not override are never called.

    "In order" means the order of the features.
    """

    async def on_event(self, event: AgentEvent) -> None:
        """Called for each event of the agent, in order."""

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest | AssistantMessage:
        """Called before each model call, in order, with the previous feature's request. A message replaces the call.

        After a cancel the remaining features are skipped, and no call is made.
        """
        return request

    async def after_reply(
        self, request: ModelRequest, sent: ModelRequest, end: ReplyEnd, cancel: CancelSignal
    ) -> ReplyEnd | RepeatRequest:
        """Called after each model call, in reverse order, with the previous feature's result.

        `request` is the request that this feature received, `sent` the one that was sent. After `RepeatRequest` the
        call is repeated with the same `request`: this feature and the later ones prepare it again. Called for each
        feature whose `before_request` returned a request, even if a cancel prevented the call.
        """
        return end

    async def before_tool_call(
        self, pending: PendingCall, cancel: CancelSignal
    ) -> PendingCall | ToolRefusal | ToolResult:
        """Called before each valid tool call, in order, with the previous feature's call.

        The first refusal or result wins. After a cancel the remaining features are skipped, and the call is refused.
        """
        return pending

    async def after_tool_call(self, finished: FinishedCall, cancel: CancelSignal) -> ToolResult:
        """Called after each tool call that ran, in order, with the previous feature's result."""
        return finished.result

    async def complete_result(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Called for each call's result, also of a call that could not run, in order, with the previous feature's."""
        return result

    async def finish_turn(self, turn: FinishedTurn, cancel: CancelSignal) -> TurnDecision | None:
        """Called at the end of each turn, in order.

        `end` wins at once, `continue` only if no later feature says `end`.
        """
        return None

    async def prepare_next_turn(self, turn: FinishedTurn, cancel: CancelSignal) -> tuple[Message, ...]:
        """Called before each further turn, in order. Returns messages to add to the transcript."""
        return ()

    async def change_tools(self, cancel: CancelSignal) -> tuple[AgentTool, ...] | None:
        """Called before each further turn, in order. Returns the tools from now on; None keeps them, the last wins."""
        return None


def emit_of(features: Sequence[Feature]) -> Emit:
    """Return what tells these features the events of a loop."""
    listening = [feature for feature in features if type(feature).on_event is not Feature.on_event]
    lock = asyncio.Lock()

    async def emit(event: AgentEvent) -> None:
        # Parallel tools emit at any time; the lock gives every feature the events in the same order.
        async with lock:
            for feature in listening:
                await feature.on_event(event)

    return emit


def hooks_of(features: Sequence[Feature], convert_to_llm: Convert) -> Hooks:
    """Return the hooks of an agent with these features, except those around model calls: see `stream_of`."""
    before = [feature for feature in features if type(feature).before_tool_call is not Feature.before_tool_call]
    after = [feature for feature in features if type(feature).after_tool_call is not Feature.after_tool_call]
    finishing = [feature for feature in features if type(feature).finish_turn is not Feature.finish_turn]
    preparing = [feature for feature in features if type(feature).prepare_next_turn is not Feature.prepare_next_turn]
    changing = [feature for feature in features if type(feature).change_tools is not Feature.change_tools]

    async def before_tool_call(pending: PendingCall, cancel: CancelSignal) -> ToolRefusal | ToolResult | None:
        for feature in before:
            answer = await feature.before_tool_call(pending, cancel)
            if not isinstance(answer, PendingCall):
                return answer
            if cancel.is_set:
                return NOT_STARTED
            pending = answer
        return None

    async def after_tool_call(finished: FinishedCall, cancel: CancelSignal) -> ResultChange | None:
        first = finished.result
        for feature in after:
            finished = replace(finished, result=await feature.after_tool_call(finished, cancel))
        new = finished.result
        if new is first:
            return None
        return ResultChange(new.content, new.details, new.summary, new.is_error, new.terminate, new.marks)

    async def finish_turn(turn: FinishedTurn, cancel: CancelSignal) -> TurnDecision | None:
        decision: TurnDecision | None = None
        for feature in finishing:
            answer = await feature.finish_turn(turn, cancel)
            if answer == "end":
                return answer
            decision = answer or decision
        return decision

    async def prepare_next_turn(turn: FinishedTurn, cancel: CancelSignal) -> NextTurn | None:
        added = [message for feature in preparing for message in await feature.prepare_next_turn(turn, cancel)]
        tools: tuple[AgentTool, ...] | None = None
        for feature in changing:
            tools = await feature.change_tools(cancel) or tools
        return NextTurn(add=tuple(added), tools=tools) if added or tools is not None else None

    return Hooks(
        convert_to_llm=convert_to_llm,
        before_tool_call=before_tool_call,
        after_tool_call=after_tool_call,
        complete_result=_completing(features),
        finish_turn=finish_turn,
        prepare_next_turn=prepare_next_turn,
    )


def _completing(features: Sequence[Feature]) -> Callable[[ToolCall, ToolResult], Awaitable[ToolResult]]:
    overriding = [feature for feature in features if type(feature).complete_result is not Feature.complete_result]

    async def complete_result(call: ToolCall, result: ToolResult) -> ToolResult:
        for feature in overriding:
            result = await feature.complete_result(call, result)
        return result

    return complete_result


def stream_of(features: Sequence[Feature], model: ChatModel) -> StreamFunction:
    """Yield the model calls of an agent with these features."""
    chain = [
        feature
        for feature in features
        if type(feature).before_request is not Feature.before_request
        or type(feature).after_reply is not Feature.after_reply
    ]

    async def stream(request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        requests = [request]
        while True:
            end = await _apply_before_request(chain, requests, cancel)
            if end is None:
                async with aclosing(model.stream(requests[-1], cancel)) as events:
                    async for event in events:
                        if isinstance(event, ReplyEnd):
                            end = event
                        else:
                            yield event
            if end is None:
                return
            outcome = await _apply_after_reply(chain, requests, end, cancel)
            if isinstance(outcome, ReplyEnd):
                yield outcome
                return
            if outcome.retry is not None:
                yield outcome.retry

    return stream


async def _apply_before_request(
    chain: Sequence[Feature], requests: list[ModelRequest], cancel: CancelSignal
) -> ReplyEnd | None:
    """Extend `requests`, those that the features received.

    Returns the end of the reply if no call is to be made.
    """
    for feature in chain[len(requests) - 1 :]:
        answer = await feature.before_request(requests[-1], cancel)
        if isinstance(answer, AssistantMessage):
            return ReplyEnd(answer)
        requests.append(answer)
        if cancel.is_set:
            break
    if cancel.is_set:
        return ReplyEnd(AssistantMessage(stop_reason="aborted", error=ABORTED, model=requests[0].model))
    return None


async def _apply_after_reply(
    chain: Sequence[Feature], requests: list[ModelRequest], end: ReplyEnd, cancel: CancelSignal
) -> ReplyEnd | RepeatRequest:
    """Return the end of the reply.

    If the call is repeated, `requests` ends with that of the feature that asked for it.
    """
    sent = requests[-1]
    for index in reversed(range(len(requests) - 1)):
        outcome = await chain[index].after_reply(requests[index], sent, end, cancel)
        if isinstance(outcome, RepeatRequest):
            del requests[index + 1 :]
            return outcome
        end = outcome
    return end
