"""Calls with the same results again and again: a notice first, then a question, or the end if nobody can be asked."""

import asyncio
from pathlib import Path

import pytest

from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.blocks import NoticeBlock
from errand.protocol.conversations import Node
from errand.text.notice_text import notice_text
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.model_replies import DONE, results, shell
from tests.support.model_server import Call, ModelServer, Reply

_TOLD = "this same call three times"
_SAME = Reply(calls=(Call("send_update", {"message": "still waiting"}),))
_IN_TURN = "these same calls in turn three times"
_OTHER = Reply(calls=(Call("shell", {"command": "echo new"}),))


def _warnings(nodes: list[Node]) -> list[str]:
    blocks = [block for node in nodes for block in node.blocks]
    return [notice_text(block) for block in blocks if isinstance(block, NoticeBlock) and block.kind == "warning"]


def _told(nodes: list[Node]) -> list[bool]:
    return [_TOLD in result.text for result in results(nodes)]


async def _answer(engine: EngineParts, ask: Ask, *, allow: bool) -> None:
    await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=allow), "me")


async def test_third_equal_call_is_reported_to_the_user_and_with_its_result_to_the_model(tmp_path: Path) -> None:
    server = ModelServer(turns=[*[shell("echo same")] * 3, DONE])
    async with engine_parts(tmp_path, server) as engine:
        await engine.watcher.end((await engine.start()).id)
        nodes = engine.watcher.nodes()
        assert _told(nodes) == [False, False, True, False]
        assert _warnings(nodes) == [
            'The same call was made 3 times with the same result: shell {"command":"echo same"}'
        ]
        roles = [node.role for node in nodes[-4:]]
        assert roles == ["tool_result", "system", "assistant", "tool_result"]
        assert _TOLD in str(server.requests[3].messages[-1]["content"])


async def test_argument_order_does_not_make_a_call_different(tmp_path: Path) -> None:
    def ask(*names: str) -> Reply:
        return Reply(calls=(Call("shell", {name: {"command": "true", "timeout": 9}[name] for name in names}),))

    turns = [ask("command", "timeout"), ask("timeout", "command"), ask("command", "timeout"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        await engine.watcher.end((await engine.start()).id)
        assert len(_warnings(engine.watcher.nodes())) == 1


async def test_new_result_of_another_call_resets_the_repeat_count(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[_SAME, _SAME, _OTHER, _SAME, DONE])) as engine:
        await engine.watcher.end((await engine.start()).id)
        assert _warnings(engine.watcher.nodes()) == []


async def test_user_message_resets_the_repeat_count(tmp_path: Path) -> None:
    gate = asyncio.Event()
    held = Reply(calls=_SAME.calls, gate=gate)
    server = ModelServer(replies=[_SAME, held, _SAME, _SAME, DONE])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(1)
        await engine.say(started.id, "keep waiting")
        gate.set()
        await engine.watcher.end(started.id)
        assert _warnings(engine.watcher.nodes()) == []


async def test_answered_questions_are_not_repetitions(tmp_path: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "And now?"}),))
    async with engine_parts(tmp_path, ModelServer(turns=[question, question, question, DONE])) as engine:
        started = await engine.start(attended=True)
        for answer in ("one", "two", "three"):
            ask = await engine.watcher.ask(started.id)
            await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text=answer), "me")
        await engine.watcher.end(started.id)
        assert _warnings(engine.watcher.nodes()) == []


@pytest.mark.parametrize(("allow", "status"), [(True, "completed"), (False, "cancelled")])
async def test_user_is_asked_before_the_fifth_equal_call(tmp_path: Path, allow: bool, status: str) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[*[_SAME] * 5, DONE])) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        assert (ask.kind, ask.choices) == ("limit", ("Go on", "Stop here"))
        assert ask.text.startswith("It is about to make the same call for the 5th time: send_update")
        assert engine.watcher.tasks(started.id)[-1].progress.step_count == 5
        await _answer(engine, ask, allow=allow)
        assert (await engine.watcher.end(started.id)).activity.status == status


@pytest.mark.parametrize("call", [Call("no_such_tool", {"a": 1}), Call("shell", {"commando": "ls"})])
async def test_user_is_asked_after_the_fifth_equal_invalid_call(tmp_path: Path, call: Call) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(calls=(call,))] * 8)) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        assert ask.text.startswith("It has tried to make the same call for the 5th time")
        assert len(_warnings(engine.watcher.nodes())) == 1
        await _answer(engine, ask, allow=False)
        ended = await engine.watcher.end(started.id)
        assert (ended.activity.status, ended.progress.step_count) == ("cancelled", 5)


