"""OpenAI's own models: chat completions the fast way, and what they refuse through the library's other interface."""

from collections.abc import AsyncGenerator, Callable

from app.engine.cancel import CancelSignal
from app.engine.models.base import ChatModel, ModelEvent, ModelRequest
from app.engine.models.effort import needs_responses


class OpenAIModels:
    """A `ChatModel` that chooses for each request; the library is opened when it is first needed."""

    def __init__(self, fast: ChatModel, open_library: Callable[[], ChatModel]) -> None:
        self._fast = fast
        self._open_library = open_library
        self._library: ChatModel | None = None

    def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        if not needs_responses(request):
            return self._fast.stream(request, cancel)
        if self._library is None:
            self._library = self._open_library()
        return self._library.stream(request, cancel)

    async def close(self) -> None:
        await self._fast.close()
        if self._library is not None:
            await self._library.close()
