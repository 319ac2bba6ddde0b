"""Deleting and pruning conversations in a whole engine: records, files, running tasks, and crashes in between."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from errand.engine.checkpoints.contents import id_of
from errand.engine.checkpoints.notes import noted_changes
from errand.engine.checkpoints.recorder import TaskCheckpoints
from errand.engine.core.errors import AgentBusy, Conflict, InvalidParams, NotFound
from errand.engine.data.conversation_files import summary
from errand.engine.data.remover import Remover
from errand.engine.storage.records.removal import Removal, begin
from errand.engine.tools.checkpoints import FileChange
from errand.protocol.conversations import Conversation
from errand.protocol.data import DataPruneResult
from errand.protocol.events import ConversationDeleted, ConversationUpdate
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import ModelServer, Reply
from tests.support.stored_records import on_both

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(100)


def model() -> ModelServer:
    return ModelServer(answer=lambda _: Reply(text="Done."))


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineParts]:
    async with engine_parts(tmp_path, model()) as parts:
        yield parts


def remover(parts: EngineParts) -> Remover:
    services = parts.services
    return Remover(
        services.log,
        services.database,
        services.runner.changes,
        services.locks,
        services.grants,
        services.checkpoints.baselines,
        services.paths,
    )


async def worked(parts: EngineParts, *attachments: str, own_folder: bool = False) -> Task:
    """A conversation with an ended task and its long output."""
    params = TaskStartParams(
        prompt="go",
        model="openai_compatible/test-model",
        api_base=parts.model.url,
        workspace=None if own_folder else str(parts.workspace),
        attachments=attachments,
    )
    task = await parts.services.runner.start(params)
    await parts.watcher.end(task.id)
    folder = parts.services.paths.outputs / task.id
    folder.mkdir(parents=True)
    (folder / "call.txt").write_text("long" * 100)
    return task


async def archived(parts: EngineParts, task: Task, *, days_ago: int = 0) -> Conversation:
    stored = await parts.services.database.conversations.get(task.conversation_id)
    assert stored is not None
    changed = datetime.now(UTC) - timedelta(days=days_ago)
    put_away = msgspec.structs.replace(stored, archived=True, updated_at=changed)
    parts.services.log.publish(ConversationUpdate(conversation=put_away))
    await parts.services.log.flush()
    return put_away


async def test_deleting_a_conversation_deletes_only_its_own_files(engine: EngineParts) -> None:
    paths = engine.services.paths
    shared, own = engine.workspace / "shared.png", engine.workspace / "own.png"
    shared.write_bytes(PICTURE)
    own.write_bytes(PICTURE + b"own")
    gone, stays = await worked(engine, str(shared), str(own), own_folder=True), await worked(engine, str(shared))
    await archived(engine, gone)
    await remover(engine).delete(gone.conversation_id)
    assert engine.watcher.events[-1] == ConversationDeleted(conversation_id=gone.conversation_id)
    assert [folder.name for folder in paths.outputs.iterdir()] == [stays.id]
    assert [file.name for file in paths.attachments.glob("*/*")] == ["shared.png"]
    assert list(paths.workspaces.iterdir()) == []
    assert await engine.services.database.removals.pending() == ()
    assert await engine.services.database.nodes.path(gone.id) == ()


async def test_what_tasks_replaced_in_files_is_deleted_unless_another_conversation_uses_it(engine: EngineParts) -> None:
    contents, log = engine.services.checkpoints.contents, engine.services.log
    gone, stays = await worked(engine), await worked(engine)
    shared, own = FileChange(engine.workspace / "a", b"shared", b"own"), FileChange(engine.workspace / "b", b"own", "")
    for task, changes in ((gone, (shared, own)), (stays, (FileChange(engine.workspace / "c", b"shared", b"c"),))):
        checkpoints = TaskCheckpoints(lambda task=task: task, log, engine.services.checkpoints.baselines)
        for change in changes:
            checkpoints.made(checkpoints.note("call", change))
    noted = checkpoints.note("call", FileChange(engine.workspace / "d", b"noted", b"d"))  # its event comes later
    await asyncio.sleep(0)
    await log.flush()
    await archived(engine, gone)
    await remover(engine).delete(gone.conversation_id)
    there = {text: contents.has(id_of(text)) for text in (b"shared", b"own", b"c", b"noted", b"d")}
    assert there == {b"shared": True, b"own": False, b"c": True, b"noted": True, b"d": True}
    left = {change.id: change.conversation_id for change in noted_changes(contents)}
    assert noted.id in left and set(left.values()) == {stays.conversation_id}


async def test_workspace_with_files_is_not_deleted(engine: EngineParts) -> None:
    task = await worked(engine, own_folder=True)
    work = Path(task.request.workspace) / "work.txt"
    work.write_text("mine")
    await archived(engine, task)
    await remover(engine).delete(task.conversation_id)
    assert work.read_text() == "mine"


async def test_only_an_archived_conversation_without_a_running_task_is_deleted(engine: EngineParts) -> None:
    with pytest.raises(NotFound):
        await remover(engine).delete("conv_none")
    done = await worked(engine)
    with pytest.raises(Conflict, match="Archive it first"):
        await remover(engine).delete(done.conversation_id)
    async with engine.services.locks.lock_conversation(done.conversation_id):
        await archived(engine, done)
        with pytest.raises(AgentBusy):
            await remover(engine).delete(done.conversation_id)
        with pytest.raises(AgentBusy):
            await engine.start(conversation_id=done.conversation_id)
    assert await engine.services.database.conversations.get(done.conversation_id) is not None


async def test_prune_counts_first_and_deletes_only_long_archived_conversations(engine: EngineParts) -> None:
    old, young, open_one = await worked(engine), await worked(engine), await worked(engine)
    await archived(engine, old, days_ago=40)
    await archived(engine, young, days_ago=20)
    counted = await remover(engine).prune(30, dry_run=True)
    assert (counted.conversations, counted.nodes) == (1, 2)
    assert counted.bytes > 400
    assert await engine.services.database.storage_stats.counts() == (3, 2)
    assert await remover(engine).prune(30, dry_run=False) == counted
    assert await remover(engine).prune(30, dry_run=False) == DataPruneResult(conversations=0, nodes=0, bytes=0)
    left = {folder.name for folder in engine.services.paths.outputs.iterdir()}
    assert left == {young.id, open_one.id}
    with pytest.raises(InvalidParams, match="days"):
        await remover(engine).prune(0, dry_run=True)


async def test_prune_deletes_unreferenced_pictures_except_recent_ones(engine: EngineParts) -> None:
    paths = engine.services.paths
    picture = engine.workspace / "named.png"
    picture.write_bytes(PICTURE)
    await worked(engine, str(picture))
    for name in ("old", "young"):
        (paths.attachments / name).mkdir()
        (paths.attachments / name / f"{name}.png").write_bytes(PICTURE)
    for folder in paths.attachments.iterdir():
        if folder.name != "young":
            os.utime(folder, (0, 0))
    await remover(engine).prune(30, dry_run=False)
    assert sorted(file.name for file in paths.attachments.glob("*/*")) == ["named.png", "young.png"]


async def test_rename_during_deletion_does_not_restore_the_conversation(engine: EngineParts) -> None:
    put_away = await archived(engine, await worked(engine))
    deleting = asyncio.create_task(remover(engine).delete(put_away.id))
    changes, title = engine.services.runner.changes, "Renamed"
    while not deleting.done():
        title += "."
        renamed = msgspec.structs.replace(put_away, title=title)
        with suppress(NotFound):
            await changes.change(put_away.id, lambda _, renamed=renamed: renamed)
        await asyncio.sleep(0)
    await deleting
    await engine.services.log.flush()
    assert title != "Renamed."
    assert not await engine.services.database.conversations.exists(put_away.id)


@on_both
async def test_remains_of_a_crashed_deletion_are_deleted_at_the_next_start(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, model()) as engine:
        task = await worked(engine)
        await archived(engine, task)
        database, log = engine.services.database, engine.services.log
        # As left by an engine that is killed after the commit.
        picture = engine.services.paths.attachments / "h" / "p.png"
        files = (str(engine.services.paths.outputs / task.id), str(picture))
        log.publish(
            ConversationDeleted(conversation_id=task.conversation_id),
            also=(begin(Removal(task.conversation_id, files)),),
        )
        await log.flush()
        picture.parent.mkdir()
        picture.write_bytes(PICTURE)
        (engine.services.paths.outputs / "task_of_nobody").mkdir()
        assert len(await database.removals.pending()) == 1
    async with engine_parts(tmp_path, model()) as engine:
        await remover(engine).sweep()
        assert await engine.services.database.removals.pending() == ()
        assert list(engine.services.paths.outputs.iterdir()) == []
        assert list(engine.services.paths.attachments.iterdir()) == []


async def test_data_summary_counts_existing_files(engine: EngineParts) -> None:
    await archived(engine, await worked(engine))
    await worked(engine)
    result = await summary(engine.services.database, engine.services.paths)
    parts = {part.name: part for part in result.parts}
    assert (result.conversations, result.archived) == (2, 1)
    assert parts["Long output"].bytes == 800 and parts["Long output"].files == 2
    assert parts["Records"].bytes > 4096 and parts["Records"].files == 1
    assert result.free_bytes > 0 and result.folder == str(engine.services.paths.home)


async def test_partly_deleted_conversation_is_not_listed_and_the_next_start_deletes_the_rest(
    engine: EngineParts,
) -> None:
    database = engine.services.database
    task = await worked(engine)
    await archived(engine, task)
    database.journal.put(begin(Removal(task.conversation_id, ())))
    await database.journal.flush()
    assert await database.conversations.get(task.conversation_id) is None
    assert (await database.conversations.page(archived=True)).conversations == ()
    assert await database.conversations.exists(task.conversation_id)
    await remover(engine).sweep()
    assert not await database.conversations.exists(task.conversation_id)
    assert await database.removals.pending() == ()
    assert engine.watcher.events[-1] == ConversationDeleted(conversation_id=task.conversation_id)
