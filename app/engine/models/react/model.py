"""Tools for models without tool calls: told of in the prompt, called in XML that is read out of the reply."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from app.engine.cancel import CancelSignal
from app.engine.models.base import ChatModel, ModelEvent, ModelRequest, ReplyEnd
from app.engine.models.catalog import REACT
from app.engine.models.react.history import as_text
from app.engine.models.react.reply import WrittenReply
from app.engine.models.react.texts import system_prompt
from app.engine.models.reply_content import REPLY_LIMITS, ReplyLimits


class ReAct:
    """A `ChatModel` around another one. At most one call in a reply; the inner model is not told of tools."""

    def __init__(self, inner: ChatModel, limits: ReplyLimits = REPLY_LIMITS) -> None:
        self._inner = inner
        self._limits = limits

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        reply = WrittenReply(request, self._limits)
        asked = replace(
            request,
            model=request.model.removeprefix(REACT),
            system_prompt=system_prompt(request.system_prompt, request.tools),
            messages=as_text(request.messages),
            tools=(),
        )
        async with aclosing(self._inner.stream(asked, cancel)) as events:
            async for event in events:
                for shown in reply.take(event):
                    yield shown
                if isinstance(event, ReplyEnd):
                    return
                if end := reply.cut():
                    for shown in end:
                        yield shown
                    return

    async def close(self) -> None:
        await self._inner.close()
