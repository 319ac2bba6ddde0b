"""The temperature of a request: the configured one, or none if a model would refuse it or has refused it."""

from collections.abc import AsyncGenerator

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage, Text
from errand.engine.models.base import AttemptEvent, ModelNotice, ModelOptions, ModelRequest, ReplyEnd
from errand.engine.models.failures import FailureKind, failure_from_response
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.request_adaptation import LearnedLimits, accepts_temperature
from errand.engine.models.recovery.source import ModelSource
from errand.protocol.agents import ThinkingLevel
from errand.text.notice_text import data_text


def asked(model: str, level: ThinkingLevel = "off", session: str | None = "conv_1") -> ModelRequest:
    options = ModelOptions(thinking_level=level, temperature=0.3, session_id=session)
    return ModelRequest(model, "", (), options=options)


@pytest.mark.parametrize(
    ("model", "level", "taken"),
    [
        ("openai/gpt-4.1", "off", True),
        ("openai/gpt-5.4", "off", False),
        ("openai/gpt-5-chat-latest", "off", True),
        ("openai/o3", "off", False),
        ("openrouter/openai/o4-mini", "off", False),
        ("openai_compatible/o1-mini", "off", False),
        ("openai_compatible/olmo", "off", True),
        ("anthropic/claude-sonnet-4-5", "off", True),
        ("anthropic/claude-sonnet-4-5", "medium", False),
        ("openai/gpt-4.1", "medium", True),
    ],
)
def test_whether_a_temperature_is_accepted_depends_on_thinking(model: str, level: ThinkingLevel, taken: bool) -> None:
    assert accepts_temperature(asked(model, level)) == taken


@pytest.mark.parametrize(
    "refusal",
    [
        "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) is.",
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "`temperature` may only be set to 1 when thinking is enabled.",
        "`temperature` is deprecated for this model.",
        "temperature: range: 0..1",
        "invalid temperature: only 1 is allowed for this model",
    ],
)
def test_refusals_of_a_temperature_are_recognised(refusal: str) -> None:
    body = b'{"error": {"message": "%s"}}' % refusal.encode()
    assert failure_from_response("Some provider", 400, {}, body).kind is FailureKind.NO_TEMPERATURE
    assert failure_from_response("Some provider", 500, {}, body).kind is not FailureKind.NO_TEMPERATURE


def test_other_refusals_are_not_taken_for_refusals_of_a_temperature() -> None:
    body = b'{"error": "The temperature of Rome was asked for"}'
    assert failure_from_response("Some provider", 400, {}, body).kind is not FailureKind.NO_TEMPERATURE


class Picky:
    """A provider whose models refuse any temperature."""

    def __init__(self) -> None:
        self.asked: list[float | None] = []

    async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        self.asked.append(request.options.temperature)
        if request.options.temperature is not None:
            yield ReplyEnd(AssistantMessage((), "error", "refused"), failure=FailureKind.NO_TEMPERATURE)
        else:
            yield ReplyEnd(AssistantMessage((Text("Hi."),), model=request.model))


def around(provider: Picky) -> RecoveringModel:
    return RecoveringModel(ModelSource(provider, LearnedLimits()))


async def told(model: RecoveringModel, request: ModelRequest) -> list[str]:
    """The text of a reply, including notices."""
    texts: list[str] = []
    async for event in model.stream(request, CancelSignal()):
        match event:
            case ModelNotice(data=data):
                texts.append(data_text(data))
            case ReplyEnd(message=message):
                texts.append(message.text)
            case _:
                pass
    return texts


async def test_refused_temperature_is_omitted_afterwards_with_one_notice_per_conversation() -> None:
    picky = Picky()
    model = around(picky)
    notice = "The temperature 0.3 was not sent: local/olmo does not support it."
    assert [await told(model, asked("local/olmo")) for _ in range(2)] == [[notice, "Hi."], ["Hi."]]
    assert await told(model, asked("local/olmo", session="conv_2")) == [notice, "Hi."]
    assert picky.asked == [0.3, None, None, None]


async def test_temperature_known_to_be_refused_is_not_sent() -> None:
    picky = Picky()
    model = around(picky)
    assert await told(model, asked("openai/o3")) == [
        "The temperature 0.3 was not sent: openai/o3 does not support it.",
        "Hi.",
    ]
    (notice, _) = await told(model, asked("anthropic/claude-sonnet-4-5", "high"))
    assert notice == "The temperature 0.3 was not sent: thinking models use their own."
    assert picky.asked == [None, None]


async def test_refusal_of_a_temperature_that_was_not_sent_is_an_ordinary_error() -> None:
    class Confused(Picky):
        async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
            yield ReplyEnd(AssistantMessage((Text("no"),), "error", "refused"), failure=FailureKind.NO_TEMPERATURE)

    assert await told(around(Confused()), ModelRequest("local/olmo", "", ())) == ["no"]
