"""What must be on disk before an irreversible action, and what may follow a moment later."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from errand.engine.storage.sql.statements import Write
from errand.engine.storage.sqlite import engines
from errand.engine.storage.sqlite.writer import SqliteWriter
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply

Intent = tuple[str, bool]


async def intents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> list[Intent]:
    """The intents of a task with one call, in order, and whether each was on disk first."""
    recorded_intents: list[Intent] = []

    class Listening(SqliteWriter):
        async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
            await super().write(batch, durable=durable)
            for write in batch:
                table = str(write.statement.table)
                if table == "turns" and write.parameters.get("status") == "started":
                    recorded_intents.append(("model", durable))
                elif table == "tool_executions" and write.parameters.get("phase") == "started":
                    recorded_intents.append(("tool", durable))

    monkeypatch.setattr(engines, "SqliteWriter", Listening)
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(calls=(call,)), DONE])) as engine:
        (engine.workspace / "there.txt").write_text("words\n")
        task = await engine.start()
        assert (await engine.watcher.end(task.id)).activity.status == "completed"
    return recorded_intents[:3]  # the last call ends the task


async def test_the_intent_of_a_command_is_on_the_disk_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_intents = await intents(tmp_path, monkeypatch, Call("shell", {"command": "touch made"}))
    assert recorded_intents == [("model", False), ("tool", True), ("model", False)]


async def test_the_intent_of_a_write_is_on_the_disk_before_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Call("code", {"action": "write", "path": "made.txt", "content": "x"})
    recorded_intents = await intents(tmp_path, monkeypatch, write)
    assert recorded_intents == [("model", False), ("tool", True), ("model", False)]


async def test_the_intent_of_a_call_that_only_reads_may_reach_the_disk_a_moment_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_intents = await intents(tmp_path, monkeypatch, Call("code", {"action": "read", "path": "there.txt"}))
    assert recorded_intents == [("model", False), ("tool", False), ("model", False)]
