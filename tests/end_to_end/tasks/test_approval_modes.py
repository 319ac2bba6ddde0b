"""The approval modes with a real engine: from the command line, in a conversation, and after a crash."""

import asyncio
import sys
from pathlib import Path

import pytest

from errand.protocol.asks import ASK_LIST, AskListParams
from tests.support.command_line import Errand, connected
from tests.support.model_server import Call, ModelServer, Reply

if sys.platform == "win32":
    pytest.skip("pseudo-terminals of POSIX", allow_module_level=True)

from tests.support.screens import PseudoTerminal

MODEL = ("--model", "openai_compatible/test-model", "--api-base")
DONE = Reply(text="That is all.")


def shell(command: str) -> Reply:
    return Reply(calls=(Call("shell", {"command": command}),))


def write(path: str) -> Reply:
    return Reply(calls=(Call("code", {"action": "write", "path": path, "content": "hello\n"}),))


def told(server: ModelServer) -> list[str]:
    """The last message of each request after the first."""
    return [str(request.messages[-1]["content"]) for request in server.requests[1:]]


async def test_without_a_person_and_a_mode_what_needs_approval_is_denied_and_the_way_to_allow_it_is_said(
    errand: Errand, workspace: Path
) -> None:
    async with ModelServer(turns=[write("made"), shell("touch other"), DONE]) as server:
        done = await errand.run("run", *MODEL, server.url, "work")
        answers = told(server)
    assert done.code == 4
    assert "--approve edits" in done.err and "--approve all" in done.err
    assert all("nobody is there to ask" in answer for answer in answers)
    assert not (workspace / "made").exists() and not (workspace / "other").exists()


async def test_edits_without_a_person_changes_a_file_and_denies_a_command(errand: Errand, workspace: Path) -> None:
    async with ModelServer(turns=[write("made"), shell("rm made"), DONE]) as server:
        done = await errand.run("run", "--approve", "edits", *MODEL, server.url, "work")
        written, removed = told(server)
    assert done.code == 0
    assert written.startswith("Created made")
    assert "nobody is there to ask" in removed
    assert (workspace / "made").read_text() == "hello\n"


async def test_plan_mode_reads_and_denies_the_rest(errand: Errand, workspace: Path) -> None:
    for arguments in (("init", "-q"), ("status", "--short")):
        git = await asyncio.create_subprocess_exec("git", *arguments, cwd=workspace)
        assert await git.wait() == 0
    (workspace / "notes").touch()
    turns = [write("made"), shell("touch made"), shell("git status --short"), DONE]
    async with ModelServer(turns=turns) as server:
        done = await errand.run("run", "--approve", "plan", *MODEL, server.url, "make a plan")
        written, touched, status = told(server)
        prompt = str(server.requests[0].messages[1]["content"])
    assert done.code == 0, done.err
    for answer in (written, touched):
        assert answer.startswith("Not allowed: plan mode: only reading is allowed; describe the change instead")
    assert status == "?? notes"
    assert "## Plan mode" in prompt
    assert not (workspace / "made").exists()


async def test_the_mode_is_changed_within_a_conversation(errand: Errand, workspace: Path) -> None:
    turns = [shell("touch made"), DONE, write("made"), shell("rm made"), DONE]
    async with (
        ModelServer(turns=turns) as server,
        PseudoTerminal(("chat", *MODEL, server.url), errand.folder, errand.environment) as screen,
    ):
        await screen.shows("Ctrl+D leaves", then="/approve everything\r")
        await screen.shows("Usage: /approve ask, edits, auto, plan, all, never", then="/approve plan\r")
        await screen.shows("Plan: ", then="look around\r")
        await screen.shows("That is all.")
        await screen.shows("answered, no tool used", then="/approve edits\r")
        await screen.shows("Accept edits: ", then="now do it\r")
        await screen.shows("Approval needed")
        await screen.shows("run    rm made", then="/approve plan\r")
        await screen.shows("denied by the new approval mode")
        await screen.shows("task complete", then="\x04")
        assert await screen.ended() == 0
        answers = told(server)
    assert answers[0].startswith("Not allowed: plan mode")
    assert (workspace / "made").read_text() == "hello\n"


async def test_the_mode_chosen_before_a_crash_holds_for_the_resumed_task(errand: Errand, workspace: Path) -> None:
    turns = [shell("touch first"), shell("touch second"), shell("touch third"), DONE]
    async with ModelServer(turns=turns) as server:
        screen = PseudoTerminal(("run", *MODEL, server.url, "work"), errand.folder, errand.environment)
        async with screen:
            await screen.shows("run    touch first")
            task = await errand.task("waiting_user")
            chosen = await errand.run("approvals", task.id, "all")
            assert chosen.code == 0 and "Allow everything" in chosen.out
            assert await screen.ended() == 0
        assert (workspace / "third").exists()
        async with connected(errand) as client:
            (ask,) = (await client.call(ASK_LIST, AskListParams(waiting=False, task_id=task.id))).asks
    assert (ask.allowed, ask.settled_by) == (True, "mode")


async def test_plan_mode_chosen_while_an_ask_waits_holds_after_kill_9(errand: Errand, workspace: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with ModelServer(replies=[question, shell("touch made"), DONE]) as server:
        async with PseudoTerminal(("run", *MODEL, server.url, "work"), errand.folder, errand.environment) as screen:
            await screen.shows("answer >")
            task = await errand.task("waiting_user")
            assert (await errand.run("approvals", task.id, "plan")).code == 0
            errand.kill_engine()
        async with PseudoTerminal(("resume", task.id), errand.folder, errand.environment) as screen:
            await screen.shows("answer >", then="this one\r")
            await screen.shows("That is all.")
            await screen.ended()
        denied = str(server.requests[2].messages)
    assert "Not allowed: plan mode" in denied
    assert not (workspace / "made").exists()
