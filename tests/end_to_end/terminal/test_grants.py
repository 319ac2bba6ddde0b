"""`errand grants`: what a person allowed in a terminal is listed there, and can be taken back."""

import sys
from pathlib import Path

import pytest

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply

if sys.platform == "win32":
    pytest.skip("pseudo-terminals of POSIX", allow_module_level=True)

from tests.support.screens import PseudoTerminal

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def test_a_grant_is_listed_revoked_and_asked_about_again(own_errand: Errand, workspace: Path) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "touch first"}),)), Reply(text="Done.")]
    assert "Nothing is allowed" in (await own_errand.run("grants")).err
    async with (
        ModelServer(turns=replies) as server,
        PseudoTerminal(("run", *MODEL, server.url, "make"), own_errand.folder, own_errand.environment) as screen,
    ):
        await screen.shows("allow? a c w p u d r >", then="w\r")
        assert await screen.ended() == 0
        (workspace / "first").unlink()
        again = await own_errand.run("run", *MODEL, server.url, "make")
        assert again.code == 0 and (workspace / "first").exists(), "it is allowed in this folder"

        listed = await own_errand.run("grants")
        assert "touch first" in listed.out and f"In {workspace}" in listed.out and "last used" in listed.out
        (grant,) = (await own_errand.run("grants", "--json")).lines
        revoked = await own_errand.run("grants", "revoke", str(grant["id"])[-8:])
        assert "revoked" in revoked.out
        assert (await own_errand.run("grants")).out == ""
        assert "touch first" in (await own_errand.run("grants", "--revoked")).out

        (workspace / "first").unlink()
        denied = await own_errand.run("run", *MODEL, server.url, "make")
    assert denied.code != 0
    assert not (workspace / "first").exists()


async def test_all_grants_are_revoked_at_once_and_an_unknown_one_is_named(own_errand: Errand) -> None:
    unknown = await own_errand.run("grants", "revoke", "nothing-like-it")
    assert unknown.code == 2
    assert "No grant has the id 'nothing-like-it'. See them with: errand grants" in unknown.err
    assert (await own_errand.run("grants", "revoke", "all")).code == 0
    assert (await own_errand.run("grants", "forget")).code == 2
