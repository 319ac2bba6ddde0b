"""Features combined: the order of each hook, what ends a chain, and where a repeated call begins."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

import pytest

from errand.engine.agent.history.attachments import load_images
from errand.engine.agent.loop.events import TurnStart
from errand.engine.agent.loop.features import Feature, RepeatRequest, emit_of, hooks_of, stream_of
from errand.engine.agent.loop.hooks import (
    NOT_STARTED,
    FinishedCall,
    FinishedTurn,
    NextTurn,
    PendingCall,
    ResultChange,
    ToolRefusal,
    TurnDecision,
)
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage, Text, ToolCall, UserMessage, user_text
from errand.engine.models.base import ModelEvent, ModelRequest, ReplyEnd, Retry
from errand.engine.tools.control.task_messages import SendUpdate
from errand.engine.tools.results import ToolResult

REQUEST = ModelRequest("m", "", ())
PENDING = PendingCall(AssistantMessage(), ToolCall("c", "send_update", {}), SendUpdate(), {})
TURN = FinishedTurn(AssistantMessage(), (), (), ())
RETRY = Retry(1, 2, 3.0, "limit", AssistantMessage())


def with_prompt(request: ModelRequest, name: str) -> ModelRequest:
    return replace(request, system_prompt=request.system_prompt + name)


class EchoModel:
    """Replies with the system prompt that it got; `prompts` collects them."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        self.prompts.append(request.system_prompt)
        yield ReplyEnd(AssistantMessage((Text(request.system_prompt),)))

    async def close(self) -> None:
        pass


@dataclass
class Named(Feature):
    """Implements every hook: writes its name into what passes and into the shared `trace`."""

    name: str
    trace: list[str]
    replaces: AssistantMessage | None = None
    repeats: list[RepeatRequest] = field(default_factory=list[RepeatRequest])
    cancels: bool = False
    blocks: ToolRefusal | ToolResult | None = None
    decides: TurnDecision | None = None

    async def on_event(self, event: object) -> None:
        self.trace.append(f"event {self.name}")

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest | AssistantMessage:
        self.trace.append(f"before {self.name}")
        if self.cancels:
            cancel.set()
        return with_prompt(request, self.name) if self.replaces is None else self.replaces

    async def after_reply(
        self, request: ModelRequest, sent: ModelRequest, end: ReplyEnd, cancel: CancelSignal
    ) -> ReplyEnd | RepeatRequest:
        self.trace.append(f"after {self.name} {request.system_prompt!r} {sent.system_prompt!r}")
        return self.repeats.pop() if self.repeats else end

    async def before_tool_call(
        self, pending: PendingCall, cancel: CancelSignal
    ) -> PendingCall | ToolRefusal | ToolResult:
        self.trace.append(f"call {self.name} {pending.arguments}")
        if self.cancels:
            cancel.set()
        return self.blocks or replace(pending, arguments={**pending.arguments, self.name: 1})

    async def after_tool_call(self, finished: FinishedCall, cancel: CancelSignal) -> ToolResult:
        return replace(finished.result, summary=finished.result.summary + self.name)

    async def finish_turn(self, turn: FinishedTurn, cancel: CancelSignal) -> TurnDecision | None:
        self.trace.append(f"turn {self.name}")
        return self.decides

    async def prepare_next_turn(self, turn: FinishedTurn, cancel: CancelSignal) -> tuple[UserMessage, ...]:
        return (user_text(self.name),)


async def events_of(
    features: tuple[Feature, ...], model: EchoModel, cancel: CancelSignal | None = None
) -> list[ModelEvent]:
    return [event async for event in stream_of(features, model)(REQUEST, cancel or CancelSignal())]


async def test_requests_pass_features_in_order_and_replies_in_reverse() -> None:
    trace: list[str] = []
    model = EchoModel()

    events = await events_of((Named("a", trace), Named("b", trace)), model)

    assert events == [ReplyEnd(AssistantMessage((Text("ab"),)))]
    assert trace == ["before a", "before b", "after b 'a' 'ab'", "after a '' 'ab'"]


