"""The tree of an open conversation: loaded from a real engine, updated by events, and switching branches."""

from pathlib import Path

import pytest

from errand.client.conversation.rows import ReplyRow, UserRow
from errand.protocol.tasks.methods import TaskRetryParams, TaskStartParams
from errand.protocol.tasks.task import Task
from errand.window.stores.conversation.tree import TreeStore
from tests.support.model_replies import DONE, shell
from tests.support.model_server import ModelServer, Reply
from tests.support.store_engine import Mirror, StoreEngine, store_engine
from tests.support.window import until

pytestmark = pytest.mark.usefixtures("qapp")

REPLIES = [Reply(text=text) for text in ("One.", "Two.", "Three.")]


async def say(engine: StoreEngine, prompt: str, task: Task | None = None, sibling_of: str | None = None) -> Task:
    conversation_id = task.conversation_id if task is not None else None
    params = TaskStartParams(
        prompt=prompt,
        conversation_id=conversation_id,
        sibling_of=sibling_of,
        model="openai_compatible/test-model",
        api_base=engine.parts.model.url,
        approve="all",
    )
    started = await engine.parts.services.runner.start(params)
    return await engine.parts.watcher.end(started.id)


async def retry(engine: StoreEngine, node_id: str) -> Task:
    started = await engine.parts.services.runner.retry(TaskRetryParams(node_id=node_id))
    return await engine.parts.watcher.end(started.id)


def texts(mirror: Mirror) -> list[str]:
    return [
        row.text if isinstance(row, UserRow) else row.markdown
        for row in mirror.rows
        if isinstance(row, UserRow | ReplyRow)
    ]


def said(tree: TreeStore) -> list[str]:
    return [f"{line.text}{' <' if line.is_head else ''}" for line in tree.lines]


async def test_the_tree_shows_all_branches_and_the_head_of_the_agent(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(replies=[shell("true"), DONE, Reply(text="Two.")])) as engine:
        first = await say(engine, "first")
        reply = engine.parts.watcher.nodes()[1]
        store, _ = await engine.open(first.conversation_id)
        tree = TreeStore(store, engine.stores.session)
        tree.open()
        await until(lambda: tree.is_loaded)
        assert (said(tree), tree.has_forks) == (["first <"], False)
        assert [(line.turns, [task.id for task in line.tasks]) for line in tree.lines] == [(2, [first.id])]
        second = await retry(engine, reply.id)
        await until(lambda: said(tree) == ["first", "Running.", "Two. <"] and tree.lines[-1].tasks[-1:] == (second,))
        assert tree.has_forks


async def test_reopening_the_tree_shows_what_happened_meanwhile(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(replies=REPLIES)) as engine:
        first = await say(engine, "first")
        store, _ = await engine.open(first.conversation_id)
        tree = TreeStore(store, engine.stores.session)
        tree.open()
        await until(lambda: said(tree) == ["first <"])
        tree.close()
        await say(engine, "second", first)
        tree.open()
        await until(lambda: said(tree) == ["first", "second <"])


async def test_going_to_another_branch_switches_and_to_the_same_one_scrolls(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(replies=REPLIES)) as engine:
        first = await say(engine, "first")
        message = engine.parts.watcher.nodes()[0]
        await say(engine, "second", first)
        await say(engine, "other", first, message.id)
        store, mirror = await engine.open(first.conversation_id)
        reached: list[int] = []
        store.reached.connect(reached.append)
        tree = TreeStore(store, engine.stores.session)
        tree.open()
        await until(lambda: said(tree) == ["first", "second", "other <"])
        tree.go_to(tree.lines[0].node_id)
        await until(lambda: reached == [0])
        assert texts(mirror) == ["first", "One.", "second", "Two."]
        await until(lambda: said(tree) == ["first", "second <", "other"])
        agent = store.agents.shown
        tree.go_to(tree.lines[1].node_id)
        await until(lambda: len(reached) == 2)
        assert store.rows.section_of(reached[1])[0] == tree.lines[1].node_id
        assert store.agents.shown == agent


async def test_during_a_task_the_tree_switches_no_branch_and_reports_it(tmp_path: Path) -> None:
    replies = [Reply(text="One."), Reply(text="Two."), shell("sleep 60")]
    async with store_engine(tmp_path, ModelServer(replies=replies)) as engine:
        first = await say(engine, "first")
        reply = engine.parts.watcher.nodes()[1]
        await retry(engine, reply.id)
        started = await engine.parts.start("work", conversation_id=first.conversation_id)
        await engine.parts.watcher.task(started.id, lambda task: task.activity.status == "tool_executing")
        store, _ = await engine.open(first.conversation_id)
        failures: list[str] = []
        store.failed.connect(failures.append)
        tree = TreeStore(store, engine.stores.session)
        tree.open()
        await until(lambda: said(tree) == ["first", "One.", "Two.", "work <"])
        tree.go_to(reply.id)
        assert failures and "working here" in failures[0]
        await engine.parts.services.runner.stop(started.id, "the test")
        await until(lambda: not store.branches.locked)
        tree.go_to(reply.id)
        await until(lambda: said(tree) == ["first", "One. <", "Two.", "work"])
