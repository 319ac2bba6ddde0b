"""Export and import reproduce any tree; invalid content is refused."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from random import Random

import msgspec
import pytest
from sqlalchemy import select

from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.agent.tasks.locks import AgentLocks
from errand.engine.core.errors import Conflict, InvalidParams, NotFound
from errand.engine.core.settings import Settings
from errand.engine.data.importer import Importer
from errand.engine.data.json_export import export_json
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, asks, conversations, executions, grants, nodes, tasks, turns
from errand.engine.storage.records.turns import TurnRow
from errand.engine.storage.sql import tables
from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.protocol.blocks import FileBlock, ImageBlock, SummaryBlock, TextBlock, ToolCallBlock
from errand.protocol.conversations import Conversation, Node, TurnTaking
from errand.protocol.data import DataExportParams, DataExportResult, DataImportResult
from errand.protocol.tasks.groups import Queued
from errand.protocol.tasks.task import AgentPlan, replace_fields
from errand.protocol.usage import Usage
from errand.system.paths import Paths
from errand.text.redaction import Redactor
from tests.engine.storage.test_audit import finished, started
from tests.support.flat_tasks import FLAT_TASK, TASK
from tests.support.records import NOW, agent, ask, conversation, grant, node, task
from tests.support.stored_records import place_records

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
TABLES = ("conversations", "agents", "tasks", "turns", "tool_executions", "asks", "nodes")


class Home:
    """A data folder with its database and event log."""

    def __init__(self, paths: Paths, database: Database, log: EventLog) -> None:
        self.paths = paths
        self.database = database
        self.log = log
        self.changes = ConversationChanges(log, database)
        self.locks = AgentLocks(database, PendingAsks(log, database.asks))

    async def export(self, path: Path, *ids: str, overwrite: bool = False) -> DataExportResult:
        params = DataExportParams(path=str(path), conversation_ids=ids or None, overwrite=overwrite)
        return await export_json(self.database, self.paths, Redactor(), params)

    async def take(self, path: Path) -> DataImportResult:
        return await Importer(self.log, self.database, self.changes, self.locks, self.paths).run(path)

    def conversation(self) -> Conversation:
        """A conversation with its own folder."""
        return msgspec.structs.replace(conversation("c1"), workspace=str(self.paths.workspaces / "c1"))

    async def rows(self) -> str:
        """All rows without their numbers, in numeric order; `HOME` is this data folder."""
        rows = {table: await self._rows(table) for table in TABLES}
        return repr(rows).replace(str(self.paths.home), "HOME")

    async def ids(self, table: str) -> list[object]:
        """The first column of a table."""
        return [row[0] for row in await self._rows(table)]

    async def _rows(self, name: str) -> list[tuple[object, ...]]:
        every = list(tables.metadata.tables[name].columns)
        columns = [column for column in every if column.name != "number"]
        order = [column for column in every if column.name == "number"] or columns[:2]

        async def read(connection: AsyncConnection) -> list[tuple[object, ...]]:
            return [tuple(row) for row in await connection.execute(select(*columns).order_by(*order))]

        return await self.database.journal.transact(read)


@asynccontextmanager
async def home(folder: Path) -> AsyncGenerator[Home]:
    paths = Paths(folder)
    paths.prepare()
    place_records(paths)
    url = Settings(paths.settings).values.database_url or sqlite_url(paths.database)
    database = await Database.open(url, paths.copies)
    log = EventLog(database.journal, database.epoch, 0)
    try:
        yield Home(paths, database, log)
    finally:
        log.deltas.close()
        await database.close()


async def fill(data_home: Home) -> None:
    """A conversation with every kind of record, all ended."""
    picture = data_home.paths.attachments / "a1b2" / "photo.png"
    picture.parent.mkdir()
    picture.write_bytes(PICTURE)
    image = ImageBlock(media_type="image/png", path=str(picture), name="photo.png")
    call = ToolCallBlock(call_id="call_1", tool="shell", arguments={"command": "printf 'ü\u2028'", "n": None})
    summary = SummaryBlock(text="They looked.", until_id="n1", nodes=1, tokens_before=90, tokens_after=9)
    turns_of = TurnTaking(rule="moderator", limit=3, moderator_id="a1")
    held = msgspec.structs.replace(data_home.conversation(), kept=("n1",), turn_taking=turns_of)
    answered = replace_fields(
        task("t1", ended_at=NOW + timedelta(seconds=9)),
        workspace=held.workspace,
        decided="chat",
        limited_at=NOW,
        answer_schema={"type": "object"},
        answer={"a": [1, None]},
    )
    plan = AgentPlan(task_id="t1", turn=1, reasoning="Because.", tool_calls=(), question=None, is_complete=True)
    for write in (
        conversations.save(held),
        nodes.save(msgspec.structs.replace(node("n1"), blocks=(TextBlock(text="Look\n\x00"), image))),
        nodes.save(msgspec.structs.replace(node("n2", "n1"), blocks=(call,), usage=Usage(input_tokens=7))),
        nodes.save(node("n3", "n1", text="another branch")),
        nodes.save(msgspec.structs.replace(node("n4", "n3"), role="system", blocks=(summary,))),
        agents.save_agent(msgspec.structs.replace(agent("a1", 3, "n2"), color="teal", beside="a2", model="m")),
        *tasks.add(answered),
        turns.started("c1", "t1", 1, "m", NOW),
        turns.finished("t1", 1, "complete", Usage(input_tokens=7, cost_usd=0.25), NOW),
        turns.save_plan(plan),
        executions.started(started("x1")),
        executions.finished(finished("x1")),
        asks.save(msgspec.structs.replace(ask(), status="answered", answer="that")),
        grants.save(grant()),
    ):
        data_home.database.journal.put(write)
    await data_home.database.journal.flush()


async def test_conversation_round_trips_through_an_export(tmp_path: Path) -> None:
    async with home(tmp_path / "old") as old, home(tmp_path / "new") as new:
        await fill(old)
        result = await old.export(tmp_path / "all.json")
        size = (tmp_path / "all.json").stat().st_size
        assert result == DataExportResult(path=str(tmp_path / "all.json"), conversations=1, nodes=4, bytes=size)
        assert (tmp_path / "all.json").stat().st_mode & 0o777 == 0o600
        assert await new.take(tmp_path / "all.json") == DataImportResult(
            source="Errand", conversations=1, nodes=4, present=0, calls=1, pictures=1
        )
        (first,) = await new.database.nodes.path("n1")
        (picture,) = [block for block in first.blocks if isinstance(block, ImageBlock)]
        assert picture.path.startswith(str(new.paths.attachments)) and picture.name == "photo.png"
        assert [copy.read_bytes() for copy in new.paths.attachments.glob("*/photo.png")] == [PICTURE]
        copied = Path(picture.path).parent.name
        was = (await old.rows()).replace("HOME/attachments/a1b2", f"HOME/attachments/{copied}")
        assert await new.rows() == was
        assert [hit.node_id for hit in await new.database.search.find("branch")] == ["n3"]
        assert await new.database.grants.all() == ()
        assert await new.take(tmp_path / "all.json") == DataImportResult(
            source="Errand", conversations=0, nodes=0, present=1
        )
        assert await new.rows() == was


async def test_running_task_is_imported_as_stopped_with_its_unread_messages(tmp_path: Path) -> None:
    async with home(tmp_path / "old") as old, home(tmp_path / "new") as new:
        waiting = Queued(id="q1", kind="steer", text="also", queued_at=NOW)
        under_way = replace_fields(task("t1"), approve="all", current_tool="shell", queue=(waiting,))
        for write in (
            conversations.save(conversation("c1")),
            nodes.save(node("n1", status="streaming")),
            *tasks.add(under_way),
            asks.save(ask()),
        ):
            old.database.journal.put(write)
        await old.database.journal.flush()
        await old.export(tmp_path / "one.json", "c1")
        await new.take(tmp_path / "one.json")
        came = await new.database.tasks.get("t1")
        assert (
            came is not None
            and "does not go on here" in (came.outcome.error or "")
            and "“also”" in (came.outcome.error or "")
        )
        assert came == replace_fields(
            under_way,
            workspace=str(new.paths.workspaces / "c1"),
            status="cancelled",
            stop_reason="manual_stop",
            error=came.outcome.error,
            ended_at=NOW,
            approve="ask",
            current_tool=None,
            queue=(),
        )
        assert await new.database.asks.waiting() == ()
        assert await new.database.nodes.path("n1") == (node("n1", status="cut"),)


async def test_imported_tasks_do_not_resume_by_themselves(tmp_path: Path) -> None:
    async with home(tmp_path / "old") as old, home(tmp_path / "new") as new:
        at_rest = replace_fields(task("t1"), status="interrupted", resumes=True, approve="all")
        limited = replace_fields(task("t2"), status="paused", retry_at=NOW)
        for write in (conversations.save(conversation("c1")), *tasks.add(at_rest), *tasks.add(limited)):
            old.database.journal.put(write)
        await old.database.journal.flush()
        await old.export(tmp_path / "one.json", "c1")
        await new.take(tmp_path / "one.json")
        for task_id in ("t1", "t2"):
            came = await new.database.tasks.get(task_id)
            assert came is not None
            assert (came.activity.status, came.options.approve, came.activity.resumes, came.activity.retry_at) == (
                "cancelled",
                "ask",
                False,
                None,
            )


@pytest.mark.parametrize("seed", range(8))
async def test_odd_trees_round_trip_in_their_order(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    tree_nodes: list[Node] = []
    for number in range(random.choice((0, 1, 60))):
        parents = [None, *(tree_node.id for tree_node in tree_nodes[-random.choice((1, 5, 60)) :])]
        text = "".join(chr(random.choice((10, 32, 34, 92, 0x2028, 0xE000, 0x1F600, 97))) for _ in range(20))
        tree_nodes.append(node(f"n{number}", random.choice(parents), text=text))
    async with home(tmp_path / "old") as old, home(tmp_path / "new") as new:
        old.database.journal.put(conversations.save(old.conversation()), *map(nodes.save, tree_nodes))
        if tree_nodes:
            old.database.journal.put(agents.save_agent(agent("a1", 1, random.choice(tree_nodes).id)))
        await old.database.journal.flush()
        await old.export(tmp_path / "tree.json")
        lines = (tmp_path / "tree.json").read_text().split("\n")
        middle = lines[2:-2]
        random.shuffle(middle)
        await new.take(tmp_path / "tree.json")
        assert await new.rows() == await old.rows()
        async with home(tmp_path / "shuffled") as shuffled:
            (tmp_path / "shuffled.json").write_text("\n".join([*lines[:2], *middle, *lines[-2:]]))
            await shuffled.take(tmp_path / "shuffled.json")
            assert sorted(map(str, await shuffled.ids("nodes"))) == sorted(tree_node.id for tree_node in tree_nodes)


async def test_truncated_export_keeps_complete_conversations_and_says_so(tmp_path: Path) -> None:
    async with home(tmp_path / "old") as old, home(tmp_path / "new") as new:
        for name in ("c1", "c2"):
            old.database.journal.put(
                conversations.save(conversation(name)), nodes.save(node(f"n-{name}", conversation_id=name))
            )
        await old.database.journal.flush()
        await old.export(tmp_path / "all.json")
        lines = (tmp_path / "all.json").read_text().splitlines(keepends=True)
        (tmp_path / "cut.json").write_text("".join(lines[:-1]))
        with pytest.raises(InvalidParams, match=r"ends here, in the middle\. 1 conversations before"):
            await new.take(tmp_path / "cut.json")
        assert await new.ids("conversations") == ["c1"]


HEADER = '{"errand_export":1,"exported_at":"2026-01-02T03:04:05Z","home":""}'
NESTED = "[" * 5_000 + "]" * 5_000


def line(kind: str, record: object) -> str:
    return msgspec.json.encode({"type": kind, "record": record}).decode()


async def test_a_file_whose_tasks_have_no_groups_is_imported(tmp_path: Path) -> None:
    of_a_person = {"parentId": None, "depth": 0, "title": "", "callId": "", "callTurn": 0, "follows": None}
    flat = line("task", FLAT_TASK | of_a_person)
    end = '{"type":"end","conversations":1,"nodes":0}'
    lines = [HEADER.replace("1", "2", 1), line("conversation", conversation()), flat, end]
    (tmp_path / "old.json").write_text("\n".join([*lines, ""]), "utf-8")
    async with home(tmp_path / "new") as new:
        await new.take(tmp_path / "old.json")
        came = await new.database.tasks.get("t1")
        assert came is not None
        assert (came.progress, came.outcome) == (TASK.progress, TASK.outcome)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["no json"], "not a file that Errand exported"),
        (['{"errand_export":4,"exported_at":"2026-01-02T03:04:05Z"}'], "Update Errand first"),
        ([HEADER, line("node", node("n1"))], "a conversation should begin here"),
        ([HEADER, f'{{"type":"node","record":{NESTED}}}'], "line 2: maximum recursion depth"),
        (
            [
                HEADER.replace("1", "3", 1),
                line("conversation", conversation()),
                line("task", TASK).replace('"answer":{"n":1}', f'"answer":{NESTED}'),
            ],
            "line 3: maximum recursion depth",
        ),
        ([HEADER, line("conversation", {"id": "c1"})], "line 2: Object missing required field"),
        ([HEADER, line("conversation", conversation("../x"))], "an id that is not"),
        ([HEADER, line("conversation", conversation()), line("node", node("n1", "n9"))], "a message without parent"),
        (
            [
                HEADER,
                line("conversation", conversation()),
                line("node", node("n1", "n2")),
                line("node", node("n2", "n1")),
            ],
            "in a circle",
        ),
        ([HEADER, line("conversation", conversation()), line("node", node("n1", None, "c2"))], "of another"),
        ([HEADER, line("conversation", conversation()), line("agent", agent("a1", 1, "n5"))], "a head that is nowhere"),
        ([HEADER, line("conversation", conversation()), line("ask", ask())], "a task that is not there"),
        (
            [HEADER, line("conversation", conversation()), '{"type":"picture","path":"/p","name":"../p","data":""}'],
            "not a valid picture name",
        ),
        ([HEADER, line("conversation", conversation()), line("node", node("taken"))], "here already"),
    ],
)
async def test_invalid_conversation_is_refused_and_leaves_nothing(
    tmp_path: Path, lines: list[str], reason: str
) -> None:
    async with home(tmp_path / "home") as here:
        here.database.journal.put(
            conversations.save(conversation("mine")), nodes.save(node("taken", conversation_id="mine"))
        )
        await here.database.journal.flush()
        before = await here.rows()
        (tmp_path / "bad.json").write_text("\n".join([*lines, '{"type":"end","conversations":1,"nodes":1}', ""]))
        with pytest.raises(InvalidParams, match=reason):
            await here.take(tmp_path / "bad.json")
        assert await here.rows() == before


async def test_missing_picture_is_named_and_never_read(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as here:
        stranger = ImageBlock(media_type="image/png", path="/etc/passwd", name="cat.png")
        bad = msgspec.structs.replace(node("n1"), blocks=(stranger,))
        lines = [HEADER, line("conversation", conversation()), line("node", bad)]
        (tmp_path / "x.json").write_text("\n".join([*lines, '{"type":"end","conversations":1,"nodes":1}', ""]))
        await here.take(tmp_path / "x.json")
        (came,) = await here.database.nodes.path("n1")
        assert came.blocks == (FileBlock(path="/etc/passwd", name="cat.png", size=0),)


async def test_export_overwrites_only_on_request(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as here:
        await fill(here)
        target = tmp_path / "mine.txt"
        target.write_text("mine")
        with pytest.raises(Conflict, match="is there already"):
            await here.export(target)
        with pytest.raises(NotFound):
            await here.export(tmp_path / "none.json", "c9")
        with pytest.raises(InvalidParams, match="no folder"):
            await here.export(tmp_path / "nowhere" / "x.json")
        assert target.read_text() == "mine"
        assert sorted(os.listdir(tmp_path)) == ["home", "mine.txt"]
        assert (await here.export(target, overwrite=True)).conversations == 1


def test_a_turn_in_an_export_has_every_column() -> None:
    assert {field.name for field in fields(TurnRow)} == set(tables.turns.c.keys())
