"""Behaviours 23 to 27: display and input in a real terminal."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Errand
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

if sys.platform == "win32":
    pytest.skip("pseudo-terminals of POSIX", allow_module_level=True)

from tests.support.screens import PseudoTerminal

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


def terminal(errand: Errand, *arguments: str) -> PseudoTerminal:
    return PseudoTerminal(arguments, errand.folder, errand.environment)


async def test_what_was_typed_before_an_approval_does_not_answer_it(errand: Errand, workspace: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=(Call("shell", {"command": "touch unseen"}),), gate=gate), Reply(text="I left it.")]
    async with ModelServer(turns=replies) as server, terminal(errand, "run", *MODEL, server.url, "make") as screen:
        await screen.shows("thinking")
        screen.type("a\ra\r")
        gate.set()
        await screen.shows("allow? a c w p u d r >", then="r I did not see it\r")
        await screen.shows("denied by errand run: I did not see it")
        assert await screen.ended() == 4
    assert not (workspace / "unseen").exists()


async def test_a_person_allows_denies_with_a_reason_and_answers(errand: Errand, workspace: Path) -> None:
    replies = [
        Reply(calls=(Call("shell", {"command": "touch first"}),)),
        Reply(calls=(Call("shell", {"command": "touch second"}),)),
        Reply(calls=(Call("ask_user", {"question": "Which tone?", "choices": ["formal", "friendly"]}),)),
        Reply(text="All settled."),
    ]
    async with ModelServer(turns=replies) as server, terminal(errand, "run", *MODEL, server.url, "make") as screen:
        await screen.shows("run    touch first")
        await screen.shows("allow? a c w p u d r >", then="yes\r")
        await screen.shows("Nothing was decided.")
        await screen.shows("allow? a c w p u d r >", then="a\r")
        await screen.shows("allowed once")
        await screen.shows("run    touch second")
        await screen.shows("allow? a c w p u d r >", then="r not that one\r")
        await screen.shows("denied")
        await screen.shows("✗ running `touch second` · denied\r\n")
        await screen.shows("2  friendly")
        await screen.shows("answer >", then="2\r")
        await screen.shows("task complete")
        code = await screen.ended()
        results = [str(request.messages[-1]["content"]) for request in server.requests[2:]]
    assert code == 0
    assert (workspace / "first").exists()
    assert not (workspace / "second").exists()
    assert "not that one" in results[0]
    assert results[1] == "friendly"


async def test_ctrl_c_at_a_question_stops_the_task(errand: Errand) -> None:
    replies = [Reply(calls=(Call("ask_user", {"question": "Which tone?"}),))]
    async with ModelServer(turns=replies) as server, terminal(errand, "run", *MODEL, server.url, "ask") as screen:
        await screen.shows("answer >", then="\x03")
        await screen.shows("task stopped")
        code = await screen.ended()
    assert code == 130
    assert "Traceback" not in screen.seen


async def test_an_ask_that_is_settled_elsewhere_leaves_the_prompt(errand: Errand) -> None:
    replies = [Reply(calls=(Call("ask_user", {"question": "Which tone?"}),))]
    async with ModelServer(turns=replies) as server, terminal(errand, "run", *MODEL, server.url, "ask") as screen:
        await screen.shows("answer >")
        await errand.run("stop", (await errand.task("waiting_user")).id)
        await screen.shows("no longer needed")
        code = await screen.ended()
    assert code == 130


async def test_a_conversation_keeps_its_prompt_while_a_task_works(errand: Errand) -> None:
    gate = asyncio.Event()
    replies = [
        Reply(calls=(Call("send_update", {"message": "I have begun."}),)),
        Reply(calls=(Call("send_update", {"message": "Half of it is done."}),), gate=gate),
        Reply(text="A blue one it is."),
        Reply(text="And that was all."),
    ]
    async with ModelServer(replies=replies) as server, terminal(errand, "chat", *MODEL, server.url) as screen:
        await screen.shows("Ctrl+D leaves", then="paint it\r")
        await screen.shows("I have begun.")
        await server.request(1)
        screen.type("make it blue\r")
        await screen.shows("the agent reads this next", then="then say goodbye\x1b\r")
        await screen.shows("queued until the current work is done")
        gate.set()
        await screen.shows("A blue one it is.")
        await screen.shows("And that was all.")
        await screen.shows("answered, no tool used", then="\x04")
        code = await screen.ended()
        asked = [str(request.messages[-1]["content"]) for request in server.requests]
    assert code == 0, screen.seen
    assert asked[2:] == ["make it blue", "then say goodbye"]


async def test_a_stop_returns_queued_messages_to_the_input_line(errand: Errand) -> None:
    replies = [Reply(text="never", stall_after=1), Reply(text="Goodbye then.")]
    async with ModelServer(replies=replies) as server, terminal(errand, "chat", *MODEL, server.url) as screen:
        await screen.shows("Ctrl+D leaves", then="paint it\r")
        await server.request(0)
        await screen.shows("thinking", then="then say goodbye\x1b\r")
        await screen.shows("queued until the current work is done", then="/stop\r")
        await screen.shows("stopped")
        await screen.shows("> then say goodbye", then=" friend\r")
        await screen.shows("Goodbye then.")
        await screen.shows("answered, no tool used", then="\x04")
        code = await screen.ended()
        asked = str(server.requests[1].messages[-1]["content"])
    assert (code, asked.endswith("then say goodbye friend")) == (0, True), screen.seen


async def test_leaving_a_conversation_at_work_asks_what_to_do(errand: Errand) -> None:
    async with (
        ModelServer(replies=[Reply(text="never", stall_after=1)]) as server,
        terminal(errand, "chat", *MODEL, server.url) as screen,
    ):
        await screen.shows("Ctrl+D leaves", then="/nope\r")
        await screen.shows("There is no command /nope.", then="/model 2\r")
        await screen.shows("'2' is not a model id", then="leave me at work\r")
        await server.request(0)
        await screen.shows("thinking", then="\x04")
        await screen.shows("A task is running: l leave it running", then="l\r")
        code = await screen.ended()
        left = await errand.task("thinking")
    assert code == 0
    assert left.request.prompt == "leave me at work"


async def test_two_at_a_limit_stops_and_three_raises_it(errand: Errand) -> None:
    update = Reply(calls=(Call("send_update", {"message": "One step more."}),))
    limited = ("run", "--max-turns", "1", *MODEL)
    async with ModelServer(replies=[update] * 3) as server, terminal(errand, *limited, server.url, "walk") as screen:
        await screen.shows("2  Stop here")
        await screen.shows("go on? 1 to 3 >", then="3\r")
        await screen.shows("new limit in turns >", then="1\r")
        await screen.shows("The limit was not raised: type a whole number, more than 1 turn.")
        await screen.shows("new limit in turns >", then="3\r")
        await screen.shows("raised to 3 turns")
        await screen.shows("go on? 1 to 3 >", then="20\r")
        await screen.shows("There is no 20 in the list.")
        await screen.shows("go on? 1 to 3 >", then="2\r")
        await screen.shows("turn limit reached")
        code = await screen.ended()
        asked = len(server.requests)
    assert (code, asked) == (3, 3)


async def test_a_path_is_an_answer_and_no_command(errand: Errand) -> None:
    replies = [
        Reply(calls=(Call("ask_user", {"question": "Which file?", "choices": ["a", "b"]}),)),
        Reply(text="Good."),
    ]
    async with ModelServer(turns=replies) as server, terminal(errand, "chat", *MODEL, server.url) as screen:
        await screen.shows("Ctrl+D leaves", then="look\r")
        await screen.shows("answer >", then="\r")
        await screen.shows("Nothing was answered.", then="/etc\r")
        await screen.shows("There is no command /etc.", then="\x04")
        await screen.shows("A task is running: l leave it running", then="x\r")
        await screen.shows("'x' is not a choice.", then="\r")
        await screen.shows("answer >", then="/etc/hosts\r")
        await screen.shows("answered, no tool used", then="\x04")
        assert await screen.ended() == 0, screen.seen
        result = str(server.requests[1].messages[-1]["content"])
    assert result == "/etc/hosts"


async def test_nothing_that_a_model_says_steers_the_terminal_of_a_conversation(errand: Errand) -> None:
    evil = "evil\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x07\x1b[8m\x1b[2J\x9b8m\u202eend"
    replies = [
        Reply(calls=(Call(evil, {}), Call("shell", {"command": f"true {evil}"}, id="b"))),
        Reply(calls=(Call("ask_user", {"question": evil, "choices": [evil, "b"]}, id="c"),)),
        Reply(text=f"{evil} All of it."),
    ]
    async with ModelServer(turns=replies) as server, terminal(errand, "chat", *MODEL, server.url) as screen:
        await screen.shows("Ctrl+D leaves", then="go\r")
        await screen.shows("allow? ", then="a\r")
        await screen.shows("2  b", then="2\r")
        await screen.shows("All of it.")
        await screen.shows("ended after a failed call", then="\x04")
        await screen.ended()
    assert [code for code in ("\x1b]52", "\x1b]0", "\x1b[8m", "\x9b", "\u202e") if code in screen.seen] == []


async def test_what_is_typed_while_a_reply_streams_stands_below_it(errand: Errand) -> None:
    long_text = " ".join(f"word{number}" for number in range(30))
    replies = [Reply(text=long_text, piece_length=12, piece_delay_s=0.1), Reply(text="Noted.")]
    async with ModelServer(replies=replies) as server, terminal(errand, "chat", *MODEL, server.url) as screen:
        await screen.shows("Ctrl+D leaves", then="tell me\r")
        await screen.shows("word3", then="note this\r")
        await screen.shows("the agent reads this next")
        await screen.shows("Noted.", then="/app\tpl\t\r")
        await screen.shows("Plan: ", then="\x04")
        assert await screen.ended() == 0
    before = screen.seen[: screen.seen.rindex("Noted.")]
    assert before.rindex("word29") < before.rindex("> note this"), "the reply is not cut"


async def test_a_conversation_that_goes_on_begins_with_what_was_said(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="It is blue.")]) as server:
        assert (await errand.run("run", *MODEL, server.url, "which colour?")).code == 0
        async with terminal(errand, "chat", "--continue", *MODEL, server.url) as screen:
            await screen.shows("> which colour?")
            await screen.shows("It is blue.", then="\x04")
            assert await screen.ended() == 0


async def test_a_second_question_waits_its_turn_and_names_its_task(errand: Errand, workspace: Path) -> None:
    def reply(request: ReceivedRequest) -> Reply:
        asked = next(str(message["content"]) for message in request.messages if message["role"] == "user")
        if request.turn:
            return Reply(text=f"{asked} is done.")
        if asked == "go":
            return Reply(
                calls=tuple(
                    Call("task", {"description": f"part {name}", "prompt": f"Do {name}."}) for name in ("one", "two")
                )
            )
        return Reply(calls=(Call("shell", {"command": f"touch {asked[3:6]}"}),))

    async with ModelServer(answer=reply) as server, terminal(errand, "chat", *MODEL, server.url) as screen:
        await screen.shows("Ctrl+D leaves", then="go\r")
        await screen.shows("run    touch ")
        await screen.shows("allow? ")
        (first,) = set(re.findall("run    touch (one|two)", screen.seen))
        other = "two" if first == "one" else "one"
        async with asyncio.timeout(WAIT_LIMIT_S):
            while len((await errand.run("answer", "--json")).lines) < 2:
                pass
        assert f"run    touch {other}" not in screen.seen, "it is shown when it is its turn"
        screen.type("a\r")
        await screen.shows(f"run    touch {other}")
        await screen.shows(f"asks: part {other}")
        await screen.shows("allow? ", then="a\r")
        await screen.shows("go is done.")
        await screen.shows("task complete", then="\x04")
        assert await screen.ended() == 0, screen.seen
    assert (workspace / "one").exists() and (workspace / "two").exists()
