"""Tasks through the runner: real storage, real tools, a model over real HTTP."""

import asyncio
import logging
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.errors import AgentBusy, ConfigurationError, IllegalMove, InvalidParams, NotFound
from errand.protocol.asks import AskAnswerParams
from errand.protocol.blocks import NoticeBlock, TextBlock, ToolCallBlock
from errand.protocol.events import ConversationUpdate, TaskUpdate, TextDelta
from errand.protocol.notices import LimitReached
from errand.protocol.tasks.methods import TaskRetryParams, TaskStartParams
from errand.protocol.tasks.task import AgentPlan, PlannedCall, replace_fields
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import running, until


async def test_a_task_runs_tools_and_ends_with_its_summary(tmp_path: Path) -> None:
    async with engine_parts(
        tmp_path, ModelServer(turns=[shell("echo hello > made.txt; cat made.txt"), DONE])
    ) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        assert (task.activity.status, task.outcome.stop_reason, task.outcome.summary) == (
            "completed",
            "completed",
            "all done",
        )
        assert (task.progress.step_count, task.progress.usage.input_tokens, task.progress.usage.output_tokens) == (
            2,
            200,
            40,
        )
        assert (engine.workspace / "made.txt").read_text() == "hello\n"
        nodes = engine.watcher.nodes()
        assert [node.role for node in nodes] == ["user", "assistant", "tool_result", "assistant", "tool_result"]
        assert [node.parent_id for node in nodes] == [None, *(node.id for node in nodes[:-1])]


async def test_a_task_that_ends_well_logs_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("true"), DONE])) as engine:
        await engine.watcher.end((await engine.start()).id)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_what_a_task_leaves_running_ends_with_it_if_its_conversation_was_archived(tmp_path: Path) -> None:
    line = {"command": "sleep 4741", "background": True}
    gate = asyncio.Event()
    turns = [Reply(calls=(Call("shell", {**line}),)), Reply(calls=DONE.calls, gate=gate)]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        task = await engine.start()
        await until(lambda: bool(running("4741")))
        conversation = await engine.services.database.conversations.get(task.conversation_id)
        assert conversation is not None
        archived = msgspec.structs.replace(conversation, archived=True)
        engine.services.log.publish(ConversationUpdate(conversation=archived))
        await engine.services.log.flush()
        gate.set()
        await engine.watcher.end(task.id)
        await until(lambda: not engine.services.tools.sessions.conversations())
        await until(lambda: not running("4741"))


async def test_published_events_equal_stored_events(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("true"), DONE])) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        database = engine.services.database
        assert await database.tasks.get(task.id) == task
        (agent,) = await database.agents.list(task.conversation_id)
        assert agent.head_id is not None
        assert list(await database.nodes.path(agent.head_id)) == engine.watcher.nodes()
        execution, end = await database.executions.of_task(task.id)
        assert (end.started.tool, end.started.tier, end.finished is not None) == ("task_complete", "free", True)
        assert execution.started.tool == "shell"
        assert execution.finished is not None and not execution.finished.is_error
        assert await database.turns.started(task.id) == ()


async def test_each_turn_stores_a_plan(tmp_path: Path) -> None:
    ask = Reply(thinking="I do not know the colour.", calls=(Call("ask_user", {"question": "Which colour?"}),))
    async with engine_parts(tmp_path, ModelServer(turns=[ask, DONE])) as engine:
        started = await engine.start(attended=True)
        waiting = await engine.watcher.ask(started.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=waiting.id, text="blue"), "me")
        await engine.watcher.end(started.id)
        assert await engine.services.database.turns.plans(started.id) == (
            AgentPlan(
                task_id=started.id,
                turn=1,
                reasoning="I do not know the colour.",
                tool_calls=(PlannedCall(tool_name="ask_user", parameters={"question": "Which colour?"}),),
                question="Which colour?",
                is_complete=False,
            ),
            AgentPlan(
                task_id=started.id,
                turn=2,
                reasoning="",
                tool_calls=(PlannedCall(tool_name="task_complete", parameters={"summary": "all done"}),),
                question=None,
                is_complete=True,
            ),
        )


