"""Waits for limits under a clock that is set meanwhile, and how long they are repeated."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from app.engine.agent.limit_wait import LimitWait, LimitWaits
from app.engine.agent.live import LiveTask
from app.engine.cancel import CancelSignal
from app.engine.messages import AssistantMessage
from app.engine.models.base import Later, ReplyEnd, Retry
from app.protocol.events import AgentUpdate, ConversationUpdate
from tests.support import records
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import ModelServer

OFTEN = LimitWaits(look_again_s=0.02)
LATE = AssistantMessage(stop_reason="error", error="Too much.")


class Clock:
    """The real one, set forward or back."""

    off = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.off


def refused(at: datetime | None) -> ReplyEnd:
    return ReplyEnd(LATE, Later("rate limit", at))


@asynccontextmanager
async def a_task(tmp_path: Path) -> AsyncGenerator[tuple[EngineParts, LiveTask]]:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        log = engine.services.log
        log.publish(ConversationUpdate(conversation=records.conversation()))
        log.publish(AgentUpdate(agent=records.agent()))
        yield engine, LiveTask(msgspec.structs.replace(records.task(step_count=3), status="thinking"), log)


async def ends(wait: LimitWait) -> None:
    async with asyncio.timeout(2):
        await wait.over(CancelSignal())


async def shows(engine: EngineParts, condition: Callable[[datetime], bool]) -> None:
    await engine.watcher.task("t1", lambda task: task.retry_at is not None and condition(task.retry_at))


async def test_a_clock_that_is_put_back_does_not_make_a_wait_longer(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (_, live):
        clock = Clock()
        wait = LimitWait(live, OFTEN, clock)
        assert isinstance(wait.settle(refused(clock() + timedelta(seconds=0.3))), Retry)
        waiting = asyncio.create_task(ends(wait))
        await asyncio.sleep(0)
        clock.off = timedelta(hours=-5)
        await waiting
        assert (live.task.retry_at, live.task.status, live.task.step_count) == (None, "thinking", 2)


async def test_a_clock_that_is_put_back_moves_the_end_that_is_shown(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (engine, live):
        clock = Clock()
        wait = LimitWait(live, OFTEN, clock)
        wait.settle(refused(clock() + timedelta(hours=1)))
        waiting = asyncio.create_task(ends(wait))
        await shows(engine, lambda at: at > datetime.now(UTC))
        clock.off = timedelta(hours=-5)
        await shows(engine, lambda at: at < datetime.now(UTC) - timedelta(hours=3))
        wait.end()
        await waiting


async def test_a_clock_that_is_put_forward_ends_a_wait(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (engine, live):
        clock = Clock()
        wait = LimitWait(live, OFTEN, clock)
        wait.settle(refused(clock() + timedelta(hours=1)))
        waiting = asyncio.create_task(ends(wait))
        await shows(engine, lambda at: True)
        clock.off = timedelta(hours=5)
        await waiting


async def test_a_wait_of_a_time_that_is_still_to_come_is_tried_at_once(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (_, live):
        later = datetime.now(UTC) + timedelta(days=300)
        live.set(msgspec.structs.replace(live.task, retry_at=later + timedelta(hours=1), limited_at=later))
        await ends(LimitWait(live))


async def test_guessed_waits_double_and_are_counted(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (_, live):
        wait = LimitWait(live, LimitWaits(most=6))
        told = [wait.settle(refused(None)) for _ in range(7)]
        waits = [round(retry.delay_s) for retry in told if isinstance(retry, Retry)]
        assert waits == [60, 120, 240, 480, 900, 900]
        last = told[-1]
        assert isinstance(last, ReplyEnd)
        assert last.message.error == "Too much. It has waited 6 times for this limit to pass."


async def test_waits_in_a_row_last_a_day_at_most_and_a_reply_begins_a_new_day(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (_, live):
        clock = Clock()
        wait = LimitWait(live, now=clock)
        assert isinstance(wait.settle(refused(clock() + timedelta(hours=20))), Retry)
        clock.off = timedelta(hours=20)
        assert isinstance(wait.settle(refused(clock() + timedelta(hours=20))), ReplyEnd)
        wait.settle(ReplyEnd(AssistantMessage()))
        assert isinstance(wait.settle(refused(clock() + timedelta(hours=20))), Retry)
