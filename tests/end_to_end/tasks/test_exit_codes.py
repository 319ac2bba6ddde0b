"""The end of a task and its exit code report the real outcome."""

from pathlib import Path

import pytest

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")
DONE = Reply(calls=(Call("task_complete", {"summary": "Done."}),))
THINKING = [Reply(text=f"I think about it, part {number}.") for number in (1, 2)]
LOOKING = Reply(calls=(Call("shell", {"command": "ls"}),))


def touch(*names: str) -> list[Reply]:
    return [Reply(calls=(Call("shell", {"command": f"touch {name}"}),)) for name in names]


async def test_a_task_that_never_says_that_it_is_done_is_not_complete(errand: Errand) -> None:
    async with ModelServer(replies=[LOOKING, *THINKING]) as server:
        done = await errand.run("run", "--mode", "task", *MODEL, server.url, "think")
    assert done.code == 4
    assert "! Ended without confirming that it's done · 3 turns" in done.out
    assert "task complete" not in done.out
    assert "unfinished" in (await errand.run("tasks")).out


async def test_programs_read_it_in_fields(errand: Errand) -> None:
    async with ModelServer(replies=[LOOKING, *THINKING]) as server:
        done = await errand.run("run", "--json", "--mode", "task", *MODEL, server.url, "think")
    result = done.lines[-1]
    outcome = {name: result[name] for name in ("exitCode", "status", "stopReason", "completion", "refusedCalls")}
    assert outcome == {
        "exitCode": 4,
        "status": "completed",
        "stopReason": "completed",
        "completion": "undeclared",
        "refusedCalls": 0,
    }
    async with ModelServer(replies=[LOOKING, *THINKING]) as server:
        react = await errand.run("run", "--events", "react", "--mode", "task", *MODEL, server.url, "think")
    assert react.code == 4
    assert "I tried but could not finish. Ended without confirming that it's done." in str(react.lines[-1])


@pytest.mark.parametrize("last", [Reply(text="All done."), Reply(calls=(Call("task_complete", {"summary": "Done."}),))])
async def test_a_run_in_which_everything_was_refused_is_no_success(
    errand: Errand, workspace: Path, last: Reply
) -> None:
    (workspace / "notes.txt").write_text("one\n")
    reading = Reply(calls=(Call("code", {"action": "read", "path": "notes.txt"}),))
    async with ModelServer(replies=[reading, *touch("first", "second"), last]) as server:
        done = await errand.run("run", "--json", *MODEL, server.url, "make files")
    result = done.lines[-1]
    assert (done.code, result["exitCode"], result["completion"]) == (4, 4, "refused")
    assert (result["refusedCalls"], result["actingCalls"]) == (2, 0)
    assert "not allowed" in (await errand.run("tasks")).out
    async with ModelServer(replies=[*touch("first"), last]) as server:
        output = (await errand.run("run", *MODEL, server.url, "make files")).out
    assert "! Ended: nothing it tried was allowed · 1 call not allowed · 2 turns" in output
    assert "complete" not in output


async def test_what_was_refused_is_told_beside_a_good_end(errand: Errand, workspace: Path) -> None:
    floor = Reply(calls=(Call("shell", {"command": "rm -rf /"}),))
    async with ModelServer(replies=[*touch("first"), floor, Reply(text="One of two.")]) as server:
        done = await errand.run("run", "--approve", "all", *MODEL, server.url, "make files")
    assert done.code == 0, done.err
    assert (workspace / "first").exists()
    assert "✓ task complete · 1 call not allowed · 3 turns" in done.out


async def test_good_ends_say_what_they_rest_on(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="Hello."), LOOKING, Reply(text="One file."), LOOKING, DONE]) as server:
        answered = await errand.run("run", "--json", *MODEL, server.url, "greet")
        replied = await errand.run("run", "--json", *MODEL, server.url, "look")
        task = await errand.run("run", "--json", "--mode", "task", *MODEL, server.url, "greet")
    ends = [(each.code, each.lines[-1]["completion"], each.lines[-1]["toolRuns"]) for each in (answered, replied, task)]
    assert ends == [(0, "answered", 0), (0, "replied", 1), (0, "declared", 1)]