async def test_steering_opens_the_next_turn_and_a_follow_up_comes_after_the_work(tmp_path: Path) -> None:
    gate = asyncio.Event()
    update = Reply(calls=(Call("send_update", {"message": "hi"}),), gate=gate)
    server = ModelServer(replies=[update, Reply(text="Steered."), Reply(text="Followed.")])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        await engine.say(started.id, "and then this", "follow_up")
        await engine.say(started.id, "rather that")
        gate.set()
        assert (await engine.watcher.end(started.id)).outcome.summary == "Followed."
        first_blocks = [node.blocks[0] for node in engine.watcher.nodes() if node.role == "user"]
        assert first_blocks == [TextBlock(text=text) for text in ("go", "rather that", "and then this")]
        with pytest.raises(IllegalMove):
            await engine.say(started.id, "too late")


async def test_turn_limit_ends_an_unattended_task(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("true"), shell("true"), DONE])) as engine:
        task = await engine.watcher.end((await engine.start(max_turns=2)).id)
        assert (task.activity.status, task.outcome.stop_reason, task.progress.step_count) == (
            "cancelled",
            "iteration_limit",
            2,
        )


async def test_turn_limit_asks_and_approval_grants_as_many_turns_again(tmp_path: Path) -> None:
    update = Reply(calls=(Call("send_update", {"message": "hi"}),))
    async with engine_parts(tmp_path, ModelServer(turns=[update, update, DONE])) as engine:
        started = await engine.start(approve="ask", max_turns=2)
        ask = await engine.watcher.ask(started.id)
        assert ask.kind == "limit"
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        assert (await engine.watcher.end(started.id)).activity.status == "completed"


async def test_a_text_reply_ends_a_task_of_mode_auto_and_is_its_summary(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(text="It is 4.")])) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        assert (task.activity.status, task.outcome.summary) == ("completed", "It is 4.")


async def test_task_mode_nudges_the_model_until_it_reports_completion(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(text="Thinking."), DONE])) as engine:
        task = await engine.watcher.end((await engine.start(mode="task")).id)
        assert (task.activity.status, task.outcome.summary, task.progress.step_count) == ("completed", "all done", 2)
        authors = [(node.author, node.is_from_person) for node in engine.watcher.nodes() if node.role == "user"]
        assert authors == [("user", True), ("engine", False)]


async def test_retry_after_a_nudge_uses_the_user_message_as_its_prompt(tmp_path: Path) -> None:
    turns = [Reply(text="Thinking."), DONE, DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        await engine.watcher.end((await engine.start("mow the lawn", mode="task")).id)
        reply = [node for node in engine.watcher.nodes() if node.role == "assistant"][-1]
        again = await engine.services.runner.retry(TaskRetryParams(node_id=reply.id))
        assert again.request.prompt == "mow the lawn"
        await engine.watcher.end(again.id)


async def test_chat_ends_at_each_text_reply_and_has_tools_except_completion(tmp_path: Path) -> None:
    server = ModelServer(turns=[shell("echo 4"), Reply(text="It is 4.")])
    async with engine_parts(tmp_path, server) as engine:
        task = await engine.watcher.end((await engine.start(mode="chat")).id)
        assert (task.outcome.stop_reason, task.progress.step_count, task.outcome.summary) == (
            "completed",
            2,
            "It is 4.",
        )
        (first, _) = server.requests
        tools = str(first.body["tools"])
        assert "'bash'" in tools and "'ask_user'" in tools
        assert "task_complete" not in tools and "send_update" not in tools
        assert "You talk with a person" in str(first.messages[0]["content"])


async def test_failed_model_call_ends_the_task_with_its_error_and_keeps_the_message(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(status=401, error="no such key")])) as engine:
        task = await engine.watcher.end((await engine.start("hello")).id)
        assert (task.activity.status, task.outcome.stop_reason) == ("error", "error")
        assert task.outcome.error is not None and "key" in task.outcome.error
        assert engine.watcher.nodes()[0].blocks[0] == TextBlock(text="hello")
        assert engine.watcher.nodes()[1].status == "failed"


async def test_a_second_task_of_the_conversation_reads_the_first(tmp_path: Path) -> None:
    async with engine_parts(
        tmp_path, ModelServer(replies=[Reply(text="Noted."), Reply(text="You said seven.")])
    ) as engine:
        first = await engine.watcher.end((await engine.start("Remember seven.")).id)
        second = await engine.start("What did I say?", conversation_id=first.conversation_id)
        await engine.watcher.end(second.id)
        contents = [message["content"] for message in engine.model.requests[1].messages if message["role"] != "system"]
        assert contents == ["Remember seven.", "Noted.", "What did I say?"]


