"""Races: two clients with one task, messages and stops at the very end of a task."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from errand.engine.agent.tasks.locks import KeyedLock
from errand.engine.agent.tasks.restart import TaskResumption
from errand.engine.background import Background
from errand.engine.core.errors import IllegalMove
from errand.protocol.asks import AskAnswerParams
from errand.protocol.blocks import NoticeBlock
from errand.protocol.events import TaskUpdate
from errand.protocol.tasks.task import Task, replace_fields
from errand.text.notice_text import notice_text
from tests.support.disks import slow_disk
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply

UPDATE = Call("send_update", {"message": "hi"})


async def test_two_clients_that_start_one_task_id_at_once_get_one_task(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Once."))) as engine:
        first, second = await asyncio.gather(engine.start(task_id="mine"), engine.start(task_id="mine"))
        assert (first.id, first.conversation_id) == (second.id, second.conversation_id)
        await engine.watcher.end("mine")
        assert len((await engine.services.database.conversations.page()).conversations) == 1
        assert len(engine.model.requests) == 1


async def test_two_clients_that_resume_one_task_at_once_continue_it_once(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="A long story", stall_after=2)])) as engine:
        started = await engine.start()
        await engine.model.request(0)
        port = int(engine.model.url.split(":")[2].split("/")[0])
    server = ModelServer(answer=lambda request: Reply(text="Once."), port=port)
    async with engine_parts(tmp_path, server) as engine:
        runner = engine.services.runner
        outcomes = await asyncio.gather(runner.resume(started.id), runner.resume(started.id), return_exceptions=True)
        assert sum(isinstance(outcome, IllegalMove) for outcome in outcomes) == 1
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert len(server.requests) == 1


async def test_a_stop_and_a_resume_of_an_interrupted_task_leave_it_stopped(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="A long story", stall_after=2)])) as engine:
        started = await engine.start()
        await engine.model.request(0)
        port = int(engine.model.url.split(":")[2].split("/")[0])
    server = ModelServer(answer=lambda request: Reply(text="A long story", stall_after=2), port=port)
    async with engine_parts(tmp_path, server) as engine:
        runner = engine.services.runner
        await asyncio.gather(runner.resume(started.id), runner.stop(started.id, "me"))
        assert (await engine.watcher.end(started.id)).activity.status == "cancelled"
        after_end = engine.watcher.tasks(started.id)[-1]
        await engine.services.log.flush()
        assert engine.watcher.tasks(started.id)[-1] == after_end


@pytest.mark.parametrize("first", ["mode", "stop"])
async def test_a_stop_and_another_approval_mode_leave_an_interrupted_task_stopped(tmp_path: Path, first: str) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="A long story", stall_after=2)])) as engine:
        started = await engine.start(approve="ask")
        await engine.model.request(0)
    async with engine_parts(tmp_path, ModelServer()) as engine:
        services = engine.services
        for number in range(6):
            mode = services.runner.modes.change(
                started.conversation_id, ("edits", "ask")[number % 2], "me", attended=True
            )
            if number < 5:
                await mode
                continue
            stop = services.runner.stop(started.id, "me")
            await asyncio.gather(*((mode, stop) if first == "mode" else (stop, mode)))
        stored = await services.database.tasks.get(started.id)
        assert stored is not None and (stored.activity.status, stored.outcome.stop_reason) == (
            "cancelled",
            "manual_stop",
        )
        assert engine.watcher.tasks(started.id)[-1] == stored


async def test_a_task_that_is_stopped_before_it_is_resumed_after_a_restart_stays_stopped(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="A long story", stall_after=2)])) as engine:
        started = await engine.start(api_key=None)
        await engine.model.request(0)
    async with engine_parts(tmp_path, ModelServer()) as engine:
        services, background = engine.services, Background()
        stored = await services.database.tasks.get(started.id)
        assert stored is not None and stored.activity.status == "interrupted"
        services.log.publish(TaskUpdate(task=replace_fields(stored, resumes=True)))

        async def stop_and_resume(task_id: str) -> Task:
            await services.runner.stop(task_id, "me")
            return await services.runner.resume(task_id)

        resumption = TaskResumption(
            services.log,
            services.database,
            services.locks,
            KeyedLock(),
            lambda task_id: False,
            stop_and_resume,
            background,
        )
        await resumption.resume_tasks()
        await services.log.flush()
        await background.close()
        stored = await services.database.tasks.get(started.id)
        assert stored is not None and (stored.activity.status, stored.outcome.stop_reason) == (
            "cancelled",
            "manual_stop",
        )


async def test_task_accepts_messages_and_pause_from_its_start(tmp_path: Path) -> None:
    gate = asyncio.Event()  # else the task may have ended before the words come
    server = ModelServer(answer=lambda request: Reply(text="Read.", gate=gate))
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await engine.say(started.id, "rather that")
        gate.set()
        await engine.watcher.end(started.id)
        assert "rather that" in str(server.requests[-1].messages)


async def test_requests_while_the_end_is_being_saved_are_refused(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Hello.")])) as engine:
        runner = engine.services.runner
        started = await engine.start()
        refused: list[str] = []
        while not refused:
            try:
                task = await engine.say(started.id, "more")
            except IllegalMove:
                refused.append("steer")
            else:
                await asyncio.sleep(0)
        for move in (runner.pause, runner.resume):
            with pytest.raises(IllegalMove):
                await move(started.id)
        with suppress(IllegalMove):  # the end is being processed
            await runner.stop(started.id, "me")
        task = await engine.watcher.end(started.id)
        await engine.services.log.flush()
        assert (task.activity.stopping, task.activity.detail) == (False, "")
        assert await engine.services.database.tasks.get(started.id) == task
        last = [event.task for event in engine.watcher.events if isinstance(event, TaskUpdate)][-1]
        assert last == task


async def test_steering_message_during_completion_is_still_read(tmp_path: Path) -> None:
    command = Call("shell", {"command": "touch begun; until [ -e go ]; do sleep 0.01; done"})
    complete = Call("task_complete", {"summary": "all done"})
    replies = [Reply(calls=(complete, command, UPDATE)), Reply(text="Read it.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        started = await engine.start()
        await engine.watcher.task(started.id, lambda task: task.activity.current_tool == "shell")
        await engine.say(started.id, "one more thing")
        (engine.workspace / "go").touch()
        assert (await engine.watcher.end(started.id)).outcome.summary == "Read it."
        assert "one more thing" in str(engine.model.requests[1].messages)


async def test_unread_messages_are_in_the_end_notice(tmp_path: Path) -> None:
    server = ModelServer(replies=[Reply(text="A long story", stall_after=2)])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        await engine.say(started.id, "rather that")
        await engine.say(started.id, "and this", "follow_up")
        await engine.services.runner.stop(started.id, "me")
        await engine.watcher.end(started.id)
        (notice,) = engine.watcher.nodes()[-1].blocks
        assert isinstance(notice, NoticeBlock)
        assert notice_text(notice) == "Stopped by me. Not delivered: “rather that”, “and this”."


async def test_second_answer_before_the_first_is_saved_gets_the_winner(tmp_path: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with engine_parts(tmp_path, ModelServer(turns=[question, DONE])) as engine:
        started = await engine.start(attended=True)
        ask = await engine.watcher.ask(started.id)
        asks = engine.services.asks
        with slow_disk(engine.services.paths.database):
            first = asyncio.create_task(asks.answer(AskAnswerParams(ask_id=ask.id, text="blue"), "window"))
            for _ in range(5):
                await asyncio.sleep(0)
            late = asyncio.create_task(asks.answer(AskAnswerParams(ask_id=ask.id, text="red"), "phone"))
            await asyncio.wait([late], timeout=0.1)
        assert (await first).won
        result = await late
        assert (result.won, result.ask.answered_by) == (False, "window")
        await engine.watcher.end(started.id)


async def test_stop_before_the_first_token_leaves_no_open_model_call(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Late.", gate=gate)])) as engine:
        started = await engine.start()
        await engine.model.request(0)
        await engine.services.runner.stop(started.id, "me")
        await engine.watcher.end(started.id)
        assert await engine.services.database.turns.started(started.id) == ()
        assert [node.role for node in engine.watcher.nodes()] == ["user", "system"]
