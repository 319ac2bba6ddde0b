"""Every kind of task replays without differences with the loop that recorded it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from errand.engine.record.diff import compare
from errand.engine.record.format import TaskRecord, read
from errand.engine.record.replay import replay
from errand.protocol.blocks import Block, NoticeBlock, TextBlock, ToolResultBlock
from errand.protocol.tasks.task import replace_fields
from tests.engine.record import model_tasks, resumed_tasks, summary_tasks
from tests.support.old_notice_text import notice_text
from tests.support.recorded_tasks import plain, steered, stopped

Play = Callable[[Path], Awaitable[TaskRecord]]

MODELS = [
    model_tasks.answered_by_another,
    model_tasks.limited,
    model_tasks.by_schema,
    model_tasks.tools_as_text,
    model_tasks.repeated,
    model_tasks.made_a_chat,
    model_tasks.made_a_task,
    model_tasks.in_changing_modes,
    model_tasks.without_an_answer,
    model_tasks.of_several,
    model_tasks.of_one_that_was_removed,
    model_tasks.at_the_limit_of_a_round,
]
SUMMARIES = [
    summary_tasks.outgrown,
    summary_tasks.left_out,
    summary_tasks.too_long,
    summary_tasks.before_a_reply,
    summary_tasks.by_hand,
    summary_tasks.by_hand_with_words,
    summary_tasks.refused_by_hand,
    summary_tasks.stopped_by_hand,
    summary_tasks.kept,
]
RETURNS = [
    resumed_tasks.killed_in_a_command,
    resumed_tasks.killed_and_skipped,
    resumed_tasks.killed_and_stopped,
    resumed_tasks.killed_in_a_reply,
    resumed_tasks.ended_in_order,
    resumed_tasks.ended_while_limited,
    resumed_tasks.left_while_limited,
    resumed_tasks.stopped_while_limited,
    resumed_tasks.with_a_process_left,
    resumed_tasks.of_a_full_day,
    resumed_tasks.ended_by_the_day,
    resumed_tasks.out_of_time,
    resumed_tasks.given_more_time,
]


@pytest.fixture(scope="module")
def records() -> dict[Play, TaskRecord]:
    """A cache of the records of played tasks, because playing takes longer than replaying."""
    return {}


@pytest.fixture
async def record(play: Play, records: dict[Play, TaskRecord], tmp_path: Path) -> TaskRecord:
    if play not in records:
        records[play] = await play(tmp_path)
    return records[play]


@pytest.mark.parametrize("play", [*MODELS, *SUMMARIES, *RETURNS])
async def test_replayed_record_shows_no_difference(tmp_path: Path, record: TaskRecord) -> None:
    recorded = read(record.lines())
    assert compare(recorded, await replay(recorded, tmp_path / "replay")) == []


@pytest.mark.parametrize("play", [plain, steered, stopped, *MODELS, *SUMMARIES, *RETURNS])
async def test_record_of_the_previous_version_shows_no_difference(tmp_path: Path, record: TaskRecord) -> None:
    recorded = read(_as_before(record).lines())
    assert compare(recorded, await replay(recorded, tmp_path / "replay")) == []


async def test_missing_summary_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = await summary_tasks.outgrown(tmp_path)
    monkeypatch.setattr("errand.engine.agent.compaction.context_window._NEWEST", 1.0)
    difference = compare(recorded, await replay(recorded, tmp_path / "replay"))
    assert "-    summary: ## What the person wants" in difference


async def test_additional_summary_is_reported(tmp_path: Path) -> None:
    recorded = await summary_tasks.outgrown(tmp_path)
    eager = await replay(_eager(recorded), tmp_path / "replay")
    assert any("The record has no summary here" in line for line in compare(recorded, eager))


def _as_before(record: TaskRecord) -> TaskRecord:
    """The record as version 1 wrote it: with sentences and texts in place of data."""
    task = replace_fields(record.head.task, summarises=False, summarised=False)
    head = msgspec.structs.replace(record.head, record_version=1, task=task)
    nodes = (msgspec.structs.replace(node, blocks=tuple(map(_block_before, node.blocks))) for node in record.nodes)
    return replace(record, head=head, nodes=tuple(nodes))


def _block_before(block: Block) -> Block:
    match block:
        case NoticeBlock():
            return NoticeBlock(kind=block.kind, text=notice_text(block))
        case TextBlock():
            return TextBlock(text=block.text)
        case ToolResultBlock():
            return msgspec.structs.replace(block, marks=())
        case _:
            return block


def _eager(record: TaskRecord) -> TaskRecord:
    return replace(record, head=msgspec.structs.replace(record.head, summarise_at=0.3))
