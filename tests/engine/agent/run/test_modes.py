"""The mode of a task: decided by its first reply, or changed by a person during or after it."""

import asyncio
import shutil
from pathlib import Path

import pytest

from errand.engine.agent.run.stop_policy import detect_mode
from errand.engine.core.errors import IllegalMove, NotFound
from errand.engine.core.messages import AssistantMessage, Text, ToolCall
from errand.protocol.tasks.groups import DecidedMode
from errand.protocol.tasks.methods import TaskSetModeParams
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import Call, ModelServer, Reply


async def set_mode(engine: EngineParts, task_id: str, mode: DecidedMode, new: str | None = None) -> Task:
    params = TaskSetModeParams(task_id=task_id, mode=mode, new_task_id=new)
    return await engine.services.runner.set_mode(params)


@pytest.mark.parametrize(
    ("reply", "decided"),
    [
        (AssistantMessage((Text("It is 4."),)), "chat"),
        (AssistantMessage((Text("I'll look."), ToolCall("1", "shell", {}))), "task"),
        (AssistantMessage((ToolCall("1", "send_update", {}),)), "task"),
        (AssistantMessage((Text("4."), ToolCall("1", "task_complete", {}))), "chat"),
        (AssistantMessage((ToolCall("1", "task_complete", {}),)), "task"),
        (AssistantMessage((ToolCall("1", "task_complete", {}), ToolCall("2", "shell", {}))), "task"),
        (AssistantMessage((ToolCall("1", "ask_user", {}), ToolCall("2", "shell", {}))), "task"),
        (AssistantMessage((ToolCall("1", "ask_user", {}),)), None),
        (AssistantMessage((Text("It i"),), "aborted"), None),
        (AssistantMessage((), "error", "no such key"), None),
    ],
)
def test_reply_with_tool_calls_makes_a_task_and_a_text_reply_a_chat(
    reply: AssistantMessage, decided: DecidedMode | None
) -> None:
    assert detect_mode(reply) == decided


async def test_only_the_first_reply_decides_the_mode(tmp_path: Path) -> None:
    server = ModelServer(replies=[Reply(text="It is 4."), shell("echo 4"), Reply(text="It is 4.")])
    async with engine_parts(tmp_path, server) as engine:
        answered = await engine.watcher.end((await engine.start("2+2?")).id)
        worked = await engine.watcher.end((await engine.start("count")).id)
        assert [(task.options.mode, task.options.decided, task.progress.step_count) for task in (answered, worked)] == [
            ("auto", "chat", 1),
            ("auto", "task", 2),
        ]
        shown_at_work = [
            task.options.decided for task in engine.watcher.tasks(worked.id) if task.activity.status == "tool_executing"
        ]
        assert shown_at_work == ["task"]


async def test_chosen_mode_is_not_changed(tmp_path: Path) -> None:
    server = ModelServer(replies=[Reply(text="Hello."), Reply(text="Thinking."), DONE])
    async with engine_parts(tmp_path, server) as engine:
        chat = await engine.watcher.end((await engine.start(mode="chat")).id)
        task = await engine.watcher.end((await engine.start(mode="task")).id)
        assert (chat.options.decided, task.options.decided) == (None, None)


async def test_task_changed_to_a_chat_is_told_after_its_turn_and_ends_with_its_answer(tmp_path: Path) -> None:
    gate = asyncio.Event()
    begun = Reply(calls=(Call("send_update", {"message": "looking"}),), gate=gate)
    server = ModelServer(replies=[shell("true"), begun, Reply(text="Then: 4.")])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(1)
        taken = await set_mode(engine, started.id, "chat")
        assert (taken.options.mode, taken.options.decided) == ("chat", "chat")
        gate.set()
        ended = await engine.watcher.end(started.id)
        assert (ended.outcome.summary, ended.outcome.stop_reason, ended.options.mode) == (
            "Then: 4.",
            "completed",
            "chat",
        )
        assert "begin no further work" in str(server.requests[2].messages[-1]["content"])


