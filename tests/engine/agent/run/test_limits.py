"""Limits of a task: near, reached, and the resulting texts and asks."""

from pathlib import Path

import pytest

from errand.engine.agent.run.limits import TaskLimits, limit_uses, near_limits
from errand.engine.core.errors import InvalidParams
from errand.protocol.asks import AskAnswerParams, ReachedLimit
from errand.protocol.blocks import NoticeBlock
from errand.protocol.conversations import Node
from errand.protocol.notices import LimitReached
from errand.protocol.tasks.groups import Allowance, ApproveMode
from errand.protocol.usage import Usage
from errand.text.notice_text import notice_text, share_text
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply

_LIMITS = TaskLimits(10, 30.0, 2.0, 1000)


def _updates(count: int) -> list[Reply]:
    return [Reply(calls=(Call("send_update", {"message": str(number)}),)) for number in range(count)]


def _warnings(nodes: list[Node]) -> list[str]:
    blocks = [block for node in nodes for block in node.blocks]
    return [notice_text(block) for block in blocks if isinstance(block, NoticeBlock) and block.kind == "warning"]


def test_limit_is_near_at_eighty_percent() -> None:
    assert near_limits(limit_uses(_LIMITS, 7, 23 * 60.0, Usage(cost_usd=1.59, input_tokens=799))) == ()
    near_uses = near_limits(limit_uses(_LIMITS, 8, 24 * 60.0, Usage(cost_usd=1.6, input_tokens=700, output_tokens=100)))
    shares = ["8 of 10 turns", "24 of 30 minutes", "$1.60 of $2.00", "800 of 1,000 tokens"]
    assert [share_text(used.share) for used in near_uses] == shares


def test_usage_without_a_limit_is_never_near() -> None:
    assert near_limits(limit_uses(TaskLimits(10), 1, 1e9, Usage(cost_usd=1e9, input_tokens=10**9))) == ()


@pytest.mark.parametrize(
    ("approve", "attended", "end"),
    [("ask", True, "asks you"), ("all", True, "asks you"), ("all", False, "stops")],
)
async def test_near_limit_is_reported_once(tmp_path: Path, approve: ApproveMode, attended: bool, end: str) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[*_updates(9), DONE])) as engine:
        task = await engine.watcher.end((await engine.start(max_turns=10, approve=approve, attended=attended)).id)
        assert (task.activity.status, task.budget.near) == ("completed", ("turns",))
        assert _warnings(engine.watcher.nodes()) == [f"Used 8 of 10 turns. The task {end} at the limit."]


async def test_raised_limit_is_reported_again_when_it_is_near_again(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[*_updates(9), DONE])) as engine:
        started = await engine.start(max_turns=5, approve="ask")
        ask = await engine.watcher.ask(started.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        await engine.watcher.end(started.id)
        near_at = [task.budget.near for task in engine.watcher.tasks(started.id) if task.progress.step_count == 6]
        assert near_at[-1] == ()
        first_sentences = [text.partition(".")[0] for text in _warnings(engine.watcher.nodes())]
        assert first_sentences == ["Used 4 of 5 turns", "Used 8 of 10 turns"]


async def test_token_limit_can_be_raised_to_a_chosen_number(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[*_updates(4), DONE])) as engine:
        engine.services.settings.set("max_tokens", 200)
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        assert (ask.text, ask.limit) == (
            "The limit of 200 tokens is reached. Go on?",
            ReachedLimit(kind="tokens", used=240, limit=200, adds=200),
        )
        asks = engine.services.asks
        for amount in (240, -1, 300.5, float("inf"), float("nan")):
            with pytest.raises(InvalidParams):
                await asks.answer(AskAnswerParams(ask_id=ask.id, allow=True, amount=amount), "me")
        answer = await asks.answer(AskAnswerParams(ask_id=ask.id, allow=True, amount=100_000), "me")
        assert (answer.won, answer.ask.amount) == (True, 100_000)
        ended = await engine.watcher.end(started.id)
        assert (ended.activity.status, ended.budget.allowance) == (
            "completed",
            Allowance(turns=50, minutes=30, tokens=100_000),
        )


async def test_unattended_task_ends_at_its_token_limit(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[*_updates(4), DONE])) as engine:
        engine.services.settings.set("max_tokens", 300)
        task = await engine.watcher.end((await engine.start()).id)
        assert (task.activity.status, task.outcome.stop_reason, task.progress.step_count) == (
            "cancelled",
            "token_limit",
            3,
        )
        notice = NoticeBlock(kind="limit", data=LimitReached(limit="tokens", value=300))
        assert engine.watcher.nodes()[-1].blocks == (notice,)


async def test_amount_is_refused_for_an_ask_without_a_raisable_limit(tmp_path: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with engine_parts(tmp_path, ModelServer(turns=[question, DONE])) as engine:
        started = await engine.start(attended=True)
        ask = await engine.watcher.ask(started.id)
        with pytest.raises(InvalidParams):
            await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text="Blue", amount=7), "me")
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text="Blue"), "me")
        await engine.watcher.end(started.id)
