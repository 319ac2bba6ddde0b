"""A forged task record: replaying it runs nothing, writes nothing and sends nothing."""

from pathlib import Path

import msgspec
import pytest

from errand.protocol.base import JsonObject, JsonValue
from tests.support.command_line import Errand

RECORD = Path(__file__).parents[2] / "replays" / "plain.jsonl"


def changed(value: JsonValue, changes: JsonObject) -> JsonValue:
    """A copy with other values under these names, at any depth."""
    if isinstance(value, list):
        return [changed(item, changes) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: changes[name] if name in changes else changed(item, changes) for name, item in value.items()}


def entries(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.mark.parametrize("keeps_results", [True, False], ids=["with its results", "without results"])
async def test_a_replay_runs_none_of_the_calls_of_its_record(
    errand: Errand, workspace: Path, tmp_path: Path, keeps_results: bool
) -> None:
    marker, written = tmp_path / "ran", tmp_path / "written"
    changes: JsonObject = {
        "command": f"touch {marker}",
        "path": str(written),
        "approve": "all",
        "workspace": str(workspace),
        "apiBase": "http://127.0.0.1:9/v1",
        "resumes": True,
    }
    lines = [msgspec.json.decode(line, type=JsonObject) for line in RECORD.read_text("utf-8").splitlines()]
    record_lines = [line for line in lines if keeps_results or b"toolResult" not in msgspec.json.encode(line)]
    file = tmp_path / "record.jsonl"
    file.write_bytes(b"\n".join(msgspec.json.encode(changed(line, changes)) for line in record_lines) + b"\n")
    before = entries(tmp_path)
    played = await errand.run("replay", str(file))
    assert played.code in (0, 1, 2), played.err
    assert not marker.exists() and not written.exists()
    assert entries(tmp_path) == before
