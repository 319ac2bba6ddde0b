"""A database from another data directory finds its pictures and workspaces in this one."""

from pathlib import Path

import msgspec

from errand.cli.recovery.restore import adapt_database
from errand.engine.storage.records import conversations, nodes, tasks
from errand.engine.storage.sql.statements import to_json
from errand.protocol.base import JsonObject
from errand.protocol.blocks import ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.groups import Queued
from errand.protocol.tasks.task import replace_fields
from errand.system.database_file import copy_database
from errand.system.paths import Paths
from tests.engine.data.test_round_trip import Home, home
from tests.support.databases import execute
from tests.support.flat_tasks import FLAT_TASK, TASK, back_to_flat_tasks
from tests.support.records import NOW, conversation, node, task

FOLDER = "a1b2c3"


async def fill(old: Home) -> Node:
    """A picture in a message, a queued one, and paths in texts and arguments."""
    path = str(old.paths.attachments / FOLDER / "ü.png")
    blocks = (
        TextBlock(text=f'It is {{"path":"{path}"}}'),
        ImageBlock(media_type="image/png", path=path, name="ü.png"),
        ImageBlock(media_type="image/png", data="aGk="),
        ToolCallBlock(call_id="1", tool="shell", arguments={"path": path}),
        ToolResultBlock(
            call_id="1", tool="x", text="", is_error=False, images=(ImageBlock(media_type="image/png", data="aGk="),)
        ),
    )
    message = msgspec.structs.replace(node("n1"), blocks=blocks)
    waiting = Queued(id="q1", kind="steer", text="also", queued_at=NOW, attachments=(path, "/elsewhere/b.txt"))
    own = str(old.paths.workspaces / "c1")
    for write in (
        conversations.save(msgspec.structs.replace(conversation("c1"), workspace=own)),
        conversations.save(msgspec.structs.replace(conversation("c2"), workspace="/nowhere/workspaces/other")),
        nodes.save(message),
        *tasks.add(replace_fields(task("t1"), workspace=own, queue=(waiting,))),
    ):
        old.database.journal.put(write)
    await old.database.journal.flush()
    return message


async def test_pictures_and_default_workspaces_move_to_this_folder_and_other_paths_stay(tmp_path: Path) -> None:
    here = Paths(tmp_path / "new")
    here.prepare()
    async with home(tmp_path / "old") as old:
        message = await fill(old)
    copy_database(old.paths.database, here.database)
    adapt_database(here.database, here)
    adapt_database(here.database, here)
    picture = str(here.attachments / FOLDER / "ü.png")
    async with home(here.home) as new:
        (came,) = await new.database.nodes.path("n1")
        expected = msgspec.structs.replace(message.blocks[1], path=picture)
        assert came == msgspec.structs.replace(message, blocks=(message.blocks[0], expected, *message.blocks[2:]))
        assert [hit.node_id for hit in await new.database.search.find("ü.png")] == ["n1"]
        first, second = [await new.database.conversations.get(conversation_id) for conversation_id in ("c1", "c2")]
        assert first is not None and second is not None
        assert (first.workspace, second.workspace) == (str(here.workspaces / "c1"), "/nowhere/workspaces/other")
        assert (here.workspaces / "c1").is_dir()
        waits = await new.database.tasks.get("t1")
        assert waits is not None and waits.request.workspace == first.workspace
        assert waits.queue[0].attachments == (picture, "/elsewhere/b.txt")
        assert await new.database.storage_stats.pictures("c1") == frozenset({picture, "/elsewhere/b.txt"})


async def test_a_database_of_this_folder_stays_as_it_is(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as new:
        await fill(new)
        (new.paths.workspaces / "c1").mkdir()
    copy_database(new.paths.database, tmp_path / "copy.db")
    before = (tmp_path / "copy.db").read_bytes()
    adapt_database(tmp_path / "copy.db", new.paths)
    assert (tmp_path / "copy.db").read_bytes() == before


async def test_a_task_of_an_older_database_is_adapted_too(tmp_path: Path) -> None:
    here = Paths(tmp_path / "new")
    here.prepare()
    async with home(tmp_path / "old") as old:
        await fill(old)
        decoys: JsonObject = {"options": {"approve": "plan"}, "request": {}}
        flat = FLAT_TASK | decoys | {"approve": "all", "workspace": str(old.paths.workspaces / "c1")}
        await execute(old.database, "UPDATE tasks SET body = :body", {"body": to_json(flat)})
        await back_to_flat_tasks(old.database)
    copy_database(old.paths.database, here.database)
    adapt_database(here.database, here)
    async with home(here.home) as new:
        came = await new.database.tasks.get("t1")
        assert came == replace_fields(
            TASK,
            workspace=str(here.workspaces / "c1"),
            approve="ask",
            network="asked",
            resumes=False,
            retry_at=None,
        )
