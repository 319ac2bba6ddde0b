"""One small real reply, to see whether a model can be used: what came of it in words, whatever went wrong."""

import asyncio
import time
from contextlib import aclosing

from app.engine.cancel import CancelSignal
from app.engine.errors import EngineError
from app.engine.messages import AssistantMessage, user_text
from app.engine.models.base import ChatModel, ModelOptions, ModelRequest, ReplyEnd
from app.protocol.models import ModelTestResult

LONGEST_S = 20.0
# Some models think before they answer, and count that.
_MOST_TOKENS = 256
_PROMPT = "This is a test of the connection. Reply with the word OK and nothing else."


async def try_model(model: ChatModel, model_id: str, longest_s: float = LONGEST_S) -> ModelTestResult:
    """Ask the model for a word. Cancelled, it ends the request."""
    begun = time.monotonic()
    cancel = CancelSignal()
    timer = asyncio.get_running_loop().call_later(longest_s, cancel.set, "too slow")
    try:
        reply = await _reply(model, model_id, cancel)
    finally:
        timer.cancel()
    seconds = time.monotonic() - begun
    if cancel.is_set:
        text = f"There was no whole answer within {longest_s:g} s. It may be overloaded; try again later."
    else:
        text = reply.error or f"{model_id.partition('/')[2]} answered in {seconds:.1f} s."
    return ModelTestResult(ok=reply.error is None, model=model_id, text=text, seconds=seconds)


async def _reply(model: ChatModel, model_id: str, cancel: CancelSignal) -> AssistantMessage:
    options = ModelOptions(max_tokens=_MOST_TOKENS)
    request = ModelRequest(model_id, "", (user_text(_PROMPT),), options=options)
    async with aclosing(model.stream(request, cancel)) as events:
        async for event in events:
            if isinstance(event, ReplyEnd):
                return event.message
    raise EngineError("The model's stream ended without a final message.")