async def test_repeated_call_asks_an_attending_user_even_if_everything_is_allowed(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[_SAME] * 12)) as engine:
        started = await engine.start(approve="all", attended=True)
        await _answer(engine, await engine.watcher.ask(started.id), allow=False)
        task = await engine.watcher.end(started.id)
        assert (task.outcome.stop_reason, task.progress.step_count) == ("manual_stop", 5)


def _end(nodes: list[Node]) -> str:
    (end,) = [block for block in nodes[-1].blocks if isinstance(block, NoticeBlock)]
    return notice_text(end)


@pytest.mark.parametrize(
    "call",
    [Call("shell", {"command": "echo same"}), Call("send_update", {"message": "here"}), Call("no_such_tool", {"a": 1})],
)
async def test_unattended_task_ends_after_the_fifth_equal_result(tmp_path: Path, call: Call) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(calls=(call,))] * 14)) as engine:
        task = await engine.watcher.end((await engine.start(max_turns=12)).id)
        assert (task.activity.status, task.outcome.stop_reason) == ("cancelled", "iteration_limit")
        assert task.progress.step_count == 5
        text = _end(engine.watcher.nodes())
        assert text.startswith(f"The agent made the same call 5 times with the same result: {call.tool}")


async def test_the_result_of_a_wait_says_that_it_is_one(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("sleep 0.01"), shell("true"), DONE])) as engine:
        await engine.watcher.end((await engine.start()).id)
        assert [result.marks for result in results(engine.watcher.nodes())] == [("waited",), (), ()]


async def test_a_question_that_nobody_answers_is_a_repetition_too(tmp_path: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "And now?"}),))
    async with engine_parts(tmp_path, ModelServer(turns=[question] * 8)) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        assert (task.outcome.stop_reason, task.progress.step_count) == ("iteration_limit", 5)


async def test_loop_of_any_length_ends_in_its_fifth_round(tmp_path: Path) -> None:
    turns = _cycle("echo a", "echo b", "echo c", "echo d", "false", rounds=6)
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        assert (task.outcome.stop_reason, task.progress.step_count) == ("iteration_limit", 21)
        calls = "; ".join(f'shell {{"command":"{command}"}}' for command in ("echo a", "echo c", "echo d", "false"))
        assert _end(engine.watcher.nodes()) == f"The agent made the same calls 5 times with the same results: {calls}"


async def test_same_calls_in_any_order_are_a_loop(tmp_path: Path) -> None:
    commands = ["echo a", "echo b", "echo b", "echo a", "true", "echo a", "echo b", "echo a", "true", "echo a", "pwd"]
    async with engine_parts(tmp_path, ModelServer(turns=[*map(shell, commands), DONE])) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        assert task.activity.status == "completed"  # `true` and `pwd` were new
        assert [_IN_TURN in result.text for result in results(engine.watcher.nodes())].index(True) == 7


async def test_test_that_fails_alike_after_each_change_is_no_repetition(tmp_path: Path) -> None:
    turns = [shell(command) for number in range(8) for command in (f"echo {number} > file; cat file", "exit 3")]
    async with engine_parts(tmp_path, ModelServer(turns=[*turns, DONE])) as engine:
        ended = await engine.watcher.end((await engine.start()).id)
        assert (ended.activity.status, _warnings(engine.watcher.nodes())) == ("completed", [])


async def test_times_in_results_do_not_make_them_different(tmp_path: Path) -> None:
    turns = [shell('echo "2 passed in 0.0$(wc -l < log)s"; echo >> log')] * 8
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start()
        (Path(started.request.workspace) / "log").write_text("")
        assert (await engine.watcher.end(started.id)).progress.step_count == 5


