"""The methods of the data folder through the dispatcher."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from errand.engine.storage.records import nodes
from errand.engine.tools.sessions import WorkingFolder
from errand.protocol.data import DataImportResult, DataSummaryResult
from errand.protocol.events import ConversationDeleted, ConversationUpdate
from tests.support.connections import error_of, raw_client
from tests.support.engine_server import EngineServer
from tests.support.records import conversation, node
from tests.support.stored_records import on_both


async def fill(engine: EngineServer) -> None:
    """An open conversation and one that was archived long ago."""
    long_ago = datetime.now(UTC) - timedelta(days=400)
    for stored in (conversation("c1"), conversation("c2", at=long_ago, archived=True)):
        engine.log.publish(ConversationUpdate(conversation=stored))
        engine.database.journal.put(nodes.save(node(f"n-{stored.id}", conversation_id=stored.id)))
    await engine.log.flush()


async def test_archived_conversation_is_deleted_once_and_announced_to_all(engine: EngineServer) -> None:
    await fill(engine)
    async with raw_client(engine) as client, raw_client(engine, client_id="other") as other:
        await other.ask("subscribe", 1, scope="all", detail="summary")
        refused = error_of(await client.ask("conversation/delete", 1, conversationId="c1"))
        assert refused[1] == "conflict" and "Archive it first" in refused[2]
        assert "result" in await client.ask("conversation/delete", 2, conversationId="c2")
        assert "result" in await client.ask("conversation/delete", 2, conversationId="c2")
        assert error_of(await client.ask("conversation/delete", 3, conversationId="c2"))[1] == "not_found"
        assert (await other.event()).event == ConversationDeleted(conversation_id="c2")


async def test_what_tools_left_running_ends_with_a_deleted_conversation(engine: EngineServer) -> None:
    await fill(engine)
    sessions = engine.services.tools.sessions
    stays, goes = (sessions.get(name, WorkingFolder, WorkingFolder) for name in ("c1", "c2"))
    async with raw_client(engine) as client:
        await client.ask("conversation/delete", 1, conversationId="c2")
    assert sessions.find("c1", WorkingFolder) is stays
    assert goes is not None and sessions.find("c2", WorkingFolder) is None


async def test_a_dry_run_changes_nothing(engine: EngineServer) -> None:
    await fill(engine)
    async with raw_client(engine) as client:
        counted = (await client.ask("data/prune", 1, days=90))["result"]
        assert isinstance(counted, dict) and (counted["conversations"], counted["nodes"]) == (1, 1)
        summed = msgspec.convert((await client.ask("data/summary", 2))["result"], DataSummaryResult)
        assert (summed.conversations, summed.archived) == (2, 1)
        assert (await client.ask("data/prune", 3, days=90, dryRun=False))["result"] == counted
        assert error_of(await client.ask("data/prune", 4, days=0))[1] == "invalid_params"


@on_both
async def test_the_size_of_the_records_is_told_wherever_they_are(engine: EngineServer) -> None:
    await fill(engine)
    async with raw_client(engine) as client:
        summed = msgspec.convert((await client.ask("data/summary", 1))["result"], DataSummaryResult)
    (records,) = [part for part in summed.parts if part.name == "Records"]
    assert records.bytes > 100_000 and records.files == 1
    if engine.services.settings.values.database_url:
        assert (records.path, records.server[:7]) == ("", "errand_")
    else:
        assert (records.path, records.server) == (str(engine.services.paths.database), "")


@on_both
async def test_export_can_be_imported_after_a_deletion(engine: EngineServer, tmp_path: Path) -> None:
    await fill(engine)
    path = str(tmp_path / "one.jsonl")
    async with raw_client(engine) as client:
        await client.ask("data/export", 1, path=path, conversationIds=["c2"])
        assert error_of(await client.ask("data/export", 2, path=path))[1] == "conflict"
        assert error_of(await client.ask("data/export", 3, path="one.jsonl"))[1] == "invalid_params"
        await client.ask("conversation/delete", 4, conversationId="c2")
        taken = (await client.ask("data/import", 5, path=path))["result"]
        assert msgspec.convert(taken, DataImportResult) == DataImportResult(
            source="Errand", conversations=1, nodes=1, present=0
        )
        assert "result" in await client.ask("conversation/get", 6, conversationId="c2")
        assert error_of(await client.ask("data/import", 7, path=str(tmp_path / "none")))[1] == "invalid_params"


async def test_markdown_is_one_file_or_a_folder_of_them(engine: EngineServer, tmp_path: Path) -> None:
    await fill(engine)
    folder, file = tmp_path / "pages", tmp_path / "one.md"
    async with raw_client(engine) as client:
        await client.ask("data/export", 1, path=str(folder), format="markdown")
        assert len(list(folder.glob("2026-01-02-A-title-*.md"))) == 2
        assert error_of(await client.ask("data/export", 2, path=str(folder), format="markdown"))[1] == "conflict"
        await client.ask("data/export", 3, path=str(file), format="markdown", conversationIds=["c1"])
        assert file.read_text().startswith("# A title\n")
