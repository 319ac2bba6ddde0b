"""The agent loop: turns of one model call and its tools until nothing is left to do.

Features are hooks (hooks.py); tool calls run in tool_batch.py.
"""

from collections.abc import Sequence
from contextlib import aclosing
from typing import TypeAlias, assert_never

from errand.engine.agent.loop.events import (
    AgentEnd,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    TurnEnd,
    TurnStart,
)
from errand.engine.agent.loop.hooks import FinishedTurn, TurnDecision
from errand.engine.agent.loop.run_state import LoopRun
from errand.engine.agent.loop.tool_batch import run_batch
from errand.engine.core.errors import EngineError
from errand.engine.core.fair_share import Slice
from errand.engine.core.messages import AssistantMessage, Message, ToolResultMessage, to_model_messages
from errand.engine.models.base import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    ModelNotice,
    ModelOptions,
    ModelRequest,
    PromptProgress,
    ReplyEnd,
    ReplyStart,
    Retry,
    level_for,
)

Messages: TypeAlias = tuple[Message, ...]
Results: TypeAlias = tuple[ToolResultMessage, ...]


async def stream_reply(run: LoopRun) -> AssistantMessage:
    """Make one model call, emit it as a message and append the final message."""
    stream = run.config.stream(await _request(run), run.cancel)
    share = Slice()
    # Closing ends the request at once if this task is cancelled or a listener raises.
    async with aclosing(stream):
        async for event in stream:
            if share.is_over:  # a server may stream without a pause
                await share.renew()
            match event:
                case PromptProgress():
                    if run.partial is not None:
                        await run.emit(MessageUpdate(event.partial, event))
                case BlockDelta() | BlockStart() | BlockEnd():
                    if run.partial is not None:
                        run.partial = event.partial
                        await run.emit(MessageUpdate(event.partial, event))
                case ReplyStart(partial):
                    await _start(run, partial)
                case Retry() | ModelNotice():
                    await _start(run, event.partial)
                    await run.emit(MessageUpdate(event.partial, event))
                case ReplyEnd(message):
                    await end_reply(run, message)
                    return message
                case _:
                    assert_never(event)
    raise EngineError("The model's stream ended without a final message. Try again, or choose another model.")


async def end_reply(run: LoopRun, message: AssistantMessage) -> None:
    """Emit the end of a reply, and its start if the stream sent none."""
    if run.partial is None:
        await run.emit(MessageStart(message))
    run.partial = None
    run.add(message)
    await run.emit(MessageEnd(message))


async def _start(run: LoopRun, partial: AssistantMessage) -> None:
    started = run.partial is not None
    run.partial = partial
    if not started:  # an attempt after a Retry continues the same message
        await run.emit(MessageStart(partial))


async def _request(run: LoopRun) -> ModelRequest:
    hooks, config = run.config.hooks, run.config
    messages: Sequence[Message] = tuple(run.messages)
    if hooks.transform_context is not None:
        messages = await hooks.transform_context(tuple(messages), run.cancel)
    convert = hooks.convert_to_llm or to_model_messages
    converted = await convert(messages)
    key = await hooks.get_api_key(run.model) if hooks.get_api_key is not None else None
    budget = run.thinking_budget
    options = ModelOptions(
        key,
        run.thinking_level if budget is None else level_for(budget),
        config.temperature,
        config.max_tokens,
        config.session_id,
        thinking_budget=budget,
    )
    return ModelRequest(run.model, config.system_prompt, tuple(converted), run.definitions, options)


async def run_loop(run: LoopRun, prompts: Sequence[Message], *, skip_first_poll: bool = False) -> None:
    """Run to the end. With `skip_first_poll`, messages that steer wait until after the first turn.

    If a stream function or hook raises, the run ends like a failed model call: with a message of stop reason error.
    Listener errors propagate, after the same ending was attempted.
    """
    run.new_messages, run.error = [], None
    try:
        await run.emit(AgentStart())
        await _start_turn(run)
        for prompt in prompts:
            await run.publish(prompt)
        await _turns(run, () if skip_first_poll else run.steering.take())
    except Exception as error:  # noqa: BLE001 - the end of a task: hooks and stream functions are foreign code
        await run.emit(AgentEnd((await _fail(run, error),)))
    else:
        await run.emit(AgentEnd(tuple(run.new_messages)))


async def _turns(run: LoopRun, pending: Messages) -> None:
    """Run turns until none follows; `pending` opens the first."""
    while True:
        for message in pending:
            await run.publish(message)
        reply = await stream_reply(run)
        if reply.stop_reason in ("error", "aborted"):
            await _finish_turn(run, reply, ())
            return
        batch = await run_batch(run, reply)
        decision = await _finish_turn(run, reply, batch.results)
        if decision == "end":
            run.steering.put_back(batch.steering)
            return
        pending = batch.steering or run.steering.take()
        if not batch.must_continue and not pending:
            pending = run.follow_ups.take()
            if not pending and decision != "continue":
                return
        pending = await _next_turn(run, reply, batch.results, pending)


async def _start_turn(run: LoopRun) -> None:
    run.in_turn = True
    await run.emit(TurnStart())


async def _finish_turn(run: LoopRun, reply: AssistantMessage, results: Results) -> TurnDecision | None:
    ask = run.config.hooks.finish_turn
    decision = await ask(_finished(run, reply, results), run.cancel) if ask is not None else None
    run.in_turn = False
    run.error = reply.error or run.error
    await run.emit(TurnEnd(reply, results))
    return decision


async def _next_turn(run: LoopRun, reply: AssistantMessage, results: Results, pending: Messages) -> Messages:
    """Start the next turn with the hook's changes; returns the messages that open it."""
    ask = run.config.hooks.prepare_next_turn
    change = await ask(_finished(run, reply, results), run.cancel) if ask is not None else None
    # The hook may take long (a summary, for instance). Messages queued meanwhile belong to this turn, unless one was
    # already taken: then mode one_at_a_time would deliver two.
    pending = pending or run.steering.take()
    if change is not None:
        run.model = change.model or run.model
        if change.thinking_level is not None:
            run.thinking_level, run.thinking_budget = change.thinking_level, None
        if change.tools is not None:
            run.set_tools(change.tools)
        if change.messages is not None:
            run.messages = list(change.messages)
        pending = change.add + pending
    await _start_turn(run)
    return pending


def _finished(run: LoopRun, reply: AssistantMessage, results: Results) -> FinishedTurn:
    return FinishedTurn(reply, results, tuple(run.messages), tuple(run.new_messages))


async def _fail(run: LoopRun, error: Exception) -> AssistantMessage:
    """Emit the missing end events, in order, with an error reply that keeps the content received so far."""
    if not run.in_turn:
        await _start_turn(run)
    content = run.partial.content if run.partial is not None else ()
    reason = "aborted" if run.cancel.is_set else "error"
    message = AssistantMessage(content, reason, str(error) or type(error).__name__, run.model)
    await end_reply(run, message)
    run.in_turn = False
    run.error = message.error
    await run.emit(TurnEnd(message, ()))
    return message
