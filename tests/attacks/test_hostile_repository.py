"""Hostile repositories: zip bombs, pipes instead of files, and drives that never respond."""

import asyncio
import os
from pathlib import Path

from errand.engine.core.errors import InvalidParams
from errand.engine.data.importer import Importer
from errand.engine.data.json_export import export_json
from errand.protocol.blocks import NoticeBlock
from errand.protocol.data import DataExportParams
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task
from errand.text.notice_text import notice_text
from errand.text.redaction import Redactor
from tests.attacks.campaign import Campaign
from tests.support.disks import hanging_folder
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.loop_parts import until
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

# In YAML each line expands to nine times the previous one.
BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{number}: &a{number} [{','.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 12)
)


async def start_in(engine: EngineParts, folder: Path) -> Task:
    params = TaskStartParams(
        prompt="go",
        model="openai_compatible/test-model",
        api_base=engine.model.url,
        api_key="sk-test-key-of-the-tests",
        workspace=str(folder),
    )
    return await engine.services.runner.start(params)


async def completed(engine: EngineParts, folder: Path) -> bool:
    task = await engine.watcher.end((await start_in(engine, folder)).id)
    return task.activity.status == "completed"


async def test_skills_that_are_bombs_are_left_out(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Hello."))) as engine:
        for number in range(600):
            skill = engine.workspace / ".agents" / "skills" / f"s{number}" / "SKILL.md"
            skill.parent.mkdir(parents=True)
            skill.write_text(f"---\n{BOMB}name: *a11\ndescription: *a11\n---\n")
        assert await completed(engine, engine.workspace)
        blocks = [block for node in engine.watcher.nodes() if node.role == "system" for block in node.blocks]
        remarks = " ".join(notice_text(block) for block in blocks if isinstance(block, NoticeBlock))
        assert "and 499 more were skipped" in remarks and "those after it were left out" in remarks


async def test_repositories_of_pipes_stop_nobody(tmp_path: Path, campaign: Campaign) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Hello."))) as engine:
        folders: list[Path] = []
        for number in range(campaign.rounds(6, 100)):
            folder = tmp_path / f"repository {number}"
            (folder / "skills").mkdir(parents=True)
            if number % 2:
                os.mkfifo(folder / ".git")
            else:
                (folder / ".git").mkdir()
                os.mkfifo(folder / ".git" / "HEAD")
            os.mkfifo(folder / "AGENTS.md")
            (folder / ".agents" / "skills" / "pipe").mkdir(parents=True)
            os.mkfifo(folder / ".agents" / "skills" / "pipe" / "SKILL.md")
            folders.append(folder)
        assert all(await asyncio.gather(*(completed(engine, folder) for folder in folders)))


async def test_drives_that_never_answer_cost_only_who_works_there(tmp_path: Path, campaign: Campaign) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Hello."))) as engine:
        (tmp_path / "way there").mkdir()
        (tmp_path / "way there" / "AGENTS.md").symlink_to(tmp_path / "gone" / "AGENTS.md")
        with hanging_folder(tmp_path / "gone") as gone:
            starts = [
                asyncio.create_task(start_in(engine, gone / f"repository {number}"))
                for number in range(campaign.rounds(6, 100))
            ]
            hanging = await start_in(engine, tmp_path / "way there")
            assert await completed(engine, engine.workspace)
            assert not any(start.done() for start in starts)
            assert (await engine.services.database.tasks.get(hanging.id)) is not None
        for ended in await asyncio.gather(*starts, return_exceptions=True):
            assert isinstance(ended, InvalidParams) and "is not a folder" in str(ended)
        assert (await engine.watcher.end(hanging.id)).activity.status == "completed"


async def test_tools_imports_and_exports_that_hang_cost_nobody_else(tmp_path: Path, campaign: Campaign) -> None:
    reading = Reply(calls=(Call("code", {"action": "read", "path": "gone/file"}),))

    def answer(request: ReceivedRequest) -> Reply:
        return reading if "read it" in str(request.messages[-1]["content"]) else Reply(text="Hello.")

    async with engine_parts(tmp_path, ModelServer(answer=answer)) as engine:
        services = engine.services
        importer = Importer(services.log, services.database, services.runner.changes, services.locks, services.paths)
        with hanging_folder(engine.workspace / "gone") as gone:
            waiting: list[asyncio.Task[object]] = []
            for number in range(campaign.rounds(6, 100)):
                params = DataExportParams(path=str(gone / f"{number}" / "all.jsonl"))
                waiting.append(asyncio.create_task(importer.run(gone / f"{number}" / "all.jsonl")))
                waiting.append(asyncio.create_task(export_json(services.database, services.paths, Redactor(), params)))
            hanging = await engine.start("read it")
            assert await completed(engine, tmp_path)
            assert not any(attempt.done() for attempt in waiting)
        assert all(
            isinstance(attempt, InvalidParams) for attempt in await asyncio.gather(*waiting, return_exceptions=True)
        )
        assert (await engine.watcher.end(hanging.id)).activity.status == "completed"


async def test_an_engine_starts_though_a_task_was_interrupted_where_nothing_answers(tmp_path: Path) -> None:
    after = tmp_path / "after"
    writing = Reply(calls=(Call("shell", {"command": "echo begun > begun; sleep 1000"}),))
    async with engine_parts(tmp_path, ModelServer(replies=[writing])) as engine:
        task = await engine.start()
        await until(lambda: (engine.workspace / "begun").exists())
        await engine.services.log.flush()
        port = crash(engine, after)
        await engine.services.runner.stop(task.id, "test")
        await engine.watcher.end(task.id)
    os.rename(engine.workspace, tmp_path / "moved")
    with hanging_folder(engine.workspace):
        async with engine_parts(after, ModelServer(answer=lambda _: Reply(text="Hello."), port=port)) as again:
            assert await completed(again, tmp_path)
            (left,) = [
                listed for listed in (await again.services.database.tasks.page(10)).tasks if listed.id == task.id
            ]
            assert left.activity.status == "interrupted"
