"""Checks and notices at the start of a task."""

import shutil
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.errors import ConfigurationError, InvalidParams, StorageError
from errand.protocol.blocks import NoticeBlock
from errand.protocol.tasks.methods import TaskStartParams
from errand.text.notice_text import notice_text
from tests.support.databases import execute
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import Call, ModelServer, Reply


def params(engine: EngineParts, **changes: str | float) -> TaskStartParams:
    defaults = TaskStartParams(
        prompt="go", model="openai_compatible/test-model", api_base=engine.model.url, workspace=str(engine.workspace)
    )
    return msgspec.structs.replace(defaults, **changes)


async def test_task_in_a_missing_workspace_is_refused_with_a_reason(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Hello.")])) as engine:
        first = await engine.watcher.end((await engine.start()).id)
        shutil.rmtree(engine.workspace)
        with pytest.raises(InvalidParams, match="workspace of this conversation is gone"):
            await engine.start(conversation_id=first.conversation_id)


@pytest.mark.usefixtures("bare_commands")
async def test_model_is_told_when_the_workspace_disappears_during_a_task(tmp_path: Path) -> None:
    command = Reply(calls=(Call("shell", {"command": "rm -r $PWD"}), Call("shell", {"command": "true"})))
    async with engine_parts(tmp_path, ModelServer(replies=[command, Reply(text="It is gone.")])) as engine:
        await engine.watcher.end((await engine.start()).id)
        assert "is gone" in str(engine.model.requests[1].messages[-1]["content"])


async def test_a_chosen_thinking_level_that_is_not_sent_is_said_once(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Hello."))) as engine:
        conversation_id: str | None = None
        for level in ("high", "high", "low"):
            start_params = msgspec.structs.replace(
                params(engine, thinking_level=level), conversation_id=conversation_id, mode="chat"
            )
            start_params = msgspec.structs.replace(start_params, workspace=None) if conversation_id else start_params
            task = await engine.services.runner.start(start_params)
            conversation_id = task.conversation_id
            await engine.watcher.end(task.id)
        assert notices(engine) == [
            f"The thinking level “{level}” was not sent: how openai_compatible/test-model takes it is unknown. "
            "Its default applies."
            for level in ("high", "low")
        ]


async def test_nothing_is_said_of_the_thinking_level_of_a_personality(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Hello.")])) as engine:
        task = await engine.start(personality_id="coder", mode="chat")
        assert (await engine.watcher.end(task.id)).request.thinking_level == "medium"
        assert notices(engine) == []


def notices(engine: EngineParts) -> list[str]:
    return [notice_text(b) for node in engine.watcher.nodes() for b in node.blocks if isinstance(b, NoticeBlock)]


async def test_a_password_in_the_api_base_is_refused_before_it_is_stored(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        with pytest.raises(InvalidParams, match="password"):
            await engine.services.runner.start(params(engine, api_base="http://me:secret@localhost:1/v1"))
        with pytest.raises(InvalidParams, match="not a web address"):
            await engine.services.runner.start(params(engine, api_base="http://[::1"))
        assert (await engine.services.database.tasks.page()).tasks == ()


async def test_an_agent_without_its_conversation_is_refused(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        with pytest.raises(InvalidParams, match="conversationId"):
            await engine.services.runner.start(params(engine, agent_id="agent_1"))


async def test_budget_for_a_model_without_a_price_is_reported_as_unenforceable(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Hello.")])) as engine:
        started = await engine.services.runner.start(params(engine, budget_usd=1.0))
        await engine.watcher.end(started.id)
        assert [node.role for node in engine.watcher.nodes()] == ["user", "system", "assistant"]
        (notice,) = engine.watcher.nodes()[1].blocks
        assert isinstance(notice, NoticeBlock) and "the budget has no effect" in notice_text(notice)


async def test_refused_task_leaves_no_folder(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        with pytest.raises(ConfigurationError):
            await engine.services.runner.start(TaskStartParams(prompt="go", model="nowhere/x"))
        assert list(engine.services.paths.workspaces.glob("*")) == []


@pytest.mark.parametrize("task_id", ["", "../other", "a b", "a\0", "x" * 101])
async def test_invalid_task_id_is_refused(tmp_path: Path, task_id: str) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        with pytest.raises(InvalidParams, match="taskId"):
            await engine.start(task_id=task_id)


async def test_default_address_is_used_only_for_models_of_unknown_providers(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(text="Hi."), Reply(text="Hi.")])) as engine:
        engine.services.settings.set("default_api_base", engine.model.url)
        workspace, runner = str(engine.workspace), engine.services.runner
        own = await runner.start(TaskStartParams(prompt="go", workspace=workspace, model="openai_compatible/x"))
        scripted_task = await runner.start(TaskStartParams(prompt="go", workspace=workspace, model="scripted/note"))
        assert (own.request.api_base, scripted_task.request.api_base) == (engine.model.url, None)
        await runner.stop(scripted_task.id, "me")
        for task in (own, scripted_task):
            await engine.watcher.end(task.id)


async def test_thinking_level_of_the_settings_is_the_default(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(text="Hi.")])) as engine:
        engine.services.settings.set("thinking_level", "high")
        assert (await engine.watcher.end((await engine.start()).id)).request.thinking_level == "high"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"max_turns": 0}, "maxTurns must be from 1 to 1,000,000"),
        ({"max_turns": 2**63}, "maxTurns must be from 1 to 1,000,000"),
        ({"budget_usd": -1.0}, "budgetUsd must be more than 0"),
        ({"budget_usd": 1e300}, "budgetUsd must be more than 0"),
        ({"budget_usd": float("nan")}, "budgetUsd must be more than 0"),
    ],
)
async def test_meaningless_limits_are_refused(tmp_path: Path, changes: dict[str, float], says: str) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        with pytest.raises(InvalidParams, match=says):
            await engine.services.runner.start(params(engine, **changes))


@pytest.mark.parametrize("table", ["nodes", "agents"])
async def test_a_task_whose_start_the_database_refuses_does_not_stay_running(tmp_path: Path, table: str) -> None:
    refuse = f"CREATE TRIGGER refuse BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'not today'); END"
    async with engine_parts(tmp_path, ModelServer()) as engine:
        await execute(engine.services.database, refuse)
        with pytest.raises(StorageError, match="not today"):
            await engine.start()
        (task,) = (await engine.services.database.tasks.page()).tasks
        assert (task.activity.status, task.outcome.stop_reason) == ("error", "error")
        assert task.outcome.error is not None and "not today" in task.outcome.error
