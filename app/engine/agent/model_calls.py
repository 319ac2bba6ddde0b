"""A task's calls of its model: the request made to fit, its intent committed, then the model itself."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from app.engine.agent.branch import Branch
from app.engine.agent.recorder import Recorder
from app.engine.agent.room import Room
from app.engine.cancel import CancelSignal
from app.engine.messages import AssistantMessage
from app.engine.models.base import ChatModel, ModelEvent, ModelRequest, ReplyEnd
from app.engine.models.failure import ABORTED


class ModelCalls:
    def __init__(self, branch: Branch, recorder: Recorder, model: ChatModel, room: Room) -> None:
        self._branch = branch
        self._recorder = recorder
        self._model = model
        self._room = room

    async def stream(self, whole: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        """One reply; a request that the provider refuses as too long is made once more, shorter."""
        request: ModelRequest | None = await self._room.fit(whole, cancel)
        while request is not None:
            if cancel.is_set:
                yield ReplyEnd(AssistantMessage(stop_reason="aborted", error=ABORTED, model=whole.model))
                return
            sent, request = request, None
            async with aclosing(self._call(sent, cancel)) as events:
                async for event in events:
                    if isinstance(event, ReplyEnd):
                        request = await self._room.after(whole, sent, event, cancel)
                    if request is None:
                        yield event

    async def _call(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        self._recorder.turn_started(request)
        # If a power cut takes it, the call is made again, as if it had not come this far.
        await self._branch.save(durable=False)
        async with aclosing(self._model.stream(request, cancel)) as events:
            async for event in events:
                yield event
