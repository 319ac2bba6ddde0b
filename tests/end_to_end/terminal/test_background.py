"""`errand background`: the commands that run on, from the command line."""

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import running

MODEL = ("--model", "openai_compatible/test-model", "--api-base")
ASKS = "read -p 'Your name? ' name; echo hello $name; exec sleep 4731"


async def test_they_are_listed_read_typed_into_and_stopped(own_errand: Errand) -> None:
    assert "No commands are running in the background." in (await own_errand.run("background")).err
    calls = (
        Call("shell", {"command": f"echo listening; {'true; ' * 30} exec sleep 4732", "background": True}),
        Call("shell", {"command": ASKS, "background": True, "pty": True}, id="two", index=1),
    )
    async with ModelServer(turns=[Reply(calls=calls), Reply(text="They run.")]) as server:
        assert (await own_errand.run("run", "--approve", "all", *MODEL, server.url, "go")).code == 0

    narrow = {"COLUMNS": "80"}
    listed = await own_errand.run("background", variables=narrow)
    first, _, second = listed.out.partition("\n2 ")
    assert first.startswith("1    running for ") and first.splitlines()[-1] == "     listening"
    assert "waiting for input" in second and "Your name?" in second
    assert all(len(line) <= 80 for line in listed.out.splitlines())

    answered = await own_errand.run("background", "input", "2", "Ann")
    assert "hello Ann" in answered.out
    assert "hello Ann" in (await own_errand.run("background", "output", "2")).out
    refused = await own_errand.run("background", "input", "1", "hi")
    assert refused.code != 0 and "has no terminal" in refused.err

    unknown = await own_errand.run("background", "keys", "2", "any")
    assert unknown.code != 0 and "There is no key 'any'" in unknown.err
    interrupted = await own_errand.run("background", "keys", "2", "ctrl-c")
    assert "exit 130" in interrupted.out or "killed by SIGINT (2)" in interrupted.out
    assert not running("4731")
    left = (await own_errand.run("background", "--json")).lines
    assert [(command["id"], command["endedAt"] is None) for command in left] == [("1", True), ("2", False)]
    assert (await own_errand.run("background", "stop", "all")).code == 0
    assert not running("4732")


async def test_wrong_words_say_what_there_is_to_do(own_errand: Errand) -> None:
    wrong = await own_errand.run("background", "halt")
    assert (wrong.code, wrong.out) == (2, "") and "There is: list, " in wrong.err
    missing = await own_errand.run("background", "stop", "9")
    assert missing.code == 2 and "There is no background command '9'." in missing.err
