"""Repositories that want to stop the engine: bombs, pipes where files should be, and drives that never answer."""

import asyncio
import os
from pathlib import Path

from app.engine.errors import InvalidParams
from app.protocol.tasks import Task, TaskStartParams
from tests.attacks.campaign import Campaign
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.hanging_folder import hanging_folder
from tests.support.model_server import ModelServer, Reply

# In YAML each line is nine times the one before it.
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
    return task.status == "completed"


async def test_skills_that_are_bombs_are_left_out(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Hello."))) as engine:
        for number in range(600):
            skill = engine.workspace / ".agents" / "skills" / f"s{number}" / "SKILL.md"
            skill.parent.mkdir(parents=True)
            skill.write_text(f"---\n{BOMB}name: *a11\ndescription: *a11\n---\n")
        assert await completed(engine, engine.workspace)
        remarks = [block for node in engine.watcher.nodes() if node.role == "system" for block in node.blocks]
        assert "and 499 more are left out" in str(remarks) and "what comes after it is left out" in str(remarks)


async def test_repositories_of_pipes_stop_nobody(tmp_path: Path, campaign: Campaign) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Hello."))) as engine:
        folders: list[Path] = []
        for number in range(campaign.rounds(12, 100)):
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
                for number in range(campaign.rounds(12, 100))
            ]
            hanging = await start_in(engine, tmp_path / "way there")
            assert await completed(engine, engine.workspace)
            assert not any(start.done() for start in starts)
            assert (await engine.services.database.tasks.get(hanging.id)) is not None
        for ended in await asyncio.gather(*starts, return_exceptions=True):
            assert isinstance(ended, InvalidParams) and "is not a folder" in str(ended)
        assert (await engine.watcher.end(hanging.id)).status == "completed"
