"""A task resumed after a crash: recorded steps do not run again, and unknown outcomes are asked about."""

import asyncio
from pathlib import Path

import pytest

from errand.engine.agent.history.conversion import UNKNOWN_OUTCOME
from errand.engine.core.errors import InvalidParams, NotFound
from errand.protocol.asks import RUN_AGAIN, SKIP, STOP, Ask, AskAnswerParams, AskAnswerResult
from errand.protocol.blocks import ToolResultBlock
from errand.protocol.tasks.task import Task
from tests.engine.data.test_removal import archived, remover
from tests.support.engine_parts import EngineParts, branch, crash, engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until


def shell(*commands: str) -> Reply:
    return Reply(calls=tuple(Call("shell", {"command": command}) for command in commands))


async def only_ask(engine: EngineParts) -> Ask:
    (ask,) = await engine.services.database.asks.waiting()
    return ask


async def answer(
    engine: EngineParts, ask: Ask, text: str = "", allow: bool | None = None, by: str = "the test"
) -> AskAnswerResult:
    params = AskAnswerParams(ask_id=ask.id, text=text, allow=allow)
    return await engine.services.asks.answer(params, by)


async def crash_in_command(home: Path, after: Path, reply: Reply, is_reached: Path) -> tuple[Task, int]:
    """A task whose engine dies while one of its commands runs: once `is_reached` exists.

    The file says only that its command has come so far. A shell makes the file of `echo x > file` before it writes the
    line: what a test reads afterwards is in another file, written before.
    """
    async with engine_parts(home, ModelServer(replies=[reply])) as engine:
        started = await engine.start()
        await until(is_reached.exists)
        port = crash(engine, after)
        await engine.services.runner.stop(started.id, "the test")
        await engine.watcher.end(started.id)
    return started, port


def results(engine: EngineParts) -> list[str]:
    """Summaries of the results that this engine produced."""
    blocks = [block for node in engine.watcher.nodes() for block in node.blocks]
    return [block.summary.split(",")[0] for block in blocks if isinstance(block, ToolResultBlock)]


@pytest.mark.parametrize(
    ("choice", "lines", "summaries"),
    [(RUN_AGAIN, 2, ["exit 0", "task complete"]), (SKIP, 1, ["skipped", "task complete"])],
)
async def test_command_with_unknown_outcome_is_run_again_or_skipped_as_the_user_decides(
    tmp_path: Path, choice: str, lines: int, summaries: list[str]
) -> None:
    ran, reached = tmp_path / "workspace" / "ran", tmp_path / "workspace" / "reached"
    command = f"echo x >> {ran}; touch {reached}; test $(wc -l < {ran}) = 2 || sleep 60"
    started, port = await crash_in_command(tmp_path, tmp_path / "after", shell(command), reached)
    async with engine_parts(tmp_path / "after", ModelServer(replies=[DONE], port=port)) as engine:
        ask = await only_ask(engine)
        assert (ask.kind, ask.choices, ask.task_id) == ("unknown", (RUN_AGAIN, SKIP, STOP), started.id)
        assert ask.unknown is not None and ask.unknown.command == command
        await engine.services.runner.resume(started.id)
        waiting = await engine.watcher.task(started.id, lambda task: task.activity.status == "waiting_user")
        assert waiting.activity.ask_id == ask.id
        await answer(engine, ask, choice)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert (len(ran.read_text().splitlines()), results(engine)) == (lines, summaries)
        (request,) = engine.model.requests
        assert (request.messages[-1]["content"] == UNKNOWN_OUTCOME) == (choice == SKIP)
        assert await engine.services.database.asks.waiting() == ()


