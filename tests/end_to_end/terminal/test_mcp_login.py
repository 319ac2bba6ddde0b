"""Signing in at MCP servers from the command line, with a real authorization server."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest

from errand.protocol.servers import MCP_LIST, McpListParams, McpServer
from tests.support.command_line import Errand, Finished, connected, rest
from tests.support.limits import WAIT_LIMIT_S
from tests.support.oauth_server import RESOURCE, OAuthServer, answering, back_address, oauth_server, visit
from tests.support.processes import PYTHON, is_alive, until


@pytest.fixture
async def oauth() -> AsyncGenerator[OAuthServer]:
    async with oauth_server() as running:
        yield running


async def added(errand: Errand, oauth: OAuthServer) -> None:
    done = await errand.run("mcp", "add", "guarded", "--url", oauth.mcp)
    assert done.code == 0, done.err


async def begun(errand: Errand) -> tuple[asyncio.subprocess.Process, str]:
    """A running `errand mcp login`, and the address that it printed."""
    process = await errand.start("mcp", "login", "guarded")
    assert process.stdout is not None
    async with asyncio.timeout(WAIT_LIMIT_S):
        while line := (await process.stdout.readline()).decode():
            if line.startswith("  http"):
                return process, line.strip()
    raise AssertionError(f"it printed no address: {(await rest(process)).err}")


async def server(errand: Errand) -> McpServer:
    async with connected(errand) as client:
        (server,) = (await client.call(MCP_LIST, McpListParams())).servers
        return server


def stored(home: Path) -> bytes:
    return b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


async def test_a_person_signs_in_without_a_browser_here_and_signs_out(own_errand: Errand, oauth: OAuthServer) -> None:
    await added(own_errand, oauth)
    refused = await own_errand.run("mcp", "show", "guarded")
    assert refused.code != 0 and "errand mcp login guarded" in refused.err
    assert "sign-in required" in (await own_errand.run("mcp")).out
    process, address = await begun(own_errand)
    assert "waiting for you to sign in" in (await own_errand.run("mcp")).out
    assert (await visit(address))[0] == 200
    done = await rest(process)
    assert done.code == 0 and "ssh -L" in done.out and "You are signed in to guarded." in done.out
    assert "guarded__echo" in (await own_errand.run("mcp", "show", "guarded")).out
    assert "signed in" in (await own_errand.run("mcp")).out
    data = await asyncio.to_thread(stored, own_errand.home)
    for secret in (*oauth.tokens, *oauth.refresh_tokens, oauth.granted[0]["code"]):
        assert secret.encode() not in data
    assert "sign-in required" not in (await own_errand.run("mcp", "logout", "guarded")).out
    assert oauth.revoked
    assert (await own_errand.run("mcp", "logout", "guarded")).code != 0
    assert (await own_errand.run("mcp", "show", "guarded")).code != 0


async def test_the_browser_opens_where_there_is_one(own_errand: Errand, oauth: OAuthServer, tmp_path: Path) -> None:
    await added(own_errand, oauth)
    browser = tmp_path / "browser.py"
    browser.write_text("import sys, urllib.request\nurllib.request.urlopen(sys.argv[1])\n")
    variables = {"DISPLAY": ":77", "BROWSER": f"{PYTHON} {browser} %s", "SSH_CONNECTION": ""}
    done = await own_errand.run("mcp", "login", "guarded", variables=variables)
    assert done.code == 0, done.err
    assert "Your browser opens" in done.out and "ssh -L" not in done.out
    assert (await server(own_errand)).has_login


async def test_the_address_of_a_browser_elsewhere_is_given_by_hand(own_errand: Errand, oauth: OAuthServer) -> None:
    await added(own_errand, oauth)
    process, address = await begun(own_errand)
    wrong = await own_errand.run("mcp", "login", "guarded", "--answer", "http://127.0.0.1/callback?code=1&state=2")
    assert wrong.code != 0 and "not the answer" in wrong.err
    answered = await own_errand.run("mcp", "login", "guarded", "--answer", await back_address(address))
    assert answered.code == 0, answered.err
    assert (await rest(process)).code == 0


async def test_leaving_cancels_the_sign_in(own_errand: Errand, oauth: OAuthServer) -> None:
    await added(own_errand, oauth)
    process, address = await begun(own_errand)
    process.send_signal(signal.SIGINT)
    assert (await rest(process)).code != 0
    assert not (await server(own_errand)).login_address
    with pytest.raises(aiohttp.ClientConnectorError):
        await visit(address)


async def test_two_terminals_share_one_sign_in_and_both_learn_that_it_was_declined(
    own_errand: Errand, oauth: OAuthServer
) -> None:
    await added(own_errand, oauth)
    (first_login, first), (other, second) = await begun(own_errand), await begun(own_errand)
    assert first == second
    back = await back_address(first)
    state = back.partition("state=")[2].partition("&")[0]
    await visit(f"{back.partition('?')[0]}?error=access_denied&state={state}&iss={oauth.url}")
    ends: list[Finished] = [await rest(first_login), await rest(other)]
    assert all(end.code != 0 and "You declined it" in end.err for end in ends)


async def test_an_engine_that_is_killed_meanwhile_leaves_nothing_open_and_the_next_one_signs_in(
    own_errand: Errand, oauth: OAuthServer
) -> None:
    await added(own_errand, oauth)
    process, address = await begun(own_errand)
    pid = own_errand.engine_pid()
    own_errand.kill_engine()
    await until(lambda: not is_alive(pid))
    with pytest.raises(aiohttp.ClientConnectorError):
        await visit(address)
    assert (await rest(process)).code != 0
    process, address = await begun(own_errand)
    assert (await visit(address))[0] == 200
    assert (await rest(process)).code == 0


async def test_a_client_secret_goes_elsewhere_only_after_it_was_allowed(own_errand: Errand, oauth: OAuthServer) -> None:
    async with oauth_server() as other:
        options = ("--client-id", "mine", "--client-secret", "MY_SECRET")
        done = await own_errand.run(
            *("mcp", "add", "guarded", "--url", oauth.mcp, *options), variables={"MY_SECRET": "secret-of-mine-1"}
        )
        assert f"client secret for {oauth.url}" in done.out, done.err
        oauth.replaced[RESOURCE] = answering({"resource": oauth.mcp, "authorization_servers": [other.url]})
        refused = await own_errand.run("mcp", "login", "guarded")
        assert refused.code != 0 and other.url in refused.err and f"--issuer {other.url}" in refused.err
        process = await own_errand.start("mcp", "login", "guarded", "--issuer", other.url)
        assert process.stdout is not None
        async with asyncio.timeout(WAIT_LIMIT_S):
            while not (line := (await process.stdout.readline()).decode()).startswith("  http"):
                assert line
        assert line.strip().startswith(f"{other.url}/authorize?")
        process.send_signal(signal.SIGINT)
        await rest(process)
