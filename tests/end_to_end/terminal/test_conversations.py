"""Conversations in the terminal: listed, shown whole, found by parts of their ids, renamed, pinned and archived."""

from pathlib import Path

from tests.support.command_line import Errand, Finished
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")

_UNANSWERED = (
    "Not answered: nobody is there to ask. Find it out, or decide yourself and say what you assumed; "
    "if only the person can know it, say what is missing."
)


def answer(request: ReceivedRequest) -> Reply:
    asked = str(request.messages[-1]["content"])
    if asked.startswith("Choose"):
        return Reply(calls=(Call("ask_user", {"question": "Which tone?"}),))
    return Reply(thinking="hm, hm", text=f"The reply to {asked.splitlines()[0]}")


async def said(errand: Errand, server: ModelServer, prompt: str, *options: str) -> Finished:
    done = await errand.run("run", *MODEL, server.url, *options, prompt)
    assert done.code == 0, done
    return done


async def only(errand: Errand, *arguments: str) -> str:
    (conversation,) = (await errand.run("list", "--json", *arguments)).lines
    return str(conversation["id"])


async def test_conversations_are_listed_found_and_arranged(own_errand: Errand, workspace: Path) -> None:
    assert (await own_errand.run("list")).err.startswith("No conversations yet. Start one: ")
    async with ModelServer(answer=answer) as server:
        await said(own_errand, server, "Alpha, the first")
        await said(own_errand, server, "Beta, the second")
    first, second = [await only(own_errand, title) for title in ("alpha", "BETA")]

    listed = await own_errand.run("list", "--here")
    rows = [(line[:8], line[10:19]) for line in listed.out.splitlines()]
    assert rows == [(second[-8:], "answered "), (first[-8:], "answered ")]
    assert all("work" in line for line in listed.out.splitlines()), "the folder"
    nothing = await own_errand.run("list", "gamma", "--pinned")
    assert nothing.err == "There is no pinned conversation with 'gamma' in its title. List all: errand list\n"

    several = await own_errand.run("rename", "conv_", "Gamma")
    assert several.code == 2
    assert "2 conversations match 'conv_':" in several.err
    assert f"  {first[-8:]}  Alpha, the first\n" in several.err

    assert "was renamed to: Gamma" in (await own_errand.run("rename", first[-8:], "Gamma")).out
    assert "was pinned: Gamma" in (await own_errand.run("pin", "gamma")).out
    assert (await own_errand.run("list")).out.splitlines()[0].startswith(first[-8:]), "pinned ones come first"
    assert (await own_errand.run("archive", first[-6:], second[-6:])).code == 0
    assert (await own_errand.run("list")).err == "All conversations are archived. List them: errand list --archived\n"
    assert len((await own_errand.run("list", "--archived")).out.splitlines()) == 2
    assert (await own_errand.run("archive", "--undo", "--json", second[5:])).lines[0]["archived"] is False
    assert await only(own_errand) == second

    unknown = await own_errand.run("show", "nothing-like-it")
    assert (unknown.code, unknown.err) == (
        2,
        "errand: No conversation has the id or title 'nothing-like-it'. List them: errand list\n",
    )


async def test_a_conversation_is_shown_in_order_with_questions_and_thoughts(errand: Errand) -> None:
    async with ModelServer(answer=answer) as server:
        await said(errand, server, "Delta, with\ntwo lines")
        conversation = await only(errand, "Delta", "--here")
        await said(errand, server, "Choose", "--conversation", conversation)
    output = (await errand.run("show", "Delta, with")).out
    body = [line for line in output.splitlines() if line and " · " not in line]
    assert body == [
        "Delta, with",
        "> Delta, with",
        "> two lines",
        "(thinking) hm, hm",
        "The reply to Delta, with",
        "> Choose",
        "? Which tone?",
        f"  → {_UNANSWERED}",
        "(thinking) hm, hm",
        f"The reply to {_UNANSWERED}",
    ]
    assert "hm, hm" not in (await errand.run("show", conversation[-8:], "--no-thinking")).out
    last = await errand.run("show", conversation[-8:], "--last", "1")
    assert "… earlier messages are not shown" in last.out and "Choose" not in last.out
    nodes = (await errand.run("show", "--json", conversation)).lines
    assert [node["role"] for node in nodes] == ["user", "assistant", "user", "assistant", "tool_result", "assistant"]