async def test_each_call_of_a_resumed_turn_has_one_record(tmp_path: Path) -> None:
    ran = tmp_path / "workspace" / "ran"
    calls = (
        Call("todo", {"items": [{"text": "look"}]}),
        Call("search_memory", {"query": "tides"}),
        Call("no_such_tool", {}),
        Call("shell", {"command": f"touch {ran}; sleep 60"}),
        Call("send_update", {"message": "I have looked."}),
    )
    started, port = await crash_in_command(tmp_path, tmp_path / "after", Reply(calls=calls), ran)
    async with engine_parts(tmp_path / "after", ModelServer(replies=[DONE], port=port)) as engine:
        await answer(engine, await only_ask(engine), SKIP)
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        executions = await engine.services.database.executions.of_task(started.id)
    records = [(execution.started.tool, execution.started.tier) for execution in executions]
    assert records == [
        ("todo", "free"),
        ("search_memory", "free"),
        ("no_such_tool", "refused"),
        ("shell", "run"),
        ("send_update", "free"),
        ("task_complete", "free"),
    ]
    assert [execution.started.tool for execution in executions if execution.finished is None] == ["shell"], (
        "its outcome is unknown"
    )


async def test_resumed_task_is_no_longer_shown_as_interrupted(tmp_path: Path) -> None:
    ran = tmp_path / "workspace" / "ran"
    started, port = await crash_in_command(tmp_path, tmp_path / "after", shell(f"touch {ran}; sleep 60"), ran)
    async with engine_parts(tmp_path / "after", ModelServer(replies=[DONE], port=port)) as engine:
        await engine.services.runner.resume(started.id)
        stored_task = await engine.services.database.tasks.get(started.id)
        assert stored_task is not None and stored_task.activity.status != "interrupted"
        await engine.services.runner.stop(started.id, "the test")
        await engine.watcher.end(started.id)


async def test_task_can_be_stopped_at_a_call_with_unknown_outcome(tmp_path: Path) -> None:
    ran, reached = tmp_path / "workspace" / "ran", tmp_path / "workspace" / "reached"
    reply = shell(f"echo x >> {ran}; touch {reached}; sleep 60")
    started, port = await crash_in_command(tmp_path, tmp_path / "after", reply, reached)
    async with engine_parts(tmp_path / "after", ModelServer(replies=[], port=port)) as engine:
        await answer(engine, await only_ask(engine), STOP)
        await engine.services.runner.resume(started.id)
        ended = await engine.watcher.end(started.id)
        assert (ended.activity.status, ended.outcome.stop_reason) == ("cancelled", "manual_stop")
        assert (ran.read_text(), engine.model.requests) == ("x\n", [])


async def test_turn_is_replayed_without_a_model_call_when_the_daily_budget_is_used_up(tmp_path: Path) -> None:
    ran = tmp_path / "workspace" / "ran"
    started, port = await crash_in_command(tmp_path, tmp_path / "after", shell(f"touch {ran}; sleep 60"), ran)
    async with engine_parts(tmp_path / "after", ModelServer(replies=[], port=port)) as engine:
        engine.services.settings.set("day_max_tokens", 100)
        await answer(engine, await only_ask(engine), SKIP)
        await engine.services.runner.resume(started.id)
        ended = await engine.watcher.end(started.id)
        assert (ended.activity.status, ended.outcome.stop_reason) == ("cancelled", "day_limit")
        assert (results(engine), engine.model.requests) == (["skipped"], [])


async def test_finished_calls_are_not_run_again_and_unstarted_calls_run(tmp_path: Path) -> None:
    ran, reached = tmp_path / "workspace" / "ran", tmp_path / "workspace" / "reached"
    reply = shell(f"echo one >> {ran}", f"touch {reached}; sleep 60", f"echo three >> {ran}")
    started, port = await crash_in_command(tmp_path, tmp_path / "after", reply, reached)
    ran.write_text("one\n")
    async with engine_parts(tmp_path / "after", ModelServer(replies=[DONE], port=port)) as engine:
        await answer(engine, await only_ask(engine), SKIP)
        await engine.services.runner.resume(started.id)
        ended = await engine.watcher.end(started.id)
        assert (ended.activity.status, ended.progress.step_count, ended.progress.usage.input_tokens) == (
            "completed",
            2,
            200,
        )
        assert ran.read_text() == "one\nthree\n"
        roles = [node.role for node in await branch(engine, started.conversation_id)]
        assert roles == ["user", "assistant", *["tool_result"] * 3, "assistant", "tool_result"]


