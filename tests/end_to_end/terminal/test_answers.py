"""Steering a task and answering what it asks, from another terminal than the one that started it."""

import asyncio
from pathlib import Path

from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from tests.support.command_line import Errand, connected, rest
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def test_a_question_and_an_approval_are_answered_from_another_terminal(
    own_errand: Errand, workspace: Path
) -> None:
    errand = own_errand
    replies = [
        Reply(calls=(Call("ask_user", {"question": "Which tone?", "choices": ["formal", "friendly"]}),)),
        Reply(calls=(Call("shell", {"command": "touch made"}),)),
        Reply(text="All settled."),
    ]
    assert (await errand.run("answer")).err == "Nothing waits for an answer.\n"
    async with ModelServer(turns=replies) as server, connected(errand) as client:
        start = TaskStartParams(
            prompt="make", model="openai_compatible/test-model", api_base=server.url, workspace=str(workspace)
        )
        task = (await client.call(TASK_START, start)).task.id
        await errand.task("waiting_user")
        listed = await errand.run("answer")
        assert "? Which tone?\n  1  formal\n  2  friendly\n" in listed.out
        wrong = await errand.run("answer", task, "7")
        assert wrong.code == 2 and "There is no 7 in the list." in wrong.err
        assert "answered by errand answer: friendly" in (await errand.run("answer", task, "2")).out
        await errand.task("waiting_user")
        assert "run    touch made" in (await errand.run("answer", task, "v")).out
        answered = (await errand.run("answer", "--json", task, "a")).lines
        assert [(ask["kind"], ask["allowed"]) for ask in answered] == [("approval", True)]
        await errand.task("completed")
    assert (workspace / "made").exists()
    late = await errand.run("answer", task, "a")
    assert late.code == 2 and "does not wait for an answer. See what does: errand answer" in late.err


async def test_an_answer_after_a_restart_resumes_the_task(own_errand: Errand, workspace: Path) -> None:
    errand = own_errand
    replies = [
        Reply(calls=(Call("ask_user", {"question": "Which tone?", "choices": ["formal", "friendly"]}),)),
        Reply(calls=(Call("shell", {"command": "touch made"}),)),
        Reply(text="All settled."),
    ]
    async with ModelServer(turns=replies) as server:
        await errand.run("answer")
        async with connected(errand) as client:
            start = TaskStartParams(
                prompt="make", model="openai_compatible/test-model", api_base=server.url, workspace=str(workspace)
            )
            task = (await client.call(TASK_START, start)).task.id
            await errand.task("waiting_user")
            errand.kill_engine()
        assert "answered by errand answer: friendly" in (await errand.run("answer", task, "2")).out
        async with asyncio.timeout(WAIT_LIMIT_S):
            while "touch made" not in (await errand.run("answer")).out:
                pass
        errand.kill_engine()
        assert (await errand.run("answer", task, "a")).code == 0
        async with asyncio.timeout(WAIT_LIMIT_S):
            while (await errand.run("attach", task)).code:
                pass
    assert (workspace / "made").exists()
    assert len(server.requests) == 3, "nothing was asked twice"


async def test_an_answer_to_a_sub_agent_resumes_the_task_that_started_it(own_errand: Errand, workspace: Path) -> None:
    errand = own_errand

    def answer(request: ReceivedRequest) -> Reply:
        is_sub_agent = "touch made" in str(request.messages) and "delegate" not in str(request.messages[1:2])
        if is_sub_agent:
            return Reply(text="Made.") if request.turn else Reply(calls=(Call("shell", {"command": "touch made"}),))
        if request.turn:
            return Reply(text="All settled.")
        return Reply(calls=(Call("task", {"prompt": "Run touch made", "title": "Maker"}),))

    async with ModelServer(answer=answer) as server:
        await errand.run("answer")
        async with connected(errand) as client:
            start = TaskStartParams(
                prompt="delegate it",
                model="openai_compatible/test-model",
                api_base=server.url,
                workspace=str(workspace),
            )
            task = (await client.call(TASK_START, start)).task.id
            async with asyncio.timeout(WAIT_LIMIT_S):
                while "touch made" not in (await errand.run("answer")).out:
                    pass
            errand.kill_engine()
        listed = await errand.run("answer", "--json")
        (asked,) = listed.lines
        assert (await errand.run("answer", str(asked["taskId"]), "a")).code == 0
        async with asyncio.timeout(WAIT_LIMIT_S):
            while (await errand.run("attach", task)).code:
                pass
    assert (workspace / "made").exists()


async def test_a_task_is_steered_from_another_terminal_by_its_title(errand: Errand) -> None:
    gate = asyncio.Event()
    update = Call("send_update", {"message": "Begun."})
    async with ModelServer(
        replies=[Reply(calls=(update,), gate=gate), Reply(text="Blue it is."), Reply(text="Goodbye.")]
    ) as server:
        running = await errand.start("run", *MODEL, server.url, "paint the wall")
        await server.request(0)
        steered = await errand.run("steer", "paint the", "make it blue")
        assert steered.out.endswith("reads this before its next step.\n")
        later = await errand.run("steer", "paint the", "--later", "--json", "say goodbye")
        queue = later.lines[0]["queue"]
        assert isinstance(queue, list) and [entry["text"] for entry in queue if isinstance(entry, dict)] == [
            "make it blue",
            "say goodbye",
        ]
        gate.set()
        done = await rest(running)
        asked = [str(request.messages[-1]["content"]) for request in server.requests[1:]]
    assert asked == ["make it blue", "say goodbye"]
    assert "> make it blue\nBlue it is.\n\n> say goodbye\nGoodbye.\n" in done.out
    ended = await errand.run("steer", "paint the", "more")
    assert ended.code == 2 and "has ended. Continue its conversation: errand run --conversation " in ended.err
