"""Every provider that does not speak OpenAI's interface, through the litellm library (which runs in a thread)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from app.engine.cancel import CancelSignal
from app.engine.errors import ConfigurationError
from app.engine.models import prices
from app.engine.models.assembly import Assembly
from app.engine.models.base import ModelEvent, ModelRequest
from app.engine.models.cache_marks import marked_messages, marked_tools
from app.engine.models.chunks import ChunkReader
from app.engine.models.convert import chat_messages, tool_definitions
from app.engine.models.endpoint import Endpoint, Timeouts
from app.engine.models.failure import Failed, Failure, Refused, cut, stalled
from app.engine.models.kept import Kept
from app.engine.models.litellm_thread import LibraryFailure, LibraryThread
from app.engine.models.open_streams import OpenStreams
from app.engine.models.refusals import refusal
from app.engine.models.reply_content import REPLY_LIMITS, ReplyLimits, ReplyTooLong
from app.engine.models.retry import AttemptEvents, RetryPolicy
from app.engine.models.watch import Aborted, Stalled, Watch
from app.protocol.json import JsonObject

_TIMEOUTS = Timeouts()
_RETRY = RetryPolicy()


class LiteLLM:
    """A `ChatModel` for one provider of the library."""

    def __init__(
        self,
        endpoint: Endpoint,
        library: LibraryThread,
        timeouts: Timeouts = _TIMEOUTS,
        retry: RetryPolicy = _RETRY,
        limits: ReplyLimits = REPLY_LIMITS,
    ) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._library = library
        self._timeouts = timeouts
        self._retry = retry
        self._streams = OpenStreams()

    def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        return self._streams.of(self._attempt, request, cancel, self._retry)

    async def close(self) -> None:
        self._streams.close()

    async def _attempt(self, request: ModelRequest, stop: CancelSignal) -> AttemptEvents:
        assembly = Assembly(request.model, self._limits, self._endpoint.redactor)
        try:
            with Watch(stop, self._limits.seconds) as watch:
                async with aclosing(self._exchange(request, assembly, watch)) as events:
                    async for event in events:
                        yield event
        except Aborted:
            yield assembly.abort()
        except ReplyTooLong as error:
            for event in assembly.cut(str(error)):
                yield event
        except (Refused, ConfigurationError, Stalled, LibraryFailure) as error:
            assembly.close_blocks()
            yield Failed(self._endpoint.redacted(self._failure(error)), replace(assembly.message, usage=assembly.usage))

    async def _exchange(
        self, request: ModelRequest, assembly: Assembly, watch: Watch
    ) -> AsyncGenerator[ModelEvent, None]:
        key = await self._endpoint.key_for(request.options.api_key)
        reader = ChunkReader(assembly, self._endpoint.provider.title)

        def limit_s() -> float:
            return self._timeouts.first_byte_s if assembly.is_nothing else self._timeouts.between_s

        started = False
        async with aclosing(self._library.chunks(self._arguments(request, key), watch, limit_s)) as chunks:
            async for chunk in chunks:
                if not started:
                    started = True
                    yield assembly.start()
                for event in reader.read(chunk):
                    yield event
                assembly.check()
        for event in reader.end():
            yield event

    def _arguments(self, request: ModelRequest, key: str | None) -> JsonObject:
        provider, options = self._endpoint.provider, request.options
        name = request.model.partition("/")[2]
        caches = provider.name == "anthropic"
        messages = chat_messages(request, provider, Kept())  # the marks below change entries
        tools = tool_definitions(request.tools)
        arguments: JsonObject = {
            "model": f"{provider.price_prefix}/{name}",
            "messages": marked_messages(messages) if caches else messages,
        }
        optional: JsonObject = {
            "tools": (marked_tools(tools) if caches else tools) or None,
            "api_key": key,
            "api_base": self._endpoint.base_url or None,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens or _room_beside_thinking(request),
            "reasoning_effort": _effort(request),
        }
        return arguments | {name: value for name, value in optional.items() if value is not None}

    def _failure(self, error: Refused | ConfigurationError | Stalled | LibraryFailure) -> Failure:
        provider = self._endpoint.provider
        match error:
            case Refused():
                return error.failure
            case ConfigurationError():
                return Failure(str(error), "key not readable", may_pass=False)
            case Stalled():
                return stalled(provider.title, error.limit_s)
            case LibraryFailure(kind="MidStreamFallbackError") if "overloaded" in error.text.lower():
                text = f"{provider.title} was overloaded in the middle of the reply. What came is kept; try again."
                return Failure(text, "overloaded", may_pass=True)
            case LibraryFailure(kind="MidStreamFallbackError"):
                return cut(provider.title)
            case LibraryFailure(kind="Timeout"):
                return stalled(provider.title, self._timeouts.between_s)
            case LibraryFailure(status=0) | LibraryFailure(kind="APIConnectionError"):
                text = f"{provider.title} could not be asked: {self._endpoint.redactor(error.text)[:300]}"
                return Failure(text, "cannot connect", may_pass=error.kind == "APIConnectionError")
            case LibraryFailure() if "onnection error" in error.text:
                where = self._endpoint.base_url or "its address"
                text = f"Cannot reach {provider.title} at {where}: check the network and the API base."
                return Failure(text, "cannot connect", may_pass=True)
            case LibraryFailure():
                body = self._endpoint.redactor.hide(error.text).encode("utf-8", "replace")
                return refusal(provider.title, error.status, error.headers, body, self._endpoint.key_help)


def _room_beside_thinking(request: ModelRequest) -> int | None:
    """All that the model can give: of a Claude that thinks the library would ask for 4,096 tokens of answer."""
    known = prices.facts(request.model)
    if known is None or "claude" not in request.model or _effort(request) is None:
        return None
    return known.output_tokens


def _effort(request: ModelRequest) -> str | None:
    level = request.options.thinking_level
    known = prices.facts(request.model)
    if level == "off" or (known is not None and not known.reasons):
        return None
    if level in ("minimal", "xhigh") and (known is None or level not in known.efforts):
        return "low" if level == "minimal" else "high"
    return level
