"""Providers behind litellm."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError
from errand.engine.models.base import AttemptEvent, ModelRequest
from errand.engine.models.catalog import model_facts
from errand.engine.models.deadline import Aborted, Deadline, Stalled
from errand.engine.models.endpoint import ModelEndpoint, Timeouts
from errand.engine.models.failures import (
    AttemptFailure,
    FailedAttempt,
    FailureKind,
    ProviderError,
    connection_lost,
    failure_from_response,
    no_response,
)
from errand.engine.models.litellm.library_thread import LibraryFailure, LibraryThread
from errand.engine.models.message_cache import MessageCache
from errand.engine.models.openai.request import chat_messages, tool_definitions
from errand.engine.models.openai.stream import ChunkReader
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import REPLY_LIMITS, ReplyLimits, ReplyTooLong
from errand.protocol.base import JsonObject

_TIMEOUTS = Timeouts()


class LiteLLMModel:
    """A `ModelProvider` for one provider of the library."""

    def __init__(
        self,
        endpoint: ModelEndpoint,
        library: LibraryThread,
        timeouts: Timeouts = _TIMEOUTS,
        limits: ReplyLimits = REPLY_LIMITS,
    ) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._library = library
        self._timeouts = timeouts

    async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        builder = ReplyBuilder(request.model, self._limits, self._endpoint.redactor)
        reader = ChunkReader(builder, self._endpoint.provider.title)

        def limit_s() -> float:
            return self._timeouts.first_byte_s if builder.is_empty else self._timeouts.between_s

        try:
            with Deadline(stop, self._limits.seconds) as deadline:
                arguments = self._arguments(request, await self._endpoint.key_for(request.options.api_key))
                has_started = False
                async with aclosing(self._library.chunks(arguments, deadline, limit_s)) as chunks:
                    async for chunk in chunks:
                        if not has_started:
                            has_started = True
                            yield builder.start()
                        for event in reader.read(chunk):
                            yield event
                        builder.check()
                for event in reader.end():
                    yield event
        except Aborted:
            yield builder.abort()
        except ReplyTooLong as error:
            for event in builder.cut(str(error)):
                yield event
        except (ProviderError, ConfigurationError, Stalled, LibraryFailure) as error:
            builder.close_blocks()
            failure = self._endpoint.redacted(self._failure(error))
            yield FailedAttempt(failure, replace(builder.message, usage=builder.usage))

    def _arguments(self, request: ModelRequest, key: str | None) -> JsonObject:
        provider, options = self._endpoint.provider, request.options
        name = request.model.partition("/")[2]
        messages = chat_messages(request, provider, MessageCache())  # the library changes entries
        arguments: JsonObject = {"model": f"{provider.price_prefix}/{name}", "messages": messages}
        optional: JsonObject = {
            "tools": tool_definitions(request.tools) or None,
            "api_key": key,
            "api_base": self._endpoint.base_url or None,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens or _room_beside_thinking(request),
            "reasoning_effort": _effort(request),
        }
        return arguments | {name: value for name, value in optional.items() if value is not None}

    def _failure(self, error: ProviderError | ConfigurationError | Stalled | LibraryFailure) -> AttemptFailure:
        provider = self._endpoint.provider
        match error:
            case ProviderError():
                return error.failure
            case ConfigurationError():
                return AttemptFailure(str(error), "key not readable", FailureKind.NOT_AUTHORISED)
            case Stalled():
                return no_response(provider.title, error.limit_s)
            case LibraryFailure(kind="MidStreamFallbackError") if "overloaded" in error.text.lower():
                text = f"{provider.title} was overloaded in the middle of the reply. What came is kept; try again."
                return AttemptFailure(text, "overloaded", FailureKind.UNAVAILABLE)
            case LibraryFailure(kind="MidStreamFallbackError"):
                return connection_lost(provider.title)
            case LibraryFailure(kind="Timeout"):
                return no_response(provider.title, self._timeouts.between_s)
            case LibraryFailure(status=0) | LibraryFailure(kind="APIConnectionError"):
                text = f"{provider.title} could not be asked: {self._endpoint.redactor(error.text)[:300]}"
                passes = error.kind == "APIConnectionError"
                kind = FailureKind.UNAVAILABLE if passes else FailureKind.NOT_USABLE
                return AttemptFailure(text, "cannot connect", kind)
            case LibraryFailure() if "onnection error" in error.text:
                where = self._endpoint.base_url or "its address"
                text = f"Cannot reach {provider.title} at {where}: check the network and the API base."
                return AttemptFailure(text, "cannot connect", FailureKind.UNAVAILABLE)
            case LibraryFailure():
                body = self._endpoint.redactor.hide(error.text).encode("utf-8", "replace")
                return failure_from_response(provider.title, error.status, error.headers, body, self._endpoint.key_help)


def _room_beside_thinking(request: ModelRequest) -> int | None:
    """The model's full output limit: for a thinking Claude the library would request 4,096 tokens."""
    known = model_facts.facts(request.model)
    if known is None or "claude" not in request.model or _effort(request) is None:
        return None
    return known.output_tokens


def _effort(request: ModelRequest) -> str | None:
    level = request.options.thinking_level
    known = model_facts.facts(request.model)
    if level == "off" or (known is not None and not known.reasons):
        return None
    if level in ("minimal", "xhigh") and (known is None or level not in known.efforts):
        return "low" if level == "minimal" else "high"
    return level
