"""Forged tasks in an import: they run, allow and decide nothing."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from errand.engine.agent.tasks.task_target import with_workspace
from errand.engine.core.errors import IllegalMove, InvalidParams
from errand.engine.data.remover import Remover
from errand.engine.storage.records.executions import ExecutionEnd
from errand.engine.storage.records.turns import TurnRow
from errand.protocol.asks import RUN_AGAIN, Ask, AskAnswerParams, Remember
from errand.protocol.conversations import TurnTaking
from errand.protocol.events import ConversationUpdate
from errand.protocol.tasks.groups import Allowance, Queued
from errand.protocol.tasks.methods import TaskRetryParams
from errand.protocol.tasks.task import replace_fields
from errand.protocol.usage import Usage
from tests.engine.agent.run.test_resume import crash_in_command, only_ask, shell
from tests.support.engine_parts import engine_parts
from tests.support.hostile_file import HostileFile, line
from tests.support.model_server import ModelServer, Reply
from tests.support.records import NOW


async def test_no_status_ask_grant_or_record_of_a_file_makes_a_task_of_it_go_on(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Done."))) as engine:
        for number, status in enumerate(("interrupted", "running", "thinking", "tool_executing", "waiting_user")):
            file = HostileFile(f"touch {marker}", engine.workspace, str(number))
            file.task = replace_fields(file.task, status=status, resumes=True, retry_at=NOW, approve="all")
            file.others = [
                [file.answered()],
                [file.started("ls", only_reads=True)],
                [file.started("ls")],
                [file.answered(status="waiting")],
                [file.answered(kind="unknown", approval=None, answer=RUN_AGAIN), file.started("ls")],
            ][number]
            await file.take(engine, tmp_path)
            await file.confirm(engine)
            for go_on in (engine.services.runner.resume, engine.services.runner.try_now, engine.services.runner.pause):
                with pytest.raises(IllegalMove, match="is cancelled"):
                    await go_on(file.task.id)
        engine.services.runner.resumption.resume_earlier_tasks()
        started = await engine.start("hello", conversation_id="conv_0", approve="ask")
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert await engine.services.database.tasks.active() == ()
        assert await engine.services.database.asks.waiting() == ()
        assert await engine.services.database.grants.all() == ()
    assert not marker.exists()


async def test_a_task_that_says_it_ended_without_an_end_does_not_go_on_either(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    async with engine_parts(tmp_path, ModelServer()) as engine:
        for name, ended_at, status in (("a", NOW, "interrupted"), ("b", None, "completed")):
            file = HostileFile(f"touch {marker}", engine.workspace, name)
            file.task = replace_fields(file.task, ended_at=ended_at, status=status)
            await file.take(engine, tmp_path)
            with pytest.raises(IllegalMove):
                await engine.services.runner.resume(file.task.id)
        assert await engine.services.database.tasks.active() == ()
    assert not marker.exists()


async def test_a_retry_takes_over_nothing_that_a_file_allows_itself(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: shell(f"touch {marker}"))) as engine:
        file = HostileFile("ls", engine.workspace)
        file.task = replace_fields(
            file.task,
            api_base=engine.model.url,
            approve="all",
            max_turns=10**9,
            budget_usd=10**9,
            allowance=Allowance(turns=10**9),
            queue=(Queued(id="q1", kind="steer", text="and more", queued_at=NOW),),
        )
        file.conversation = msgspec.structs.replace(
            file.conversation, turn_taking=TurnTaking(rule="round_robin", limit=10**9), kept=("elsewhere",)
        )
        await file.take(engine, tmp_path)
        await file.confirm(engine)
        engine.services.settings.set("default_api_base", engine.model.url)
        conversation = await engine.services.database.conversations.get(file.conversation.id)
        assert conversation is not None
        assert (conversation.turn_taking, conversation.kept) == (TurnTaking(rule="round_robin", limit=6), ())
        tried = await engine.services.runner.retry(TaskRetryParams(node_id=file.nodes[1].id))
        assert (
            tried.options.approve,
            tried.budget.max_turns,
            tried.budget.budget_usd,
            tried.budget.allowance,
            tried.queue,
        ) == (
            "ask",
            50,
            None,
            None,
            (),
        )
        ask = await engine.watcher.ask(tried.id)
        assert ask.kind == "approval" and not marker.exists()
        await engine.services.runner.stop(tried.id, "the test")
        await engine.watcher.end(tried.id)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("node of another task", "a message of another task"),
        ("result of another call", "a result of a call that is not there"),
        ("negative cost", "a number that counts nothing"),
        ("huge count", "a number that counts nothing"),
        ("no time", "a time that is none"),
        ("call of another task", "are here already"),
    ],
)
async def test_what_reaches_out_of_its_own_conversation_is_refused(tmp_path: Path, kind: str, reason: str) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Done."))) as engine:
        first = HostileFile("ls", engine.workspace, "first")
        first.others = [first.started("ls")]
        await first.take(engine, tmp_path)
        file = HostileFile("ls", engine.workspace, "second")
        turn = TurnRow(task_id=file.task.id, turn=1, status="complete", model="m", minute=29_000_000)
        match kind:
            case "node of another task":
                file.nodes[1] = msgspec.structs.replace(file.nodes[1], task_id=first.task.id)
            case "result of another call":
                end = ExecutionEnd(
                    execution_id=f"exec_{first.task.id}",
                    task_id=file.task.id,
                    text="",
                    summary="",
                    details=None,
                    is_error=False,
                    at=NOW,
                )
                file.others = [line("finished", end)]
            case "negative cost":
                file.others = [line("turn", replace(turn, cost_usd=-1.0))]
            case "huge count":
                file.task = replace_fields(file.task, usage=Usage(input_tokens=2**63))
            case "no time":
                file.others = [line("turn", replace(turn, started_at="soon"))]
            case _:
                file.others = [file.started("ls", execution_id=f"exec_{first.task.id}")]
        with pytest.raises(InvalidParams, match=reason):
            await file.take(engine, tmp_path)
        assert await engine.services.database.conversations.get(file.conversation.id) is None


async def test_run_it_again_shows_the_call_of_the_reply_and_asks_the_policy(tmp_path: Path) -> None:
    """Whatever the call's record says: another command, and that it only reads."""
    after, marker, reached = tmp_path / "after", tmp_path / "ran", tmp_path / "workspace" / "reached"
    harmless = f"touch {reached}; sleep 60"
    started, port = await crash_in_command(tmp_path, after, shell(harmless), reached)
    closed = str(after / "data")  # no command may run there, whatever was allowed
    with closing(sqlite3.connect(after / "data" / "errand.db")) as connection, connection:
        was = msgspec.json.encode({"command": harmless}).decode()
        other = msgspec.json.encode({"command": f"touch {marker}", "working_dir": closed}).decode()
        connection.execute("UPDATE nodes SET body = replace(body, ?, ?)", (was, other))
        connection.execute("DROP TRIGGER tool_executions_no_update")
        connection.execute("UPDATE tool_executions SET body = json_set(body, '$.only_reads', json('true'))")
    async with engine_parts(after, ModelServer(replies=[Reply(text="Done.")], port=port)) as engine:
        ask = await only_ask(engine)
        await engine.services.runner.resume(started.id)
        waiting = await engine.watcher.task(started.id, lambda task: task.activity.status == "waiting_user")
        assert waiting.activity.ask_id == ask.id  # the call shown while interrupted is the one that would run
        assert ask.unknown is not None and ask.unknown.command == f"touch {marker}" and closed in ask.unknown.text
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text=RUN_AGAIN), "the test")
        await engine.watcher.end(started.id)
        assert "is closed to tools" in str(engine.model.requests[0].messages[-1]["content"])
    assert not marker.exists()


