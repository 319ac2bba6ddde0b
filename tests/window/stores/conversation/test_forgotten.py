"""An open conversation in which texts are forgotten: its rows, its tree and its title lose them at once."""

from pathlib import Path

import pytest

from errand.client.conversation.rows import ReplyRow, StepRow, TaskEndRow, ToolCallRow, UserRow
from errand.engine.agent.tasks.task_target import NO_TITLE
from errand.protocol.base import JsonObject
from errand.text.notice_text import FORGOTTEN
from errand.window.stores.conversation.tree import TreeStore
from tests.support.engine_parts import EngineParts, branch
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.store_engine import Mirror, store_engine
from tests.support.window import until

pytestmark = pytest.mark.usefixtures("qapp", "bare_commands")


async def forget_all(engine: EngineParts, conversation_id: str) -> None:
    nodes = await branch(engine, conversation_id)
    await engine.services.forgetter.forget([node.id for node in nodes], "a person")


def told(mirror: Mirror) -> str:
    """Everything that the rows have."""
    return "\n".join(map(repr, mirror.rows))


async def test_rows_tree_and_title_of_an_open_conversation_lose_what_is_forgotten(tmp_path: Path) -> None:
    replies = [
        Reply(text="I look at the quokka.", thinking="Quokka?", calls=(Call("shell", {"command": "echo quokka"}),)),
        Reply(text="The quokka is there."),
    ]
    async with store_engine(tmp_path, ModelServer(replies)) as engine:
        task = await engine.parts.start("find the quokka")
        store, mirror = await engine.open(task.conversation_id)
        await mirror.until("TaskEnd")
        tree = TreeStore(store, engine.stores.session)
        tree.open()
        await until(lambda: [line.text for line in tree.lines] == ["find the quokka"])
        await forget_all(engine.parts, task.conversation_id)
        await until(lambda: "quokka" not in told(mirror).casefold())
        await until(lambda: [line.text for line in tree.lines] == [FORGOTTEN])
        listed = engine.stores.conversations
        await until(
            lambda: (conversation := listed.get(task.conversation_id)) is not None and conversation.title == NO_TITLE
        )
        kinds = [type(row) for row in mirror.rows]
        assert kinds == [UserRow, ReplyRow, ToolCallRow, StepRow, ReplyRow, TaskEndRow]
        texts = [
            row.text if isinstance(row, UserRow) else row.markdown
            for row in mirror.rows
            if isinstance(row, UserRow | ReplyRow)
        ]
        assert texts == [FORGOTTEN] * 3
        card = mirror.rows[2]
        assert isinstance(card, ToolCallRow) and card.result is not None
        assert (card.call.arguments, card.result.text, card.result.summary) == ({}, FORGOTTEN, FORGOTTEN.lower())
        rows_before = list(mirror.rows)
        store.load()
        await until(lambda: store.is_current)
        assert list(mirror.rows) == rows_before


async def test_the_task_of_a_sub_agent_stays_at_its_place_in_the_tree(tmp_path: Path) -> None:
    order: JsonObject = {"title": "Look", "prompt": "look for the quokka"}
    replies = [
        Reply(calls=(Call("task", order),)),
        Reply(calls=(Call("task_complete", {"summary": "There is none."}),)),
        Reply(text="None."),
    ]
    async with store_engine(tmp_path, ModelServer(replies)) as engine:
        task = await engine.parts.start("go")
        store, mirror = await engine.open(task.conversation_id)
        await mirror.until("TaskEnd")
        tree = TreeStore(store, engine.stores.session)
        tree.open()
        await until(lambda: tree.is_loaded)
        before = [(line.node_id, line.text) for line in tree.lines]
        assert any("quokka" in text for _, text in before)
        nodes = engine.parts.watcher.nodes()
        result = next(node for node in nodes if node.role == "tool_result" and node.task_id == task.id)
        done = await engine.parts.services.forgetter.forget([result.id], "a person")
        assert (done.nodes, done.tasks) == (2, 1)  # the order to the sub-agent went with the call
        await until(lambda: not any("quokka" in line.text for line in tree.lines))
        assert [line.node_id for line in tree.lines] == [node_id for node_id, _ in before]
