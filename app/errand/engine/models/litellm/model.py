"""Providers behind litellm."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import TypeAlias

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.fair_share import Slice
from errand.engine.core.json_input.schema_references import without_references
from errand.engine.core.outgoing import CERTIFICATE_HELP
from errand.engine.models.base import AttemptEvent, ModelEvent, ModelRequest, ToolDefinition
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import Provider
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
from errand.engine.models.http_stream import ServerEvent, read_event
from errand.engine.models.litellm.library_process import (
    FailureReport,
    LibraryEnded,
    LibraryFailure,
    LibraryProcess,
    LibraryUnusable,
)
from errand.engine.models.message_cache import BeginningCache
from errand.engine.models.openai.request import ConvertedMessages, chat_messages, tool_definitions
from errand.engine.models.openai.stream import ChunkReader
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import REPLY_LIMITS, PartlyEncoded, ReplyLimits, ReplyTooLong, encode
from errand.protocol.base import JsonObject, JsonValue

_TIMEOUTS = Timeouts()
# Longer conversations are converted in a thread, off the event loop.
_MANY = 500
_MAX_LOGGED_LENGTH = 2_000
# Models that take a number of tokens to think; for all others the library leaves it out.
_TAKES_BUDGET = re.compile(r"claude|gemini", re.IGNORECASE)
_MIN_THINKING_TOKENS = 1_024
# The request that the process practises with, which is never sent.
_PRACTICE_TOOL: JsonObject = {
    "name": "look",
    "description": "Look.",
    "parameters": {"type": "object", "properties": {}},
}
_PRACTICE: JsonObject = {
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}],
    "tools": [{"type": "function", "function": _PRACTICE_TOOL}],
    "api_key": "none",
    "api_base": "http://127.0.0.1:9",
}
_ANY_MODEL = "openai/any"
_AttemptError: TypeAlias = (
    ProviderError | ConfigurationError | Stalled | LibraryFailure | LibraryEnded | LibraryUnusable
)
_ATTEMPT_ERRORS = (ProviderError, ConfigurationError, Stalled, LibraryFailure, LibraryEnded, LibraryUnusable)

_logger = logging.getLogger(__name__)


class LiteLLMModel:
    """A `ModelProvider` for one provider of the library."""

    def __init__(
        self,
        endpoint: ModelEndpoint,
        library: LibraryProcess,
        timeouts: Timeouts = _TIMEOUTS,
        limits: ReplyLimits = REPLY_LIMITS,
    ) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._library = library
        self._timeouts = timeouts
        self._cache: BeginningCache[ConvertedMessages] = BeginningCache()

    async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        builder = ReplyBuilder(request.model, self._limits, self._endpoint.redactor)
        try:
            with Deadline(stop, self._limits.seconds) as deadline:
                arguments = await self._encoded(request)
                async with aclosing(self._reply(arguments, builder, deadline)) as events:
                    async for event in events:
                        yield event
        except Aborted:
            yield builder.abort()
        except ReplyTooLong as error:
            for event in builder.cut(str(error)):
                yield event
        except _ATTEMPT_ERRORS as error:
            builder.close_blocks()
            failure = self._endpoint.redacted(self._failure(error, has_begun=not builder.is_empty))
            yield FailedAttempt(failure, replace(builder.message, usage=builder.usage))

    async def _reply(
        self, arguments: bytes, builder: ReplyBuilder, deadline: Deadline
    ) -> AsyncGenerator[ModelEvent, None]:
        reader = ChunkReader(builder, self._endpoint.provider.title)
        bytes_left, share, has_started = self._limits.stream_bytes, Slice(), False

        def limit_s() -> float:
            return self._timeouts.first_byte_s if builder.is_empty else self._timeouts.between_s

        async with aclosing(self._library.chunks(arguments, deadline, limit_s)) as chunks:
            async for chunk in chunks:
                if not has_started:
                    has_started = True
                    yield builder.start()
                bytes_left -= len(chunk)
                if bytes_left < 0:
                    raise ReplyTooLong("comes with more than can be a reply")
                for event in await read_event(ServerEvent(chunk), reader.read):
                    yield event
                builder.check()
                if share.is_over:  # a continuous flood never waits for data
                    await share.renew()
        for event in reader.end():
            yield event

    async def _encoded(self, request: ModelRequest) -> bytes:
        key = await self._endpoint.key_for(request.options.api_key)
        if len(request.messages) > _MANY:
            return await asyncio.to_thread(lambda: encode(self._arguments(request, key)))
        return encode(self._arguments(request, key))

    def _arguments(self, request: ModelRequest, key: str | None) -> PartlyEncoded:
        provider, options = self._endpoint.provider, request.options
        name = request.model.partition("/")[2]
        messages = chat_messages(request, provider, self._cache)
        arguments: dict[str, JsonValue | msgspec.Raw] = {
            "model": f"{provider.price_prefix}/{name}",
            "messages": messages,
        }
        optional: JsonObject = {
            "tools": tool_definitions(tuple(map(_without_references, request.tools))) or None,
            "api_key": key,
            "api_base": self._endpoint.base_url or None,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens or _output_limit_of_thinker(request),
            **_thinking_arguments(request),
            "extra_headers": dict(self._endpoint.headers) or None,
        }
        sent = {name: value for name, value in optional.items() if value is not None and name not in options.left_out}
        return arguments | sent

    def _failure(self, error: _AttemptError, *, has_begun: bool) -> AttemptFailure:
        title = self._endpoint.provider.title
        match error:
            case ProviderError():
                return error.failure
            case ConfigurationError():
                return AttemptFailure(str(error), "key not readable", FailureKind.NOT_AUTHORISED)
            case Stalled():
                return no_response(title, error.limit_s)
            case LibraryEnded():
                text = f"The process that asks {title} has ended. " + (
                    "What came is kept; try again." if has_begun else "The machine may lack memory; try again."
                )
                return AttemptFailure(text, "process ended", FailureKind.UNAVAILABLE)
            case LibraryUnusable():
                text = f"{title} is asked through the package litellm, which {error}"
                return AttemptFailure(text, "litellm not usable", FailureKind.NOT_USABLE)
            case LibraryFailure():
                return self._failure_of_library(error.report)

    def _failure_of_library(self, report: FailureReport) -> AttemptFailure:
        title, redact = self._endpoint.provider.title, self._endpoint.redactor
        if report.is_raw:
            _logger.warning("litellm: %s: %s", report.kind, redact.hide(report.text)[:_MAX_LOGGED_LENGTH])
        where = self._endpoint.base_url or "its address"
        match report:
            case FailureReport(kind="Refused"):
                body = redact.hide(report.text).encode("utf-8", "replace")
                return failure_from_response(title, report.status, report.headers, body, self._endpoint.key_help)
            case FailureReport(kind="CannotConnect", text="certificate"):
                text = f"No secure connection to {title} at {where}. Check the base URL. {CERTIFICATE_HELP}"
                return AttemptFailure(text, "no secure connection", FailureKind.NOT_USABLE)
            case FailureReport(kind="UnusableRoute"):
                return AttemptFailure(report.text, "no way to the network", FailureKind.NOT_USABLE)
            case FailureReport(kind="CannotConnect"):
                text = f"Cannot reach {title} at {where}: check the network and the base URL."
                return AttemptFailure(text, "cannot connect", FailureKind.UNAVAILABLE)
            case FailureReport(kind="PackageMissing"):
                text = f"{title} needs the package {report.text}, which is not installed in Errand's own Python."
                return AttemptFailure(text, "a package is missing", FailureKind.NOT_USABLE)
            case FailureReport(kind="TooLarge"):
                return AttemptFailure(f"{title} sent an endless line.", "unreadable reply", FailureKind.NOT_USABLE)
            case FailureReport(kind="MidStreamFallbackError") if "overloaded" in report.text.lower():
                text = f"{title} was overloaded in the middle of the reply. What came is kept; try again."
                return AttemptFailure(text, "overloaded", FailureKind.UNAVAILABLE)
            case FailureReport(kind="MidStreamFallbackError"):
                return connection_lost(title)
            case FailureReport(kind="Timeout"):
                return no_response(title, self._timeouts.between_s)
            case FailureReport(status=0) | FailureReport(kind="APIConnectionError"):
                text = f"{title} could not be asked ({report.kind}). The log has what litellm says of it."
                passes = report.kind == "APIConnectionError"
                return AttemptFailure(
                    text, "cannot be asked", FailureKind.UNAVAILABLE if passes else FailureKind.NOT_USABLE
                )
            case _:
                return failure_from_response(title, report.status, report.headers, b"", self._endpoint.key_help)


def practice_request(provider: Provider, model_id: str) -> bytes:
    """Return the arguments of a request to practise with, which goes the way of requests to this model."""
    # Without a key of ours the library would look for credentials of the machine, over the network too.
    name = f"{provider.price_prefix}/{model_id.partition('/')[2]}" if provider.needs_key else _ANY_MODEL
    return encode({"model": name, **_PRACTICE})


def _output_limit_of_thinker(request: ModelRequest) -> int | None:
    """Return the model's full output limit: for a thinking Claude the library would request 4,096 tokens."""
    facts = model_facts.facts(request.model)
    if facts is None or "claude" not in request.model or _effort(request) is None:
        return None
    return facts.output_tokens


def _thinking_arguments(request: ModelRequest) -> JsonObject:
    """Return a number of tokens for the models that take one, a level for all others."""
    effort, budget = _effort(request), request.options.thinking_budget
    facts = model_facts.facts(request.model)
    takes_number = _TAKES_BUDGET.search(request.model) and not (facts is not None and facts.takes_effort)
    if effort is not None and budget is not None and takes_number:
        return {"thinking": {"type": "enabled", "budget_tokens": max(budget, _MIN_THINKING_TOKENS)}}
    return {"reasoning_effort": effort}


def _effort(request: ModelRequest) -> str | None:
    level = request.options.thinking_level
    facts = model_facts.facts(request.model)
    if level == "off" or (facts is not None and not facts.reasons):
        return None
    if level in ("minimal", "xhigh") and (facts is None or level not in facts.efforts):
        return "low" if level == "minimal" else "high"
    return level


def _without_references(tool: ToolDefinition) -> ToolDefinition:
    """Several of its providers take no references, and it writes out any number of copies itself."""
    return replace(tool, parameters=without_references(tool.parameters))