async def test_an_agent_runs_one_task_at_a_time(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("sleep 60")])) as engine:
        started = await engine.start()
        with pytest.raises(AgentBusy):
            await engine.start(conversation_id=started.conversation_id)
        await engine.services.runner.stop(started.id, "me")
        await engine.watcher.end(started.id)


async def test_starting_a_known_task_id_returns_the_existing_task(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Once.")])) as engine:
        started = await engine.start(task_id="mine")
        ended = await engine.watcher.end(started.id)
        assert await engine.start(task_id="mine") == ended
        assert len(engine.model.requests) == 1


async def test_bad_input_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        runner, workspace = engine.services.runner, str(engine.workspace)
        with pytest.raises(InvalidParams):
            await runner.start(TaskStartParams(prompt="  ", workspace=workspace))
        with pytest.raises(InvalidParams):
            await runner.start(TaskStartParams(prompt="go", workspace=workspace + "/none"))
        with pytest.raises(InvalidParams):
            await runner.start(TaskStartParams(prompt="go", workspace=workspace, max_turns=0))
        with pytest.raises(NotFound):
            await runner.start(TaskStartParams(prompt="go", conversation_id="none"))
        with pytest.raises(ConfigurationError):
            await runner.start(TaskStartParams(prompt="go", workspace=workspace, model="nowhere/x"))
        assert (await engine.services.database.tasks.page()).tasks == ()
        assert (await engine.services.database.conversations.page()).conversations == ()


async def test_slow_reply_streams_and_its_deltas_add_up(tmp_path: Path) -> None:
    text = "A story that takes its time to be told, piece by piece."
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text=text, piece_delay_s=0.02)])) as engine:
        await engine.watcher.end((await engine.start()).id)
        reply = engine.watcher.nodes()[-1]
        pieces = [delta for delta in engine.watcher.deltas if isinstance(delta, TextDelta)]
        assert pieces and {piece.node_id for piece in pieces} == {reply.id}
        assert all(text[piece.offset :].startswith(piece.text) for piece in pieces)
        assert reply.blocks == (TextBlock(text=text),)


async def test_fifty_tasks_work_at_once(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("echo $RANDOM > /dev/null"), DONE])) as engine:
        started = await asyncio.gather(*(engine.start() for _ in range(50)))
        ended = [await engine.watcher.end(task.id) for task in started]
        assert {task.activity.status for task in ended} == {"completed"}


async def test_an_engine_that_ends_interrupts_its_tasks_and_the_next_one_resumes_them(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("sleep 60")])) as engine:
        started = await engine.start()
        await engine.watcher.task(started.id, lambda task: task.activity.status == "tool_executing")
    async with engine_parts(tmp_path, ModelServer(turns=[DONE, DONE])) as engine:
        await _point_to(engine, started.id)
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).outcome.summary == "all done"
        assert [node.role for node in engine.watcher.nodes()] == ["assistant", "tool_result"]


async def test_task_interrupted_during_a_reply_is_asked_to_continue(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="A long story", stall_after=2)])) as engine:
        started = await engine.start()
        await engine.watcher.until(lambda: any(node.status == "streaming" for node in engine.watcher.nodes()))
    async with engine_parts(tmp_path, ModelServer(turns=[DONE, DONE])) as engine:
        await _point_to(engine, started.id)
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).outcome.summary == "all done"
        assert [node.role for node in engine.watcher.nodes()] == ["user", "assistant", "tool_result"]


async def _point_to(engine: EngineParts, task_id: str) -> None:
    """Tell the interrupted task the model server's new port."""
    stored = await engine.services.database.tasks.get(task_id)
    assert stored is not None
    engine.services.keys.allow_address("openai_compatible", engine.model.url)
    engine.services.log.publish(TaskUpdate(task=replace_fields(stored, api_base=engine.model.url)))
    await engine.services.log.flush()


async def test_streamed_reply_contains_only_requested_tool_calls(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("true"), DONE])) as engine:
        await engine.watcher.end((await engine.start()).id)
        calls = [block for node in engine.watcher.nodes() for block in node.blocks if isinstance(block, ToolCallBlock)]
        assert [call.tool for call in calls] == ["shell", "task_complete"]


async def test_a_task_that_ended_at_a_limit_says_which(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("true"), DONE])) as engine:
        await engine.watcher.end((await engine.start(max_turns=1)).id)
        notice = NoticeBlock(kind="limit", data=LimitReached(limit="turns", value=1))
        assert engine.watcher.nodes()[-1].blocks == (notice,)
