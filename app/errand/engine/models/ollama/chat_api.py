"""Requests to `/api/chat` of Ollama, and when they take the place of chat completions.

From docs/api.md and the source of Ollama (August 2026).
"""

from collections.abc import AsyncGenerator

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.models.base import AttemptEvent, ModelProvider, ModelRequest
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.message_cache import BeginningCache
from errand.engine.models.ollama.messages import as_ollama
from errand.engine.models.ollama.stream import OllamaReader
from errand.engine.models.openai.request import ConvertedMessages, chat_messages, tool_definitions
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import PartlyEncoded
from errand.protocol.base import JsonObject, JsonValue

# A model of OpenAI's open weights takes an effort, all others yes or no.
_TAKES_EFFORT = "gpt-oss"


class OllamaChat:
    """An `ApiFormat`: Ollama's own chats, at the address that its OpenAI-compatible interface has."""

    def __init__(self, provider: Provider, server: str, address: str) -> None:
        self._address = address
        self._provider = provider
        self._server = server
        self._cache: BeginningCache[ConvertedMessages] = BeginningCache()

    def urls(self, base: str) -> tuple[str, ...]:
        return (f"{base.removesuffix('/v1')}/api/chat",)

    def headers(self, key: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest) -> PartlyEncoded:
        options = request.options
        body: dict[str, JsonValue | msgspec.Raw] = {
            "model": request.model.partition("/")[2],
            "messages": as_ollama(chat_messages(request, self._provider, self._cache, self._server)),
            "stream": True,
            "options": _options(request, self._address),
            # What is too long is refused, not cut without a word; older versions ignore both.
            "truncate": False,
            "shift": False,
        }
        if request.tools:
            body["tools"] = tool_definitions(request.tools)
        if request.reply_schema is not None:
            body["format"] = request.reply_schema
        if (think := _think(request, self._address)) is not None:
            body["think"] = think
        return {name: value for name, value in body.items() if name not in options.left_out}

    def reader(self, builder: ReplyBuilder) -> OllamaReader:
        return OllamaReader(builder, self._provider.title)


class OllamaModel:
    """A `ModelProvider`: Ollama's own interface for models whose window can be asked for, else chat completions."""

    def __init__(self, own: ModelProvider, compatible: ModelProvider, address: str) -> None:
        self._address = address
        self._own = own
        self._compatible = compatible

    def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        takes_window = model_facts.window_to_ask_for(request.model, self._address) is not None
        return (self._own if takes_window else self._compatible).attempt(request, stop)


def _options(request: ModelRequest, address: str) -> JsonObject:
    options: JsonObject = {
        "num_ctx": model_facts.window_to_ask_for(request.model, address),
        "temperature": request.options.temperature,
        "num_predict": request.options.max_tokens,
    }
    return {name: value for name, value in options.items() if value is not None}


def _think(request: ModelRequest, address: str) -> JsonValue:
    """Return whether the model is to think; None for one that cannot, which Ollama refuses to tell."""
    facts, level = model_facts.facts(request.model, address), request.options.thinking_level
    if facts is None or not facts.thinks:
        return None
    if _TAKES_EFFORT in request.model:
        return {"off": "low", "minimal": "low", "xhigh": "high"}.get(level, level)
    return level != "off"
