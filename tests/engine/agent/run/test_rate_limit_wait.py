"""The wait for a rate limit is a state of the task: it has an end time, and survives the engine."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from errand.engine.agent.run.rate_limit_wait import RateLimitPolicy, RateLimitWait
from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import IllegalMove
from errand.engine.core.messages import AssistantMessage
from errand.engine.models.base import ReplyEnd, Retry, RetryLater
from errand.engine.models.recovery.retry import RetryPolicy
from errand.protocol.agents import AgentSetHeadParams
from errand.protocol.blocks import TextBlock
from errand.protocol.events import AgentUpdate, ConversationUpdate
from errand.protocol.tasks.task import Task, replace_fields
from tests.support import records
from tests.support.engine_parts import EngineParts, branch, crash, engine_parts
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply

# Every wait that the provider asks for belongs to the task, however short it is.
AT_ONCE = RetryPolicy(attempts=1, longest_asked_s=0.1)
SECOND = Reply(status=429, error="slow down", headers={"Retry-After": "1"})
HOUR = Reply(status=429, error="slow down", headers={"Retry-After": "3600"})
UPDATE = Reply(calls=(Call("send_update", {"message": "hi"}),))

OFTEN = RateLimitPolicy(look_again_s=0.02)
LATE = AssistantMessage(stop_reason="error", error="Too much.")


def waits(task: Task) -> bool:
    return task.activity.retry_at is not None and task.activity.status == "paused"


async def waiting(engine: EngineParts, api_key: str | None = "sk-for-this-run-only") -> Task:
    started = await engine.start(api_key=api_key)
    return await engine.watcher.task(started.id, waits)


async def test_rate_limited_task_waits_and_continues_by_itself(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[UPDATE, SECOND, SECOND, DONE]), AT_ONCE) as engine:
        begun = datetime.now(UTC)
        started = await engine.start()
        held = await engine.watcher.task(started.id, waits)
        assert held.activity.retry_at is not None
        assert timedelta(seconds=0.5) < held.activity.retry_at - begun < timedelta(seconds=WAIT_LIMIT_S)
        assert held.activity.detail.startswith("rate limit until ")
        ended = await engine.watcher.end(started.id)
        assert (
            ended.activity.status,
            ended.progress.step_count,
            ended.activity.retry_at,
            ended.activity.limited_at,
        ) == ("completed", 2, None, None)
        elapsed_s = (datetime.now(UTC) - begun).total_seconds()
        assert ended.activity.worked_s <= elapsed_s - 1, "two waits of a second are not its own time"
        nodes = await branch(engine, started.conversation_id)
        assert [node.status for node in nodes if node.role == "assistant"] == ["complete", "complete"]


async def test_try_now_ends_the_wait(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[HOUR, DONE])) as engine:
        held = await waiting(engine)
        assert held.activity.detail.startswith("usage limit until ")
        await engine.services.runner.try_now(held.id)
        assert (await engine.watcher.end(held.id)).activity.status == "completed"
        with pytest.raises(IllegalMove, match="does not wait for a limit"):
            await engine.services.runner.try_now(held.id)


async def test_a_stop_ends_a_waiting_task_at_once(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[HOUR])) as engine:
        held = await waiting(engine)
        await engine.services.runner.stop(held.id, "me")
        ended = await engine.watcher.end(held.id)
        assert (ended.activity.status, ended.outcome.stop_reason, ended.activity.retry_at) == (
            "cancelled",
            "manual_stop",
            None,
        )
        assert len(engine.model.requests) == 1


async def test_waiting_task_can_be_paused_and_receives_messages(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[HOUR, UPDATE, DONE])) as engine:
        held = await waiting(engine)
        runner = engine.services.runner
        assert len((await engine.say(held.id, "And be quick")).queue) == 1
        await runner.pause(held.id)
        paused = await engine.watcher.task(held.id, lambda task: task.activity.detail == "paused")
        assert paused.activity.retry_at == held.activity.retry_at
        await runner.try_now(held.id)
        await engine.watcher.task(
            held.id, lambda task: task.activity.status == "paused" and task.activity.retry_at is None
        )
        assert len(engine.model.requests) == 1
        await runner.resume(held.id)
        assert (await engine.watcher.end(held.id)).activity.status == "completed"
        user_texts = [message["content"] for message in engine.model.requests[-1].messages if message["role"] == "user"]
        assert "And be quick" in user_texts


async def test_resume_after_a_pause_continues_the_wait_and_a_second_resume_tries_now(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[HOUR, DONE])) as engine:
        held = await waiting(engine)
        runner = engine.services.runner
        await runner.pause(held.id)
        await runner.resume(held.id)
        again = await engine.watcher.task(held.id, lambda task: task.activity.detail == held.activity.detail)
        assert again.activity.retry_at == held.activity.retry_at
        await runner.resume(held.id)
        assert (await engine.watcher.end(held.id)).activity.status == "completed"


@pytest.mark.parametrize("refusals", [[UPDATE, SECOND], [SECOND]])
async def test_wait_survives_a_killed_engine_and_the_next_one_continues_by_itself(
    tmp_path: Path, refusals: list[Reply]
) -> None:
    after = tmp_path / "after"
    async with engine_parts(tmp_path, ModelServer(replies=refusals), AT_ONCE) as engine:
        held = await waiting(engine, api_key=None)
        await engine.services.log.flush()
        port = crash(engine, after)
        await engine.services.runner.stop(held.id, "the test")
    async with engine_parts(after, ModelServer(replies=[DONE], port=port), AT_ONCE) as engine:
        task = await engine.services.database.tasks.get(held.id)
        assert task is not None
        assert (task.activity.status, task.activity.retry_at) == ("interrupted", held.activity.retry_at)
        engine.services.runner.resumption.resume_earlier_tasks()
        ended = await engine.watcher.end(held.id)
        assert (ended.activity.status, ended.progress.step_count) == ("completed", len(refusals))
        assert datetime.now(UTC) >= (held.activity.retry_at or datetime.max.replace(tzinfo=UTC))
        assert len(engine.model.requests) == 1


async def test_wait_survives_an_orderly_shutdown(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[HOUR])) as engine:
        held = await waiting(engine, api_key=None)
        port = int(engine.model.url.split(":")[2].split("/")[0])
    async with engine_parts(tmp_path, ModelServer(replies=[DONE], port=port)) as engine:
        engine.services.runner.resumption.resume_earlier_tasks()
        again = await engine.watcher.task(held.id, waits)
        assert again.activity.retry_at == held.activity.retry_at
        assert not engine.model.requests
        await engine.services.runner.try_now(held.id)
        assert (await engine.watcher.end(held.id)).activity.status == "completed"


async def test_waiting_task_with_its_own_key_says_that_it_cannot_continue_by_itself(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[SECOND]), AT_ONCE) as engine:
        held = await waiting(engine)
        port = int(engine.model.url.split(":")[2].split("/")[0])
    async with engine_parts(tmp_path, ModelServer(replies=[DONE], port=port)) as engine:
        engine.services.runner.resumption.resume_earlier_tasks()
        left = await engine.watcher.task(held.id, lambda task: "key" in task.activity.detail)
        assert (left.activity.status, left.activity.retry_at) == ("interrupted", None)
        await engine.services.runner.resume(held.id)
        assert (await engine.watcher.end(held.id)).activity.status == "completed"


async def test_waiting_task_that_cannot_continue_by_itself_says_why_and_stops_waiting(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[DONE, HOUR])) as engine:
        first = await engine.watcher.end((await engine.start(api_key=None)).id)
        (*_, before) = await branch(engine, first.conversation_id)
        second = await engine.start(conversation_id=first.conversation_id, api_key=None)
        await engine.watcher.task(second.id, waits)
    async with engine_parts(tmp_path, ModelServer()) as engine:
        (agent,) = await engine.services.database.agents.list(first.conversation_id)
        move = AgentSetHeadParams(agent_id=agent.id, node_id=before.id, version=agent.version)
        await engine.services.agents.set_head(move)
        engine.services.runner.resumption.resume_earlier_tasks()
        left = await engine.watcher.task(second.id, lambda task: task.activity.retry_at is None)
        assert left.activity.status == "interrupted"
        assert "on another branch" in left.activity.detail


async def test_an_interrupted_task_that_waits_can_be_tried_now_or_stopped(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[HOUR, HOUR])) as engine:
        first, second = await waiting(engine), await waiting(engine)
        port = int(engine.model.url.split(":")[2].split("/")[0])
    async with engine_parts(tmp_path, ModelServer(replies=[DONE], port=port)) as engine:
        runner = engine.services.runner
        await runner.try_now(first.id)
        assert (await engine.watcher.end(first.id)).activity.status == "completed"
        stopped = await runner.stop(second.id, "me")
        assert (stopped.activity.status, stopped.activity.retry_at) == ("cancelled", None)


async def test_rate_limit_longer_than_a_day_ends_the_task_and_says_until_when(tmp_path: Path) -> None:
    days = Reply(status=429, error="used up", headers={"Retry-After": str(3 * 86_400)})
    async with engine_parts(tmp_path, ModelServer(replies=[days])) as engine:
        ended = await engine.watcher.end((await engine.start()).id)
        assert (ended.activity.status, ended.activity.retry_at) == ("error", None)
        assert "longer than a task waits: start it again then" in (ended.outcome.error or "")


async def test_text_streamed_before_a_rate_limit_is_discarded(tmp_path: Path) -> None:
    broken = Reply(text="Half of an ans", piece_length=4, piece_delay_s=0.02, cut_after=3)
    policy = RetryPolicy(attempts=2, first_delay_s=0.01, longest_asked_s=0.1)
    async with engine_parts(tmp_path, ModelServer(replies=[broken, SECOND, Reply(text="Whole.")]), policy) as engine:
        started = await engine.start(mode="chat")
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        (reply,) = [node for node in await branch(engine, started.conversation_id) if node.role == "assistant"]
        assert (reply.status, reply.blocks) == ("complete", (TextBlock(text="Whole."),))


async def test_stop_during_a_wait_after_a_partial_reply_leaves_no_streaming_node(tmp_path: Path) -> None:
    broken = Reply(text="Half of an ans", piece_length=4, piece_delay_s=0.02, cut_after=3)
    policy = RetryPolicy(attempts=2, first_delay_s=0.01)
    async with engine_parts(tmp_path, ModelServer(replies=[broken, HOUR]), policy) as engine:
        held = await waiting(engine)
        await engine.services.runner.stop(held.id, "me")
        await engine.watcher.end(held.id)
        nodes = await branch(engine, held.conversation_id)
        assert all(node.status != "streaming" for node in nodes)


class Clock:
    """The real clock, set forward or back."""

    off = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.off


def refused(at: datetime | None) -> ReplyEnd:
    return ReplyEnd(LATE, RetryLater("rate limit", at))


@asynccontextmanager
async def a_task(tmp_path: Path) -> AsyncGenerator[tuple[EngineParts, TaskState]]:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        log = engine.services.log
        log.publish(ConversationUpdate(conversation=records.conversation()))
        log.publish(AgentUpdate(agent=records.agent()))
        yield engine, TaskState(replace_fields(records.task(step_count=3), status="thinking"), log)


async def ends(wait: RateLimitWait) -> None:
    async with asyncio.timeout(WAIT_LIMIT_S):
        await wait.wait(CancelSignal())


async def shows(engine: EngineParts, condition: Callable[[datetime], bool]) -> None:
    await engine.watcher.task(
        "t1", lambda task: task.activity.retry_at is not None and condition(task.activity.retry_at)
    )


async def test_clock_set_back_does_not_extend_a_wait(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (_, live):
        clock = Clock()
        wait = RateLimitWait(live, OFTEN, clock)
        assert isinstance(wait.check_reply(refused(clock() + timedelta(seconds=0.3))), Retry)
        waiting = asyncio.create_task(ends(wait))
        await asyncio.sleep(0)
        clock.off = timedelta(hours=-5)
        await waiting
        assert (live.task.activity.retry_at, live.task.activity.status, live.task.progress.step_count) == (
            None,
            "thinking",
            2,
        )


async def test_clock_set_back_moves_the_shown_end_of_a_wait(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (engine, live):
        clock = Clock()
        wait = RateLimitWait(live, OFTEN, clock)
        wait.check_reply(refused(clock() + timedelta(hours=1)))
        waiting = asyncio.create_task(ends(wait))
        await shows(engine, lambda at: at > datetime.now(UTC))
        clock.off = timedelta(hours=-5)
        await shows(engine, lambda at: at < datetime.now(UTC) - timedelta(hours=3))
        wait.end()
        await waiting


async def test_clock_set_forward_ends_a_wait(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (engine, live):
        clock = Clock()
        wait = RateLimitWait(live, OFTEN, clock)
        wait.check_reply(refused(clock() + timedelta(hours=1)))
        waiting = asyncio.create_task(ends(wait))
        await shows(engine, lambda at: True)
        clock.off = timedelta(hours=5)
        await waiting


async def test_wait_that_began_in_the_future_is_tried_at_once(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (_, live):
        later = datetime.now(UTC) + timedelta(days=300)
        live.set(replace_fields(live.task, retry_at=later + timedelta(hours=1), limited_at=later))
        await ends(RateLimitWait(live))


async def test_guessed_waits_double_and_are_counted(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (_, live):
        wait = RateLimitWait(live, RateLimitPolicy(most=6))
        replies = [wait.check_reply(refused(None)) for _ in range(7)]
        waits = [round(retry.delay_s) for retry in replies if isinstance(retry, Retry)]
        assert waits == [60, 120, 240, 480, 900, 900]
        last = replies[-1]
        assert isinstance(last, ReplyEnd)
        assert last.message.error == "Too much. It has waited 6 times for this limit to pass."


async def test_consecutive_waits_last_a_day_at_most_and_a_reply_resets_that(tmp_path: Path) -> None:
    async with a_task(tmp_path) as (_, live):
        clock = Clock()
        wait = RateLimitWait(live, now=clock)
        assert isinstance(wait.check_reply(refused(clock() + timedelta(hours=20))), Retry)
        clock.off = timedelta(hours=20)
        assert isinstance(wait.check_reply(refused(clock() + timedelta(hours=20))), ReplyEnd)
        wait.check_reply(ReplyEnd(AssistantMessage()))
        assert isinstance(wait.check_reply(refused(clock() + timedelta(hours=20))), Retry)
