"""`errand memory`: facts are pinned, told to tasks, changed, accepted and removed, and the log says by whom."""

from pathlib import Path

from tests.support.command_line import Errand
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def ids(errand: Errand) -> list[str]:
    return [str(line["id"]) for line in (await errand.run("memory", "--json")).lines]


async def test_a_pinned_fact_is_told_to_tasks_until_it_is_removed(own_errand: Errand, workspace: Path) -> None:
    nothing = await own_errand.run("memory")
    assert nothing.code == 0 and "No pinned facts" in nothing.err
    pinned = await own_errand.run("memory", "pin", "Answer", "in German.")
    assert "Answer in German.\n" in pinned.out and "always · " in pinned.out and "Errand for" not in pinned.err
    here = await own_errand.run("memory", "pin", "Tests need Docker.", "--scope", "folder")
    assert f"in {workspace}" in here.out
    everywhere, folder = await ids(own_errand)
    prompt = (await own_errand.run("prompt")).out
    assert "- Answer in German." in prompt and f"`{workspace}`" in prompt and "- Tests need Docker." in prompt
    async with ModelServer(replies=[DONE]) as server:
        assert (await own_errand.run("run", *MODEL, server.url, "hello")).code == 0
        assert "- Answer in German." in str(server.requests[0].messages[0]["content"])
    task = await own_errand.task("completed")
    assert "- Pinned facts" in (await own_errand.run("context", task.id)).out

    edited = await own_errand.run("memory", "edit", folder[-8:], "I am Ada.", "--scope", "me")
    assert "I am Ada." in edited.out and "about you" in edited.out
    moved = await own_errand.run("memory", "edit", folder, "--folder", str(workspace.parent))
    assert f"in {workspace.parent}" in moved.out and "I am Ada." in moved.out
    removed = await own_errand.run("memory", "unpin", everywhere)
    assert "Answer in German." in removed.out and "Removed." in removed.err
    assert await ids(own_errand) == [folder]
    log = (await own_errand.run("memory", "log", "--limit", "2")).out.splitlines()
    assert [line.split()[2] for line in log] == ["unpinned", "edited"]
    assert "German" not in "".join(log) and everywhere in log[0] and log[0].endswith("by errand memory")


async def test_what_an_agent_proposes_is_accepted_or_declined(own_errand: Errand) -> None:
    calls = tuple(Call("propose_memory", {"text": text, "scope": "always"}) for text in ("Use tabs.", "Use spaces."))
    async with ModelServer(replies=[Reply(calls=calls), DONE]) as server:
        ran = await own_errand.run("run", *MODEL, server.url, "remember that")
    assert "proposed to remember" in ran.out + ran.err
    listed = (await own_errand.run("memory", "facts")).out
    assert listed.count("proposed  Use") == 2 and "by Assistant" in listed
    assert "Use tabs." not in (await own_errand.run("prompt")).out
    tabs, spaces = await ids(own_errand)
    assert "proposed" not in (await own_errand.run("memory", "accept", tabs, "Always use tabs.")).out
    assert "Declined." in (await own_errand.run("memory", "unpin", spaces)).err
    assert "- Always use tabs." in (await own_errand.run("prompt")).out
    assert "Already accepted." in (await own_errand.run("memory", "accept", tabs)).err


async def test_wrong_use_says_what_is_right(own_errand: Errand) -> None:
    for arguments, error in (
        (("pin",), "Usage:"),
        (("unpin", "x"), "No fact has the id 'x'"),
        (("pin", "x" * 501), "more than 500 characters"),
        (("pin", "a", "--scope", "me", "--folder", "."), "cannot be used together"),
        (("pin", "a", "--folder", "/no/such"), "There is no folder"),
        (("log", "--limit", "501"), "from 1 to 500"),
    ):
        done = await own_errand.run("memory", *arguments)
        assert done.code == 2 and error in done.err, (arguments, done.err)
    assert (await own_errand.run("memory", "log")).err == "The log is empty.\n"
