"""Sign-ins at servers on the web, with a real authorization server on this machine."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import msgspec
import pytest
from aiohttp import web

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_values import McpServer as StoredServer
from errand.engine.core.settings import Settings
from errand.engine.tools.mcp.administration import ServerAdministration
from errand.engine.tools.mcp.json_rpc import McpError
from errand.engine.tools.mcp.known import KnownServers
from errand.engine.tools.mcp.login.discovery import Challenge
from errand.engine.tools.mcp.login.flow import LoginFlow, LoginRequest
from errand.engine.tools.mcp.login.named_addresses import NamedAddresses
from errand.engine.tools.mcp.pool import McpPool
from errand.engine.tools.mcp.server import McpServer
from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonObject
from errand.protocol.servers import McpKeyParams, McpSaveParams
from tests.support.mcp_servers import echo, judge_here, no_sandbox, no_vault, tool_of_server
from tests.support.oauth_server import METADATA, RESOURCE, OAuthServer, answering, back_address, oauth_server, visit
from tests.support.processes import until


@pytest.fixture
async def oauth() -> AsyncGenerator[OAuthServer]:
    async with oauth_server() as running:
        yield running


def pool_at(folder: Path, url: str, name: str = "web") -> McpPool:
    settings = Settings(folder / "settings.json")
    settings.set_mcp_servers((StoredServer(name=name, url=url),))
    keys = KeyStore(folder / "keys", {}, no_vault)
    return McpPool(settings, keys, KnownServers(folder / "mcp.json"), no_sandbox, judge_here)


@pytest.fixture
async def pool(tmp_path: Path, oauth: OAuthServer) -> AsyncGenerator[McpPool]:
    mcp_pool = pool_at(tmp_path, oauth.mcp)
    yield mcp_pool
    await mcp_pool.close()


async def refused(pool: McpPool) -> McpServer:
    """The server after it has said that it needs a sign-in."""
    server = await pool.find("web")
    with pytest.raises(McpError, match="errand mcp login web"):
        await server.connected()
    assert server.state == "needs_login"
    return server


async def signed_in(pool: McpPool) -> McpServer:
    server = await refused(pool)
    status, page = await visit(await pool.begin_login(server))
    assert status == 200 and "You are signed in" in page
    await until(lambda: server.state == "ready")
    return server


async def call(server: McpServer) -> str:
    connection = await server.connected()
    answer = await connection.call("echo", {}, 10, CancelSignal(), lambda done, total, text: None)
    return str(answer["content"])


async def test_a_person_signs_in_and_the_server_is_used(pool: McpPool, oauth: OAuthServer, tmp_path: Path) -> None:
    server = await signed_in(pool)
    assert "hello" in await call(server)
    (asked,) = oauth.authorized
    assert asked["resource"] == oauth.mcp and len(asked["state"]) > 30 and "scope" not in asked
    (registered,) = oauth.clients.values()
    assert registered["token_endpoint_auth_method"] == "none" and registered["client_name"] == "Errand"
    assert oauth.granted[0]["resource"] == oauth.mcp and "client_secret" not in oauth.granted[0]
    assert await pool.logins.has(server.spec) and not pool.logins.address(server.spec)
    # The port of the browser's return is closed again.
    with pytest.raises(aiohttp.ClientConnectorError):
        await visit(asked["redirect_uri"])


async def test_tokens_are_in_no_file_in_the_clear_and_never_shown(
    pool: McpPool, oauth: OAuthServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = await signed_in(pool)
    (token,), (refresh,) = oauth.tokens, oauth.refresh_tokens
    files = [file.read_bytes() for file in _files(tmp_path)]
    server.log.note(f"it said {token} and {refresh}")
    for secret in (token, refresh, oauth.granted[0]["code"]):
        assert not any(secret.encode() in data for data in files)
        assert secret not in caplog.text and secret not in server.log.text()


async def test_the_sign_in_holds_after_a_restart(pool: McpPool, oauth: OAuthServer, tmp_path: Path) -> None:
    await signed_in(pool)
    await pool.close()
    later = pool_at(tmp_path, oauth.mcp)
    server = await later.find("web")
    assert await later.logins.has(server.spec)
    assert "hello" in await call(server)
    assert len(oauth.authorized) == 1
    await later.close()


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_client_with_a_secret_shows_it_to_the_token_endpoint(
    pool: McpPool, oauth: OAuthServer, method: str
) -> None:
    oauth.secret_method = method
    assert "hello" in await call(await signed_in(pool))


async def test_a_token_that_has_expired_is_renewed_before_it_is_used(pool: McpPool, oauth: OAuthServer) -> None:
    oauth.expires_in = 1
    server = await signed_in(pool)
    oauth.expires_in = "3600"  # some servers send it as text
    before = set(oauth.tokens)
    await asyncio.gather(*(call(server) for _ in range(5)))
    renewals = [form for form in oauth.granted if form["grant_type"] == "refresh_token"]
    assert len(oauth.tokens - before) == 1 and renewals[-1]["resource"] == oauth.mcp
    assert set(oauth.sent_tokens) <= {"", *oauth.tokens}


async def test_a_refused_token_is_renewed_once_and_the_new_refresh_token_is_kept(
    pool: McpPool, oauth: OAuthServer, tmp_path: Path
) -> None:
    server = await signed_in(pool)
    for _ in range(5):
        oauth.tokens.clear()
        assert "hello" in await call(server)
    assert len(oauth.refresh_tokens) == 1
    await pool.close()
    oauth.tokens.clear()
    later = pool_at(tmp_path, oauth.mcp)
    assert "hello" in await call(await later.find("web"))
    await later.close()


async def test_a_refresh_token_that_is_not_taken_any_more_asks_for_another_sign_in(
    pool: McpPool, oauth: OAuthServer, tmp_path: Path
) -> None:
    server = await signed_in(pool)
    tool = await tool_of_server(server, tmp_path)
    oauth.tokens.clear()
    oauth.refresh_tokens.clear()
    with pytest.raises(ToolError, match="errand mcp login web") as caught:
        await echo(tool, "hello")
    assert caught.value.summary == "needs your sign-in"
    await until(lambda: server.state == "needs_login")
    assert not await pool.logins.has(server.spec)
    with pytest.raises(ToolError, match="errand mcp login web"):
        await echo(tool, "hello")
    assert (await visit(await pool.begin_login(server)))[0] == 200
    await until(lambda: server.state == "ready")
    assert (await echo(tool, "hello")).summary is not None
    assert len(oauth.clients) == 1  # the registration is used again


async def test_a_token_endpoint_that_fails_for_a_moment_ends_no_sign_in(pool: McpPool, oauth: OAuthServer) -> None:
    server = await signed_in(pool)
    oauth.tokens.clear()
    oauth.replaced["/token"] = answering("<html>down</html>", 503)
    with pytest.raises(McpError, match="503"):
        await call(server)
    assert await pool.logins.has(server.spec)
    del oauth.replaced["/token"]
    assert "hello" in await call(server)


async def test_a_renewal_goes_on_when_the_call_that_began_it_is_stopped(pool: McpPool, oauth: OAuthServer) -> None:
    server = await signed_in(pool)
    oauth.tokens.clear()
    reached, go_on = asyncio.Event(), asyncio.Event()
    answer = oauth.answer

    async def slow(request: web.Request) -> web.StreamResponse:
        reached.set()
        await go_on.wait()
        del oauth.replaced["/token"]
        return await answer(request)

    oauth.replaced["/token"] = slow
    connection, cancel = await server.connected(), CancelSignal()
    calling = asyncio.create_task(connection.call("echo", {}, 10, cancel, lambda done, total, text: None))
    await reached.wait()
    cancel.set()
    with pytest.raises(McpError):
        await calling
    go_on.set()
    assert "hello" in await call(server)
    assert len(oauth.refresh_tokens) == 1


async def test_an_answer_with_another_state_is_refused_and_the_sign_in_waits_on(
    pool: McpPool, oauth: OAuthServer
) -> None:
    server = await refused(pool)
    address = await pool.begin_login(server)
    back = await back_address(address)
    callback = back.partition("?")[0]
    for wrong in (
        f"{callback}?code=x",
        f"{callback}?code=x&state=y",
        f"{back}&state=z",
        f"{callback}?code=x&state=%ff",
    ):
        status, page = await visit(wrong)
        assert status == 400 and "not the answer" in page
    async with aiohttp.ClientSession() as session:
        async with session.get(back, headers={"Host": "evil.example"}) as response:
            assert response.status == 400
        async with session.post(back) as response:
            assert response.status == 405
    assert pool.logins.address(server.spec) == address
    assert (await visit(back))[0] == 200
    await until(lambda: server.state == "ready")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("code=x&state={state}&iss=https://other.example", "not one of the server that was asked"),
        ("code=x&state={state}", "not one of the server that was asked"),
        ("error=access_denied&state={state}&iss={url}", "You declined it"),
        ("error=server_error&error_description=%3Cb%3Eno%3C/b%3E&state={state}&iss={url}", "server_error"),
        ("state={state}&iss={url}", "no code"),
        ("code=never-given&state={state}&iss={url}", "invalid_grant"),
    ],
)
async def test_an_answer_that_cannot_be_used_ends_the_sign_in_with_a_reason(
    pool: McpPool, oauth: OAuthServer, answer: str, reason: str
) -> None:
    server = await refused(pool)
    address = await pool.begin_login(server)
    query = dict(parse_qsl(urlsplit(address).query))
    text = answer.format(state=query["state"], url=oauth.url)
    status, page = await visit(f"{query['redirect_uri']}?{text}")
    assert status == 400 and "<b>" not in page
    await until(lambda: not pool.logins.address(server.spec))
    assert reason in pool.logins.problem(server.spec)
    assert not await pool.logins.has(server.spec)


async def test_two_sign_ins_at_once_are_one(pool: McpPool, oauth: OAuthServer) -> None:
    server = await refused(pool)
    first_address, second_address = await asyncio.gather(pool.begin_login(server), pool.begin_login(server))
    assert first_address == second_address and len(oauth.clients) == 1
    await visit(first_address)
    await until(lambda: server.state == "ready")


async def test_a_sign_in_is_cancelled_at_once_and_begun_again(pool: McpPool, oauth: OAuthServer) -> None:
    server = await refused(pool)
    first = await pool.begin_login(server)
    await pool.logins.cancel(server.spec)
    assert "cancelled" in pool.logins.problem(server.spec)
    with pytest.raises(aiohttp.ClientConnectorError):
        await visit(await back_address(first))
    await visit(await pool.begin_login(server))
    await until(lambda: server.state == "ready")


async def test_a_sign_in_that_looks_for_the_place_is_cancelled_too(pool: McpPool, oauth: OAuthServer) -> None:
    server = await refused(pool)
    oauth.replaced[METADATA] = oauth.silence
    beginning = asyncio.create_task(pool.begin_login(server))
    await until(lambda: METADATA in oauth.seen)
    await pool.logins.cancel(server.spec)
    with pytest.raises(McpError, match="cancelled"):
        await beginning


async def test_who_signs_out_leaves_nothing_here_and_tells_the_server(
    pool: McpPool, oauth: OAuthServer, tmp_path: Path
) -> None:
    server = await signed_in(pool)
    (refresh,) = oauth.refresh_tokens
    assert await pool.logins.forget(server.spec)
    assert oauth.revoked == [refresh] and not await pool.logins.has(server.spec)
    assert msgspec.json.decode((tmp_path / "keys" / "stored.json").read_bytes()) == {}
    assert not await pool.logins.forget(server.spec)


async def test_a_changed_address_gets_no_token_of_the_old_one(
    pool: McpPool, oauth: OAuthServer, tmp_path: Path
) -> None:
    await signed_in(pool)
    await pool.close()
    async with oauth_server() as other:
        later = pool_at(tmp_path, other.mcp)
        await refused(later)
        assert other.sent_tokens == [""]
        await later.close()


async def test_wider_rights_are_asked_for_together_with_the_earlier_ones(
    pool: McpPool, oauth: OAuthServer, tmp_path: Path
) -> None:
    oauth.challenge = f'Basic realm="x", Bearer scope="read", resource_metadata="{oauth.url}{RESOURCE}"'
    server = await signed_in(pool)
    assert oauth.authorized[0]["scope"] == "read"
    tool = await tool_of_server(server, tmp_path)
    oauth.needs_scope = "write"
    with pytest.raises(ToolError, match="more rights"):
        await echo(tool, "hello")
    assert server.state == "ready" and oauth.refused_calls == 1 and server.challenge is not None
    await visit(await pool.begin_login(server))
    await until(lambda: not pool.logins.address(server.spec))
    assert oauth.authorized[1]["scope"] == "read write" and server.challenge is None


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


async def test_a_client_that_the_person_registered_is_used_with_its_port(tmp_path: Path, oauth: OAuthServer) -> None:
    oauth.metadata = {"registration_endpoint": None}
    pool = pool_at(tmp_path, oauth.mcp)
    server = await refused(pool)
    with pytest.raises(McpError, match="--client-id"):
        await pool.begin_login(server)
    await pool.close()
    with_port = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    port = with_port.sockets[0].getsockname()[1]
    settings = Settings(tmp_path / "settings.json")
    client = StoredServer(name="web", url=oauth.mcp, client_id="mine", client_secret="${MY_SECRET}", callback_port=port)
    settings.set_mcp_servers((client,))
    oauth.clients["mine"] = {"redirect_uris": [f"http://127.0.0.1:{port}/callback"]}
    keys = KeyStore(tmp_path / "keys", {}, no_vault)
    await keys.set("mcp.web.MY_SECRET", "secret-of-mine-1")
    oauth.secret_method = "client_secret_post"
    own = McpPool(settings, keys, KnownServers(tmp_path / "mcp.json"), no_sandbox, judge_here)
    server = await refused(own)
    with pytest.raises(McpError, match=f"Port {port}"):
        await own.begin_login(server)
    with_port.close()
    await with_port.wait_closed()
    assert (await visit(await own.begin_login(server)))[0] == 200
    await until(lambda: server.state == "ready")
    assert oauth.granted[0]["client_secret"] == "secret-of-mine-1"
    await own.close()


def own_client(tmp_path: Path, server: StoredServer) -> tuple[McpPool, ServerAdministration]:
    """A server with a client that the person registered; its secret is entered by the test."""
    settings, keys = Settings(tmp_path / "settings.json"), KeyStore(tmp_path / "keys", {}, no_vault)
    settings.set_mcp_servers((server,))
    pool = McpPool(settings, keys, KnownServers(tmp_path / "mcp.json"), no_sandbox, judge_here)
    return pool, ServerAdministration(settings, keys, pool)


async def test_a_client_secret_goes_to_no_other_authorization_server_than_it_was_entered_for(
    tmp_path: Path, oauth: OAuthServer
) -> None:
    async with oauth_server() as other:
        pool, servers = own_client(tmp_path, StoredServer(name="unused", command=("true",)))
        params = McpSaveParams(
            name="web", url=oauth.mcp, client_id="mine", client_secret="${S}", keys={"S": "secret-of-mine-1"}
        )
        assert (await servers.save(params)).client_issuer == oauth.url
        elsewhere: JsonObject = {"resource": oauth.mcp, "authorization_servers": [other.url]}
        oauth.replaced[RESOURCE] = answering(elsewhere)
        other.secret_method = "client_secret_post"
        with pytest.raises(McpError, match="Nothing was sent"):
            await servers.login("web", None)
        assert not other.authorized and not other.granted
        (info,) = [server_info for server_info in await servers.list(None) if server_info.name == "web"]
        assert info.new_issuer == other.url and not info.login_address

        address = (await servers.login("web", None, other.url)).address
        (info,) = [server_info for server_info in await servers.list(None) if server_info.name == "web"]
        assert address.startswith(other.url) and (info.client_issuer, info.new_issuer) == (other.url, "")
        await servers.set_key(McpKeyParams(name="web", variable="S", value="another-secret-1"))
        del oauth.replaced[RESOURCE]
        await pool.logins.cancel((await pool.find("web")).spec)
        with pytest.raises(McpError, match="Nothing was sent"):
            await servers.login("web", None)
        await pool.close()


async def test_where_it_was_not_found_out_for_whom_a_secret_is_the_person_is_asked(
    tmp_path: Path, oauth: OAuthServer
) -> None:
    oauth.metadata = {"code_challenge_methods_supported": []}
    pool, servers = own_client(tmp_path, StoredServer(name="unused", command=("true",)))
    params = McpSaveParams(name="web", url=oauth.mcp, client_id="mine", client_secret="${S}", keys={"S": "secret-1"})
    assert (await servers.save(params)).client_issuer == "unknown"
    oauth.metadata = {}
    with pytest.raises(McpError, match="Nothing was sent"):
        await servers.login("web", None)
    await pool.close()


async def test_the_answer_of_a_browser_elsewhere_is_brought_by_hand(pool: McpPool, oauth: OAuthServer) -> None:
    server = await refused(pool)
    with pytest.raises(McpError, match="errand mcp login web"):
        pool.logins.bring(server.spec, "http://127.0.0.1:1/callback?code=x&state=y")
    back = await back_address(await pool.begin_login(server))
    for wrong in (
        "http://127.0.0.1/callback?code=x&state=y",
        "http://[",
        back.replace("/callback", "/other"),
        "x" * 99,
    ):
        with pytest.raises(McpError):
            pool.logins.bring(server.spec, wrong)
    pool.logins.bring(server.spec, f" {back}\n")
    await until(lambda: server.state == "ready")


async def test_a_sign_in_that_nobody_completes_ends_by_itself(oauth: OAuthServer) -> None:
    flow = LoginFlow(LoginRequest(oauth.mcp, Challenge()), NamedAddresses(oauth.mcp, judge_here), wait_s=0.3)
    with pytest.raises(McpError, match="Nobody signed in within"):
        await flow.run(lambda: None)
    await flow.close()
    with pytest.raises(aiohttp.ClientConnectorError):
        await visit(await back_address(flow.address))


async def test_nobody_signs_in_over_a_connection_that_others_can_read() -> None:
    flow = LoginFlow(LoginRequest("http://8.8.8.8/mcp", Challenge()), NamedAddresses("http://8.8.8.8/mcp", judge_here))
    with pytest.raises(McpError, match="https://"):
        await flow.run(lambda: None)