@pytest.mark.parametrize("mode", ["auto", "task"])
async def test_an_end_after_calls_that_only_looked_is_an_answer_and_no_success(errand: Errand, mode: str) -> None:
    run = ("run", "--mode", mode, *MODEL)
    async with ModelServer(replies=[LOOKING, DONE] * 2) as server:
        done = await errand.run(*run, server.url, "look")
        result = (await errand.run(*run, server.url, "look", "--json")).lines[-1]
    assert (done.code, "• answered, nothing changed · 2 turns" in done.out, "✓" in done.out) == (0, True, False)
    assert (result["exitCode"], result["completion"], result["changedNothing"]) == (0, "declared", True)
    assert "  answered  " in (await errand.run("tasks")).out


@pytest.mark.parametrize("claim", [Reply(text="I wrote a.txt."), DONE])
async def test_a_claim_without_a_tool_is_an_answer_and_no_success(errand: Errand, claim: Reply) -> None:
    async with ModelServer(replies=[claim]) as server:
        done = await errand.run("run", *MODEL, server.url, "write a.txt")
    assert done.code == 0
    assert "• answered, no tool used · 1 turn" in done.out and "✓" not in done.out
    assert "  answered  " in (await errand.run("tasks")).out


async def test_a_last_call_that_failed_takes_the_tick_away(errand: Errand) -> None:
    failing = Reply(calls=(Call("shell", {"command": "exit 3"}),))
    async with ModelServer(replies=[failing, Reply(text="All is well.")] * 2) as server:
        done = await errand.run("run", "--approve", "all", *MODEL, server.url, "test it")
        result = (await errand.run("run", "--json", "--approve", "all", *MODEL, server.url, "test it")).lines[-1]
    assert (done.code, "• ended after a failed call · 2 turns" in done.out, "✓" in done.out) == (0, True, False)
    assert (result["exitCode"], result["completion"], result["lastCallFailed"]) == (0, "replied", True)
    assert "  call failed  " in (await errand.run("tasks")).out


async def test_a_file_that_no_call_touched_is_named_at_the_end(errand: Errand) -> None:
    claim = Reply(calls=(Call("task_complete", {"summary": "I wrote report.md."}),))
    async with ModelServer(replies=[LOOKING, claim] * 2) as server:
        done = await errand.run("run", *MODEL, server.url, "write it")
        result = (await errand.run("run", "--json", *MODEL, server.url, "write it")).lines[-1]
    assert (done.code, "• answered, nothing changed · named, but in no call: report.md · 2 turns" in done.out) == (
        0,
        True,
    ), done.out
    assert (result["exitCode"], result["untouched"]) == (0, ["report.md"])


async def test_a_chat_says_nothing_about_tools(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="Hello.")]) as server:
        done = await errand.run("run", "--mode", "chat", *MODEL, server.url, "greet")
    assert (done.code, "• answered · 1 turn" in done.out, "✓" in done.out) == (0, True, False)


@pytest.mark.parametrize("claim", [Reply(text="I wrote a.txt."), DONE])
async def test_a_task_in_which_no_tool_ran_is_unfinished(errand: Errand, claim: Reply) -> None:
    async with ModelServer(replies=[claim, claim]) as server:
        done = await errand.run("run", "--mode", "task", *MODEL, server.url, "write a.txt")
    assert done.code == 4
    assert "! Ended: no tool was used, so nothing was done · 2 turns" in done.out
    assert "  nothing done  " in (await errand.run("tasks")).out


async def test_a_last_reply_that_was_cut_short_is_no_success(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="The first half of", finish="length")] * 2) as server:
        done = await errand.run("run", *MODEL, server.url, "write")
        result = (await errand.run("run", "--json", *MODEL, server.url, "write")).lines[-1]
    assert (done.code, result["exitCode"], result["completion"]) == (4, 4, "cut")
    assert "! Ended: the last reply was cut off · 1 turn" in done.out
    assert "cut short" in (await errand.run("tasks")).out


async def test_a_task_whose_model_gives_no_answer_is_not_done_and_says_why(errand: Errand) -> None:
    thoughts = Reply(thinking="I think about it.")
    async with ModelServer(replies=[thoughts, thoughts]) as server:
        done = await errand.run("run", *MODEL, server.url, "think")
    assert done.code == 4
    assert "! Ended: the last reply is not an answer · 2 turns" in done.out
    assert "The model sent no answer: its last reply has no text and no tool call." in " ".join(done.out.split())
    assert "no answer" in (await errand.run("tasks")).out
    async with ModelServer(replies=[thoughts, thoughts]) as server:
        result = (await errand.run("run", "--json", *MODEL, server.url, "think")).lines[-1]
    assert (result["exitCode"], result["completion"]) == (4, "no_answer")