async def test_repeated_request_starts_at_the_feature_that_asked_for_it() -> None:
    trace: list[str] = []
    model = EchoModel()
    features = (
        Named("a", trace),
        Named("b", trace, repeats=[RepeatRequest(RETRY)]),
        Named("c", trace, repeats=[RepeatRequest()]),
    )

    events = await events_of(features, model)

    assert events == [RETRY, ReplyEnd(AssistantMessage((Text("abc"),)))]
    assert model.prompts == ["abc"] * 3
    assert trace == [
        *("before a", "before b", "before c", "after c 'ab' 'abc'"),
        *("before c", "after c 'ab' 'abc'", "after b 'a' 'abc'"),
        *("before b", "before c", "after c 'ab' 'abc'", "after b 'a' 'abc'", "after a '' 'abc'"),
    ]


async def test_message_of_a_feature_replaces_the_call_and_passes_only_earlier_features() -> None:
    trace: list[str] = []
    model = EchoModel()
    replacement = AssistantMessage((Text("known"),))

    events = await events_of((Named("a", trace), Named("b", trace, replaces=replacement), Named("c", trace)), model)

    assert (events, model.prompts) == ([ReplyEnd(replacement)], [])
    assert trace == ["before a", "before b", "after a '' 'a'"]


async def test_after_a_cancel_no_feature_is_called_and_no_request_is_sent() -> None:
    trace: list[str] = []
    model = EchoModel()
    features = (Named("a", trace, cancels=True), Named("b", trace))

    (end,) = await events_of(features, model)

    assert isinstance(end, ReplyEnd) and end.message.stop_reason == "aborted"
    assert model.prompts == [] and trace == ["before a", "after a '' 'a'"]
    trace.clear()
    assert await hooks_before(features) == NOT_STARTED
    assert trace == ["call a {}"]


async def hooks_before(features: tuple[Feature, ...]) -> ToolRefusal | ToolResult | None:
    ask = hooks_of(features, load_images).before_tool_call
    assert ask is not None
    return await ask(PENDING, CancelSignal())


@pytest.mark.parametrize("answer", [ToolRefusal("no"), ToolResult((), summary="known")])
async def test_first_refusal_or_result_for_a_call_wins(answer: ToolRefusal | ToolResult) -> None:
    trace: list[str] = []

    outcome = await hooks_before((Named("a", trace), Named("b", trace, blocks=answer), Named("c", trace)))

    assert outcome == answer and trace == ["call a {}", "call b {'a': 1}"]


async def test_call_passed_by_all_features_runs() -> None:
    assert await hooks_before((Named("a", []), Named("b", []))) is None


async def test_results_are_changed_in_order_and_an_unchanged_one_is_not_replaced() -> None:
    result = ToolResult((Text("x"),), {"k": 1}, "", is_error=True)
    finished = FinishedCall(PENDING, result)
    changed = hooks_of((Named("a", []), Feature(), Named("b", [])), load_images).after_tool_call
    unchanged = hooks_of((Feature(),), load_images).after_tool_call
    assert changed is not None and unchanged is not None

    assert await changed(finished, CancelSignal()) == ResultChange(
        result.content, result.details, "ab", True, False, ()
    )
    assert await unchanged(finished, CancelSignal()) is None


@pytest.mark.parametrize(
    ("decisions", "asked", "expected"),
    [
        ((None, None), ["turn a", "turn b"], None),
        (("continue", None), ["turn a", "turn b"], "continue"),
        (("continue", "end"), ["turn a", "turn b"], "end"),
        (("end", "continue"), ["turn a"], "end"),
    ],
)
async def test_end_takes_precedence_over_continue(
    decisions: tuple[TurnDecision | None, TurnDecision | None], asked: list[str], expected: TurnDecision | None
) -> None:
    trace: list[str] = []
    first, second = decisions
    ask = hooks_of((Named("a", trace, decides=first), Named("b", trace, decides=second)), load_images).finish_turn
    assert ask is not None

    assert await ask(TURN, CancelSignal()) == expected
    assert trace == asked


async def test_messages_of_all_features_start_the_next_turn() -> None:
    ask = hooks_of((Named("a", []), Feature(), Named("b", [])), load_images).prepare_next_turn
    nothing = hooks_of((Feature(),), load_images).prepare_next_turn
    assert ask is not None and nothing is not None

    assert await ask(TURN, CancelSignal()) == NextTurn(add=(user_text("a"), user_text("b")))
    assert await nothing(TURN, CancelSignal()) is None


async def test_events_reach_only_the_features_that_listen() -> None:
    trace: list[str] = []

    await emit_of((Named("a", trace), Feature(), Named("b", trace)))(TurnStart())

    assert trace == ["event a", "event b"]
