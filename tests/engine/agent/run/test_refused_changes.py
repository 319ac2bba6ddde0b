"""A change that the database rejects ends its own task, with the reason, and no other."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from errand.protocol.blocks import NoticeBlock
from errand.protocol.conversations import Node
from errand.protocol.events import AgentUpdate
from errand.text.notice_text import notice_text
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

_STEPS = 6
_POISON = "a word that the database does not take"


def refuse(home: Path, where: str) -> None:
    """Make the database reject a change: `where` names the table and the condition."""
    with closing(sqlite3.connect(home / "data" / "errand.db")) as connection:
        for verb in ("INSERT", "UPDATE"):
            connection.execute(
                f"CREATE TRIGGER refuse_{verb} BEFORE {verb} ON {where} BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        connection.commit()


def innocent(request: ReceivedRequest) -> Reply:
    if request.turn == _STEPS:
        return DONE
    return Reply(calls=(Call("shell", {"command": f"echo {request.turn}"}),), piece_delay_s=0.001)


def notices(engine: EngineParts, task_id: str) -> list[str]:
    nodes = [node for node in engine.watcher.nodes() if node.task_id == task_id]
    return [notice_text(block) for node in nodes for block in node.blocks if isinstance(block, NoticeBlock)]


async def stored(engine: EngineParts, task_id: str, agent_id: str) -> tuple[Node, ...]:
    """The stored branch at the agent's head."""
    agent = await engine.services.database.agents.get(agent_id)
    assert agent is not None and agent.head_id is not None
    return await engine.services.database.nodes.path(agent.head_id)


async def test_turn_that_cannot_be_stored_ends_only_its_own_task(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        if "guilty" in str(request.messages):
            return Reply(calls=(Call("shell", {"command": "echo no"}),), usage=(666, 666))
        return innocent(request)

    async with engine_parts(tmp_path, ModelServer(answer=answer)) as engine:
        refuse(tmp_path, "turns WHEN new.output_tokens = 666")
        bystanders = [await engine.start(f"bystander {number}") for number in range(2)]
        guilty = [await engine.start("guilty") for _ in range(2)]
        for task in guilty:
            ended = await engine.watcher.end(task.id)
            assert (ended.activity.status, ended.outcome.error) == (
                "error",
                "Not saved: refused. Everything saved before is kept.",
            )
            assert notices(engine, task.id) == ["Not saved: refused. Everything saved before is kept."]
        for task in bystanders:
            assert (await engine.watcher.end(task.id)).activity.status == "completed"


async def test_reply_that_cannot_be_stored_is_dropped_and_the_head_stays_at_a_stored_node(tmp_path: Path) -> None:
    replies = [Reply(text=_POISON), Reply(text="This one is fine.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        refuse(tmp_path, f"nodes WHEN new.body LIKE '%{_POISON}%'")
        task = await engine.start("say something")
        ended = await asyncio.wait_for(engine.watcher.end(task.id), 10)
        assert ended.activity.status == "error"
        assert ended.outcome.error == "Not saved: refused. Everything saved before is kept."
        expected_notice = "The end of the task could not be saved. Not saved: refused. Everything saved before is kept."
        assert notices(engine, task.id) == [expected_notice]
        path = await stored(engine, task.id, task.agent_id)
        assert [node.role for node in path] == ["user", "system"]
        node_ids = [node.id for node in engine.watcher.nodes()]
        assert node_ids == [node.id for node in path]
        heads = {event.agent.head_id for event in engine.watcher.events if isinstance(event, AgentUpdate)}
        assert heads <= {None, *node_ids}, "clients were told of a head that is not there"

        again = await engine.start("once more", conversation_id=task.conversation_id)
        assert (await engine.watcher.end(again.id)).activity.status == "completed"
        path = await stored(engine, again.id, again.agent_id)
        assert [node.role for node in path] == ["user", "system", "user", "assistant"]


async def test_result_that_cannot_be_stored_ends_the_task_and_keeps_everything_before_it(tmp_path: Path) -> None:
    replies = [Reply(text="I look.", calls=(Call("shell", {"command": f"echo {_POISON}"}),)), DONE]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        refuse(tmp_path, "nodes WHEN new.role = 'tool_result'")
        task = await engine.start("look")
        ended = await asyncio.wait_for(engine.watcher.end(task.id), 10)
        assert ended.activity.status == "error"
        path = await stored(engine, task.id, task.agent_id)
        assert [node.role for node in path] == ["user", "assistant", "system"]
        assert len(engine.model.requests) == 1
