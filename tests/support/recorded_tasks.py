"""Runs tasks on a real engine, records them, and replays the records in a separate home."""

import asyncio
from functools import partial
from pathlib import Path

from errand.engine.models.router import window_of
from errand.engine.record.format import TaskRecord
from errand.engine.record.make_record import RecordContext, make_record
from errand.protocol.asks import AskAnswerParams
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import Call, ModelServer, Reply


async def record_of(engine: EngineParts, task_id: str) -> TaskRecord:
    await engine.services.log.flush()
    values = engine.services.settings.values
    windows = partial(window_of, models=engine.services.models.router, settings=engine.services.settings)
    ground = RecordContext("0.1.0", values.max_minutes, values.max_tokens, values.summarise_at, windows)
    return await make_record(engine.services.database, task_id, ground)


async def plain(home: Path) -> TaskRecord:
    """A question, two parallel calls, a command that fails, and the end."""
    replies = [
        Reply(text="Let me ask.", calls=(Call("ask_user", {"question": "Which colour?"}),)),
        Reply(thinking="Two at once.", calls=(_write("a.txt"), _write("b.txt", "call_b"))),
        shell("exit 3"),
        DONE,
    ]
    async with engine_parts(home, ModelServer(replies=replies)) as engine:
        task = await engine.start("paint it", attended=True)
        ask = await engine.watcher.ask(task.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text="blue"), "a person")
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def stopped(home: Path) -> TaskRecord:
    """Stopped while a command runs."""
    async with engine_parts(home, ModelServer(replies=[shell("echo first"), shell("sleep 60")])) as engine:
        task = await engine.start("wait for it")
        await engine.watcher.task(
            task.id, lambda task: task.progress.step_count == 2 and task.activity.status == "tool_executing"
        )
        await engine.services.runner.stop(task.id, "a person")
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def steered(home: Path) -> TaskRecord:
    """One approval allowed, another denied with a reason, and a steering message that skips a call."""
    gate = asyncio.Event()
    two = Reply(
        calls=(Call("shell", {"command": "touch one"}, id="one"), Call("shell", {"command": "touch two"}, id="two"))
    )
    replies = [two, shell("touch three"), Reply(text="Steered.", gate=gate), DONE]
    async with engine_parts(home, ModelServer(replies=replies)) as engine:
        task = await engine.start("count", approve="ask")
        first = await engine.watcher.ask(task.id)
        await engine.say(task.id, "stop counting at one")
        await engine.services.asks.answer(AskAnswerParams(ask_id=first.id, allow=True), "a person")
        second = await engine.watcher.task(task.id, lambda task: task.activity.ask_id not in (None, first.id))
        assert second.activity.ask_id is not None
        answer = AskAnswerParams(ask_id=second.activity.ask_id, allow=False, text="not three")
        await engine.services.asks.answer(answer, "a person")
        await engine.say(task.id, "and finish", "follow_up")
        gate.set()
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def interrupted(home: Path) -> TaskRecord:
    """The engine ends while a command runs; the next engine makes the record."""
    async with engine_parts(home, ModelServer(replies=[shell("echo first"), shell("sleep 60")])) as engine:
        task = await engine.start("wait for it")
        await engine.watcher.task(
            task.id, lambda task: task.progress.step_count == 2 and task.activity.status == "tool_executing"
        )
    async with engine_parts(home, ModelServer()) as engine:
        return await record_of(engine, task.id)


async def cut(home: Path) -> TaskRecord:
    """Stopped in the middle of a reply."""
    replies = [shell("echo first"), Reply(text="word " * 200, piece_delay_s=0.01)]
    async with engine_parts(home, ModelServer(replies=replies)) as engine:
        task = await engine.start("talk")
        await engine.watcher.until(lambda: any(node.status == "streaming" for node in engine.watcher.nodes()))
        await engine.services.runner.stop(task.id, "a person")
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def extended(home: Path) -> TaskRecord:
    """Continued twice beyond its limit of turns, because a person allows it."""
    replies = [shell("touch first"), shell("touch second"), DONE]
    async with engine_parts(home, ModelServer(replies=replies)) as engine:
        task = await engine.start("go far", approve="ask", max_turns=1)
        for _ in range(4):
            ask = await engine.watcher.ask(task.id)
            await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "a person")
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def failed(home: Path) -> TaskRecord:
    """Record a task in a conversation with history: calls that cannot run, then a model that fails."""
    bad = Reply(calls=(Call("nope", {}), Call("shell", "{bad")))
    replies = [Reply(text="Hi."), shell("false"), bad, Reply(status=400, error="boom")]
    async with engine_parts(home, ModelServer(replies=replies)) as engine:
        past = await engine.watcher.end((await engine.start("hello")).id)
        task = await engine.start("again", conversation_id=past.conversation_id)
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


def _write(path: str, call_id: str = "call_a") -> Call:
    return Call("code", {"action": "write", "path": path, "content": "blue\n"}, id=call_id)
