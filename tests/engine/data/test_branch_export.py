"""Lossless export of one branch, and its import as a whole conversation."""

from pathlib import Path

import msgspec

from errand.engine.data.json_export import export_json
from errand.engine.storage.records import nodes
from errand.protocol.data import DataExportParams, DataImportResult
from errand.text.redaction import Redactor
from tests.engine.data.test_round_trip import fill, home


async def test_exported_branch_is_imported_as_a_conversation_with_the_same_end(tmp_path: Path) -> None:
    path = tmp_path / "branch.jsonl"
    async with home(tmp_path / "old") as old, home(tmp_path / "new") as new:
        await fill(old)
        params = DataExportParams(path=str(path), conversation_ids=("c1",), leaf_id="n3")
        assert (await export_json(old.database, old.paths, Redactor(), params)).nodes == 2
        assert await new.take(path) == DataImportResult(
            source="Errand", conversations=1, nodes=2, present=0, calls=0, pictures=1
        )
        (agent,) = await new.database.agents.list("c1")
        assert [node.id for node in await new.database.nodes.path(agent.head_id or "")] == ["n1", "n3"]
        assert await new.database.tasks.of_conversation("c1") == ()


async def test_branch_export_contains_the_tasks_of_the_branch(tmp_path: Path) -> None:
    path = tmp_path / "branch.jsonl"
    async with home(tmp_path / "old") as old, home(tmp_path / "new") as new:
        await fill(old)
        (first,) = await old.database.nodes.several(["n2"])
        old.database.journal.put(nodes.save(msgspec.structs.replace(first, task_id="t1")))
        await old.database.journal.flush()
        params = DataExportParams(path=str(path), conversation_ids=("c1",), leaf_id="n2")
        await export_json(old.database, old.paths, Redactor(), params)
        await new.take(path)
        assert [task.id for task in await new.database.tasks.of_conversation("c1")] == ["t1"]
        assert len(await new.database.executions.of_task("t1")) == 1
        assert [ask.id for ask in await new.database.asks.page(task_ids=("t1",))] == ["k1"]
