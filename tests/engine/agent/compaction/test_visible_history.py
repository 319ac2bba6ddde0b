"""The part of a branch that a model reads, and the input of a summary."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from errand.engine.agent.compaction.summary import record_of, summary_input
from errand.engine.agent.compaction.token_estimate import TokenEstimate
from errand.engine.agent.history.visible_history import (
    SummaryMessage,
    length_of,
    recent_path,
    turn_groups,
    visible_history,
    visible_messages,
)
from errand.engine.core.messages import AssistantMessage, ToolResultMessage, text_of, user_text
from errand.engine.storage.database import Database
from errand.engine.storage.records import conversations, nodes
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.protocol.blocks import Block, SummaryBlock, TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node, Role
from tests.support.records import conversation


def a_node(key: str, role: Role, *blocks: Block) -> Node:
    return Node(
        id=key,
        conversation_id="c",
        parent_id=None,
        role=role,
        author="a",
        blocks=blocks,
        status="complete",
        created_at=datetime.now(UTC),
    )


def said(key: str, text: str) -> Node:
    return a_node(key, "user", TextBlock(text=text))


def step(number: int, length: int = 4) -> tuple[Node, Node]:
    call = ToolCallBlock(call_id=f"call{number}", tool="shell", arguments={})
    result = ToolResultBlock(call_id=f"call{number}", tool="shell", text="r" * length, is_error=False)
    return a_node(f"a{number}", "assistant", call), a_node(f"t{number}", "tool_result", result)


def summary(key: str, until: str, text: str = "short") -> Node:
    return a_node(key, "system", SummaryBlock(text=text, until_id=until))


def test_newest_summary_replaces_everything_before_it_including_older_summaries() -> None:
    path = (said("u1", "one"), *step(1), summary("s1", "t1"), *step(2), summary("s2", "t2", "new"), said("u2", "two"))
    first, *rest = visible_messages(path, (), tuple)
    assert isinstance(first, SummaryMessage) and text_of(first).endswith("new")
    assert rest == [user_text("one"), user_text("two")]


def test_kept_results_and_calls_stay_together() -> None:
    path = (said("u1", "one"), *step(1), *step(2), said("u2", "two"), summary("s", "u2"), said("u3", "three"))
    for kept_id in ("t2", "a2"):
        first, user_one, call, result, user_two, last = visible_messages(path, (kept_id,), tuple)
        assert isinstance(first, SummaryMessage) and first.kept_count == 4
        assert (user_one, user_two) == (user_text("one"), user_text("two"))
        assert isinstance(call, AssistantMessage) and isinstance(result, ToolResultMessage)
        assert [tool_call.id for tool_call in call.tool_calls] == [result.tool_call_id] == ["call2"]
        assert last == user_text("three")


def test_summary_of_another_branch_is_ignored() -> None:
    path = (said("u1", "one"), summary("s", "elsewhere"), said("u2", "two"))
    assert visible_messages(path, (), tuple) == (user_text("one"), user_text("two"))
    assert visible_history((), ("nothing",)).messages(tuple) == ()


def test_only_whole_turns_are_summarised_and_never_the_last_message() -> None:
    path = (said("u1", "x" * 100), *step(1), *step(2), said("u2", "y" * 1_000))
    assert [node.id for node in summary_input(visible_history(path), 10).nodes] == ["u1", "a1", "t1", "a2", "t2"]
    assert [node.id for node in summary_input(visible_history(path), 1_015).nodes] == ["u1", "a1", "t1"]
    assert summary_input(visible_history(path), 10_000).nodes == ()
    assert [len(group) for group in turn_groups(path)] == [1, 2, 2, 1]


def test_too_large_last_turn_is_summarised_too() -> None:
    path = (said("u1", "one"), *step(1, 50_000))
    assert [node.id for node in summary_input(visible_history(path), 1_000).nodes] == ["u1", "a1", "t1"]


def test_summary_input_fits_its_limit_and_says_what_it_leaves_out() -> None:
    nodes = tuple(node for number in range(200) for node in step(number, 30_000))
    for room in (2_000_000, 100_000, 5_000):
        record = record_of("before", nodes, room)
        assert record.startswith("# Earlier summary\n\nbefore") and len(record) < 1.1 * room
    assert "entries are left out here" in record
    assert record.rstrip().removesuffix("\n</tool_output>").endswith("r" * 20)


def test_token_estimate_follows_counted_tokens_within_bounds() -> None:
    assert TokenEstimate().tokens_of(4_000) == 1_000
    assert TokenEstimate(4_000, 2_000).tokens_of(8_000) == 4_000
    assert TokenEstimate(4_000, 1).tokens_of(1_600) == 100
    assert TokenEstimate(10, 100_000).tokens_of(10) == 20
    assert TokenEstimate(4_000, 2_000).characters_of(1_000) == 2_000


async def test_very_long_branch_is_read_from_its_end_with_kept_entries_and_summary(tmp_path: Path) -> None:
    large = "x" * 1_000_000
    path = [
        *(said(f"u{number}", f"{number} {large}") for number in range(4)),
        a_node("t4", "tool_result", ToolResultBlock(call_id="c", tool="shell", text=large, is_error=False)),
        *(said(f"u{number}", f"{number} {large}") for number in range(5, 13)),
        said("u13", "the last"),
    ]
    chained = [
        msgspec.structs.replace(node, parent_id=before.id if before else None)
        for before, node in zip([None, *path], path, strict=False)
    ]
    database = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path)
    database.journal.put(conversations.save(conversation("c")))
    for node in chained:
        database.journal.put(nodes.save(node))
    mark = msgspec.structs.replace(summary("s", "u3"), parent_id="u13")
    database.journal.put(nodes.save(mark))
    await database.journal.flush()
    ids = [node.id for node in await recent_path(database.nodes, "u13", ("u1",))]
    assert ids == ["u0", "u1", "u3", *(f"u{number}" for number in range(5, 14))]
    notice, first, kept_message, *_, last = visible_messages(
        await recent_path(database.nodes, "u13", ("u1",)), ("u1",), tuple
    )
    assert "left out" in str(notice) and text_of(first).startswith("0 x") and text_of(kept_message).startswith("1 x")
    assert last == user_text("the last")
    recent_nodes = await recent_path(database.nodes, "s", ("u1",))
    assert [node.id for node in recent_nodes][:3] == ["u0", "u1", "u3"]
    history = visible_history(recent_nodes, ("u1",))
    assert history.summary is not None and [node.id for node in history.kept_nodes] == ["u0", "u1", "u3"]
    assert [length_of((node,)) < 5_000 for node in history.kept_nodes] == [True, False, True]
    assert history.is_cut
    await database.close()
