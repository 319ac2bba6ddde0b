"""A subscription delivers a snapshot or a replay, then every event once and in order."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from errand.engine.server.authentication import Handshake
from errand.engine.server.outbox import Outbox
from errand.engine.server.session import ClientSession, Subscription
from errand.protocol.base import JsonObject
from errand.protocol.engine import SubscribeResult
from errand.protocol.events import (
    AgentUpdate,
    ConversationUpdate,
    GrantUpdate,
    LogRecord,
    TaskMessage,
    TaskUpdate,
    TextDelta,
)
from errand.protocol.tasks.change import TaskChange
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task, replace_fields
from tests.support.connections import RawClient, error_of, raw_client
from tests.support.engine_server import EngineServer
from tests.support.records import NOW, agent, conversation, grant, node, task
from tests.support.stored_records import on_both


def subscribed(answer: JsonObject) -> SubscribeResult:
    assert "result" in answer, answer
    return msgspec.convert(answer["result"], SubscribeResult)


def sequences(messages: list[JsonObject]) -> list[int]:
    return [msgspec.convert(message["params"], LogRecord).sequence for message in messages]


async def publish_steps(engine: EngineServer, count: int, start: int = 0) -> None:
    for step in range(start, start + count):
        engine.log.publish(TaskUpdate(task=task(step_count=step)))
    await engine.log.flush()


async def with_task(engine: EngineServer) -> None:
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    engine.log.publish(TaskUpdate(task=task()))
    await engine.log.flush()


async def read_events(client: RawClient, count: int) -> list[LogRecord]:
    return [await client.event() for _ in range(count)]


async def test_a_fresh_subscription_gets_a_snapshot_and_then_what_happens(engine: EngineServer) -> None:
    await with_task(engine)
    async with raw_client(engine) as client:
        result = subscribed(await client.ask("subscribe"))
        assert (result.reason, result.head) == ("fresh", 2)
        assert result.snapshot is not None
        assert (result.snapshot.tasks, result.snapshot.conversations) == ((task(),), (conversation(),))
        await publish_steps(engine, 3, start=1)
        assert [record.sequence for record in await read_events(client, 3)] == [3, 4, 5]


async def test_a_summary_leaves_out_nodes_and_a_conversation_brings_them(engine: EngineServer) -> None:
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    engine.log.publish(ConversationUpdate(conversation=conversation("c2")))
    engine.log.publish(TaskMessage(node=node("n1")))
    engine.log.publish(AgentUpdate(agent=agent(head_id="n1")))
    await engine.log.flush()
    async with raw_client(engine, client_id="s") as summary, raw_client(engine, client_id="f") as full:
        await summary.ask("subscribe")
        snapshot = subscribed(await full.ask("subscribe", scope="c1", detail="full")).snapshot
        assert snapshot is not None
        assert (snapshot.nodes, snapshot.agents) == ((node("n1"),), (agent(head_id="n1"),))
        engine.log.publish(TaskMessage(node=node("n2", "n1")))
        engine.log.publish(ConversationUpdate(conversation=conversation("c2")))
        engine.log.publish(GrantUpdate(grant=grant()))
        engine.log.publish(TaskUpdate(task=task()))
        assert [record.sequence for record in await read_events(summary, 3)] == [6, 7, 8]
        assert [record.sequence for record in await read_events(full, 2)] == [5, 8]


async def test_events_after_a_number_are_replayed_before_the_answer(engine: EngineServer) -> None:
    await with_task(engine)
    await publish_steps(engine, 5)
    async with raw_client(engine) as client:
        await client.request("subscribe", 9, after=3, epoch=engine.log.epoch)
        answer, before = await client.answer(9)
        result = subscribed(answer)
        assert (result.replayed, result.head, result.snapshot, result.reason) == (4, 7, None, "")
        assert sequences(before) == [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("after", "epoch", "reason"), [(1, "another", "wrong_epoch"), (1, None, "wrong_epoch"), (99, "", "out_of_range")]
)
async def test_subscription_that_cannot_be_replayed_gets_a_snapshot_and_the_reason(
    engine: EngineServer, after: int, epoch: str | None, reason: str
) -> None:
    await with_task(engine)
    async with raw_client(engine) as client:
        sent_epoch = engine.log.epoch if epoch == "" else epoch
        result = subscribed(await client.ask("subscribe", after=after, epoch=sent_epoch))
        assert result.reason == reason
        assert result.snapshot is not None
        assert result.snapshot.sequence == 2


async def test_subscription_to_an_unknown_conversation_is_refused(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        assert error_of(await client.ask("subscribe", scope="none"))[1] == "not_found"


async def test_overlapping_scopes_deliver_each_event_once(engine: EngineServer) -> None:
    await with_task(engine)
    engine.log.publish(TaskMessage(node=node("n1")))
    await engine.log.flush()
    await publish_steps(engine, 2)
    async with raw_client(engine) as client:
        await client.request("subscribe", 1, after=2, epoch=engine.log.epoch)
        await client.request("subscribe", 2, scope="c1", detail="full", after=2, epoch=engine.log.epoch)
        answers, replayed = await client.answers(2)  # in any order
        assert sum(subscribed(answer).replayed for answer in answers) == 3
        assert sorted(sequences(replayed)) == [3, 4, 5]
        await publish_steps(engine, 2)
        assert [record.sequence for record in await read_events(client, 2)] == [6, 7]


@on_both
async def test_no_event_is_lost_or_duplicated_between_snapshot_or_replay_and_live_events(engine: EngineServer) -> None:
    await with_task(engine)
    count = 600

    async def publish() -> None:
        for step in range(count):
            engine.log.publish(TaskUpdate(task=task(step_count=step)))
            if step % 7 == 0:
                await asyncio.sleep(0)

    async with raw_client(engine) as client:
        publishing = asyncio.create_task(publish())
        last = 2 + count
        for round_ in range(20):
            await client.request("subscribe", f"s{round_}")
            answer, _ = await client.answer(f"s{round_}")
            snapshot = subscribed(answer).snapshot
            assert snapshot is not None
            # Event number n has step n - 3: the snapshot is of exactly the moment that it names.
            assert snapshot.tasks[0].progress.step_count == max(0, snapshot.sequence - 3)
            if snapshot.sequence < last:
                assert (await client.event()).sequence == snapshot.sequence + 1
        await client.request("subscribe", "r", after=2, epoch=engine.log.epoch)
        answer, before = await client.answer("r")
        await publishing
        seen = [number for number in sequences(before) if number <= subscribed(answer).head][
            -subscribed(answer).replayed :
        ]
        while seen[-1] < last:
            seen.append((await client.event()).sequence)
        assert seen == list(range(3, last + 1))


async def test_two_clients_see_the_same_events_in_the_same_order(engine: EngineServer) -> None:
    async with (
        raw_client(engine, client_id="one") as first_client,
        raw_client(engine, client_id="two") as second_client,
    ):
        await first_client.ask("subscribe")
        await second_client.ask("subscribe")
        await engine.runner.start(TaskStartParams(prompt="a"))
        await publish_steps(engine, 20)
        assert await read_events(first_client, 22) == await read_events(second_client, 22)


async def test_replay_of_one_scope_never_repeats_older_events_to_another(engine: EngineServer) -> None:
    await with_task(engine)
    await publish_steps(engine, 5)
    async with raw_client(engine) as client:
        snapshot = subscribed(await client.ask("subscribe", 1)).snapshot
        assert snapshot is not None
        step_count = snapshot.tasks[0].progress.step_count
        await publish_steps(engine, 1, start=5)
        await client.event()
        await client.request("subscribe", 2, scope="c1", detail="full", after=2, epoch=engine.log.epoch)
        _, before = await client.answer(2)
        assert step_count == 4
        assert sequences(before) == [3, 4, 5, 6, 7, 8]


async def test_unsubscribe_ends_it(engine: EngineServer) -> None:
    await with_task(engine)
    async with raw_client(engine) as client:
        await client.ask("subscribe")
        await client.ask("unsubscribe", 2, scope="all")
        await publish_steps(engine, 1)
        assert (await client.ask("unsubscribe", 3))["id"] == 3


async def test_slow_client_is_told_to_resync_and_nobody_waits_for_it(
    engine: EngineServer,
) -> None:
    await with_task(engine)
    async with raw_client(engine, client_id="slow") as slow, raw_client(engine, client_id="quick") as quick:
        await slow.ask("subscribe", scope="c1", detail="full")
        await quick.ask("subscribe")
        slow.socket.transport.pause_reading()
        for number in range(400):
            engine.log.publish(TaskMessage(node=node(f"n{number}", text="x" * 100_000)))
            if number % 20 == 0:
                await engine.log.flush()
        await publish_steps(engine, 1)
        assert (await quick.event()).sequence == 403
        slow.socket.transport.resume_reading()
        message = await slow.read()
        while message.get("method") == "event":
            message = await slow.read()
        assert message["method"] == "resync"
        await publish_steps(engine, 1)
        result = subscribed(await slow.ask("subscribe", "again"))
        assert result.snapshot is not None
        assert result.snapshot.sequence == 404


def delta(text: str, offset: int, block: int = 0) -> TextDelta:
    return TextDelta(
        conversation_id="c1", task_id="t1", node_id="n1", block=block, kind="text", offset=offset, text=text
    )


async def next_delta(client: RawClient) -> TextDelta:
    message = await client.read()
    assert message["method"] == "delta", message
    return msgspec.convert(message["params"], TextDelta)


async def test_streamed_text_is_coalesced_and_a_late_client_gets_the_text_so_far(engine: EngineServer) -> None:
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    engine.log.publish(TaskMessage(node=node("n1", status="streaming")))
    await engine.log.flush()
    async with raw_client(engine, client_id="early") as early, raw_client(engine, client_id="late") as late:
        await early.ask("subscribe", scope="c1", detail="full")
        for number in range(10):
            engine.log.deltas.add(delta(str(number), number), after=engine.log.head)
        assert await next_delta(early) == delta("0123456789", 0)
        await late.ask("subscribe", scope="c1", detail="full")
        assert await next_delta(late) == delta("0123456789", 0)
        engine.log.deltas.add(delta("abc", 10), after=engine.log.head)
        assert await next_delta(early) == await next_delta(late) == delta("abc", 10)


async def test_text_not_sent_yet_is_dropped_when_the_finished_node_comes(engine: EngineServer) -> None:
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    await engine.log.flush()
    async with raw_client(engine) as client:
        await client.ask("subscribe", scope="c1", detail="full")
        engine.log.publish(TaskMessage(node=node("n1", status="streaming")))
        engine.log.deltas.add(delta("half", 0), after=engine.log.head)
        engine.log.publish(TaskMessage(node=node("n1")))
        engine.log.deltas.add(
            TextDelta(conversation_id="c1", task_id="t1", node_id="n2", block=0, kind="text", offset=0, text="next"),
            after=engine.log.head,
        )
        assert [record.sequence for record in await read_events(client, 2)] == [2, 3]
        assert (await next_delta(client)).text == "next"


async def test_a_client_gets_a_task_once_and_then_what_changes_of_it(engine: EngineServer) -> None:
    await with_task(engine)
    async with raw_client(engine, client_id="early") as early, raw_client(engine, client_id="late") as late:
        await early.ask("subscribe")
        await publish_steps(engine, 2, start=1)
        await late.ask("subscribe")
        await publish_steps(engine, 1, start=3)
        steps = [task(step_count=number) for number in range(4)]
        assert [record.event for record in await read_events(early, 3)] == [
            TaskUpdate(task=steps[1]),
            _steps_of(steps[2]),
            _steps_of(steps[3]),
        ]
        assert (await late.event()).event == TaskUpdate(task=steps[3]), "whatever it may know already"


async def test_a_task_is_sent_whole_again_after_changes_that_were_not_sent(engine: EngineServer) -> None:
    await with_task(engine)
    async with raw_client(engine) as client:
        await client.ask("subscribe")
        await publish_steps(engine, 1, start=1)
        await client.event()
        await client.ask("unsubscribe", 2, scope="all")
        engine.log.publish(TaskUpdate(task=replace_fields(task(step_count=1), detail="thinking")))
        await engine.log.flush()
        await client.ask("subscribe", 3)
        last = replace_fields(task(step_count=2), detail="thinking")
        engine.log.publish(TaskUpdate(task=last))
        assert (await client.event()).event == TaskUpdate(task=last)


async def test_a_snapshot_of_a_conversation_has_every_task_that_has_not_ended(engine: EngineServer) -> None:
    await with_task(engine)
    for number in range(60):
        at = NOW + timedelta(minutes=number)
        engine.log.publish(TaskUpdate(task=task(f"later{number}", started_at=at, ended_at=at)))
    await engine.log.flush()
    async with raw_client(engine) as client:
        snapshot = subscribed(await client.ask("subscribe", scope="c1")).snapshot
        assert snapshot is not None
        assert [snapshot.tasks[0].id, snapshot.tasks[-1].id, len(snapshot.tasks)] == ["later59", "t1", 51]


async def test_a_task_is_sent_whole_again_after_a_snapshot_that_may_be_older_than_what_was_sent(
    engine: EngineServer,
) -> None:
    outbox = Outbox()
    session = ClientSession(engine.log, outbox, Handshake(engine.token, lambda: None))
    every = Subscription("all", "summary", since=0, live=True)
    session.follow(every)
    detach = engine.log.attach(session)
    await with_task(engine)
    await publish_steps(engine, 1, start=1)
    of_conversation = Subscription("c1", "full", since=engine.log.head)
    session.follow(of_conversation)
    await publish_steps(engine, 2, start=2)
    session.go_live_after_reply(of_conversation)
    session.reply(b"{}")
    await publish_steps(engine, 2, start=4)
    detach()
    sent = [msgspec.json.decode(await outbox.take()) for _ in range(8)]
    kinds = [message["params"]["event"]["type"] if message else "reply" for message in sent]
    assert kinds == [
        "conversationUpdate",
        "taskUpdate",
        "taskChange",
        "taskUpdate",
        "taskChange",
        "reply",
        "taskUpdate",
        "taskChange",
    ]


def _steps_of(state: Task) -> TaskChange:
    return TaskChange(task_id=state.id, conversation_id=state.conversation_id, progress=state.progress)
