"""Sub-agents of a real engine: killed and started again, moved to another data directory, stopped and deleted."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from errand.protocol.tasks.task import Task
from tests.support.command_line import Errand, rest, statuses
from tests.support.flat_tasks import printed_task
from tests.support.model_replies import DONE, shell
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.processes import file_appears

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


def order(*titles: str) -> Reply:
    return Reply(calls=tuple(Call("task", {"description": title, "prompt": f"Do {title}."}) for title in titles))


def answer(by_prompt: dict[str, list[Reply]]) -> Callable[[ReceivedRequest], Reply]:
    """Replies by the first prompt and the turn of a request."""

    def reply(request: ReceivedRequest) -> Reply:
        prompt = next(str(message["content"]) for message in request.messages if message["role"] == "user")
        return by_prompt[prompt][request.turn]

    return reply


async def all_tasks(errand: Errand) -> dict[str, Task]:
    """Return all tasks by title; the task at the top has none."""
    lines = (await errand.run("tasks", "--json")).out.splitlines()
    tasks = [printed_task(line) for line in lines]
    assert len({task.origin.title for task in tasks}) == len(tasks)
    return {task.origin.title: task for task in tasks}


async def test_a_killed_engine_loses_and_repeats_nothing_of_its_sub_agents(own_errand: Errand, workspace: Path) -> None:
    gate = asyncio.Event()
    replies = {
        "go": [order("a", "b"), DONE],
        "Do a.": [order("c"), Reply(text="Report of a.")],
        "Do b.": [shell("echo b >> log"), Reply(text="Report of b.", gate=gate)],
        "Do c.": [shell("echo c >> log"), Reply(text="Report of c.", gate=gate)],
    }
    async with ModelServer(answer=answer(replies)) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "go")
        await server.request(5, 25)  # all but the last reports and the two last turns above
        process.kill()
        own_errand.kill_engine()
        await rest(process)
        await statuses(own_errand, ["interrupted"] * 4)
        gate.set()
        resumed = await own_errand.run("resume", (await all_tasks(own_errand))[""].id)
        assert resumed.code == 0, resumed.err
        tasks = await all_tasks(own_errand)
    assert sorted((workspace / "log").read_text().split()) == ["b", "c"]
    assert {title: (task.activity.status, task.progress.step_count) for title, task in tasks.items()} == {
        "": ("completed", 2),
        "a": ("completed", 2),
        "b": ("completed", 2),
        "c": ("completed", 2),
    }
    top = tasks[""]
    assert top.progress.delegated_turns == 6
    assert (top.progress.usage.input_tokens, top.total_usage.input_tokens) == (200, 800)


async def test_stop_on_the_command_line_says_what_of_the_sub_agents_ended(own_errand: Errand) -> None:
    wait = [shell("sleep 60")]
    replies = {"go": [order("a", "b")], "Do a.": [order("c")], "Do b.": wait, "Do c.": wait}
    async with ModelServer(answer=answer(replies)) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "go")
        await statuses(own_errand, ["tool_executing"] * 4)
        status = await own_errand.run("doctor")
        stopped = await own_errand.run("stop", (await all_tasks(own_errand))[""].id)
        ended = await rest(process)
        tasks = await all_tasks(own_errand)
    assert {task.activity.status for task in tasks.values()} == {"cancelled"}
    assert "running, pid" in status.out and " 1 task\n" in status.out
    assert (stopped.code, ended.code) == (0, 130)
    lines = [line.strip() for line in stopped.out.splitlines() if "! task stopped" in line]
    assert sorted(line.split(" ·")[0].split(":")[0] for line in lines) == ["! task stopped", "↳ a", "↳ b", "↳ c"]


async def test_command_of_a_sub_agent_that_ran_when_the_engine_was_killed_is_not_run_again_unasked(
    own_errand: Errand, workspace: Path
) -> None:
    replies = {
        "go": [order("a", "b"), DONE],
        "Do a.": [shell("echo a >> log; touch begun; sleep 60"), Reply(text="Report of a.")],
        "Do b.": [Reply(text="Report of b.")],
    }
    async with ModelServer(answer=answer(replies)) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "go")
        await file_appears(workspace / "begun")
        await statuses(own_errand, ["completed", "tool_executing", "tool_executing"])
        process.kill()
        own_errand.kill_engine()
        await rest(process)
        await statuses(own_errand, ["completed", "interrupted", "interrupted"])
        done = await own_errand.run("resume", (await all_tasks(own_errand))[""].id)
        tasks = await all_tasks(own_errand)
    assert done.code == 0, done.err
    assert "the outcome of `echo a >> log; touch begun; sleep 60` is unknown; it is not run again" in done.err
    assert (workspace / "log").read_text() == "a\n"
    assert {task.activity.status for task in tasks.values()} == {"completed"}
    assert (tasks["a"].progress.step_count, tasks["b"].progress.step_count, tasks[""].progress.delegated_turns) == (
        2,
        1,
        3,
    )
