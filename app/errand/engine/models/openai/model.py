"""OpenAI-compatible endpoints: chat completions, and which of the two APIs asks OpenAI's own models."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import urlsplit

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.models.base import AttemptEvent, ModelOptions, ModelProvider, ModelRequest
from errand.engine.models.catalog.providers import CHAT_PATH, Provider
from errand.engine.models.failures import FailedAttempt, FailureKind
from errand.engine.models.message_cache import BeginningCache
from errand.engine.models.openai.request import ConvertedMessages, chat_messages, effort_fields, tool_definitions
from errand.engine.models.openai.responses_api import reasons
from errand.engine.models.openai.stream import ChunkReader
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import PartlyEncoded
from errand.protocol.base import JsonObject, JsonValue


class ChatCompletions:
    """An `ApiFormat`: OpenAI's chat completions, which most servers speak."""

    def __init__(self, provider: Provider, server: str = "") -> None:
        self._provider = provider
        self._server = server
        self._cache: BeginningCache[ConvertedMessages] = BeginningCache()

    def urls(self, base: str) -> tuple[str, ...]:
        base = base.removesuffix(CHAT_PATH)
        paths = (CHAT_PATH,) if urlsplit(base).path else (CHAT_PATH, f"/v1{CHAT_PATH}")
        return tuple(f"{base}{path}" for path in paths)

    def headers(self, key: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest) -> PartlyEncoded:
        provider, options = self._provider, request.options
        body: dict[str, JsonValue | msgspec.Raw] = {
            "model": request.model.partition("/")[2],
            "messages": chat_messages(request, provider, self._cache, self._server),
            "stream": True,
        }
        if provider.asks_usage:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = tool_definitions(request.tools)
        if request.reply_schema is not None:
            body["response_format"] = _json_format(request.reply_schema)
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if options.max_tokens is not None:
            body[_max_tokens_field(provider, options)] = options.max_tokens
        if provider.cache_field and options.session_id:
            body[provider.cache_field] = options.session_id
        if options.prompt_progress:
            body["return_progress"] = True
        body |= effort_fields(request, provider)
        return {name: value for name, value in body.items() if name not in options.left_out}

    def reader(self, builder: ReplyBuilder) -> ChunkReader:
        return ChunkReader(builder, self._provider.title, self._server)


class OpenAIModel:
    """A `ModelProvider` for OpenAI's own models: those that reason are asked over the Responses API.

    A gateway (`OPENAI_BASE_URL`) that does not know its address is asked for chat completions from then on.
    """

    def __init__(self, responses: ModelProvider, chat: ModelProvider, *, is_gateway: bool) -> None:
        self._responses = responses
        self._chat = chat
        self._is_gateway = is_gateway
        self._speaks_responses = True

    def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        if not (reasons(request.model) and self._speaks_responses):
            return self._chat.attempt(request, stop)
        if not self._is_gateway:
            return self._responses.attempt(request, stop)
        return self._attempt_with_gateway(request, stop)

    async def _attempt_with_gateway(
        self, request: ModelRequest, stop: CancelSignal
    ) -> AsyncGenerator[AttemptEvent, None]:
        """Ask over the Responses API, and over chat completions if the gateway does not know that address."""
        is_unknown = False
        async with aclosing(self._responses.attempt(request, stop)) as events:
            async for event in events:
                is_unknown = _is_not_found(event)
                if not is_unknown:
                    yield event
        if not is_unknown:
            return
        async with aclosing(self._chat.attempt(request, stop)) as events:
            async for event in events:
                self._speaks_responses = self._speaks_responses and isinstance(event, FailedAttempt)
                yield event


def _json_format(schema: JsonObject) -> JsonValue:
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}


def _max_tokens_field(provider: Provider, options: ModelOptions) -> str:
    """Return the name for the limit of a reply: newer servers refuse the old one, older servers the new one."""
    names = (provider.max_tokens_field, "max_tokens", "max_completion_tokens")
    return next((name for name in names if name not in options.left_out), provider.max_tokens_field)


def _is_not_found(event: AttemptEvent) -> bool:
    return isinstance(event, FailedAttempt) and event.failure.kind is FailureKind.NOT_FOUND
