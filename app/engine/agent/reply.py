"""One model call of the loop: from the working list to the request, and from the stream to a final message."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import assert_never

from app.engine.agent.events import MessageEnd, MessageStart, MessageUpdate
from app.engine.agent.run import Run
from app.engine.errors import EngineError
from app.engine.messages import AssistantMessage, CustomMessage, Message, ModelMessage
from app.engine.models.base import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    ModelOptions,
    ModelRequest,
    Remark,
    ReplyEnd,
    ReplyStart,
    Retry,
)

# A server that sends without a pause would give the event loop none.
_SLICE_S = 0.005


async def stream_reply(run: Run) -> AssistantMessage:
    """Make one model call and emit it as a message; the final message is kept."""
    stream = run.config.stream(await _request(run), run.cancel)
    slice_ends_at = time.monotonic() + _SLICE_S
    # Closing ends the request at once when this task is cancelled or a listener raises.
    async with aclosing(stream):
        async for event in stream:
            if time.monotonic() >= slice_ends_at:
                await asyncio.sleep(0)
                slice_ends_at = time.monotonic() + _SLICE_S
            match event:
                case BlockDelta() | BlockStart() | BlockEnd():
                    if run.partial is not None:
                        run.partial = event.partial
                        await run.emit(MessageUpdate(event.partial, event))
                case ReplyStart(partial):
                    await _start(run, partial)
                case Retry() | Remark():
                    await _start(run, event.partial)
                    await run.emit(MessageUpdate(event.partial, event))
                case ReplyEnd(message):
                    await end_reply(run, message)
                    return message
                case _:
                    assert_never(event)
    raise EngineError("The model's stream ended without a final message. Try again, or choose another model.")


async def end_reply(run: Run, message: AssistantMessage) -> None:
    """Emit the end of a reply, and its start where the stream gave none."""
    if run.partial is None:
        await run.emit(MessageStart(message))
    run.partial = None
    run.keep(message)
    await run.emit(MessageEnd(message))


async def _start(run: Run, partial: AssistantMessage) -> None:
    started = run.partial is not None
    run.partial = partial
    if not started:  # an attempt after a Retry goes on in the same message
        await run.emit(MessageStart(partial))


async def _request(run: Run) -> ModelRequest:
    hooks, config = run.config.hooks, run.config
    messages: Sequence[Message] = tuple(run.messages)
    if hooks.transform_context is not None:
        messages = await hooks.transform_context(tuple(messages), run.cancel)
    convert = hooks.convert_to_llm or known_to_models
    converted = await convert(messages)
    key = await hooks.get_api_key(run.model) if hooks.get_api_key is not None else None
    options = ModelOptions(key, run.thinking_level, config.temperature, config.max_tokens, config.session_id)
    return ModelRequest(run.model, config.system_prompt, tuple(converted), run.definitions, options)


async def known_to_models(messages: Sequence[Message]) -> tuple[ModelMessage, ...]:
    """The default conversion: messages of the application's own roles are left out."""
    return tuple(message for message in messages if not isinstance(message, CustomMessage))
