"""Custom model servers from the terminal: added under a name, used, changed and removed."""

from tests.support.command_line import Errand
from tests.support.model_server import ModelServer, Reply
from tests.support.provider_servers import own_server

KEY = "k-of-the-test-1234567890"


async def test_a_server_is_added_with_its_key_and_used_by_every_later_run(own_errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="Good day.")]) as server:
        added = await own_errand.run(
            "models",
            "--add-server",
            server.url.removesuffix("/v1"),
            "--name",
            "Lab",
            "--api-key-env",
            "LAB_KEY",
            variables={"LAB_KEY": KEY},
        )
        assert added.code == 0, added.err
        assert "Lab: Saved. The server offers one model." in added.out
        assert "  lab/test-model" in added.out
        listed = await own_errand.run("models")
        assert f"Lab  at {server.url}, key in Errand's encrypted file" in listed.out
        done = await own_errand.run("run", "--model", "lab/test-model", "greet me")
        assert (done.code, server.requests[0].headers["Authorization"]) == (0, f"Bearer {KEY}"), done.err
    for output in (added, listed, done):
        assert KEY not in output.out + output.err


async def test_a_server_is_changed_by_its_name_and_removed(own_errand: Errand) -> None:
    async with own_server(key=KEY) as server, own_server(models=("other",)) as other:
        first = await own_errand.run("models", "--add-server", server.url, "--name", "Lab")
        assert (first.code, "The server requires a key." in first.out) == (1, True)
        key = ("--api-key-env", "LAB_KEY")
        second = await own_errand.run(
            "models", "--add-server", server.url, "--name", "lab", *key, variables={"LAB_KEY": KEY}
        )
        assert (second.code, "lab/qwen3" in second.out) == (0, True)
        moved = await own_errand.run("models", "--add-server", other.url, "--name", "LAB")
        assert "It has moved, so its key was removed" in " ".join(moved.out.split())
        removed = await own_errand.run("models", "--remove-server", "Lab")
        assert (removed.code, removed.out) == (0, "LAB was removed, with its key.\n")
        again = await own_errand.run("models", "--remove-server", "Lab")
        assert (again.code, "There is no model server 'Lab'. There are: none." in again.err) == (2, True)
    assert set(other.keys) == {""}


async def test_what_is_wrong_with_an_address_or_key_is_said(own_errand: Errand) -> None:
    broken = await own_errand.run("models", "--add-server", "http://[")
    assert broken.code == 2 and broken.err == (
        "errand: 'http://[' is not a web address. Use one such as http://127.0.0.1:8000/v1.\n"
    )
    nowhere = await own_errand.run("models", "--add-server", "ftp://nowhere", "--name", "Lab")
    assert (nowhere.code, "is not an address" in nowhere.err) == (2, True), nowhere
    unset = await own_errand.run("models", "--add-server", "http://127.0.0.1:9", "--api-key-env", "MISSING")
    assert (unset.code, "MISSING is not set" in unset.err) == (2, True)