async def test_a_question_that_waited_is_answered_before_the_task_is_resumed_and_the_first_answer_wins(
    tmp_path: Path,
) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with engine_parts(tmp_path, ModelServer(replies=[question])) as engine:
        started = await engine.start(attended=True)
        ask = await engine.watcher.ask(started.id)
        port = crash(engine, tmp_path / "after")
    async with engine_parts(tmp_path / "after", ModelServer(replies=[DONE], port=port)) as engine:
        assert await only_ask(engine) == ask
        first, second = await asyncio.gather(
            answer(engine, ask, "Blue", by="Anna"), answer(engine, ask, "Red", by="Ben")
        )
        assert (first.won, second.won, second.ask.answer) == (True, False, "Blue")
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert engine.model.requests[0].messages[-1]["content"] == "Blue"


async def test_resumed_task_reuses_a_waiting_approval(tmp_path: Path) -> None:
    ran = tmp_path / "workspace" / "ran"
    async with engine_parts(tmp_path, ModelServer(replies=[shell(f"echo x >> {ran}")])) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        port = crash(engine, tmp_path / "after")
    async with engine_parts(tmp_path / "after", ModelServer(replies=[DONE], port=port)) as engine:
        await engine.services.runner.resume(started.id)
        waiting = await engine.watcher.task(started.id, lambda task: task.activity.status == "waiting_user")
        assert (waiting.activity.ask_id, await only_ask(engine)) == (ask.id, ask)
        await answer(engine, ask, allow=True)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert ran.read_text() == "x\n"


