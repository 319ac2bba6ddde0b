"""Sessions of other programs that went on after they were imported."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from errand.protocol.blocks import TextBlock
from errand.protocol.events import AgentUpdate, TaskMessage
from tests.engine.data.importers.test_real_sessions import conversations, sessions_of
from tests.engine.data.test_round_trip import Home, home
from tests.support.stored_records import on_both

_IN_LINES = ("gemini", "codex", "claude", "pi")


def longest_session(folder: Path) -> Path:
    return max(folder.rglob("*.jsonl"), key=lambda file: file.stat().st_size)


async def branch(data_home: Home) -> list[str]:
    """The longest conversation's nodes up to the head of its agent; `HOME` is the data folder."""
    conversation, _ = max(await conversations(data_home), key=lambda pair: len(pair[1]))
    (agent,) = await data_home.database.agents.list(conversation.id)
    path = await data_home.database.nodes.path(agent.head_id or "")
    return [msgspec.json.encode(node.blocks).decode().replace(str(data_home.paths.home), "HOME") for node in path]


@pytest.mark.parametrize("program", _IN_LINES)
async def test_growing_session_arrives_as_if_it_had_been_imported_at_its_end(tmp_path: Path, program: str) -> None:
    session = longest_session(sessions_of(program, tmp_path))
    lines = session.read_bytes().splitlines(keepends=True)
    async with home(tmp_path / "whole") as whole_home, home(tmp_path / "parts") as parts_home:
        await whole_home.take(session)
        for end in range(4, len(lines) + 1, 3):
            session.write_bytes(b"".join(lines[:end]))
            await parts_home.take(session)
        session.write_bytes(b"".join(lines))
        await parts_home.take(session)
        again = await parts_home.take(session)
        assert (again.conversations, again.grown, again.nodes) == (0, 0, 0)
        assert await branch(parts_home) == await branch(whole_home)


@on_both
async def test_person_who_went_on_here_keeps_their_place(tmp_path: Path) -> None:
    session = longest_session(sessions_of("pi", tmp_path))
    lines = session.read_bytes().splitlines(keepends=True)
    session.write_bytes(b"".join(lines[:8]))
    async with home(tmp_path / "home") as data_home:
        await data_home.take(session)
        ((conversation, nodes),) = await conversations(data_home)
        (agent,) = await data_home.database.agents.list(conversation.id)
        own = msgspec.structs.replace(
            nodes[0], id="node_own", parent_id=agent.head_id, blocks=(TextBlock(text="Go on here."),)
        )
        data_home.log.publish(TaskMessage(node=own))
        data_home.log.publish(
            AgentUpdate(agent=msgspec.structs.replace(agent, head_id=own.id, version=agent.version + 1))
        )
        await data_home.log.flush()
        session.write_bytes(b"".join(lines))
        done = await data_home.take(session)
        assert (done.conversations, done.grown, done.present) == (0, 1, 0)
        (agent,) = await data_home.database.agents.list(conversation.id)
        assert agent.head_id == own.id
        ((_, after),) = await conversations(data_home)
        assert len(after) == len(nodes) + 1 + done.nodes
        assert len({node.id for node in after}) == len(after)


async def test_agent_at_work_is_not_moved_and_the_new_messages_are_a_branch(tmp_path: Path) -> None:
    session = longest_session(sessions_of("pi", tmp_path))
    lines = session.read_bytes().splitlines(keepends=True)
    session.write_bytes(b"".join(lines[:8]))
    async with home(tmp_path / "home") as data_home:
        await data_home.take(session)
        ((conversation, _),) = await conversations(data_home)
        (agent,) = await data_home.database.agents.list(conversation.id)
        await data_home.locks.acquire(agent)
        session.write_bytes(b"".join(lines))
        done = await data_home.take(session)
        assert (done.grown, done.nodes > 0) == (1, True)
        assert await data_home.database.agents.list(conversation.id) == (agent,)


async def test_database_that_got_a_message_brings_only_that(tmp_path: Path) -> None:
    path = sessions_of("opencode", tmp_path) / "opencode.db"
    async with home(tmp_path / "home") as data_home:
        await data_home.take(path)
        with closing(sqlite3.connect(path)) as database:
            ((session_id,),) = database.execute("SELECT id FROM session WHERE title = 'Helpers'").fetchall()
            message_json = '{"role":"user","time":{"created":1795470000000}}'
            database.execute(
                "INSERT INTO message VALUES ('msg_zz', ?, 1795470000000, 0, ?)", (session_id, message_json)
            )
            text = '{"type":"text","text":"One more thing"}'
            database.execute("INSERT INTO part VALUES ('prt_zz', 'msg_zz', ?, 0, 0, ?)", (session_id, text))
            database.commit()
        done = await data_home.take(path)
        assert (done.conversations, done.grown, done.present, done.nodes) == (0, 1, 4, 1)