async def test_chat_changed_to_a_task_continues_until_it_reports_completion(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[shell("true"), Reply(text="I could go on.", gate=gate), DONE])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(1)
        await set_mode(engine, started.id, "task")
        gate.set()
        ended = await engine.watcher.end(started.id)
        assert (ended.outcome.summary, ended.progress.step_count) == ("all done", 3)


async def test_completion_tool_is_refused_in_a_chat_with_advice(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Hello.", gate=gate)])) as engine:
        started = await engine.start(mode="chat")
        with pytest.raises(IllegalMove, match="When it has answered"):
            await set_mode(engine, started.id, "task")
        gate.set()
        assert (await engine.watcher.end(started.id)).options.mode == "chat"


async def test_ended_chat_continues_as_a_task_once(tmp_path: Path) -> None:
    server = ModelServer(replies=[Reply(text="You could run it."), shell("true"), DONE])
    async with engine_parts(tmp_path, server) as engine:
        chat = await engine.watcher.end((await engine.start("does it run?")).id)
        first = await set_mode(engine, chat.id, "task", "task_next")
        again = await set_mode(engine, chat.id, "task", "task_next")
        assert (first.id, again.id, first.options.mode) == ("task_next", "task_next", "task")
        ended = await engine.watcher.end(first.id)
        assert (ended.outcome.summary, ended.conversation_id, ended.agent_id) == (
            "all done",
            chat.conversation_id,
            chat.agent_id,
        )
        contents = [str(message["content"]) for message in server.requests[1].messages[1:]]
        assert contents[:2] == ["does it run?", "You could run it."]
        assert contents[2].startswith("Do this as a task")
        senders = [(node.author, node.task_id) for node in engine.watcher.nodes() if node.role == "user"]
        assert senders == [("user", chat.id), ("engine", "task_next")]
        outline = await engine.services.database.trees.outline(chat.conversation_id)
        assert [node.text for node in outline.nodes if node.role == "user"] == ["does it run?"]


async def test_only_a_completed_chat_at_the_head_can_continue_as_a_task(tmp_path: Path) -> None:
    server = ModelServer(replies=[DONE, Reply(text="One."), Reply(text="Two.")])
    async with engine_parts(tmp_path, server) as engine:
        done = await engine.watcher.end((await engine.start()).id)
        with pytest.raises(IllegalMove, match="Only a chat at its end"):
            await set_mode(engine, done.id, "task")
        first = await engine.watcher.end((await engine.start()).id)
        await engine.watcher.end((await engine.start(conversation_id=first.conversation_id)).id)
        with pytest.raises(IllegalMove, match="gone on since"):
            await set_mode(engine, first.id, "task")
        with pytest.raises(IllegalMove, match="Only a chat at its end"):
            await set_mode(engine, first.id, "chat")
        with pytest.raises(NotFound):
            await set_mode(engine, "task_none", "task")


async def test_decided_mode_survives_a_restart_and_can_be_changed_while_interrupted(tmp_path: Path) -> None:
    gate, after = asyncio.Event(), tmp_path / "after"
    server = ModelServer(replies=[shell("true"), Reply(text="never sent", gate=gate)])
    async with engine_parts(tmp_path / "before", server) as engine:
        started = await engine.start()
        await server.request(1)
        crash(engine, after)
        gate.set()
        await engine.watcher.end(started.id)
    shutil.copytree(tmp_path / "before" / "workspace", after / "workspace", dirs_exist_ok=True)
    async with engine_parts(after, ModelServer(replies=[Reply(text="Not yet."), DONE])) as engine:
        stored_task = await engine.services.database.tasks.get(started.id)
        assert stored_task is not None and (stored_task.activity.status, stored_task.options.decided) == (
            "interrupted",
            "task",
        )
        taken = await set_mode(engine, started.id, "task")
        assert (taken.activity.status, taken.options.mode) == ("interrupted", "task")
