"""The steps after each kind of failure, up to the end of the reply."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from typing import assert_never

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage, Text
from errand.engine.models.base import AttemptEvent, BlockDelta, ModelOptions, ModelRequest, ReplyEnd, ReplyStart, Retry
from errand.engine.models.failures import AttemptFailure, FailedAttempt, FailureKind
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.fallback import FallbackModels
from errand.engine.models.recovery.request_adaptation import LearnedLimits
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.recovery.source import ModelSource
from tests.support.model_replies import collect, request_for

FIRST, OTHER = "test/first", "test/other"
TWICE = RetryPolicy(attempts=2, first_delay_s=0.001)
WHOLE, TEXT, BARE, NO_SUMMARY, FIELD = "whole", "tools as text", "no temperature", "no summary", "other fields"


@dataclass(slots=True)
class Failing:
    """Every attempt at `FIRST` fails in one way; `says` is the text streamed before. Other models reply."""

    kind: FailureKind
    says: str = ""
    sent: list[str] = field(default_factory=list[str])

    async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        if request.model != FIRST:
            self.sent.append("other model")
            yield ReplyEnd(AssistantMessage((Text("Here."),), model=request.model))
            return
        options = request.options
        form = FIELD if options.left_out | options.required else WHOLE if options.thinking_summary else NO_SUMMARY
        self.sent.append(TEXT if not request.tools else BARE if options.temperature is None else form)
        partial = AssistantMessage((Text(self.says),) if self.says else (), model=request.model)
        if self.says:
            yield ReplyStart(AssistantMessage(model=request.model))
            yield BlockDelta("text", 0, self.says, partial)
        yield FailedAttempt(AttemptFailure("It failed.", "failed", self.kind, fields=("store",)), partial)

    def model(self, *others: str) -> RecoveringModel:
        source = ModelSource(self, LearnedLimits())
        return RecoveringModel(FallbackModels(source, lambda: others, lambda _: source), TWICE)


def steps_after(kind: FailureKind) -> list[str]:
    """The attempts, if each fails in this way and there is another model."""
    match kind:
        case FailureKind.RATE_LIMITED | FailureKind.UNAVAILABLE:
            return [WHOLE, WHOLE, "other model"]
        case FailureKind.NO_TOOLS:
            return [WHOLE, TEXT, "other model"]
        case FailureKind.NO_TEMPERATURE:
            return [WHOLE, BARE, "other model"]
        case FailureKind.NO_SUMMARY:
            return [WHOLE, NO_SUMMARY, "other model"]
        case FailureKind.NO_FIELD | FailureKind.NEEDS_FIELD:
            return [WHOLE, FIELD, "other model"]
        case FailureKind.NO_PICTURES | FailureKind.NO_THOUGHTS:  # the request has none
            return [WHOLE, "other model"]
        case FailureKind.NOT_AUTHORISED | FailureKind.NO_CREDIT | FailureKind.NOT_USABLE | FailureKind.NOT_FOUND:
            return [WHOLE, "other model"]
        case FailureKind.TOO_LONG | FailureKind.CONTENT_FILTER | FailureKind.REJECTED:
            return [WHOLE]
        case _:
            assert_never(kind)


def request() -> ModelRequest:
    return replace(request_for(FIRST), options=ModelOptions(temperature=0.3))


async def end_of(model: RecoveringModel) -> ReplyEnd:
    end = (await collect(model, request()))[-1]
    assert isinstance(end, ReplyEnd)
    return end


@pytest.mark.parametrize("kind", FailureKind)
async def test_each_kind_of_failure_is_followed_by_its_steps(kind: FailureKind) -> None:
    provider = Failing(kind)
    end = await end_of(provider.model(OTHER))
    assert provider.sent == steps_after(kind)
    if provider.sent[-1] == "other model":
        assert (end.message.text, end.message.model, end.failure) == ("Here.", OTHER, None)
    else:
        assert (end.message.error, end.message.model, end.failure) == ("It failed.", FIRST, kind)


@pytest.mark.parametrize("kind", FailureKind)
async def test_without_a_fallback_the_end_has_the_kind_of_failure(kind: FailureKind) -> None:
    provider = Failing(kind)
    end = await end_of(provider.model())
    assert provider.sent == [sent for sent in steps_after(kind) if sent != "other model"]
    tried = " (Tried 2 times.)" if provider.sent == [WHOLE, WHOLE] else ""
    assert (end.message.error, end.failure) == (f"It failed.{tried}", kind)
    assert (end.retry_later is not None) == (kind is FailureKind.RATE_LIMITED)


@pytest.mark.parametrize("kind", FailureKind)
async def test_no_fallback_after_something_was_shown(kind: FailureKind) -> None:
    provider = Failing(kind, says="So far")
    end = await end_of(provider.model(OTHER))
    assert provider.sent == [sent for sent in steps_after(kind) if sent != "other model"]
    assert (end.message.text, end.failure) == ("So far", kind)


async def test_failure_reported_by_a_proxy_is_not_retried() -> None:
    class Proxy(Failing):
        async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
            self.sent.append(request.model)
            yield ReplyEnd(AssistantMessage((), "error", "Down.", request.model), failure=self.kind)

    provider = Proxy(FailureKind.UNAVAILABLE)
    events = await collect(provider.model(OTHER), request())
    assert provider.sent == [FIRST, OTHER]
    assert [event for event in events if isinstance(event, Retry)] == []


async def test_usage_of_every_attempt_adds_up_in_the_end() -> None:
    provider = Failing(FailureKind.UNAVAILABLE, says="twelve chars")
    end = await end_of(provider.model())
    assert (end.message.usage.output_tokens, end.message.usage.estimated) == (2 * 3, True)
