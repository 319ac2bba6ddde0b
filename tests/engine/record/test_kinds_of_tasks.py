"""Whatever a task met, its record played again by the loop that made it shows no difference."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from app.engine.record.lines import TaskRecord, read
from app.engine.record.replay import replay
from app.engine.record.told import compare
from tests.engine.record import models, returns, summaries

Play = Callable[[Path], Awaitable[TaskRecord]]

MODELS = [
    models.answered_by_another,
    models.limited,
    models.by_schema,
    models.tools_as_text,
    models.made_a_chat,
    models.made_a_task,
    models.of_several,
    models.of_one_that_was_removed,
    models.at_the_limit_of_a_round,
]
SUMMARIES = [
    summaries.outgrown,
    summaries.left_out,
    summaries.too_long,
    summaries.before_a_reply,
    summaries.by_hand,
    summaries.by_hand_with_words,
    summaries.refused_by_hand,
    summaries.stopped_by_hand,
    summaries.kept,
]
RETURNS = [
    returns.killed_in_a_command,
    returns.killed_and_skipped,
    returns.killed_and_stopped,
    returns.killed_in_a_reply,
    returns.ended_in_order,
    returns.ended_while_limited,
    returns.left_while_limited,
    returns.stopped_while_limited,
    returns.with_a_process_left,
    returns.of_a_full_day,
    returns.ended_by_the_day,
    returns.out_of_time,
    returns.given_more_time,
]


@pytest.mark.parametrize("play", [*MODELS, *SUMMARIES, *RETURNS])
async def test_a_record_played_again_shows_no_difference(tmp_path: Path, play: Play) -> None:
    recorded = read((await play(tmp_path)).lines())
    assert compare(recorded, await replay(recorded, tmp_path / "replay")) == []


async def test_a_summary_that_is_not_made_today_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = await summaries.outgrown(tmp_path)
    monkeypatch.setattr("app.engine.agent.room._NEWEST", 1.0)
    difference = compare(recorded, await replay(recorded, tmp_path / "replay"))
    assert "-    summary: ## What the person wants" in difference


async def test_a_summary_that_is_made_only_today_is_told_of(tmp_path: Path) -> None:
    recorded = await summaries.outgrown(tmp_path)
    eager = await replay(_eager(recorded), tmp_path / "replay")
    assert any("The record has no summary here" in line for line in compare(recorded, eager))


def _eager(record: TaskRecord) -> TaskRecord:
    return replace(record, head=msgspec.structs.replace(record.head, summarise_at=0.3))
