"""A task's record is replayed offline and reports where the loop behaves differently."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from errand.engine.agent.history.attachments import load_images
from errand.engine.core.errors import InvalidParams
from errand.engine.core.messages import Message, ModelMessage
from errand.engine.record.diff import compare
from errand.engine.record.format import TaskRecord, read
from errand.engine.record.replay import replay
from tests.support.recorded_tasks import cut, extended, failed, interrupted, plain, steered, stopped

RECORDS = Path(__file__).parents[2] / "replays"


@pytest.mark.parametrize("play", [plain, stopped, steered, interrupted, cut, extended, failed])
async def test_replayed_record_shows_no_difference(
    tmp_path: Path, play: Callable[[Path], Awaitable[TaskRecord]]
) -> None:
    recorded = read((await play(tmp_path)).lines())
    assert compare(recorded, await replay(recorded, tmp_path / "replay")) == []


@pytest.mark.parametrize("name", ["plain", "stopped", "steered"])
async def test_replays_of_stored_records_show_no_difference(tmp_path: Path, name: str) -> None:
    recorded = read((RECORDS / f"{name}.jsonl").read_text("utf-8").splitlines())
    assert compare(recorded, await replay(recorded, tmp_path)) == []


async def test_changed_loop_shows_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgetful(messages: Sequence[Message]) -> Sequence[ModelMessage]:
        return [message for message in await load_images(messages) if message.role != "tool_result"]

    monkeypatch.setattr("errand.engine.agent.run.task_builder.load_images", forgetful)
    recorded = read((RECORDS / "plain.jsonl").read_text("utf-8").splitlines())
    difference = compare(recorded, await replay(recorded, tmp_path))
    assert [line for line in difference if line.startswith(("-    ", "+    "))] == [
        "-    result of ask_user call_0: blue",
        "-    result of code call_a: Created a.txt (+1 −0)",
        "-    result of code call_b: Created b.txt (+1 −0)",
        "-    error of shell call_0: (no output)",
        "-    [exit code 3]",
    ]


async def test_task_that_continues_beyond_its_record_is_reported(tmp_path: Path) -> None:
    lines = (RECORDS / "plain.jsonl").read_text("utf-8").splitlines()
    cut = read([line for line in lines if "task_complete" not in line])
    difference = compare(cut, await replay(cut, tmp_path))
    assert "+end: error (error) after 4 turns" in difference


def test_invalid_record_file_is_refused_with_the_line_number() -> None:
    with pytest.raises(InvalidParams, match="Line 1 is not one of a record"):
        read(["{}"])
    with pytest.raises(InvalidParams, match="Line 1 is not one of a record: maximum recursion depth"):
        read(['{"recordVersion":2,"task":' + "[" * 5_000 + "]" * 5_000 + "}"])
    with pytest.raises(InvalidParams, match="no record of a task"):
        read([])
