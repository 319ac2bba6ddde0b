"""Pictures of tools for a model that turns out to refuse pictures: it gets a text in their place."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import (
    AssistantMessage,
    Image,
    ModelMessage,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
    user_text,
)
from errand.engine.models.base import AttemptEvent, ModelRequest, ReplyEnd
from errand.engine.models.failures import FailureKind, failure_from_response
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.request_adaptation import LearnedLimits
from errand.engine.models.recovery.source import ModelSource
from tests.support.model_replies import collect

PICTURE = Image("image/png", "AAAA")
CALL = AssistantMessage((ToolCall("a", "look", {}),), "tool_use")


@dataclass(slots=True)
class Blind:
    """A provider whose models refuse any picture; `sent` are the requests."""

    sent: list[ModelRequest] = field(default_factory=list[ModelRequest])

    async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        self.sent.append(request)
        if any(isinstance(block, Image) for message in request.messages for block in message.content):
            yield ReplyEnd(AssistantMessage((), "error", "refused"), failure=FailureKind.NO_PICTURES)
        else:
            yield ReplyEnd(AssistantMessage((Text("Hi."),), model=request.model))


async def reply_to(provider: Blind, learned: LearnedLimits, *messages: ModelMessage) -> AssistantMessage:
    request = ModelRequest("test/blind", "", messages)
    end = (await collect(RecoveringModel(ModelSource(provider, learned)), request))[-1]
    assert isinstance(end, ReplyEnd)
    return end.message


async def test_refused_pictures_of_tools_are_replaced_by_a_text_once_and_for_all() -> None:
    provider, learned = Blind(), LearnedLimits()
    messages = (user_text("look"), CALL, ToolResultMessage("a", "look", (Text("Seen."), PICTURE)))
    for _ in range(2):
        assert (await reply_to(provider, learned, *messages)).text == "Hi."
    assert len(provider.sent) == 3
    assert text_of(provider.sent[1].messages[-1]) == "Seen.\n[A picture stood here, which this model cannot see.]"


async def test_refused_picture_of_a_person_is_reported() -> None:
    provider = Blind()
    reply = await reply_to(provider, LearnedLimits(), UserMessage((Text("what is it?"), PICTURE)))
    assert (reply.error, len(provider.sent)) == ("refused", 1)


def test_refusal_of_pictures_is_recognised() -> None:
    body = b'{"error": {"message": "This model does not support image input"}}'
    assert failure_from_response("Some provider", 400, {}, body).kind is FailureKind.NO_PICTURES
