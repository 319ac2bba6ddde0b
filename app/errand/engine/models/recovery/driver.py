"""`RecoveringModel`: sends a request until it gets a reply or the table has no further step."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, replace
from typing import assert_never

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.messages import AssistantMessage, Usage
from errand.engine.models.base import (
    AttemptEvent,
    BlockDelta,
    BlockEnd,
    BlockStart,
    ModelEvent,
    ModelNotice,
    ModelRequest,
    RefusedSize,
    ReplyEnd,
    ReplyStart,
    Retry,
)
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import REACT
from errand.engine.models.failures import ABORTED, AttemptFailure, FailedAttempt, FailureKind, too_long
from errand.engine.models.json_calls.parser import JsonCallParser
from errand.engine.models.json_calls.request import with_json_calls
from errand.engine.models.react.reply import TextToolsReply, with_text_tools
from errand.engine.models.recovery.fallback import FallbackModels, all_failed, fallback_notice, request_to
from errand.engine.models.recovery.request_adaptation import (
    has_result_pictures,
    has_signed_thoughts,
    with_fields,
    with_token_limit,
    without_result_pictures,
    without_summary,
    without_temperature,
    without_thoughts,
)
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.recovery.source import ModelSource
from errand.engine.models.recovery.table import RECOVERY, RecoveryStep
from errand.engine.models.recovery.template_tokens import with_marked_tokens, without_marks
from errand.engine.models.refusal_text import is_too_long_by_numbers, stated_sizes
from errand.engine.models.reply.content import REPLY_LIMITS, ReplyLimits
from errand.engine.models.reply.usage import add_usage, estimate, usage_or_estimate, with_usage
from errand.protocol.notices import NoticeData

_RETRY = RetryPolicy()
_MAX_QUOTED = 300


class RecoveringModel:
    """A `ChatModel` over the providers of `models`.

    The reply names the model that gave it; a `ModelNotice` explains a fallback. Its usage includes that of failed
    attempts.
    """

    def __init__(
        self,
        models: FallbackModels | ModelSource,
        retry: RetryPolicy = _RETRY,
        limits: ReplyLimits = REPLY_LIMITS,
    ) -> None:
        self._models = models if isinstance(models, FallbackModels) else FallbackModels(models)
        self._retry = retry
        self._limits = limits

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        with ExitStack() as open_stream:
            recovery = _Recovery(request, cancel, self._models, self._retry, self._limits, open_stream)
            for event in recovery.next_model():
                yield event
            while not recovery.is_over:
                recovery.begin_attempt()
                async with aclosing(recovery.source.provider.attempt(recovery.sent, recovery.stop)) as events:
                    async for event in events:
                        for passed in recovery.take(event):
                            yield passed
                        if recovery.is_over:
                            return
                for event in recovery.recover():
                    yield event
                if recovery.delay_s is not None and await _is_set_within(recovery.stop, recovery.delay_s):
                    for event in recovery.abort():
                        yield event

    async def close(self) -> None:
        """Open streams end as aborted."""
        self._models.first.streams.close()


@dataclass(frozen=True, slots=True)
class _Failed:
    """The failure of an attempt. `failure` is None if the provider has already retried."""

    kind: FailureKind
    end: ReplyEnd
    failure: AttemptFailure | None = None


class _Recovery:
    """The state of one reply. Its methods return the events to pass on; `recover` looks up what follows a failure.

    `open_stream` holds the place of the reply among the open streams of the model at hand; the caller closes it.
    """

    def __init__(
        self,
        request: ModelRequest,
        cancel: CancelSignal,
        models: FallbackModels,
        retry: RetryPolicy,
        limits: ReplyLimits,
        open_stream: ExitStack,
    ) -> None:
        self.is_over = False
        self.delay_s: float | None = None
        self.stop = cancel
        self._request = request
        self._cancel = cancel
        self._models = models
        self._retry = retry
        self._limits = limits
        self._candidates = iter(models.in_order(request))
        self._ends: list[ReplyEnd] = []
        self._usage = Usage()
        self._open_stream = open_stream
        # The current model, and when its first attempt started.
        self.source = models.first
        self._model_request = request
        self._began = 0.0
        self._has_shown_parts = False
        # The form of the request: what is sent, and the decoder of calls written as text.
        self.sent = request
        self._decoder: TextToolsReply | None = None
        self._omits_pictures = False
        # The current attempt.
        self._number = 0
        self._has_begun = False
        self._failed: _Failed | None = None

    def begin_attempt(self) -> None:
        """Begin the next attempt, which sends `sent` to `source` until `stop` is set."""
        self._number += 1
        self._has_begun, self._failed, self.delay_s = False, None, None

    def take(self, event: AttemptEvent) -> list[ModelEvent]:
        """Return the events to show for one event of the attempt. A failure shows nothing yet."""
        match event:
            case FailedAttempt(failure, partial):
                failure = self._with_size(failure)
                partial = self._with_total_usage(partial)
                text = f"{failure.text} (Tried {self._number} times.)" if self._number > 1 else failure.text
                message = replace(partial, stop_reason="error", error=text)
                end = ReplyEnd(message, self._retry.retry_later(failure), failure.kind, self._refused_size(failure))
                self._failed = _Failed(failure.kind, end, failure)
                return []
            case ReplyEnd(message, failure=kind):
                end = replace(event, message=self._with_total_usage(message))
                if kind is not None:
                    self._failed = _Failed(kind, end)
                    return []
                self.is_over = True
                return self._decoded(end)
            case ReplyStart():
                self._has_begun = True
            case _:
                pass
        events = self._decoded(event)
        self._has_shown_parts = self._has_shown_parts or any(
            isinstance(part, BlockStart | BlockDelta | BlockEnd) for part in events
        )
        return [*events, *self._cut()]

    def recover(self) -> list[ModelEvent]:
        """Take the first step of the table that applies; without one the failure ends the reply."""
        failed = self._failed
        if failed is not None:
            for step in RECOVERY[failed.kind]:
                events = self._step(step, failed)
                if events is not None:
                    return events
        self.is_over = True
        return self._decoded(failed.end) if failed is not None else []

    def next_model(self) -> list[ModelEvent]:
        """Switch to the next model that can be opened; after the last one, all have failed."""
        events: list[ModelEvent] = []
        for model_id in self._candidates:
            if self._ends or model_id != self._request.model:
                notice = fallback_notice(self._request, self._ends, model_id)
                events.append(ModelNotice(notice, AssistantMessage(model=model_id)))
            try:
                self.source = self._models.open(model_id, self._request)
            except ConfigurationError as error:
                self._ends.append(ReplyEnd(AssistantMessage((), "error", str(error), model_id)))
                continue
            self._open_stream.close()
            self.stop = self._open_stream.enter_context(self.source.streams.track(self._cancel))
            self._model_request = request_to(model_id, self._request)
            self._began = time.monotonic()
            return [*events, *self._adapt()]
        self.is_over = True
        return [*events, all_failed(self._request, self._ends, self._usage)]

    def abort(self) -> list[ModelEvent]:
        """Return the task was stopped between attempts."""
        self.is_over = True
        aborted = AssistantMessage(stop_reason="aborted", error=ABORTED, model=self.sent.model, usage=self._usage)
        return self._decoded(ReplyEnd(aborted))

    def _adapt(self) -> list[ModelEvent]:
        """Convert the request to a form that the model is known to accept; restarts the count of attempts."""
        self._number = 0
        request, learned = self._model_request, self.source.learned
        if self.source.finds_tokens:
            request = with_marked_tokens(request)
        bare = request.model.removeprefix(REACT)
        self._omits_pictures = learned is not None and not learned.takes_pictures(bare)
        if self._omits_pictures:
            request = without_result_pictures(request)
        is_text = bare != request.model or (learned is not None and not learned.calls_tools(bare))
        if request.options.call_form == "json" and request.tools and bare == request.model:
            self._decoder = TextToolsReply(request, self._limits, JsonCallParser)
            self.sent = with_json_calls(request)
        elif is_text:
            self._decoder, self.sent = TextToolsReply(request, self._limits), with_text_tools(request)
        else:
            self._decoder, self.sent = None, request
        if request.options.is_small:
            self.sent = with_token_limit(self.sent)
        if learned is not None and not learned.gives_summaries(bare):
            self.sent = without_summary(self.sent)
        if learned is None:
            return []
        self.sent = with_fields(self.sent, learned.refused_fields(bare), learned.required_fields(bare))
        notices: list[NoticeData] = [*learned.notice_thinking(self.sent)]
        if is_text and bare == request.model:
            notices += learned.notice_text_tools(request)
        if not learned.takes_temperature(self.sent):
            notices += learned.notice_temperature(self.sent)
            self.sent = without_temperature(self.sent)
        return self._notices(notices)

    def _step(self, step: RecoveryStep, failed: _Failed) -> list[ModelEvent] | None:
        """Return None if the step does not apply."""
        match step:
            case "retry":
                return self._try_again(failed)
            case "text_tools":
                return self._try_text_tools()
            case "no_result_pictures":
                return self._try_without_result_pictures()
            case "no_temperature":
                return self._try_without_temperature()
            case "no_summary":
                return self._try_without_summary()
            case "no_thoughts":
                return self._try_without_thoughts()
            case "no_field":
                return self._try_without_field(failed)
            case "with_field":
                return self._try_with_field(failed)
            case "other_model":
                return self._try_other_model(failed)
            case _:
                assert_never(step)

    def _try_again(self, failed: _Failed) -> list[ModelEvent] | None:
        if failed.failure is None:
            return None
        self.delay_s = self._retry.delay(self._number, failed.failure)
        if self.delay_s is None:
            return None
        self._has_shown_parts = False
        partial = replace(failed.end.message, stop_reason="stop", error=None)
        return self._decoded(Retry(self._number, self._retry.attempts, self.delay_s, failed.failure.short, partial))

    def _try_text_tools(self) -> list[ModelEvent] | None:
        learned = self.source.learned
        if learned is None or self._decoder is not None or not self.sent.tools:
            return None
        notices = learned.refuse_tools(self.sent.model)
        return [*self._notices(notices), *self._adapt()]

    def _try_without_result_pictures(self) -> list[ModelEvent] | None:
        learned = self.source.learned
        if learned is None or self._omits_pictures or not has_result_pictures(self._model_request):
            return None
        learned.refuse_pictures(self._model_request.model.removeprefix(REACT))
        return self._adapt()

    def _try_without_temperature(self) -> list[ModelEvent] | None:
        learned = self.source.learned
        if learned is None or self.sent.options.temperature is None:
            return None
        learned.refuse_temperature(self.sent)
        return self._adapt()

    def _try_without_summary(self) -> list[ModelEvent] | None:
        learned = self.source.learned
        if learned is None or not self.sent.options.thinking_summary:
            return None
        learned.refuse_summary(self.sent.model)
        return self._adapt()

    def _try_without_thoughts(self) -> list[ModelEvent] | None:
        if not has_signed_thoughts(self._model_request):
            return None
        self._model_request = without_thoughts(self._model_request)
        return self._adapt()

    def _try_without_field(self, failed: _Failed) -> list[ModelEvent] | None:
        learned, failure = self.source.learned, failed.failure
        if learned is None or failure is None or not learned.refuse_field(self.sent.model, failure.fields):
            return None
        return self._adapt()

    def _try_with_field(self, failed: _Failed) -> list[ModelEvent] | None:
        learned, failure = self.source.learned, failed.failure
        if learned is None or failure is None or not learned.require_field(self.sent.model, failure.fields):
            return None
        return self._adapt()

    def _try_other_model(self, failed: _Failed) -> list[ModelEvent]:
        """Switch to the next model unless part of this reply was shown; otherwise the failure ends the reply."""
        *events, end = self._decoded(failed.end)
        assert isinstance(end, ReplyEnd), "a reply ends with its message"
        if self._has_shown_parts or events or self._cancel.is_set:
            self.is_over = True
            return [*events, end]
        self._models.cooldown.failed(self._model_request.model, time.monotonic() - self._began)
        self._ends.append(end)
        return self.next_model()

    def _with_size(self, failure: AttemptFailure) -> AttemptFailure:
        """Return the failure, as "too long" if the numbers in it are those of the request, whatever the words."""
        if failure.kind not in (FailureKind.REJECTED, FailureKind.RATE_LIMITED):
            return failure
        tokens = estimate(self.sent, ()).input_tokens
        if not is_too_long_by_numbers(failure.status, failure.refusal, tokens):
            return failure
        return replace(too_long(failure.refusal[:_MAX_QUOTED]), status=failure.status, refusal=failure.refusal)

    def _refused_size(self, failure: AttemptFailure) -> RefusedSize | None:
        """Return the sizes in a refusal of a request as too long; the window is known from then on."""
        if failure.kind is not FailureKind.TOO_LONG:
            return None
        count, window = stated_sizes(failure.refusal, estimate(self.sent, ()).input_tokens)
        if window is None:
            return None
        model_facts.register_window(self.sent.model, window, self.source.address)
        return RefusedSize(count, window)

    def _with_total_usage(self, message: AssistantMessage) -> AssistantMessage:
        """Return the message with its own usage and that of all attempts before, if they began."""
        if not self.source.estimates_usage:
            own = message.usage
        elif self._has_begun or message.usage != Usage():
            own = usage_or_estimate(self.sent, message)
        else:
            own = Usage()
        self._usage = add_usage(self._usage, own)
        return with_usage(message, self._usage)

    def _decoded(self, event: ModelEvent) -> list[ModelEvent]:
        return self._with_own_tokens([event] if self._decoder is None else self._decoder.take(event))

    def _with_own_tokens(self, events: list[ModelEvent]) -> list[ModelEvent]:
        """Return the events with the finished reply as the model means it; parts of it show the marks of tokens."""
        if not self.source.finds_tokens:
            return events
        return [_with_own_tokens(event) if isinstance(event, ReplyEnd) else event for event in events]

    def _cut(self) -> list[ModelEvent]:
        """Return the end of a text reply that has come to its limits."""
        cut = self._with_own_tokens(self._decoder.cut()) if self._decoder is not None else []
        self.is_over = self.is_over or bool(cut)
        return [_with_earlier_usage(event, self._usage) for event in cut]

    def _notices(self, notices: Iterable[NoticeData]) -> list[ModelEvent]:
        return [ModelNotice(data, AssistantMessage(model=self._model_request.model)) for data in notices]


def _with_own_tokens(end: ReplyEnd) -> ReplyEnd:
    message = without_marks(end.message)
    return replace(end, message=message, call_text=end.message.text)


def _with_earlier_usage(event: ModelEvent, earlier: Usage) -> ModelEvent:
    if not isinstance(event, ReplyEnd):
        return event
    return replace(event, message=with_usage(event.message, add_usage(earlier, event.message.usage)))


async def _is_set_within(stop: CancelSignal, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return False
    return True
