"""Behaviours 29 to 34: tasks started elsewhere or earlier are followed, paused, resumed and answered."""

import asyncio
import sys

import pytest

from tests.support.command_line import Errand, rest
from tests.support.model_server import Call, ModelServer, Reply

if sys.platform == "win32":
    pytest.skip("pseudo-terminals and signals of POSIX", allow_module_level=True)

from tests.support.screens import PseudoTerminal

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


def terminal(errand: Errand, *arguments: str) -> PseudoTerminal:
    return PseudoTerminal(arguments, errand.folder, errand.environment)


async def test_a_task_whose_terminal_was_killed_is_answered_from_another_one(errand: Errand) -> None:
    replies = [
        Reply(calls=(Call("send_update", {"message": "I have begun."}),)),
        Reply(calls=(Call("ask_user", {"question": "Which tone?", "choices": ["formal", "friendly"]}),)),
        Reply(text="All settled."),
    ]
    async with ModelServer(turns=replies) as server:
        async with terminal(errand, "run", *MODEL, server.url, "write a note") as screen:
            await screen.shows("answer >")
        task_id = (await errand.task("waiting_user")).id
        onlooker = await errand.start("attach", "--json", task_id)
        assert onlooker.stderr is not None
        noted = (await onlooker.stderr.readline()).decode()
        async with terminal(errand, "attach", task_id[-8:]) as screen:
            await screen.shows("write a note")
            await screen.shows("I have begun.")
            await screen.shows("2  friendly")
            await screen.shows("answer >", then="2\r")
            await screen.shows("All settled.")
            await screen.shows("answered, no tool used")
            code = await screen.ended()
        watched = await rest(onlooker)
        message = server.requests[2].messages[-1]["content"]
    assert (code, message) == (0, "friendly")
    assert f"the task waits for an answer. Answer it in a terminal: errand answer {task_id[-8:]}" in noted
    assert (watched.code, watched.lines[-1]["stopReason"]) == (0, "completed")


async def test_ctrl_c_leaves_a_task_that_is_followed_at_work(errand: Errand) -> None:
    gate = asyncio.Event()
    async with ModelServer(replies=[Reply(text="Done.", gate=gate)]) as server:
        running = await errand.start("run", *MODEL, server.url, "work")
        await server.request(0)
        task_id = (await errand.task("thinking")).id
        async with terminal(errand, "attach", task_id) as screen:
            await screen.shows("thinking")
            screen.interrupt()
            await screen.shows(f"detached; the task keeps running. Follow it again: errand attach {task_id[-8:]}")
            code = await screen.ended()
        gate.set()
        done = await rest(running)
    assert code == 130
    assert "Traceback" not in screen.seen
    assert done.code == 0, done.err


async def test_what_is_typed_to_a_followed_task_steers_it(errand: Errand) -> None:
    gate = asyncio.Event()
    replies = [
        Reply(calls=(Call("send_update", {"message": "Half of it is done."}),), gate=gate),
        Reply(text="A blue one it is."),
        Reply(text="And that was all."),
    ]
    async with ModelServer(replies=replies) as server:
        running = await errand.start("run", *MODEL, server.url, "paint it")
        await server.request(0)
        async with terminal(errand, "attach", (await errand.task("thinking")).id) as screen:
            await screen.shows("What you type steers the task")
            await screen.shows("thinking", then="make it blue\r")
            await screen.shows("the agent reads this next", then="/nope\r")
            await screen.shows("There is no command /nope.", then="then say goodbye\x1b\r")
            await screen.shows("queued until the current work is done", then="/app\ted\t\r")
            await screen.shows("Accept edits: ")
            gate.set()
            await screen.shows("A blue one it is.")
            await screen.shows("And that was all.")
            await screen.shows("answered, no tool used")
            code = await screen.ended()
        done = await rest(running)
        asked = [str(request.messages[-1]["content"]) for request in server.requests]
    assert (code, done.code) == (0, 0), screen.seen
    assert asked[1:] == ["make it blue", "then say goodbye"]
    assert screen.seen.count("> make it blue\r\n") == 1, "what was typed is not shown again"


async def test_a_streaming_reply_is_not_cut_by_what_is_typed_to_a_followed_task(errand: Errand) -> None:
    long_text = " ".join(f"word{number}" for number in range(30))
    async with ModelServer(replies=[Reply(text=long_text, piece_length=12, piece_delay_s=0.1)] * 2) as server:
        running = await errand.start("run", *MODEL, server.url, "tell me")
        await server.request(0)
        async with terminal(errand, "attach", (await errand.task("thinking")).id) as screen:
            await screen.shows("word1", then="note this\r")
            await screen.shows("> note this", then="half a li")
            assert await screen.ended() == 0
        await rest(running)
    end = screen.seen.index("answered, no tool used") if "answered, no tool used" in screen.seen else len(screen.seen)
    first = screen.seen[:end]
    assert first.index("word29") < first.rindex("> note this")
    assert "not sent: half a li" in screen.seen