async def test_waits_are_not_repetitions(tmp_path: Path) -> None:
    look = Reply(calls=(Call("shell", {"action": "list"}),))
    naps = [shell("until test -f ready || test $((n+=1)) -gt 3; do sleep 0.01; done; echo no")] * 5
    turns = [*[look] * 7, *[shell("sleep 2; echo same")] * 3, *naps, DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        ended = await engine.watcher.end((await engine.start()).id)
        assert (ended.activity.status, _warnings(engine.watcher.nodes())) == ("completed", [])


async def test_a_time_that_is_left_is_progress(tmp_path: Path) -> None:
    turns = [*[shell('echo "$((30 - $(wc -l < log)))s left"; echo >> log')] * 6, DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start()
        (Path(started.request.workspace) / "log").write_text("")
        ended = await engine.watcher.end(started.id)
        assert (ended.activity.status, _warnings(engine.watcher.nodes())) == ("completed", [])


async def test_truncated_calls_are_equal_whatever_is_left_of_them(tmp_path: Path) -> None:
    cut = [
        Reply(calls=(Call("code", {"operation": "write", "path": "a", "content": "x" * size}),), finish="length")
        for size in range(12)
    ]
    async with engine_parts(tmp_path, ModelServer(turns=cut)) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        assert (task.activity.status, task.outcome.stop_reason, task.progress.step_count) == (
            "cancelled",
            "iteration_limit",
            5,
        )
        text = _end(engine.watcher.nodes())
        assert text.startswith("The agent made the same call 5 times with the same result: code (cut")
        assert _warnings(engine.watcher.nodes()) == [
            "The same call was made 3 times with the same result: code (cut at the limit of the reply)"
        ]


async def test_repeat_count_and_its_ask_survive_a_restart(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[_SAME] * 5)) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        port = crash(engine, tmp_path / "after")
    await _allow_after_restart(tmp_path / "after", port, ask)


async def _allow_after_restart(home: Path, port: int, ask: Ask) -> None:
    """The ask of the crashed engine is open again; the allowed task goes on to its end."""
    async with engine_parts(home, ModelServer(replies=[DONE], port=port)) as engine:
        await engine.services.runner.resume(ask.task_id)
        await engine.watcher.task(ask.task_id, lambda task: task.activity.ask_id == ask.id)
        await _answer(engine, ask, allow=True)
        assert (await engine.watcher.end(ask.task_id)).activity.status == "completed"
        assert await engine.services.database.asks.waiting() == ()


def _cycle(*commands: str, rounds: int) -> list[Reply]:
    return [shell(command) for command in commands] * rounds


async def test_calls_that_take_turns_are_reported_after_their_third_round(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[*_cycle("echo a", "echo b", rounds=4), DONE])) as engine:
        await engine.watcher.end((await engine.start()).id)
        nodes = engine.watcher.nodes()
        assert [_IN_TURN in result.text for result in results(nodes)] == [False] * 4 + [True] + [False] * 4
        assert _warnings(nodes) == [
            "The same calls were made 3 times with the same results: "
            'shell {"command":"echo a"}; shell {"command":"echo b"}'
        ]


@pytest.mark.parametrize(
    ("commands", "calls", "steps"),
    [(("echo a", "echo b"), "two calls", 9), (("echo a", "pwd", "ls"), "three calls", 13)],
)
async def test_user_is_asked_before_the_fifth_round_of_calls_that_take_turns(
    tmp_path: Path, commands: tuple[str, ...], calls: str, steps: int
) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[*_cycle(*commands, rounds=10), DONE])) as engine:
        started = await engine.start(attended=True)
        ask = await engine.watcher.ask(started.id)
        calls_text = "; then ".join(f'shell {{"command":"{command}"}}' for command in commands)
        assert ask.text == f"It is about to make the same {calls} for the 5th time: {calls_text}"
        assert engine.watcher.tasks(started.id)[-1].progress.step_count == steps
        await _answer(engine, ask, allow=False)
        assert (await engine.watcher.end(started.id)).activity.status == "cancelled"


async def test_calls_that_take_turns_in_parallel_are_recognised_too(tmp_path: Path) -> None:
    both = Reply(calls=(*_SAME.calls, *_OTHER.calls))
    async with engine_parts(tmp_path, ModelServer(turns=[both] * 10)) as engine:
        started = await engine.start(attended=True)
        await _answer(engine, await engine.watcher.ask(started.id), allow=False)
        assert (await engine.watcher.end(started.id)).progress.step_count == 5
        assert len(_warnings(engine.watcher.nodes())) == 1


async def test_calls_that_take_turns_with_different_results_are_not_repetitions(tmp_path: Path) -> None:
    turns = [
        *_cycle("echo x >> file", "cat file", rounds=6),
        *_cycle("cat file", "echo y >> file", "true", rounds=6),
        *[shell(command) for number in range(6) for command in (f"echo {number} > file", "true")],
        DONE,
    ]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        ended = await engine.watcher.end((await engine.start(attended=True, max_turns=60)).id)
        assert (ended.activity.status, _warnings(engine.watcher.nodes())) == ("completed", [])


async def test_different_call_resets_the_count_of_rounds(tmp_path: Path) -> None:
    turns = [*_cycle("echo a", "echo b", rounds=2), _OTHER, *_cycle("echo a", "echo b", rounds=1), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        await engine.watcher.end((await engine.start()).id)
        assert _warnings(engine.watcher.nodes()) == []


async def test_count_of_rounds_survives_a_restart(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=_cycle("echo a", "echo b", rounds=5))) as engine:
        started = await engine.start(attended=True)
        ask = await engine.watcher.ask(started.id)
        port = crash(engine, tmp_path / "after")
    await _allow_after_restart(tmp_path / "after", port, ask)
