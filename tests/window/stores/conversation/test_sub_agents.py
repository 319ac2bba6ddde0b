"""Sub-agents in an open conversation: their place in the tree, their tasks as rows, ways to their branches."""

import asyncio
from pathlib import Path

import pytest

from errand.client.conversation.rows import ReplyRow, SpeakerRow, StepRow, UserRow
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.conversation.tree import TreeStore
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.store_engine import Mirror, StoreEngine, store_engine
from tests.support.window import until

pytestmark = pytest.mark.usefixtures("qapp")


def order(title: str, prompt: str) -> Call:
    return Call("task", {"description": title, "prompt": prompt}, id=f"call_{title}")


def reply(request: ReceivedRequest, gate: asyncio.Event | None = None) -> Reply:
    prompt = next(str(message["content"]) for message in request.messages if message["role"] == "user")
    replies = {
        "go": [Reply(text="I share it.", calls=(order("a", "# Part a"), order("b", "Part b"))), DONE],
        "# Part a": [Reply(calls=(order("c", "Part c"),)), Reply(text="A zebra of a.", gate=gate)],
        "Part b": [Reply(text="Report of b.")],
        "Part c": [Reply(text="Report of c.")],
        "more": [Reply(text="Nothing more.")],
    }
    last = str(request.messages[-1]["content"])
    return replies["more"][0] if last == "more" else replies[prompt][request.turn]


async def start(engine: StoreEngine, prompt: str = "go", conversation_id: str | None = None) -> Task:
    params = TaskStartParams(
        prompt=prompt,
        conversation_id=conversation_id,
        model="openai_compatible/test-model",
        api_base=engine.parts.model.url,
        approve="all",
    )
    return await engine.parts.services.runner.start(params)


async def opened_tree(engine: StoreEngine, task: Task) -> tuple[ConversationStore, Mirror, TreeStore]:
    store, mirror = await engine.open(task.conversation_id)
    tree = TreeStore(store, engine.stores.session)
    tree.open()
    await until(lambda: tree.is_loaded)
    return store, mirror, tree


def drawn(tree: TreeStore) -> list[str]:
    """A text for each line, indented by its depth; `(…)` is the caller."""
    lines: list[str] = []
    for line in tree.lines:
        caller = f" ({line.task_from})" if line.task_from else ""
        lines.append(f"{'  ' * line.depth}{line.text}{caller}{' <' if line.is_head else ''}")
    return lines


def node_of(tree: TreeStore, text: str) -> str:
    return next(line.node_id for line in tree.lines if line.text == text)


async def test_sub_agents_are_drawn_below_the_call_that_made_them(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with store_engine(tmp_path, ModelServer(answer=lambda request: reply(request, gate))) as engine:
        task = await start(engine)
        _, _, tree = await opened_tree(engine, task)
        working = ["go <", "  a (Assistant)", "    c (a)", "  b (Assistant)"]
        await until(lambda: sorted(drawn(tree)) == sorted(working))
        assert [line.lanes for line in tree.lines if line.text == "go"] == [()]
        assert None in {line.lanes[0] for line in tree.lines if line.depth == 1}  # nothing follows yet
        assert not any(line.count for line in tree.lines)
        gate.set()
        await engine.parts.watcher.end(task.id)
        await until(lambda: "task_complete <" in drawn(tree))
        assert None not in {line.lanes[0] for line in tree.lines if line.depth == 1}
        assert not any(line.count for line in tree.lines)


async def test_task_of_a_sub_agent_is_shown_as_markdown_under_the_name_of_its_caller(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(answer=reply)) as engine:
        task = await start(engine)
        await engine.parts.watcher.end(task.id)
        store, mirror, tree = await opened_tree(engine, task)
        tree.go_to(node_of(tree, "a"))
        await until(lambda: isinstance(mirror.rows[0], SpeakerRow))
        caller, text = mirror.rows[:2]
        assert isinstance(caller, SpeakerRow) and caller.speaker.name == "Task from Assistant"
        assert isinstance(text, ReplyRow) and text.markdown == "# Part a"
        shown_agent = store.agents.shown
        assert shown_agent is not None and shown_agent.name == "a"


async def test_hit_on_the_branch_of_a_sub_agent_selects_it_and_moves_no_head(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(answer=reply)) as engine:
        task = await start(engine)
        await engine.parts.watcher.end(task.id)
        store, mirror, tree = await opened_tree(engine, task)
        database = engine.parts.services.database
        heads = {agent.id: agent.head_id for agent in await database.agents.list(task.conversation_id)}
        (hit,) = [hit for hit in await database.search.find("zebra") if hit.role == "assistant"]
        reached: list[int] = []
        store.reached.connect(reached.append)
        store.seeker.seek(hit.node_id, switches=True)
        await until(lambda: bool(reached))
        heading, reply_row = mirror.rows[reached[-1] :][:2]
        assert isinstance(heading, StepRow) and heading.number == 2
        assert isinstance(reply_row, ReplyRow) and reply_row.markdown == "A zebra of a."
        assert {agent.id: agent.head_id for agent in await database.agents.list(task.conversation_id)} == heads
        tree.go_to(node_of(tree, "go"))
        await until(lambda: isinstance(mirror.rows[0], UserRow))
        first = store.agents.shown
        assert first is not None and first.called_by is None
        assert {agent.id: agent.head_id for agent in await database.agents.list(task.conversation_id)} == heads