async def test_asks_survive_an_orderly_shutdown(tmp_path: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with engine_parts(tmp_path, ModelServer(replies=[question])) as engine:
        started = await engine.start(attended=True)
        ask = await engine.watcher.ask(started.id)
        port = int(engine.model.url.split(":")[2].split("/")[0])
    async with engine_parts(tmp_path, ModelServer(replies=[DONE], port=port)) as engine:
        assert await only_ask(engine) == ask
        await answer(engine, ask, "Blue")
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert engine.model.requests[0].messages[-1]["content"] == "Blue"


async def test_stopping_an_interrupted_task_cancels_its_asks(tmp_path: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with engine_parts(tmp_path, ModelServer(replies=[question])) as engine:
        started = await engine.start(attended=True)
        ask = await engine.watcher.ask(started.id)
        port = crash(engine, tmp_path / "after")
    async with engine_parts(tmp_path / "after", ModelServer(port=port)) as engine:
        await engine.services.runner.stop(started.id, "the test")
        assert await engine.services.database.asks.waiting() == ()
        assert not (await answer(engine, ask, "Blue")).won


async def test_invalid_choice_does_not_settle_an_unknown_outcome(tmp_path: Path) -> None:
    ran, reached = tmp_path / "workspace" / "ran", tmp_path / "workspace" / "reached"
    reply = shell(f"echo x >> {ran}; touch {reached}; sleep 60")
    _, port = await crash_in_command(tmp_path, tmp_path / "after", reply, reached)
    async with engine_parts(tmp_path / "after", ModelServer(port=port)) as engine:
        ask = await only_ask(engine)
        with pytest.raises(InvalidParams, match="Run it again, Skip it"):
            await answer(engine, ask, "perhaps")
        assert await only_ask(engine) == ask


async def test_second_crash_does_not_repeat_asks(tmp_path: Path) -> None:
    ran, reached = tmp_path / "workspace" / "ran", tmp_path / "workspace" / "reached"
    reply = shell(f"echo x >> {ran}; touch {reached}; sleep 60")
    started, port = await crash_in_command(tmp_path, tmp_path / "after", reply, reached)
    async with engine_parts(tmp_path / "after", ModelServer(port=port)) as engine:
        ask = await only_ask(engine)
        await engine.services.runner.resume(started.id)
        await engine.watcher.task(started.id, lambda task: task.activity.status == "waiting_user")
        crash(engine, tmp_path / "again")
    async with engine_parts(tmp_path / "again", ModelServer(replies=[DONE], port=port)) as engine:
        assert await only_ask(engine) == ask
        await answer(engine, ask, SKIP)
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert ran.read_text() == "x\n"


async def test_interrupted_model_call_is_repeated_as_the_same_turn(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, ModelServer(replies=[shell("true"), Reply(text="End.", gate=gate)])) as engine:
        started = await engine.start()
        await engine.model.request(1)
        port = crash(engine, tmp_path / "after")
        gate.set()
        await engine.watcher.end(started.id)
    async with engine_parts(tmp_path / "after", ModelServer(replies=[DONE], port=port)) as engine:
        await engine.services.runner.resume(started.id)
        ended = await engine.watcher.end(started.id)
        assert (ended.activity.status, ended.progress.step_count, ended.progress.usage.input_tokens) == (
            "completed",
            2,
            200,
        )
        roles = [node.role for node in await branch(engine, started.conversation_id)]
        assert roles == ["user", "assistant", "tool_result", "assistant", "tool_result"]


async def test_waiting_limit_ask_and_granted_limits_survive_a_restart(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[shell("touch it")])) as engine:
        started = await engine.start(approve="ask", max_turns=1)
        await answer(engine, await engine.watcher.ask(started.id), allow=True)
        await engine.watcher.task(
            started.id, lambda task: task.progress.step_count == 1 and task.activity.status == "waiting_user"
        )
        ask = await engine.watcher.ask(started.id)
        port = crash(engine, tmp_path / "after")
    again = ModelServer(replies=[shell("touch it"), DONE], port=port)
    async with engine_parts(tmp_path / "after", again) as engine:
        assert await only_ask(engine) == ask
        await answer(engine, ask, allow=True)
        task = await engine.services.runner.resume(started.id)
        assert task.progress.step_count == 1
        await engine.watcher.task(started.id, lambda task: task.progress.step_count == 2)
        allowed = await engine.services.database.tasks.get(started.id)
        assert allowed is not None and allowed.budget.allowance is not None and allowed.budget.allowance.turns == 2


async def test_worked_time_continues_after_a_resume(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[shell("true"), Reply(stall_after=0)])) as engine:
        started = await engine.start()
        await engine.model.request(1)
        before = engine.watcher.tasks(started.id)[-1].activity.worked_s
        port = crash(engine, tmp_path / "after")
    async with engine_parts(tmp_path / "after", ModelServer(replies=[DONE], port=port)) as engine:
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.worked_s > before > 0


async def test_asks_of_a_deleted_conversation_cannot_be_answered(tmp_path: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with engine_parts(tmp_path, ModelServer(replies=[question])) as engine:
        started = await engine.start(attended=True)
        ask = await engine.watcher.ask(started.id)
        port = crash(engine, tmp_path / "after")
    async with engine_parts(tmp_path / "after", ModelServer(port=port)) as engine:
        await archived(engine, started)
        await remover(engine).delete(started.conversation_id)
        with pytest.raises(NotFound):
            await answer(engine, ask, "Blue")


async def test_task_being_stopped_at_a_crash_is_stopped_after_the_restart_without_asks(tmp_path: Path) -> None:
    stubborn = shell(f"trap '' TERM; touch {tmp_path}/workspace/ran; while true; do sleep 0.01; done")
    async with engine_parts(tmp_path, ModelServer(replies=[stubborn])) as engine:
        started = await engine.start()
        await until((tmp_path / "workspace" / "ran").exists)
        await engine.services.runner.stop(started.id, "the test")
        await engine.services.log.flush()
        port = crash(engine, tmp_path / "after")
        await engine.watcher.end(started.id)
    async with engine_parts(tmp_path / "after", ModelServer(port=port)) as engine:
        task = await engine.services.database.tasks.get(started.id)
        assert task is not None and (task.activity.status, task.outcome.stop_reason) == ("cancelled", "manual_stop")
        assert await engine.services.database.asks.waiting() == ()