@pytest.mark.parametrize("remember", ["conversation", "workspace"])
async def test_what_was_allowed_in_a_deleted_conversation_is_not_allowed_in_a_file_with_its_id(
    tmp_path: Path, remember: Remember
) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: shell("echo x > ran"))) as engine:
        services = engine.services
        file = HostileFile("ls", tmp_path)

        async def work_there() -> Ask:
            """Import the file, confirm its default folder, and request the command there."""
            await file.take(engine, tmp_path)
            conversation = await services.database.conversations.get(file.conversation.id)
            assert conversation is not None
            services.log.publish(
                ConversationUpdate(conversation=with_workspace(conversation, Path(conversation.workspace)))
            )
            await services.log.flush()
            started = await engine.start("go", conversation_id=conversation.id, approve="ask", mode="task")
            return await engine.watcher.ask(started.id)

        ask = await work_there()
        await services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True, remember=remember), "me")
        ran = services.paths.workspaces / file.conversation.id / "ran"
        await engine.watcher.until(ran.exists)
        await services.runner.stop(ask.task_id, "me")
        await engine.watcher.end(ask.task_id)
        conversation = await services.database.conversations.get(file.conversation.id)
        assert conversation is not None
        services.log.publish(ConversationUpdate(conversation=msgspec.structs.replace(conversation, archived=True)))
        await services.log.flush()
        await Remover(
            services.log,
            services.database,
            services.runner.changes,
            services.locks,
            services.grants,
            services.checkpoints.baselines,
            services.paths,
        ).delete(conversation.id)
        ran.unlink()
        assert await services.database.grants.valid() == ()
        again = await work_there()
        assert again.kind == "approval" and not ran.exists()
        await services.runner.stop(again.task_id, "me")
        await engine.watcher.end(again.task_id)
