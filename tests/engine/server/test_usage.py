"""The usage report and the explanation of a turn's input, checked against hand-made turns."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from errand.engine.storage.records import conversations, tasks, turns
from errand.engine.storage.records.turns import PartSize
from errand.protocol.context import ContextExplainResult, ContextShare, PromptPart, PromptShare
from errand.protocol.conversations import Conversation
from errand.protocol.tasks.task import replace_fields
from errand.protocol.usage import Usage, UsageKey, UsageReportParams, UsageReportResult, UsageRow
from tests.support.connections import RawClient, error_of, raw_client
from tests.support.engine_parts import engine_parts
from tests.support.engine_server import EngineServer
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.records import NOW, conversation, task
from tests.support.stored_records import on_both

PRICED = "openai/gpt-5.4"
UNPRICED = "openai_compatible/mine"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def used(tokens: int, cost: float | None) -> Usage:
    return Usage(
        input_tokens=tokens,
        output_tokens=tokens // 10,
        cache_read_tokens=tokens // 2,
        cache_write_tokens=1,
        cost_usd=cost,
        seconds=2.0,
    )


async def store(engine: EngineServer) -> None:
    """Three tasks in two conversations: across midnight, without a price, and one during its first call."""
    journal = engine.database.journal
    for name, title in (("c1", "First"), ("c2", "Second")):
        journal.put(conversations.save(Conversation(id=name, title=title, created_at=NOW, updated_at=NOW)))
    for task_id, conversation_id in (("t1", "c1"), ("t2", "c2"), ("t3", "c2")):
        journal.put(*tasks.add(replace_fields(task(task_id), conversation_id=conversation_id)))
    for conversation_id, task_id, turn, model, begun, usage in (
        ("c1", "t1", 1, PRICED, "2026-11-18T23:50", used(1000, 0.25)),
        ("c1", "t1", 2, PRICED, "2026-11-19T00:10", used(2000, 0.5)),
        ("c1", "t1", 3, PRICED, "2026-11-19T00:20", used(0, None)),  # failed: nothing was counted
        ("c2", "t2", 1, UNPRICED, "2026-11-19T12:00", used(100, None)),
        ("c2", "t3", 1, PRICED, "2026-11-20T12:00", None),
    ):
        journal.put(turns.started(conversation_id, task_id, turn, model, at(begun)))
        if usage is not None:
            journal.put(turns.finished(task_id, turn, "complete", usage, at(begun)))
    await journal.flush()


def row(by: UsageKey, key: str, title: str, usage: Usage, turns: int, tasks: int, unpriced_turns: int = 0) -> UsageRow:
    return UsageRow(by=by, key=key, title=title, usage=usage, turns=turns, tasks=tasks, unpriced_turns=unpriced_turns)


def added(*usages: Usage) -> Usage:
    costs = [usage.cost_usd for usage in usages if usage.cost_usd is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cache_read_tokens=sum(usage.cache_read_tokens for usage in usages),
        cache_write_tokens=sum(usage.cache_write_tokens for usage in usages),
        cost_usd=sum(costs) if costs else None,
        seconds=sum(usage.seconds for usage in usages),
    )


async def report(client: RawClient, **params: object) -> UsageReportResult:
    return msgspec.convert((await client.ask("usage/report", 1, **params))["result"], UsageReportResult)


@on_both
async def test_a_report_sums_by_day_model_and_conversation_and_counts_what_has_no_price(engine: EngineServer) -> None:
    await store(engine)
    first, second, failed, other = used(1000, 0.25), used(2000, 0.5), used(0, None), used(100, None)
    async with raw_client(engine) as client:
        usage_report = await report(client)
    assert usage_report == UsageReportResult(
        total=row("day", "", "", added(first, second, failed, other), 4, 3, 1),
        days=(
            row("day", "2026-11-18", "2026-11-18", first, 1, 1),
            row("day", "2026-11-19", "2026-11-19", added(second, failed, other), 3, 1, 1),
        ),
        models=(
            row("model", PRICED, PRICED, added(first, second, failed), 3, 2),
            row("model", UNPRICED, UNPRICED, other, 1, 1, 1),
        ),
        conversations=(
            row("conversation", "c1", "First", added(first, second, failed), 3, 1),
            row("conversation", "c2", "Second", other, 1, 2, 1),
        ),
    )


async def test_usage_days_follow_the_local_time_zone_and_periods_are_inclusive(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        east = await report(client, utcOffsetMinutes=60)
        assert [(day.key, day.turns) for day in east.days] == [("2026-11-19", 4)]
        west = await report(client, utcOffsetMinutes=-330)
        assert [(day.key, day.turns) for day in west.days] == [("2026-11-18", 3), ("2026-11-19", 1)]
        one_day = await report(client, since="2026-11-19", until="2026-11-19")
        assert [(day.key, day.turns) for day in one_day.days] == [("2026-11-19", 3)]
        assert (one_day.total.turns, [usage_row.key for usage_row in one_day.conversations]) == (3, ["c1", "c2"])
        assert await report(client, since="2026-11-21") == UsageReportResult(
            total=row("day", "", "", Usage(), 0, 0), days=(), models=(), conversations=()
        )


async def test_invalid_period_is_refused(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        for params in (
            {"since": "2026-11-20", "until": "2026-11-19"},
            {"until": "9999-12-31"},
            {"since": "0001-01-01"},
            {"utcOffsetMinutes": 100_000},
            {"since": "yesterday"},
        ):
            assert error_of(await client.ask("usage/report", 1, **params))[:2] == (-32602, "invalid_params")


async def explain(client: RawClient, **params: object) -> ContextExplainResult:
    return msgspec.convert((await client.ask("context/explain", 1, **params))["result"], ContextExplainResult)


async def test_tokens_of_a_turn_are_divided_in_proportion_to_characters(engine: EngineServer) -> None:
    journal = engine.database.journal
    parts = (PartSize("system", 1000, 1), PartSize("tools", 500, 5, 30, 9003), PartSize("history", 1501, 7))
    journal.put(
        conversations.save(conversation()),
        *tasks.add(task()),
        turns.started("c1", "t1", 1, PRICED, NOW, parts),
        turns.finished("t1", 1, "complete", used(1000, 0.5), NOW),
        turns.started("c1", "t1", 2, PRICED, NOW, parts),
        tasks.save_prompt(
            "t1",
            (
                PromptPart(name="role", text="r" * 300),
                PromptPart(name="skills", text="", remarks=("One is left out.",)),
                PromptPart(name="instructions", text="i" * 700, sources=("/work/AGENTS.md",)),
            ),
        ),
    )
    await journal.flush()
    prompt = (
        PromptShare(part="role", tokens=100),
        PromptShare(part="instructions", tokens=233, sources=("/work/AGENTS.md",)),
    )
    shares = (
        ContextShare(part="system", tokens=333, items=1),
        ContextShare(part="tools", tokens=167, items=5, findable_items=30, findable_tokens=3000),
        ContextShare(part="history", tokens=500, items=7),
    )
    window = engine.services.models.router.context_tokens(PRICED)
    expected = ContextExplainResult(
        task_id="t1", turn=1, model=PRICED, used_tokens=1000, window_tokens=window, shares=shares, prompt=prompt
    )
    nothing = msgspec.structs.replace(expected, turn=2, used_tokens=0, shares=(), prompt=())
    async with raw_client(engine) as client:
        assert await explain(client, taskId="t1") == expected
        assert await explain(client, taskId="t1", turn=2) == nothing
        assert error_of(await client.ask("context/explain", taskId="t1", turn=3))[1] == "not_found"
        assert error_of(await client.ask("context/explain", taskId="none"))[1] == "not_found"
    assert window is not None and window > 100_000


async def test_a_task_before_its_first_call_sent_nothing(engine: EngineServer) -> None:
    engine.database.journal.put(conversations.save(conversation()), *tasks.add(task()))
    await engine.database.journal.flush()
    async with raw_client(engine) as client:
        context = await explain(client, taskId="t1")
    assert (context.turn, context.used_tokens, context.window_tokens, context.shares) == (0, 0, None, ())


async def test_sizes_of_the_parts_of_a_request_are_stored(tmp_path: Path) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "echo hello"}),)), Reply(text="Done.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as parts:
        done = await parts.watcher.end((await parts.start("Say hello, please")).id)
        first = await parts.services.database.turns.sent(done.id, 1)
        second = await parts.services.database.turns.sent(done.id)
        usage_report = await parts.services.database.usage.report(UsageReportParams())
    assert first is not None and second is not None
    kinds = {part.part: part for part in second.parts}
    assert [part.part for part in first.parts] == ["system", "tools", "environment", "history"]
    assert kinds["history"].items == 2 and kinds["history"].characters > len("Say hello, please")
    assert kinds["results"].items == 1 and kinds["results"].characters >= len("hello")
    assert (usage_report.total.turns, usage_report.total.tasks) == (2, 1)
