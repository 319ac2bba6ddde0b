"""Conversations with sub-agents as files: exported, imported again, and deleted."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import msgspec
import pytest

from errand.engine.data.importer import Importer
from errand.engine.data.json_export import export_json
from errand.engine.data.page_export import export_pages
from errand.protocol.agents import Agent
from errand.protocol.base import JsonObject
from errand.protocol.conversations import Node
from errand.protocol.data import DataExportParams, ExportFormat
from errand.protocol.events import ConversationUpdate
from errand.protocol.tasks.task import Task, replace_fields
from errand.text.redaction import Redactor
from tests.engine.data.test_removal import remover
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply


def order(*titles: str) -> Reply:
    calls = (Call("task", {"description": t, "prompt": f"**Do** {t}."}, id=f"call_{t}") for t in titles)
    return Reply(calls=tuple(calls))


def answer(request: ReceivedRequest) -> Reply:
    prompt = next(str(message["content"]) for message in request.messages if message["role"] == "user")
    replies = {
        "go": [order("a", "b"), DONE],
        "**Do** a.": [order("c"), Reply(text="Report of a.")],
        "**Do** b.": [Reply(text="Report of b.")],
        "**Do** c.": [Reply(text="Report of c.")],
    }
    return replies[prompt][request.turn]


@asynccontextmanager
async def delegated(home: Path) -> AsyncGenerator[tuple[EngineParts, Task]]:
    """An ended task with two sub-agents, the first of which had one itself."""
    async with engine_parts(home, ModelServer(answer=answer)) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        yield engine, task


@asynccontextmanager
async def other_engine(home: Path) -> AsyncGenerator[tuple[EngineParts, Importer]]:
    async with engine_parts(home, ModelServer(replies=[])) as engine:
        services = engine.services
        yield engine, Importer(services.log, services.database, services.runner.changes, services.locks, services.paths)


async def export(engine: EngineParts, task: Task, path: Path, form: ExportFormat, leaf_id: str | None = None) -> str:
    params = DataExportParams(
        path=str(path), format=form, conversation_ids=(task.conversation_id,), leaf_id=leaf_id, overwrite=True
    )
    await (export_json if form == "json" else export_pages)(
        engine.services.database, engine.services.paths, Redactor(), params
    )
    return await asyncio.to_thread(path.read_text, "utf-8")


async def records(engine: EngineParts, task: Task) -> tuple[tuple[Agent, ...], tuple[Task, ...], tuple[Node, ...]]:
    """Agents, tasks and nodes of the conversation."""
    database = engine.services.database
    links = await database.nodes.links(task.conversation_id)
    return (
        await database.agents.list(task.conversation_id),
        await database.tasks.of_conversation(task.conversation_id),
        await database.nodes.several([node_id for node_id, _ in links]),
    )


async def test_sub_agents_are_imported_with_their_tasks_branches_and_use(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with delegated(tmp_path) as (engine, task):
        await export(engine, task, tmp_path / "all.jsonl", "json")
        agents, tasks, nodes = await records(engine, task)
    async with other_engine(tmp_path_factory.mktemp("other")) as (other, importer):
        await importer.run(tmp_path / "all.jsonl")
        came = await records(other, task)
        own = str(other.services.paths.home / "workspaces" / task.conversation_id)
    moved = tuple(
        replace_fields(
            original,
            workspace=own,
            api_base=None,
            approve="ask",
            tools=(),
            max_turns=min(50, original.budget.max_turns),
            allowance=None,
        )
        for original in tasks
    )
    assert came == (agents, moved, nodes)
    assert sorted(node.task_from for node in nodes if node.task_from) == ["Assistant", "Assistant", "a"]


async def test_branch_of_the_caller_is_exported_without_its_sub_agents(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with delegated(tmp_path) as (engine, task):
        agents = await engine.services.database.agents.list(task.conversation_id)
        await export(engine, task, tmp_path / "branch.jsonl", "json", leaf_id=agents[0].head_id)
    async with other_engine(tmp_path_factory.mktemp("other")) as (other, importer):
        await importer.run(tmp_path / "branch.jsonl")
        assert await other.services.database.agents.list(task.conversation_id) == agents[:1]
        assert [
            imported.id for imported in await other.services.database.tasks.of_conversation(task.conversation_id)
        ] == [task.id]


async def test_pages_name_the_caller_of_a_sub_agent_and_link_its_branch_to_the_call(tmp_path: Path) -> None:
    async with delegated(tmp_path) as (engine, task):
        page = await export(engine, task, tmp_path / "page.html", "html")
        agents = {agent.name: agent for agent in await engine.services.database.agents.list(task.conversation_id)}
        text = await export(engine, task, tmp_path / "a.md", "markdown", leaf_id=agents["a"].head_id)
    heads = re.findall(r'<h2 class=branch id="([^"]*)">(.*?)</h2>\n<p class=muted>(.*?)</p>', page)
    assert sorted(title for _, title, _ in heads) == ["Sub-agent a", "Sub-agent b", "Sub-agent c"]
    links = dict(re.findall(r'<a href="#([^"]*)">(sub-agent .)</a>', page))
    assert links == {anchor: title.lower() for anchor, title, _ in heads}
    for _, _, about in heads:
        (call,) = re.findall(r'from <a href="#([^"]*)">its call</a> on', about)
        assert f'<article class="assistant" id="{call}">' in page
    assert page.count("<header><b>Task from Assistant</b>") == 2 and page.count("<header><b>Task from a</b>") == 1
    assert "<strong>Do</strong> a." in page
    assert "## Task from Assistant\n\n**Do** a.\n\n## a (openai_compatible/test-model)" in text


@pytest.mark.parametrize("depths", [(1, 1), (0, 0), (2, 1), (9, 8)])
async def test_tasks_that_claim_to_be_sub_agents_of_each_other_are_imported_as_plain_ones(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, depths: tuple[int, int]
) -> None:
    def in_a_circle(line: str) -> str:
        decoded = msgspec.json.decode(line, type=JsonObject)
        record = decoded.get("record")
        if decoded.get("type") == "task" and isinstance(record, dict) and record["id"] in ids:
            number = ids.index(str(record["id"]))
            origin = cast("JsonObject", record["origin"])
            record["origin"] = origin | {"parentId": ids[1 - number], "depth": depths[number]}
        return msgspec.json.encode(decoded).decode()

    async with delegated(tmp_path) as (engine, task):
        lines = (await export(engine, task, tmp_path / "all.jsonl", "json")).splitlines()
        tasks = await engine.services.database.tasks.of_conversation(task.conversation_id)
    ids = sorted(stored_task.id for stored_task in tasks if stored_task.origin.title in ("a", "c"))
    (tmp_path / "all.jsonl").write_text("\n".join(map(in_a_circle, lines)) + "\n")
    async with other_engine(tmp_path_factory.mktemp("other")) as (other, importer):
        await importer.run(tmp_path / "all.jsonl")
        came = {
            stored_task.id: stored_task
            for stored_task in await other.services.database.tasks.of_conversation(task.conversation_id)
        }
    above = {stored_task.id: stored_task.origin.parent_id for stored_task in came.values()}
    for start in above:
        seen = [start]
        while (parent := above[seen[-1]]) is not None:
            assert parent not in seen
            seen.append(parent)
    assert all(
        (stored_task.origin.depth == 0) == (stored_task.origin.parent_id is None) for stored_task in came.values()
    )


async def test_deleting_a_conversation_deletes_its_sub_agents(tmp_path: Path) -> None:
    async with delegated(tmp_path) as (engine, task):
        services = engine.services
        stored = await services.database.conversations.get(task.conversation_id)
        assert stored is not None
        services.log.publish(ConversationUpdate(conversation=msgspec.structs.replace(stored, archived=True)))
        await services.log.flush()
        await remover(engine).delete(task.conversation_id)
        assert await records(engine, task) == ((), (), ())
