"""Limits of a task: what is near, what is reached, and what people are told and asked."""

from pathlib import Path

import pytest

from app.engine.agent.limits import Limits, near
from app.protocol.asks import AskAnswerParams
from app.protocol.blocks import NoticeBlock
from app.protocol.conversations import Node
from app.protocol.tasks import ApproveMode
from app.protocol.usage import Usage
from tests.support.engine_parts import engine_parts
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.task_replies import DONE

_LIMITS = Limits(10, 30.0, 2.0)


def _updates(count: int) -> list[Reply]:
    return [Reply(calls=(Call("send_update", {"message": str(number)}),)) for number in range(count)]


def _warnings(nodes: list[Node]) -> list[str]:
    blocks = [block for node in nodes for block in node.blocks]
    return [block.text for block in blocks if isinstance(block, NoticeBlock) and block.kind == "warning"]


def test_a_limit_is_near_from_four_fifths_on() -> None:
    assert near(_LIMITS, 7, 23 * 60.0, Usage(cost_usd=1.59)) == {}
    assert near(_LIMITS, 8, 24 * 60.0, Usage(cost_usd=1.6)) == {
        "turns": "8 of 10 turns",
        "minutes": "24 of 30 minutes",
        "money": "$1.60 of $2.00",
    }


def test_what_has_no_limit_is_never_near() -> None:
    assert near(Limits(10, None, None), 1, 1e9, Usage(cost_usd=1e9)) == {}


@pytest.mark.parametrize(("approve", "end"), [("ask", "it will ask you"), ("all", "it will stop")])
async def test_a_limit_that_is_near_is_told_once(tmp_path: Path, approve: ApproveMode, end: str) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[*_updates(9), DONE])) as engine:
        task = await engine.watcher.end((await engine.start(max_turns=10, approve=approve)).id)
        assert (task.status, task.near) == ("completed", ("turns",))
        assert _warnings(engine.watcher.nodes()) == [f"It has used 8 of 10 turns; at the limit {end}."]


async def test_a_limit_that_was_raised_is_no_longer_near_and_told_of_when_it_is_again(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[*_updates(9), DONE])) as engine:
        started = await engine.start(max_turns=5, approve="ask")
        ask = await engine.watcher.ask(started.id)
        await engine.services.runner.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        await engine.watcher.end(started.id)
        near_at = [task.near for task in engine.watcher.tasks(started.id) if task.step_count == 6]
        assert near_at[-1] == ()
        told = [text.partition(";")[0] for text in _warnings(engine.watcher.nodes())]
        assert told == ["It has used 4 of 5 turns", "It has used 8 of 10 turns"]
