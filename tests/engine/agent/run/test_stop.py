"""Stopping and pausing a task, and what ends with it."""

import asyncio
from pathlib import Path

import psutil
import pytest

from errand.engine.core.errors import IllegalMove
from errand.protocol.blocks import NoticeBlock, TextBlock
from errand.protocol.notices import TaskStopped
from errand.text.notice_text import notice_text
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until


async def test_stop_closes_the_model_request_and_adds_a_notice(tmp_path: Path) -> None:
    server = ModelServer(replies=[Reply(text="A long story", stall_after=2)])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        request = await server.request(0)
        await engine.watcher.until(lambda: any(node.status == "streaming" for node in engine.watcher.nodes()))
        assert (await engine.services.runner.stop(started.id, "me")).activity.stopping
        task = await engine.watcher.end(started.id)
        await asyncio.wait_for(request.gone.wait(), 5)
        assert (task.activity.status, task.outcome.stop_reason, task.activity.stopping) == (
            "cancelled",
            "manual_stop",
            False,
        )
        reply, notice = engine.watcher.nodes()[-2:]
        assert (reply.status, reply.blocks) == ("cut", (TextBlock(text="A long s"),))
        assert (notice.role, notice.blocks) == ("system", (NoticeBlock(kind="stopped", data=TaskStopped(by="me")),))


@pytest.mark.usefixtures("bare_commands")
async def test_stop_ends_every_process_including_those_in_other_sessions(tmp_path: Path) -> None:
    note = "echo $$ >> pids"
    command = f"setsid sh -c '{note}; exec sleep 60' & (setsid sh -c '{note}; exec sleep 61' &); {note}; exec sleep 62"
    async with engine_parts(tmp_path, ModelServer(turns=[shell(command)])) as engine:
        started = await engine.start()
        pids = await _lines(engine.workspace / "pids", 3)
        await engine.services.runner.stop(started.id, "me")
        assert (await engine.watcher.end(started.id)).activity.status == "cancelled"
        assert not any(psutil.pid_exists(int(pid)) for pid in pids)
        (notice,) = engine.watcher.nodes()[-1].blocks
        assert isinstance(notice, NoticeBlock) and all(f"(pid {pid})" in notice_text(notice) for pid in pids)


@pytest.mark.parametrize(("count", "left"), [(1, "1 process left"), (2, "2 processes left")])
async def test_stop_says_how_many_processes_are_left(tmp_path: Path, count: int, left: str) -> None:
    others = "sh -c 'echo $$ >> pids; exec sleep 60' & " * (count - 1)
    command = f"trap '' TERM; {others} echo $$ >> pids; exec sleep 61"
    async with engine_parts(tmp_path, ModelServer(turns=[shell(command)])) as engine:
        started = await engine.start()
        await _lines(engine.workspace / "pids", count)
        await engine.services.runner.stop(started.id, "me")
        assert (await engine.watcher.end(started.id)).activity.detail == ""
        assert f"stopping, {left}" in [
            task.activity.detail for task in engine.watcher.tasks(started.id) if task.activity.stopping
        ]


async def test_a_second_stop_changes_nothing_and_one_after_the_end_is_refused(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("sleep 60")])) as engine:
        started = await engine.start()
        await engine.watcher.task(started.id, lambda task: task.activity.status == "tool_executing")
        await engine.services.runner.stop(started.id, "me")
        await engine.services.runner.stop(started.id, "me too")
        await engine.watcher.end(started.id)
        with pytest.raises(IllegalMove):
            await engine.services.runner.stop(started.id, "me")


async def test_stop_while_a_question_waits_cancels_the_ask(tmp_path: Path) -> None:
    ask = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with engine_parts(tmp_path, ModelServer(turns=[ask])) as engine:
        started = await engine.start(attended=True)
        waiting = await engine.watcher.ask(started.id)
        await engine.services.runner.stop(started.id, "me")
        assert (await engine.watcher.end(started.id)).activity.status == "cancelled"
        stored = await engine.services.database.asks.get(waiting.id)
        assert stored is not None and stored.status == "cancelled"


@pytest.mark.usefixtures("bare_commands")
async def test_leftover_processes_of_a_finished_command_end_with_the_task(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("sleep 77 & echo $! > pid"), DONE])) as engine:
        assert (await engine.watcher.end((await engine.start()).id)).activity.status == "completed"
        (pid,) = await _lines(engine.workspace / "pid", 1)
        assert not psutil.pid_exists(int(pid))
        (notice,) = engine.watcher.nodes()[-1].blocks
        assert isinstance(notice, NoticeBlock) and "sleep 77" in notice_text(notice)


async def test_pause_holds_the_next_step_until_resume(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[Reply(calls=(Call("send_update", {"message": "hi"}),), gate=gate), DONE])
    async with engine_parts(tmp_path, server) as engine:
        runner = engine.services.runner
        started = await engine.start()
        await server.request(0)
        await runner.pause(started.id)
        with pytest.raises(IllegalMove):
            await runner.pause(started.id)
        gate.set()
        await engine.watcher.task(started.id, lambda task: task.activity.status == "paused")
        assert len(server.requests) == 1
        await runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"


async def test_a_paused_task_can_be_stopped(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[Reply(calls=(Call("send_update", {"message": "hi"}),), gate=gate), DONE])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        await engine.services.runner.pause(started.id)
        gate.set()
        await engine.watcher.task(started.id, lambda task: task.activity.status == "paused")
        await engine.services.runner.stop(started.id, "me")
        assert (await engine.watcher.end(started.id)).activity.status == "cancelled"


async def _lines(file: Path, count: int) -> list[str]:
    """The file's lines once there are this many."""

    def read() -> list[str]:
        return file.read_text().split() if file.exists() else []

    await until(lambda: len(read()) >= count)
    return read()
