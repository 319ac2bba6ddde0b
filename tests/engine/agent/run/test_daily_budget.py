"""Daily limits: on all tasks together, from the first call of each."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from errand.engine.storage.records import turns
from errand.protocol.asks import AskAnswerParams
from errand.protocol.blocks import NoticeBlock
from errand.protocol.notices import LimitReached
from errand.protocol.usage import Usage
from errand.text.notice_text import notice_text
from tests.support.engine_parts import crash, engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply

_HI = Reply(calls=(Call("send_update", {"message": "hi"}),))
_TEXT = "The daily limit of 100 tokens is reached."


async def test_task_started_after_the_daily_budget_is_used_up_asks_before_its_first_call(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[DONE, DONE])) as engine:
        await engine.watcher.end((await engine.start()).id)
        engine.services.settings.set("day_max_tokens", 100)
        second = await engine.start(approve="ask")
        ask = await engine.watcher.ask(second.id)
        assert (ask.text, len(engine.model.requests)) == (f"{_TEXT} Go on?", 1)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True, amount=1000), "me")
        assert (await engine.watcher.end(second.id)).activity.status == "completed"


async def test_one_answer_raises_the_daily_limit_for_all_tasks(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[_HI, DONE])) as engine:
        await engine.watcher.end((await engine.start()).id)
        engine.services.settings.set("day_max_tokens", 100)
        started = [await engine.start(approve="ask") for _ in range(3)]
        asks = [await engine.watcher.ask(task.id) for task in started]
        await engine.services.asks.answer(AskAnswerParams(ask_id=asks[0].id, allow=True, amount=10_000), "me")
        assert {(await engine.watcher.end(task.id)).activity.status for task in started} == {"completed"}
        assert await engine.services.database.asks.waiting() == ()


async def test_refused_daily_limit_stops_only_its_own_task(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[DONE])) as engine:
        await engine.watcher.end((await engine.start()).id)
        engine.services.settings.set("day_max_tokens", 100)
        first, second = [await engine.start(approve="ask") for _ in range(2)]
        ask, other = [await engine.watcher.ask(task.id) for task in (first, second)]
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=False), "me")
        ended = await engine.watcher.end(first.id)
        assert (ended.activity.status, ended.outcome.stop_reason) == ("cancelled", "day_limit")
        assert await engine.services.database.asks.waiting() == (other,)
        await engine.services.runner.stop(second.id, "me")
        assert (await engine.watcher.end(second.id)).outcome.stop_reason == "manual_stop"


async def test_unattended_task_ends_at_the_daily_limit_also_after_a_restart(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[_HI, DONE])) as engine:
        engine.services.settings.set("day_max_tokens", 100)
        task = await engine.watcher.end((await engine.start()).id)
        assert (task.activity.status, task.outcome.stop_reason, task.progress.step_count) == (
            "cancelled",
            "day_limit",
            1,
        )
        notice = NoticeBlock(kind="limit", data=LimitReached(limit="day_tokens", value=100))
        assert (engine.watcher.nodes()[-1].blocks, notice_text(notice)) == ((notice,), _TEXT)
        port = crash(engine, tmp_path / "after")
    async with engine_parts(tmp_path / "after", ModelServer(port=port)) as engine:
        engine.services.settings.set("day_max_tokens", 100)
        task = await engine.watcher.end((await engine.start()).id)
        assert (task.outcome.stop_reason, task.progress.step_count, engine.model.requests) == ("day_limit", 0, [])


async def test_a_limit_allowed_while_the_task_was_interrupted_counts_after_its_resume(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[_HI])) as engine:
        engine.services.settings.set("day_max_tokens", 100)
        task = await engine.start(approve="ask")
        ask = await engine.watcher.ask(task.id)
        port = crash(engine, tmp_path / "after")
    async with engine_parts(tmp_path / "after", ModelServer(replies=[DONE], port=port)) as engine:
        engine.services.settings.set("day_max_tokens", 100)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True, amount=1000), "me")
        await engine.services.runner.resume(task.id)
        assert (await engine.watcher.end(task.id)).activity.status == "completed"
        assert len(engine.model.requests) == 1


async def test_usage_of_the_day_before_does_not_count(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[DONE])) as engine:
        old = await engine.watcher.end((await engine.start()).id)
        before = datetime.now(UTC) - timedelta(days=1)
        engine.services.database.journal.put(
            turns.started(old.conversation_id, old.id, 1, old.request.model, before),
            turns.finished(old.id, 1, "complete", Usage(input_tokens=5000), before),
        )
        engine.services.settings.set("day_max_tokens", 4000)
        assert (await engine.watcher.end((await engine.start()).id)).activity.status == "completed"


async def test_usage_while_the_clock_was_ahead_counts_for_the_day_that_it_showed(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[DONE])) as engine:
        old = await engine.watcher.end((await engine.start()).id)
        ahead = datetime.now(UTC) + timedelta(days=300)
        engine.services.database.journal.put(
            turns.started(old.conversation_id, old.id, 1, old.request.model, ahead),
            turns.finished(old.id, 1, "complete", Usage(input_tokens=5000), ahead),
        )
        engine.services.settings.set("day_max_tokens", 4000)
        assert (await engine.watcher.end((await engine.start()).id)).activity.status == "completed"


async def test_nearly_used_daily_budget_is_reported(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[_HI, DONE])) as engine:
        engine.services.settings.set("day_max_tokens", 140)
        task = await engine.watcher.end((await engine.start()).id)
        blocks = [block for node in engine.watcher.nodes() for block in node.blocks]
        text = "Used 120 of today's 140 tokens. The task stops at the limit."
        assert [notice_text(block) for block in blocks if isinstance(block, NoticeBlock)] == [text]
        assert task.budget.near == ("day_tokens",)
