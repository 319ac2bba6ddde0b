"""A temperature where the model takes it; where not it is left out, and that is said: some refuse the whole request."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from app.engine.cancel import CancelSignal
from app.engine.messages import AssistantMessage
from app.engine.models.base import ChatModel, ModelEvent, ModelRequest, Remark, ReplyEnd
from app.engine.models.temperature import is_taken, thinks

_WHILE_IT_THINKS = "The temperature {:g} is left out: a model that thinks has its own."
_BY_THIS_MODEL = "The temperature {:g} is left out: {} does not take it."


class Tempered:
    """A `ChatModel` around the models of one place. Which of them refused a temperature is found out and kept."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._refused: set[tuple[str, float]] = set()
        self._told: set[tuple[str | None, str]] = set()

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        wanted = request.options.temperature
        if wanted is None or (is_taken(request) and (request.model, wanted) not in self._refused):
            async with aclosing(self._model.stream(request, cancel)) as events:
                async for event in events:
                    if isinstance(event, ReplyEnd) and event.refuses_temperature and wanted is not None:
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
        if is_taken(request):
            self._refused.add((request.model, wanted))
        for remark in self._remarks(request, wanted):
            yield remark
        bare = replace(request, options=replace(request.options, temperature=None))
        async with aclosing(self._model.stream(bare, cancel)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._model.close()

    def _remarks(self, request: ModelRequest, wanted: float) -> tuple[Remark, ...]:
        """Said once in a conversation."""
        place = (request.options.session_id, request.model)
        if place in self._told:
            return ()
        self._told.add(place)
        text = _WHILE_IT_THINKS.format(wanted) if thinks(request) else _BY_THIS_MODEL.format(wanted, request.model)
        return (Remark(text, AssistantMessage(model=request.model)),)
