"""`--json` of the commands that change something: one object of the protocol, and nothing else on standard output."""

import asyncio
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from errand.protocol.changes import ChangeUndoResult
from errand.protocol.conversations import Conversation
from errand.protocol.data import DataExportResult, DataPruneResult
from errand.protocol.tasks.task import Task
from tests.support.command_line import Errand, Finished, rest
from tests.support.flat_tasks import printed_task
from tests.support.model_server import Call, ModelServer, Reply

pytestmark = pytest.mark.usefixtures("bare_commands")

Shape = TypeVar("Shape")

MODEL = ("--model", "openai_compatible/test-model", "--approve", "all", "--api-base")


async def test_a_task_at_work_is_paused_changed_and_stopped(errand: Errand) -> None:
    gate = asyncio.Event()
    async with ModelServer(replies=[Reply(text="Done.", gate=gate)]) as server:
        running = await errand.start("run", *MODEL, server.url, "work")
        await server.request(0)
        task = await errand.task("thinking")
        approvals = _only(await errand.run("approvals", task.id, "plan", "--json"), Conversation)
        mode = _only_task(await errand.run("mode", task.id, "task", "--json"))
        paused = _only_task(await errand.run("pause", task.id, "--json"))
        stopped = _only_task(await errand.run("stop", task.id, "--json"))
        again = _only_task(await errand.run("stop", task.id, "--json"))
        await rest(running)
    assert (approvals.id, approvals.approve) == (task.conversation_id, "plan")
    assert (mode.id, mode.options.mode, paused.id) == (task.id, "task", task.id)
    assert (stopped.activity.status, stopped.outcome.stop_reason, again) == ("cancelled", "manual_stop", stopped)


async def test_what_is_kept_of_a_task_is_recorded_exported_undone_and_deleted(errand: Errand, workspace: Path) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "echo new > note"}),)), Reply(text="Written.")]
    async with ModelServer(turns=replies) as server:
        assert (await errand.run("run", *MODEL, server.url, "write a note to be undone")).code == 0
    task = await errand.task("completed")
    record = await errand.run("record", task.id, "--json")
    written = await errand.run("record", task.id, "--to", "record.jsonl")
    undone = _only(await errand.run("undo", task.id, "--json"), ChangeUndoResult)
    export = _only(await errand.run("export", task.conversation_id, "--to", "one.jsonl", "--json"), DataExportResult)
    pruned = _only(await errand.run("prune", "--days", "1", "--json"), DataPruneResult)
    refused = await errand.run("delete", task.conversation_id, "--yes", "--json")
    await errand.run("archive", task.conversation_id)
    unsure = await errand.run("delete", task.conversation_id, "--json")
    deleted = _only(await errand.run("delete", "write a note to be undone", "--yes", "--json"), Conversation)
    assert (record.code, written.code) == (0, 0), record.err
    assert (workspace / "record.jsonl").read_text().splitlines()[1:] == record.out.splitlines()[1:]
    assert [change.path for change in undone.changes] == [str(workspace / "note")]
    assert (export.conversations, pruned.conversations) == (1, 0)
    assert (refused.code, "Archive it first" in refused.err, unsure.code) == (2, True, 2)
    assert deleted.id == task.conversation_id
    checked = await errand.run("doctor", "--json")
    assert {"state", "subject", "text", "advice"} == {*checked.lines[0]}
    assert "Confirm with --yes" in str(unsure.lines[0]["error"])
    neither = await errand.run("record", task.id)
    assert (neither.code, "--to FILE, or use --json" in neither.err) == (2, True)


def _only(done: Finished, shape: type[Shape]) -> Shape:
    (line,) = done.out.splitlines()
    assert done.code == 0
    return msgspec.json.decode(line, type=shape)


def _only_task(done: Finished) -> Task:
    (line,) = done.out.splitlines()
    assert done.code == 0
    return printed_task(line)
