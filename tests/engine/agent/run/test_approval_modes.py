"""The approval mode of a conversation while its tasks run, and the time limit of asks."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from errand.engine.permissions.policy import PLAN_MODE
from errand.engine.sandbox.detection import is_sandboxed
from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.methods import TaskRetryParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.model_replies import DONE, results, shell
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.sandboxes import set_sandbox

MODES: tuple[ApproveMode, ...] = ("edits", "plan", "plan", "edits", "edits")
QUESTION = Reply(calls=(Call("ask_user", {"question": "Which colour?"}),))


def write(path: str, text: str = "hello\n") -> Reply:
    return Reply(calls=(Call("code", {"action": "write", "path": path, "content": text}),))


async def change(engine: EngineParts, task: Task, mode: ApproveMode) -> None:
    await engine.services.runner.modes.change(task.conversation_id, mode, "window", attended=True)


async def stored(engine: EngineParts, ask: Ask) -> Ask:
    stored_ask = await engine.services.database.asks.get(ask.id)
    assert stored_ask is not None
    return stored_ask


async def mode_of(engine: EngineParts, task: Task) -> ApproveMode:
    conversation = await engine.services.database.conversations.get(task.conversation_id)
    assert conversation is not None
    return conversation.approve


def texts(engine: EngineParts) -> list[str]:
    return [result.text for result in results(engine.watcher.nodes())]


async def test_edits_lets_a_change_through_and_asks_about_a_command(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[write("made"), shell("rm made"), DONE])) as engine:
        task = await engine.start(approve="edits")
        ask = await engine.watcher.ask(task.id)
        assert ask.approval is not None and ask.approval.command == "rm made"
        assert (engine.workspace / "made").read_text() == "hello\n"
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=False), "me")
        await engine.watcher.end(task.id)
        assert (engine.workspace / "made").exists()


@pytest.mark.skipif(not is_sandboxed("auto"), reason="there is no sandbox")
async def test_auto_runs_what_the_sandbox_holds_and_asks_about_the_rest(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    line = f"echo hello > made; (echo x > {elsewhere}) 2> /dev/null; cat made"
    turns = [shell(f'sh -c "$(printf %s "{line}")"'), shell("rm -rf .git"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        (engine.workspace / ".git").mkdir()
        task = await engine.start(approve="auto")
        ask = await engine.watcher.ask(task.id)
        assert ask.approval is not None and ask.approval.command == "rm -rf .git"
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=False), "me")
        await engine.watcher.end(task.id)
        assert texts(engine)[0].startswith("hello")
        assert (engine.workspace / "made").exists() and (engine.workspace / ".git").exists()
        assert not elsewhere.exists(), "whatever its words hide, the sandbox holds it"


@pytest.mark.skipif(not is_sandboxed("auto"), reason="there is no sandbox")
async def test_a_change_to_auto_lets_what_waits_run(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch made"), DONE])) as engine:
        task = await engine.start(approve="ask")
        ask = await engine.watcher.ask(task.id)
        await change(engine, task, "auto")
        await engine.watcher.end(task.id)
        assert (await stored(engine, ask)).settled_by == "mode"
        assert (engine.workspace / "made").exists()


@pytest.mark.skipif(not is_sandboxed("auto"), reason="there is no sandbox")
async def test_auto_asks_about_what_overwrites_where_not_all_can_be_undone(tmp_path: Path) -> None:
    turns = [shell("touch made"), shell("rm large"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        with (engine.workspace / "large").open("wb") as file:
            file.truncate(300_000_000)
        task = await engine.start(approve="auto")
        ask = await engine.watcher.ask(task.id)
        assert ask.approval is not None and ask.approval.command == "rm large"
        assert "changes of commands cannot all be undone here" in ask.approval.rule
        assert (engine.workspace / "made").exists()
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        await engine.watcher.end(task.id)


async def test_auto_without_a_sandbox_asks(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[write("made"), shell("rm made"), DONE])) as engine:
        set_sandbox(engine.services.settings, is_on=False)
        task = await engine.start(approve="auto")
        ask = await engine.watcher.ask(task.id)
        assert ask.approval is not None and ask.approval.command == "rm made"
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        await engine.watcher.end(task.id)
        assert not (engine.workspace / "made").exists()


async def test_a_mode_that_is_taken_back_at_once_lets_nothing_run(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch a"), DONE])) as engine:
        task = await engine.start(approve="ask")
        first = await engine.watcher.ask(task.id)
        await asyncio.gather(change(engine, task, "all"), change(engine, task, "ask"))
        await engine.watcher.task(task.id, lambda task: task.activity.ask_id not in (None, first.id))
        assert not (engine.workspace / "a").exists()


async def test_edits_denies_what_it_would_ask_about_if_nobody_is_there(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[write("made"), shell("rm made"), DONE])) as engine:
        task = await engine.start(approve="edits", attended=False)
        await engine.watcher.end(task.id)
        assert "nobody is there to ask" in texts(engine)[1]
        assert (engine.workspace / "made").exists()


async def test_plan_mode_denies_a_write_and_a_command_but_runs_what_only_looks(tmp_path: Path) -> None:
    turns = [write("made"), shell("touch made"), shell("ls"), QUESTION, DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        (engine.workspace / "notes").touch()
        task = await engine.start(approve="plan", attended=True)
        ask = await engine.watcher.ask(task.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text="blue"), "me")
        assert (await engine.watcher.end(task.id)).outcome.completion == "declared"
        written, touched, listed, answered, _ = texts(engine)
        assert written.startswith(f"Not allowed: {PLAN_MODE}") and touched.startswith(f"Not allowed: {PLAN_MODE}")
        assert (listed, answered) == ("notes", "blue")
        assert not (engine.workspace / "made").exists()
        plan_messages = [
            message for message in engine.model.requests[-1].messages if "## Plan mode" in str(message["content"])
        ]
    assert [message["role"] for message in plan_messages] == ["user"]


async def test_the_agent_learns_of_a_mode_that_was_chosen_between_two_messages_and_of_the_same_mode_once(
    tmp_path: Path,
) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Fine."))) as engine:
        conversation_id: str | None = None
        for mode in MODES:
            task = await engine.start("Do it.", approve=mode, conversation_id=conversation_id)
            conversation_id = (await engine.watcher.end(task.id)).conversation_id
    assert conversation_id is not None
    messages = engine.model.requests[-1].messages
    user_texts = [str(message["content"]) for message in messages if message["role"] == "user"]
    assert [("## Plan mode" in text, "Plan mode is over" in text) for text in user_texts] == [
        (False, False),
        (True, False),
        (False, False),
        (False, True),
        (False, False),
    ]
    assert all(text.endswith("Do it.") for text in user_texts)
    assert len({str(request.messages[0]) for request in engine.model.requests}) == 1  # the provider's cache holds


@pytest.mark.parametrize(("first", "then", "is_told"), [("plan", "edits", False), ("edits", "plan", True)])
async def test_a_retry_in_another_mode_is_told_of_it(
    tmp_path: Path, first: ApproveMode, then: ApproveMode, is_told: bool
) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Fine."))) as engine:
        task = await engine.watcher.end((await engine.start("Do it.", approve=first)).id)
        (reply,) = (node for node in engine.watcher.nodes() if node.role == "assistant")
        await engine.services.runner.modes.change(task.conversation_id, then, "window", attended=True)
        again = await engine.services.runner.retry(TaskRetryParams(node_id=reply.id))
        await engine.watcher.end(again.id)
    assert again.options.approve == then
    last = str(engine.model.requests[-1].messages[-1]["content"])
    assert ("## Plan mode" in last.rpartition("Do it.")[2], "Plan mode is over" in last) == (is_told, not is_told)


async def test_a_mode_that_allows_what_waits_settles_it(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[write("made"), shell("touch other"), DONE])) as engine:
        task = await engine.start(approve="ask")
        first = await engine.watcher.ask(task.id)
        await change(engine, task, "edits")
        second = await engine.watcher.ask(task.id)
        assert second.id != first.id and second.approval is not None and second.approval.command == "touch other"
        settled = await stored(engine, first)
        assert (settled.allowed, settled.settled_by, settled.answered_by) == (True, "mode", "window")
        await change(engine, task, "all")
        ended = await engine.watcher.end(task.id)
        assert (ended.activity.status, ended.options.approve) == ("completed", "all")
        assert (engine.workspace / "made").exists() and (engine.workspace / "other").exists()


async def test_a_stricter_mode_never_lets_through_what_waits(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch made"), DONE])) as engine:
        task = await engine.start(approve="edits")
        ask = await engine.watcher.ask(task.id)
        await change(engine, task, "ask")
        assert (await stored(engine, ask)).status == "waiting"
        await change(engine, task, "plan")
        settled = await stored(engine, ask)
        assert (settled.allowed, settled.settled_by, settled.answer) == (False, "mode", PLAN_MODE)
        await engine.watcher.end(task.id)
        assert texts(engine)[0] == f"Not allowed: {PLAN_MODE}"
        assert not (engine.workspace / "made").exists()


async def test_an_answer_and_a_stricter_mode_at_once_run_nothing(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch made"), DONE])) as engine:
        task = await engine.start(approve="ask")
        ask = await engine.watcher.ask(task.id)
        await asyncio.gather(
            engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me"), change(engine, task, "plan")
        )
        await engine.watcher.end(task.id)
        assert not (engine.workspace / "made").exists()


async def test_the_agent_learns_of_plan_mode_while_it_works_and_of_its_end(tmp_path: Path) -> None:
    turns = [QUESTION, QUESTION, write("made"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        task = await engine.start(approve="ask")
        for mode in ("plan", "edits"):
            ask = await engine.watcher.ask(task.id)
            await change(engine, task, mode)
            await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text="blue"), "me")
        await engine.watcher.end(task.id)
        assert (engine.workspace / "made").exists()
    assert "## Plan mode" in str(engine.model.requests[1].messages[-1]["content"])
    assert "Plan mode is over" in str(engine.model.requests[2].messages[-1]["content"])
    assert engine.model.requests[0].messages[0] == engine.model.requests[3].messages[0]  # the provider's cache holds


async def test_the_mode_belongs_to_the_conversation(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[DONE, DONE, DONE, DONE])) as engine:
        first = await engine.start(approve="edits")
        await engine.watcher.end(first.id)
        followed = await engine.start(approve=None, conversation_id=first.conversation_id)
        await engine.watcher.end(followed.id)
        headless = await engine.start(approve="never", conversation_id=first.conversation_id)
        await engine.watcher.end(headless.id)
        assert (followed.options.approve, headless.options.approve, await mode_of(engine, first)) == (
            "edits",
            "never",
            "edits",
        )
        chosen = await engine.start(approve="plan", conversation_id=first.conversation_id)
        await engine.watcher.end(chosen.id)
        assert (chosen.options.approve, await mode_of(engine, first)) == ("plan", "plan")
        assert await mode_of(engine, await engine.start(approve=None)) == "ask"


@pytest.mark.parametrize("before_the_crash", [True, False])
async def test_a_resumed_task_has_the_mode_that_was_chosen(tmp_path: Path, before_the_crash: bool) -> None:
    after = tmp_path / "after"
    async with engine_parts(tmp_path, ModelServer(replies=[QUESTION])) as engine:
        task = await engine.start(approve="all", attended=True)
        ask = await engine.watcher.ask(task.id)
        if before_the_crash:
            await change(engine, task, "plan")
        port = crash(engine, after)
    async with engine_parts(after, ModelServer(replies=[shell("touch made"), DONE], port=port)) as engine:
        if not before_the_crash:
            await change(engine, task, "plan")
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text="blue"), "me")
        await engine.services.runner.resume(task.id)
        ended = await engine.watcher.end(task.id)
        assert (ended.options.approve, await mode_of(engine, task)) == ("plan", "plan")
        assert f"Not allowed: {PLAN_MODE}" in texts(engine)[1]
        assert not (tmp_path / "workspace" / "made").exists()
    assert "## Plan mode" in str(engine.model.requests[-1].messages)


async def test_an_ask_of_an_interrupted_task_is_settled_by_a_new_mode(tmp_path: Path) -> None:
    after = tmp_path / "after"
    async with engine_parts(tmp_path, ModelServer(replies=[shell("touch made")])) as engine:
        task = await engine.start(approve="ask")
        ask = await engine.watcher.ask(task.id)
        port = crash(engine, after)
    async with engine_parts(after, ModelServer(replies=[DONE], port=port)) as engine:
        await change(engine, task, "all")
        assert (await stored(engine, ask)).allowed
        await engine.services.runner.resume(task.id)
        assert (await engine.watcher.end(task.id)).activity.status == "completed"
        assert (tmp_path / "workspace" / "made").exists()


async def test_an_approval_that_nobody_answers_in_time_is_denied(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch made"), DONE])) as engine:
        engine.services.settings.set("ask_timeout", 0.002)
        task = await engine.start(approve="ask")
        ask = await engine.watcher.ask(task.id)
        await engine.watcher.end(task.id)
        settled = await stored(engine, ask)
        assert (settled.status, settled.allowed, settled.settled_by) == ("answered", False, "timeout")
        assert texts(engine)[0] == "Not allowed: nobody answered within 0.002 min"
        assert not (engine.workspace / "made").exists()


async def test_a_question_that_nobody_answers_in_time_returns_unanswered(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[QUESTION, DONE])) as engine:
        engine.services.settings.set("ask_timeout", 0.002)
        task = await engine.start(attended=True)
        assert (await engine.watcher.end(task.id)).activity.status == "completed"
        (question_result, _) = results(engine.watcher.nodes())
        assert (question_result.is_error, question_result.summary) == (True, "not answered")
        assert question_result.text.startswith("Not answered: nobody answered within 0.002 min.")


async def test_a_limit_that_nobody_raises_in_time_ends_the_task(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("ls"), shell("ls"), DONE])) as engine:
        engine.services.settings.set("ask_timeout", 0.002)
        task = await engine.start(attended=True, max_turns=1)
        assert (await engine.watcher.end(task.id)).outcome.stop_reason == "iteration_limit"


async def test_the_time_of_an_ask_goes_on_while_no_engine_runs(tmp_path: Path) -> None:
    after = tmp_path / "after"
    async with engine_parts(tmp_path, ModelServer(replies=[shell("touch made")])) as engine:
        engine.services.settings.set("ask_timeout", 60)
        task = await engine.start(approve="ask")
        ask = await engine.watcher.ask(task.id)
        assert ask.expires_at is not None and (ask.expires_at - ask.created_at).total_seconds() == 3_600
        port = crash(engine, after)
    with sqlite3.connect(Paths(after / "data").database) as connection:
        connection.execute("UPDATE asks SET body = json_set(body, '$.expiresAt', json_extract(body, '$.createdAt'))")
    async with engine_parts(after, ModelServer(replies=[DONE], port=port)) as engine:
        late = await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        assert (late.won, late.ask.answer) == (False, "nobody answered within 0 min")
        await engine.services.runner.resume(task.id)
        await engine.watcher.end(task.id)
        assert texts(engine)[0] == "Not allowed: nobody answered within 0 min"
        assert not (tmp_path / "workspace" / "made").exists()
