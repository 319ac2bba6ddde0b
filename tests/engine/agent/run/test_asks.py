"""Asks of a task: questions and approvals, answered once."""

import asyncio
from pathlib import Path

import pytest

from errand.engine.core.errors import InvalidParams
from errand.protocol.asks import AskAnswerParams, GrantedCall
from errand.protocol.base import JsonObject
from errand.protocol.events import AskUpdate
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE, results, shell
from tests.support.model_server import Call, ModelServer, Reply


async def test_where_nobody_is_a_question_goes_back_to_the_agent(tmp_path: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with engine_parts(tmp_path, ModelServer(turns=[question, Reply(text="I took red.")])) as engine:
        task = await engine.watcher.end((await engine.start(attended=False)).id)
        (unanswered,) = results(engine.watcher.nodes())
    assert unanswered.is_error and unanswered.text.startswith("Not answered: nobody is there to ask. Find it out")
    assert (task.activity.status, task.outcome.completion) == ("completed", "answered")
    assert not [event for event in engine.watcher.events if isinstance(event, AskUpdate)]


async def test_a_question_waits_for_its_first_answer_and_the_model_reads_it(tmp_path: Path) -> None:
    ask = Reply(calls=(Call("ask_user", {"question": "Which colour?", "choices": ["red", "blue"]}),))
    async with engine_parts(tmp_path, ModelServer(turns=[ask, DONE])) as engine:
        started = await engine.start(attended=True)
        waiting = await engine.watcher.ask(started.id)
        assert (waiting.kind, waiting.text, waiting.choices) == ("question", "Which colour?", ("red", "blue"))
        status = await engine.watcher.task(started.id, lambda task: task.activity.status == "waiting_user")
        assert status.activity.ask_id == waiting.id
        first, second = await asyncio.gather(
            engine.services.asks.answer(AskAnswerParams(ask_id=waiting.id, text="blue"), "window"),
            engine.services.asks.answer(AskAnswerParams(ask_id=waiting.id, text="red"), "phone"),
        )
        assert (first.won, second.won) == (True, False)
        assert second.ask == first.ask and second.ask.answered_by == "window"
        await engine.watcher.end(started.id)
        assert engine.model.requests[1].messages[-1]["content"] == "blue"


@pytest.mark.parametrize(
    "asked",
    [
        {"question": "Which?", "choices": ["x"] * 51},
        {"question": "Which?", "choices": ["x", "y" * 1_001]},
        {"question": "W" * 20_001},
    ],
    ids=["choices", "a long choice", "a long question"],
)
async def test_a_question_too_long_to_be_shown_is_not_asked(tmp_path: Path, asked: JsonObject) -> None:
    turns = [Reply(calls=(Call("ask_user", asked),), piece_length=1_000_000), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start(attended=True)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        question_result, _ = results(engine.watcher.nodes())
    assert question_result.is_error and "It was not asked." in question_result.text


async def test_a_question_of_the_greatest_size_is_asked(tmp_path: Path) -> None:
    choices = [f"{number:02}" + "y" * 998 for number in range(50)]
    ask = Reply(calls=(Call("ask_user", {"question": "W" * 20_000, "choices": [*choices]}),), piece_length=1_000_000)
    async with engine_parts(tmp_path, ModelServer(turns=[ask, DONE])) as engine:
        started = await engine.start(attended=True)
        waiting = await engine.watcher.ask(started.id)
        assert waiting.choices == tuple(choices)
        await engine.services.asks.answer(AskAnswerParams(ask_id=waiting.id, text=choices[0]), "me")
        await engine.watcher.end(started.id)


async def test_empty_answer_to_a_question_is_refused_and_the_question_keeps_waiting(tmp_path: Path) -> None:
    ask = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with engine_parts(tmp_path, ModelServer(turns=[ask, DONE])) as engine:
        started = await engine.start(attended=True)
        waiting = await engine.watcher.ask(started.id)
        with pytest.raises(InvalidParams):
            await engine.services.asks.answer(AskAnswerParams(ask_id=waiting.id, text=" "), "me")
        won = await engine.services.asks.answer(AskAnswerParams(ask_id=waiting.id, text="this"), "me")
        assert won.won
        await engine.watcher.end(started.id)


async def test_an_approval_shows_the_exact_command_and_a_denial_reaches_the_model(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch made.txt"), DONE])) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        assert ask.approval is not None
        assert (ask.kind, ask.approval.command) == ("approval", "touch made.txt")
        answer = AskAnswerParams(ask_id=ask.id, allow=False, text="not here")
        await engine.services.asks.answer(answer, "me")
        await engine.watcher.end(started.id)
        (denied, _) = results(engine.watcher.nodes())
        assert denied.is_error and "not here" in denied.text
        assert not (engine.workspace / "made.txt").exists()
        refused, end = await engine.services.database.executions.of_task(started.id)
        assert (refused.started.tool, refused.started.tier, end.started.tool) == ("shell", "refused", "task_complete")


async def test_allowed_command_needs_approval_again_unless_it_is_remembered(tmp_path: Path) -> None:
    turns = [shell("touch made.txt"), shell("touch made.txt"), shell("touch made.txt"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start(approve="ask")
        first = await engine.watcher.ask(started.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=first.id, allow=True), "me")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 1)
        second = await engine.watcher.ask(started.id)
        remember = AskAnswerParams(ask_id=second.id, allow=True, remember="conversation")
        await engine.services.asks.answer(remember, "me")
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        (grant,) = await engine.services.database.grants.valid()
        folder = str(engine.workspace)
        assert grant.call == GrantedCall(operation="run", command="touch made.txt", working_dir=folder)
        expected_grant = (f"in {folder}: touch made.txt", "conversation", second.id)
        assert (grant.exact, grant.scope, grant.ask_id) == expected_grant


async def test_workspace_grant_settles_only_equal_asks_that_wait_in_the_workspace(
    tmp_path: Path,
) -> None:
    replies = [shell("touch made.txt"), shell("touch made.txt"), shell("touch other.txt"), DONE, DONE]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        tasks = [await engine.start(approve="ask")]
        asks = [await engine.watcher.ask(tasks[0].id)]
        for _ in range(2):  # sequential, since the model answers in this order
            tasks.append(await engine.start(approve="ask"))
            asks.append(await engine.watcher.ask(tasks[-1].id))
        remember = AskAnswerParams(ask_id=asks[0].id, allow=True, remember="workspace")
        await engine.services.asks.answer(remember, "me")
        for task in tasks[:2]:
            assert (await engine.watcher.end(task.id)).activity.status == "completed"
        second = await engine.services.database.asks.get(asks[1].id)
        assert second is not None
        assert (second.status, second.allowed, second.remember, second.answered_by) == ("answered", True, "once", "me")
        third = await engine.services.database.asks.get(asks[2].id)
        assert third is not None and third.status == "waiting"


async def test_commands_that_only_look_run_without_an_ask(tmp_path: Path) -> None:
    lines = ("cat notes", "cat notes | wc -l; ls", "git status --short")
    async with engine_parts(tmp_path, ModelServer(replies=[*map(shell, lines), DONE])) as engine:
        (engine.workspace / "notes").write_text("a b\n")
        started = await engine.start(approve="ask")
        await engine.watcher.end(started.id)
        result_texts = [result.text for result in results(engine.watcher.nodes())]
    assert result_texts[:2] == ["a b", "1\nnotes"]


async def test_with_nobody_to_ask_a_command_is_denied(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch made.txt"), DONE])) as engine:
        await engine.watcher.end((await engine.start(approve="never")).id)
        assert results(engine.watcher.nodes())[0].is_error
        assert not (engine.workspace / "made.txt").exists()
