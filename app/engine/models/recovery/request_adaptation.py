"""The same request in another form: tools as text, or without a temperature."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from app.engine.core.cancel import CancelSignal
from app.engine.core.messages import AssistantMessage
from app.engine.models.base import ChatModel, ModelEvent, ModelNotice, ModelRequest, ReplyEnd
from app.engine.models.catalog import model_facts
from app.engine.models.failures import FailureKind
from app.engine.models.react.model import ReActModel

# OpenAI's models that reason take their own alone, whoever serves them.
_HAS_ITS_OWN = re.compile(r"(?:^|/)(?:o[134](?:-|$)|gpt-[5-9](?!.*chat))", re.IGNORECASE)

_WHILE_IT_THINKS = "The temperature {:g} is left out: a model that thinks has its own."
_BY_THIS_MODEL = "The temperature {:g} is left out: {} does not take it."

_NO_TOOLS = (
    "{} does not call tools by itself. It is told of them in its prompt and writes its calls as text instead, "
    "which is less reliable; for long work choose a model that calls tools."
)


def accepts_temperature(request: ModelRequest) -> bool:
    """False for models with one of their own, and while a model thinks."""
    return not _HAS_ITS_OWN.search(request.model) and not thinks(request)


def thinks(request: ModelRequest) -> bool:
    """Whether the model thinks before this reply, where that is not known too."""
    known = model_facts.facts(request.model)
    return request.options.thinking_level != "off" and (known is None or known.reasons)


class TemperatureFallback:
    """A `ChatModel` around the models of one place. Which of them refused a temperature is found out and kept."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._refused: set[tuple[str, float]] = set()
        self._told: set[tuple[str | None, str]] = set()

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        wanted = request.options.temperature
        if wanted is None or (accepts_temperature(request) and (request.model, wanted) not in self._refused):
            async with aclosing(self._model.stream(request, cancel)) as events:
                async for event in events:
                    if (
                        isinstance(event, ReplyEnd)
                        and event.failure is FailureKind.NO_TEMPERATURE
                        and wanted is not None
                    ):
                        break
                    yield event
                else:
                    return
        async with aclosing(self._without(request, wanted, cancel)) as events:
            async for event in events:
                yield event

    async def _without(
        self, request: ModelRequest, wanted: float, cancel: CancelSignal
    ) -> AsyncGenerator[ModelEvent, None]:
        if accepts_temperature(request):
            self._refused.add((request.model, wanted))
        for remark in self._remarks(request, wanted):
            yield remark
        bare = replace(request, options=replace(request.options, temperature=None))
        async with aclosing(self._model.stream(bare, cancel)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._model.close()

    def _remarks(self, request: ModelRequest, wanted: float) -> tuple[ModelNotice, ...]:
        """Said once in a conversation."""
        place = (request.options.session_id, request.model)
        if place in self._told:
            return ()
        self._told.add(place)
        text = _WHILE_IT_THINKS.format(wanted) if thinks(request) else _BY_THIS_MODEL.format(wanted, request.model)
        return (ModelNotice(text, AssistantMessage(model=request.model)),)


class TextToolFallback:
    """A `ChatModel` around the models of one place. `without_tools` names those that refused tools; it grows."""

    def __init__(self, native: ChatModel, without_tools: set[str]) -> None:
        self._native = native
        self._react = ReActModel(native)
        self._without_tools = without_tools

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        if not self._lacks_tools(request.model):
            async with aclosing(self._native.stream(request, cancel)) as events:
                async for event in events:
                    if isinstance(event, ReplyEnd) and event.failure is FailureKind.NO_TOOLS and request.tools:
                        break
                    yield event
                else:
                    return
            if request.model not in self._without_tools:  # other tasks may have found out meanwhile
                self._without_tools.add(request.model)
                yield ModelNotice(_NO_TOOLS.format(request.model), AssistantMessage(model=request.model))
        async with aclosing(self._react.stream(request, cancel)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._native.close()

    def _lacks_tools(self, model_id: str) -> bool:
        if model_id in self._without_tools:
            return True
        known = model_facts.facts(model_id)
        return known is not None and known.calls_tools is False
