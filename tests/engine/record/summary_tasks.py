"""Records of tasks whose conversation was summarised."""

import asyncio
from pathlib import Path

from errand.engine.record.format import TaskRecord
from errand.protocol.context import ConversationSummariseParams
from errand.protocol.conversations import CONVERSATION_CHANGE, ConversationChangeParams
from tests.engine.agent.compaction.test_context_window import (
    SUMMARY,
    WINDOW,
    echo,
    is_summary,
    narrow,
    reader,
    size,
    summaries,
    until_done,
)
from tests.engine.agent.compaction.test_summaries import answering, said, talk
from tests.support.engine_parts import engine_parts
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.recorded_tasks import record_of
from tests.support.store_engine import store_engine

# The definitions of all tools take a third of it.
_WINDOW = WINDOW + 3_900


async def outgrown(home: Path) -> TaskRecord:
    """It warns, summarises the earlier part, and continues."""
    async with engine_parts(home, reader(until_done(12), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine, _WINDOW)
        task = await engine.watcher.end((await engine.start("Look into the harbour")).id)
        return await record_of(engine, task.id)


async def left_out(home: Path) -> TaskRecord:
    """No summary can be made, so the oldest entries are left out."""
    async with engine_parts(home, reader(until_done(12), lambda _: Reply(text=SUMMARY, finish="length"))) as engine:
        narrow(engine, _WINDOW)
        task = await engine.watcher.end((await engine.start("Look into the harbour")).id)
        return await record_of(engine, task.id)


async def too_long(home: Path) -> TaskRecord:
    """The provider refuses a request as too long."""
    refused = Reply(status=400, error="This model's maximum context length is 2000 tokens.")

    def answer(request: ReceivedRequest) -> Reply:
        if is_summary(request):
            return Reply(text=SUMMARY)
        if size(request) > 4_500:
            return refused
        return until_done(6)(request.turn) if "harbour." not in str(request.messages[1]) else Reply(text="Done.")

    async with engine_parts(home, ModelServer(answer=answer)) as engine:
        task = await engine.watcher.end((await engine.start("Look into it")).id)
        return await record_of(engine, task.id)


async def by_hand(home: Path) -> TaskRecord:
    """A person requests a summary."""
    async with engine_parts(home, ModelServer(answer=answering)) as engine:
        talked = await talk(engine, 6)
        params = ConversationSummariseParams(conversation_id=talked.conversation_id)
        task = await engine.services.runner.summarise(params)
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def kept(home: Path) -> TaskRecord:
    """A task after a summary, with a kept message."""
    async with store_engine(home, ModelServer(answer=answering)) as engine:
        talked = await talk(engine.parts, 6)
        message = await said(engine.parts, talked.conversation_id, "Message 1")
        keep = ConversationChangeParams(conversation_id=talked.conversation_id, keep_node_id=message.id)
        await engine.stores.session.call(CONVERSATION_CHANGE, keep)
        params = ConversationSummariseParams(conversation_id=talked.conversation_id)
        task = await engine.parts.services.runner.summarise(params)
        await engine.parts.watcher.end(task.id)
        again = await engine.parts.start("And now?", mode="chat", conversation_id=talked.conversation_id)
        await engine.parts.watcher.end(again.id)
        return await record_of(engine.parts, again.id)


async def by_hand_with_words(home: Path) -> TaskRecord:
    """A person sends a message while a manual summary is made."""
    gate = asyncio.Event()

    def answer(request: ReceivedRequest) -> Reply:
        return Reply(text=SUMMARY, gate=gate) if is_summary(request) else answering(request)

    async with engine_parts(home, ModelServer(answer=answer)) as engine:
        talked = await talk(engine, 4)
        task = await engine.services.runner.summarise(
            ConversationSummariseParams(conversation_id=talked.conversation_id)
        )
        await engine.model.request(4)
        await engine.say(task.id, "And now?")
        gate.set()
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def refused_by_hand(home: Path) -> TaskRecord:
    """The provider fails twice."""

    def answer(request: ReceivedRequest) -> Reply:
        return Reply(status=400, error="no") if is_summary(request) else answering(request)

    async with engine_parts(home, ModelServer(answer=answer)) as engine:
        talked = await talk(engine, 4)
        task = await engine.services.runner.summarise(
            ConversationSummariseParams(conversation_id=talked.conversation_id)
        )
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def stopped_by_hand(home: Path) -> TaskRecord:
    """A person stops it while the summary is made."""

    def answer(request: ReceivedRequest) -> Reply:
        return Reply(text=SUMMARY, gate=asyncio.Event()) if is_summary(request) else answering(request)

    async with engine_parts(home, ModelServer(answer=answer)) as engine:
        talked = await talk(engine, 4)
        task = await engine.services.runner.summarise(
            ConversationSummariseParams(conversation_id=talked.conversation_id)
        )
        await engine.model.request(4)
        await engine.services.runner.stop(task.id, "a person")
        await engine.watcher.end(task.id)
        return await record_of(engine, task.id)


async def before_a_reply(home: Path) -> TaskRecord:
    """Record a task that summarises a long conversation before its first reply; the first attempt fails."""
    tries = iter([Reply(text=SUMMARY, finish="length"), Reply(text=SUMMARY)])
    steps = iter([*(echo(turn) for turn in range(5)), Reply(text="Done."), echo(9), Reply(text="Done.")])
    server = reader(lambda _: next(steps), lambda _: next(tries))
    async with engine_parts(home, server) as engine:
        narrow(engine, _WINDOW)
        engine.services.settings.set("summarise_at", 0.95)
        first = await engine.watcher.end((await engine.start("Look")).id)
        engine.services.settings.set("summarise_at", 0.5)
        task = await engine.start("And now?", conversation_id=first.conversation_id)
        await engine.watcher.end(task.id)
        assert [node.turn for node in summaries(engine)] == [0]
        return await record_of(engine, task.id)
