"""Tool calls of the model's own where it has them, the XML form where it has not: for each model whichever works."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from app.engine.cancel import CancelSignal
from app.engine.messages import AssistantMessage
from app.engine.models import prices
from app.engine.models.base import ChatModel, ModelEvent, ModelRequest, Remark, ReplyEnd
from app.engine.models.react.model import ReAct

_NO_TOOLS = (
    "{} does not call tools by itself. It is told of them in its prompt and writes its calls as text instead, "
    "which is less reliable; for long work choose a model that calls tools."
)


class AdaptiveModel:
    """A `ChatModel` around the models of one place. `without_tools` names those that refused tools; it grows."""

    def __init__(self, native: ChatModel, without_tools: set[str]) -> None:
        self._native = native
        self._react = ReAct(native)
        self._without_tools = without_tools

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        if not self._lacks_tools(request.model):
            async with aclosing(self._native.stream(request, cancel)) as events:
                async for event in events:
                    if isinstance(event, ReplyEnd) and event.lacks_tools and request.tools:
                        break
                    yield event
                else:
                    return
            if request.model not in self._without_tools:  # other tasks may have found out meanwhile
                self._without_tools.add(request.model)
                yield Remark(_NO_TOOLS.format(request.model), AssistantMessage(model=request.model))
        async with aclosing(self._react.stream(request, cancel)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._native.close()

    def _lacks_tools(self, model_id: str) -> bool:
        if model_id in self._without_tools:
            return True
        known = prices.facts(model_id)
        return known is not None and known.calls_tools is False