async def test_a_followed_task_is_held_and_stopped_by_what_is_typed(errand: Errand) -> None:
    gate = asyncio.Event()
    replies = [
        Reply(calls=(Call("send_update", {"message": "First."}),), gate=gate),
        Reply(text="never", stall_after=1),
    ]
    async with ModelServer(turns=replies) as server:
        running = await errand.start("run", *MODEL, server.url, "work")
        await server.request(0)
        async with terminal(errand, "attach", (await errand.task("thinking")).id) as screen:
            await screen.shows("thinking", then="/pause\r")
            await screen.shows("> /pause", then="/pause\r")
            await screen.shows("The task is paused already.")
            gate.set()
            await errand.task("paused")
            screen.type("/resume\r")
            await server.request(1)
            screen.type("/stop\r")
            await screen.shows("task stopped")
            code = await screen.ended()
        done = await rest(running)
    assert (code, done.code) == (130, 130)


async def test_without_a_terminal_a_followed_task_is_only_watched(errand: Errand) -> None:
    gate = asyncio.Event()
    async with ModelServer(replies=[Reply(text="Done.", gate=gate)]) as server:
        running = await errand.start("run", *MODEL, server.url, "work")
        await server.request(0)
        onlooker = await errand.start("attach", (await errand.task("thinking")).id)
        assert onlooker.stdin is not None and onlooker.stdout is not None
        onlooker.stdin.write(b"/stop\nmake it blue\n")
        onlooker.stdin.close()
        await onlooker.stdout.readline()  # the task's line: it is followed
        gate.set()
        watched, done = await rest(onlooker), await rest(running)
    assert (watched.code, done.code, len(server.requests)) == (0, 0, 1)
    assert "Done." in watched.out and "steer" not in watched.out


async def test_ctrl_c_at_a_question_of_a_followed_task_leaves_it_waiting(errand: Errand) -> None:
    async with ModelServer(turns=[Reply(calls=(Call("ask_user", {"question": "Which tone?"}),))]) as server:
        async with terminal(errand, "run", *MODEL, server.url, "ask") as screen:
            await screen.shows("answer >")
        task_id = (await errand.task("waiting_user")).id
        async with terminal(errand, "attach", task_id) as screen:
            await screen.shows("answer >", then="\x03")
            await screen.shows("the task keeps running")
            code = await screen.ended()
        assert (await errand.task("waiting_user")).id == task_id
    assert code == 130


async def test_a_task_is_paused_before_its_next_step_and_resumed(errand: Errand) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=(Call("send_update", {"message": "First."}),), gate=gate), Reply(text="Second.")]
    async with ModelServer(turns=replies) as server:
        running = await errand.start("run", *MODEL, server.url, "work")
        await server.request(0)
        task_id = (await errand.task("thinking")).id
        paused = await errand.run("pause", task_id)
        gate.set()
        await errand.task("paused")
        asked_while_paused = len(server.requests)
        again = await errand.run("pause", task_id)
        resumed = await errand.run("resume", "--json", task_id)
        done = await rest(running)
    assert (paused.code, paused.out.strip().endswith(f"errand resume {task_id[-8:]}")) == (0, True)
    assert asked_while_paused == 1
    assert (again.code, again.err) == (1, "errand: The task is paused already.\n")
    assert (resumed.code, resumed.lines[-1]["stopReason"]) == (0, "completed"), resumed.err
    assert done.code == 0


async def test_a_task_that_a_killed_engine_left_is_resumed_and_followed_to_its_end(own_errand: Errand) -> None:
    replies = [
        Reply(calls=(Call("send_update", {"message": "I have begun."}),)),
        Reply(text="never", stall_after=1),
        Reply(text="It is done."),
    ]
    async with ModelServer(replies=replies) as server:
        running = await own_errand.start("run", *MODEL, server.url, "work")
        await server.request(1)
        task_id = (await own_errand.task("thinking")).id
        own_errand.kill_engine()
        interrupted = await own_errand.run("attach", task_id)
        resumed = await own_errand.run("resume", task_id[-8:])
        ended = await own_errand.run("attach", task_id)
        again = await own_errand.run("resume", task_id)
        left = await rest(running)
    assert left.code == 1
    assert (interrupted.code, f"errand resume {task_id[-8:]}" in interrupted.err) == (1, True)
    assert resumed.code == 0, resumed.err
    assert "I have begun." in resumed.out
    assert "It is done.\n• answered, no tool used" in resumed.out
    assert (ended.code, "has ended: answered" in ended.err, ended.out) == (0, True, "It is done.\n")
    assert (again.code, "completed" in again.err) == (1, True)


async def test_what_is_not_there_cannot_be_followed_paused_or_resumed(errand: Errand) -> None:
    done = await asyncio.gather(*(errand.run(command, "no-such-task") for command in ("attach", "pause", "resume")))
    assert [(run.code, "No task has the id" in run.err) for run in done] == [(2, True)] * 3
