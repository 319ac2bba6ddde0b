"""Records of tasks that an engine resumed, or that a time limit paused."""

from pathlib import Path

from errand.engine.record.format import TaskRecord
from errand.protocol.asks import RUN_AGAIN, SKIP, STOP, AskAnswerParams
from tests.engine.agent.run.test_rate_limit_wait import AT_ONCE, HOUR, SECOND, waits
from tests.engine.agent.run.test_resume import answer, crash_in_command, only_ask
from tests.support.engine_parts import crash, engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.recorded_tasks import record_of

_UPDATE = Reply(calls=(Call("send_update", {"message": "hi"}),))


async def killed_in_a_command(home: Path) -> TaskRecord:
    """A person says to run it again."""
    after, mark = home / "after", home / "workspace" / "mark"
    command = Reply(calls=(Call("shell", {"command": f"test -f {mark} && exit 0; touch {mark}; sleep 60"}),))
    task, port = await crash_in_command(home, after, command, mark)
    async with engine_parts(after, ModelServer(replies=[DONE], port=port)) as engine:
        await engine.services.runner.resume(task.id)
        await answer(engine, await only_ask(engine), RUN_AGAIN)
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def killed_in_a_reply(home: Path) -> TaskRecord:
    """Its text so far is cut, and it writes it again."""
    after = home / "after"
    replies = [shell("true"), Reply(text="word " * 200, piece_delay_s=0.01)]
    async with engine_parts(home, ModelServer(replies=replies)) as engine:
        task = await engine.start()
        await engine.watcher.until(lambda: any(node.status == "streaming" for node in engine.watcher.nodes()))
        await engine.services.log.flush()
        port = crash(engine, after)
        await engine.services.runner.stop(task.id, "the test")
        await engine.watcher.end(task.id)
    async with engine_parts(after, ModelServer(replies=[DONE], port=port)) as engine:
        await engine.services.runner.resume(task.id)
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def of_a_full_day(home: Path) -> TaskRecord:
    """The daily limit was reached before it started, and a person allowed it to continue."""
    async with engine_parts(home, ModelServer(replies=[DONE, _UPDATE, DONE])) as engine:
        await engine.watcher.end((await engine.start()).id)
        engine.services.settings.set("day_max_tokens", 100)
        task = await engine.start(approve="ask")
        ask = await engine.watcher.ask(task.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True, amount=300), "me")
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def ended_by_the_day(home: Path) -> TaskRecord:
    """Nobody could be asked."""
    async with engine_parts(home, ModelServer(replies=[_UPDATE, DONE])) as engine:
        engine.services.settings.set("day_max_tokens", 100)
        task = await engine.watcher.end((await engine.start()).id)
        return await record_of(engine, task.id)


async def out_of_time(home: Path) -> TaskRecord:
    """Its time limit was reached."""
    async with engine_parts(home, ModelServer(replies=[shell("sleep 0.3"), DONE])) as engine:
        engine.services.settings.set("max_minutes", 0.004)
        task = await engine.watcher.end((await engine.start()).id)
        return await record_of(engine, task.id)


async def given_more_time(home: Path) -> TaskRecord:
    """Its time limit was reached, and a person extended it."""
    async with engine_parts(home, ModelServer(replies=[_UPDATE, _UPDATE, DONE])) as engine:
        engine.services.settings.set("max_minutes", 0.0001)
        task = await engine.start(approve="ask")
        ask = await engine.watcher.ask(task.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True, amount=5), "me")
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def killed_and_skipped(home: Path) -> TaskRecord:
    """A person skips the call with unknown outcome."""
    return await _settled(home, SKIP)


async def killed_and_stopped(home: Path) -> TaskRecord:
    """A person stops the task at the call with unknown outcome."""
    return await _settled(home, STOP)


async def _settled(home: Path, choice: str) -> TaskRecord:
    after, mark = home / "after", home / "workspace" / "mark"
    two = Reply(
        calls=(Call("shell", {"command": f"touch {mark}; sleep 60"}), Call("shell", {"command": "true"}, id="b"))
    )
    task, port = await crash_in_command(home, after, two, mark)
    async with engine_parts(after, ModelServer(replies=[DONE], port=port)) as engine:
        await engine.services.runner.resume(task.id)
        await answer(engine, await only_ask(engine), choice)
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def ended_in_order(home: Path) -> TaskRecord:
    """The engine shuts down while a command runs, and the next one continues."""
    async with engine_parts(home, ModelServer(replies=[shell("echo a"), shell("sleep 60")])) as engine:
        task = await engine.start()
        await engine.watcher.task(
            task.id, lambda task: task.progress.step_count == 2 and task.activity.status == "tool_executing"
        )
        port = int(engine.model.url.split(":")[2].split("/")[0])
    async with engine_parts(home, ModelServer(replies=[DONE], port=port)) as engine:
        await engine.services.runner.resume(task.id)
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def ended_while_limited(home: Path) -> TaskRecord:
    """The engine shuts down while the task waits for a rate limit, and the next one continues."""
    async with engine_parts(home, ModelServer(replies=[shell("echo a"), SECOND]), AT_ONCE) as engine:
        task = await engine.start(api_key=None)
        await engine.watcher.task(task.id, waits)
        port = int(engine.model.url.split(":")[2].split("/")[0])
    async with engine_parts(home, ModelServer(replies=[DONE], port=port)) as engine:
        engine.services.runner.resumption.resume_earlier_tasks()
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def left_while_limited(home: Path) -> TaskRecord:
    """The engine shuts down while the task waits for a rate limit."""
    async with engine_parts(home, ModelServer(replies=[shell("echo a"), HOUR]), AT_ONCE) as engine:
        task = await engine.start()
        await engine.watcher.task(task.id, waits)
    async with engine_parts(home, ModelServer()) as engine:
        return await record_of(engine, task.id)


async def stopped_while_limited(home: Path) -> TaskRecord:
    """A person stops it while it waits for a rate limit."""
    async with engine_parts(home, ModelServer(replies=[shell("echo a"), HOUR]), AT_ONCE) as engine:
        task = await engine.start()
        await engine.watcher.task(task.id, waits)
        await engine.services.runner.stop(task.id, "a person")
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def with_a_process_left(home: Path) -> TaskRecord:
    """Its leftover process is ended, and an unread message is reported."""
    replies = [shell("sleep 60 >/dev/null 2>&1 & echo on"), DONE]
    async with engine_parts(home, ModelServer(replies=replies)) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        return await record_of(engine, task.id)
