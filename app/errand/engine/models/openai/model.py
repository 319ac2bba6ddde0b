"""OpenAI-compatible endpoints; OpenAI's own models go through the library where it is needed."""

from collections.abc import AsyncGenerator, Callable
from urllib.parse import urlsplit

from errand.engine.core.cancel import CancelSignal
from errand.engine.models.base import AttemptEvent, ModelProvider, ModelRequest
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.message_cache import MessageCache
from errand.engine.models.openai.request import chat_messages, effort_fields, needs_responses, tool_definitions
from errand.engine.models.openai.stream import ChunkReader
from errand.engine.models.reply.builder import ReplyBuilder
from errand.protocol.base import JsonObject, JsonValue

_PATH = "/chat/completions"


class ChatCompletions:
    """An `ApiFormat`: OpenAI's chat completions, which most servers speak."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._cache: MessageCache[list[JsonValue]] = MessageCache()

    def urls(self, base: str) -> tuple[str, ...]:
        base = base.removesuffix(_PATH)
        paths = (_PATH,) if urlsplit(base).path else (_PATH, f"/v1{_PATH}")
        return tuple(f"{base}{path}" for path in paths)

    def headers(self, key: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest) -> JsonObject:
        provider, options = self._provider, request.options
        body: JsonObject = {
            "model": request.model.partition("/")[2],
            "messages": chat_messages(request, provider, self._cache),
            "stream": True,
        }
        if provider.asks_usage:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = tool_definitions(request.tools)
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if options.max_tokens is not None:
            body[provider.max_tokens_field] = options.max_tokens
        if provider.cache_field and options.session_id:
            body[provider.cache_field] = options.session_id
        return body | effort_fields(request, provider)

    def reader(self, builder: ReplyBuilder) -> ChunkReader:
        return ChunkReader(builder, self._provider.title)


class OpenAIModel:
    """A `ModelProvider` that selects the interface for each request; the library is opened on first use."""

    def __init__(self, fast: ModelProvider, open_library: Callable[[], ModelProvider]) -> None:
        self._fast = fast
        self._open_library = open_library
        self._library: ModelProvider | None = None

    def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        if not needs_responses(request):
            return self._fast.attempt(request, stop)
        if self._library is None:
            self._library = self._open_library()
        return self._library.attempt(request, stop)
