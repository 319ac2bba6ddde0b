"""Where to sign in, found out from servers that tell the truth and from servers that lie."""

import time
from collections.abc import AsyncGenerator

import pytest
from aiohttp import web

from errand.engine.tools.mcp.json_rpc import McpError
from errand.engine.tools.mcp.login.discovery import Authorization, Challenge, discover, parse_challenge
from errand.engine.tools.mcp.login.named_addresses import NamedAddresses
from errand.engine.tools.mcp.login.tokens import Client, Credentials, register, renew
from errand.protocol.base import JsonObject, JsonValue
from tests.support.mcp_servers import judge_here
from tests.support.oauth_server import METADATA, RESOURCE, OAuthServer, answering, oauth_server

_INSERTED = "/.well-known/oauth-authorization-server/tenant"
_OPENID_INSERTED = "/.well-known/openid-configuration/tenant"
_OPENID_APPENDED = "/tenant/.well-known/openid-configuration"


@pytest.fixture
async def oauth() -> AsyncGenerator[OAuthServer]:
    async with oauth_server() as running:
        yield running


async def found(oauth: OAuthServer, challenge: Challenge | None = None, limit_s: float = 5.0) -> Authorization:
    addresses = NamedAddresses(oauth.mcp, judge_here, limit_s)
    return await discover(addresses, oauth.mcp, challenge or Challenge())


async def problem(oauth: OAuthServer, challenge: Challenge | None = None, limit_s: float = 5.0) -> str:
    with pytest.raises(McpError) as caught:
        await found(oauth, challenge, limit_s)
    return str(caught.value)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], Challenge()),
        (["Bearer"], Challenge()),
        (['Bearer resource_metadata="https://a/b", scope="x y"'], Challenge("https://a/b", "x y")),
        (["bearer error=invalid_token, scope=read"], Challenge("", "read", "invalid_token")),
        (['Basic realm="Bearer scope=no", Bearer scope="yes"'], Challenge("", "yes")),
        (['Negotiate abc==, Bearer realm="x", scope = "a \\"b"'], Challenge("", "a")),
        (['Bearer scope="one"', 'Bearer scope="two", error="x"'], Challenge("", "one", "x")),
        (["DPoP scope=no", 'Bearer resource_metadata="https://a'], Challenge('"https://a')),
    ],
)
def test_a_challenge_is_read_from_its_headers(headers: list[str], expected: Challenge) -> None:
    read = parse_challenge(headers)
    if expected.resource_metadata.startswith('"'):  # broken: nothing that is opened
        assert not read.resource_metadata.startswith("http")
    else:
        assert read == expected


def test_a_hostile_challenge_takes_no_time() -> None:
    began = time.process_time()
    for text in ("Bearer " + "a" * 100_000, 'Bearer x="' + '\\"' * 50_000, "Bearer " + "a=b," * 30_000, "= " * 50_000):
        parse_challenge([text])
    assert time.process_time() - began < 10


async def test_the_challenge_says_where_the_metadata_are_and_which_scope(oauth: OAuthServer) -> None:
    content: JsonObject = {"resource": oauth.url, "authorization_servers": [oauth.url], "scopes_supported": ["all"]}
    oauth.replaced["/elsewhere"] = answering(content)
    at = await found(oauth, Challenge(f"{oauth.url}/elsewhere", "read"))
    assert (at.issuer, at.resource, at.scope) == (oauth.url, oauth.url, "read")
    assert (await found(oauth, Challenge(f"{oauth.url}/elsewhere"))).scope == "all"
    assert RESOURCE not in oauth.seen


async def test_offline_access_is_asked_for_where_it_exists(oauth: OAuthServer) -> None:
    oauth.metadata = {"scopes_supported": ["read", "offline_access"]}
    assert (await found(oauth, Challenge(scope="read"))).scope == "read offline_access"
    assert (await found(oauth)).scope == ""


async def test_a_server_without_metadata_of_its_own_is_its_own_authorization_server(oauth: OAuthServer) -> None:
    oauth.replaced[RESOURCE] = answering("<html>a page for every path</html>")
    assert (await found(oauth)).resource == oauth.mcp
    assert oauth.seen == [RESOURCE, RESOURCE.removesuffix("/mcp"), METADATA]


@pytest.mark.parametrize("metadata_path", [_INSERTED, _OPENID_INSERTED, _OPENID_APPENDED])
async def test_an_issuer_with_a_path_is_looked_for_in_the_order_of_the_specification(
    oauth: OAuthServer, metadata_path: str
) -> None:
    issuer = f"{oauth.url}/tenant"
    oauth.replaced[RESOURCE] = answering({"resource": oauth.mcp, "authorization_servers": [issuer]})
    oauth.replaced[metadata_path] = answering(
        {
            "issuer": issuer,
            "authorization_endpoint": f"{oauth.url}/a",
            "token_endpoint": f"{oauth.url}/t",
            "code_challenge_methods_supported": ["S256"],
        }
    )
    assert (await found(oauth)).issuer == issuer
    order = (_INSERTED, _OPENID_INSERTED, _OPENID_APPENDED)
    assert oauth.seen[1:] == list(order[: order.index(metadata_path) + 1])


@pytest.mark.parametrize(
    "resource",
    ["https://other.example/mcp", "{url}/mcp2", "{url}/mc", "{url}/mcp/deeper", "http://[", "{url}.evil/mcp"],
)
async def test_metadata_of_another_resource_are_refused(oauth: OAuthServer, resource: str) -> None:
    content: JsonObject = {"resource": resource.format(url=oauth.url), "authorization_servers": [oauth.url]}
    oauth.replaced[RESOURCE] = answering(content)
    assert "not of this server" in await problem(oauth)
    assert METADATA not in oauth.seen


@pytest.mark.parametrize("methods", [None, [], ["plain"], ["s256"]])
async def test_a_server_without_s256_is_refused(oauth: OAuthServer, methods: list[JsonValue] | None) -> None:
    oauth.metadata = {"code_challenge_methods_supported": methods}
    assert "PKCE with S256" in await problem(oauth)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"issuer": "https://other.example"}, "of another authorization server"),
        ({"token_endpoint": "http://8.8.8.8/token"}, "begins with http://"),
        ({"token_endpoint": "https://169.254.169.254/token"}, "gives out secrets"),
        ({"token_endpoint": "https://10.1.2.3/token"}, "the local network"),
        ({"token_endpoint": "https://[fe80::1]/token"}, "not opened"),
        ({"token_endpoint": "https://me:word@127.0.0.1/"}, "before @"),
        ({"token_endpoint": "file:///etc/passwd"}, "no web address"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "no web address"),
        ({"authorization_endpoint": "https://192.168.0.1/"}, "the local network"),
        ({"authorization_endpoint": "http://\n127.0.0.1/"}, "not opened"),
        ({"token_endpoint": 5}, "cannot be used"),
        ({"token_endpoint": None}, "cannot be used"),
    ],
)
async def test_an_authorization_server_that_leads_elsewhere_is_refused(
    oauth: OAuthServer, change: JsonObject, reason: str
) -> None:
    oauth.metadata = change
    assert reason in await problem(oauth)
    assert not oauth.granted and not oauth.clients


@pytest.mark.parametrize("address", ["http://169.254.169.254/latest/", "https://192.168.7.7/", "http://8.8.8.8/"])
async def test_a_challenge_and_a_redirect_lead_nowhere_else(oauth: OAuthServer, address: str) -> None:
    assert "not opened" in await problem(oauth, Challenge(address))
    oauth.replaced[RESOURCE] = answering({}, 302, Location=address)
    assert "not opened" in await problem(oauth)
    oauth.replaced[RESOURCE] = answering({"resource": oauth.mcp, "authorization_servers": [address]})
    assert "not opened" in await problem(oauth)


async def test_redirects_are_followed_where_they_may_lead_and_end(oauth: OAuthServer) -> None:
    content: JsonObject = {"resource": oauth.mcp, "authorization_servers": [oauth.url]}
    oauth.replaced[RESOURCE] = answering({}, 307, Location="/moved")
    oauth.replaced["/moved"] = answering(content)
    assert (await found(oauth)).resource == oauth.mcp
    oauth.replaced["/moved"] = answering({}, 307, Location="/moved")
    assert "redirected too often" in await problem(oauth)


async def test_huge_slow_and_wrong_answers_are_refused_in_time(oauth: OAuthServer) -> None:
    for content in ("<html>", "[1]", "[" * 5_000):
        oauth.replaced[METADATA] = answering(content)
        assert "no JSON object" in await problem(oauth)
    oauth.replaced[METADATA] = answering("x" * 1_000_000)
    assert "more than 256 KB" in await problem(oauth)
    oauth.replaced[METADATA] = oauth.silence
    assert "did not answer within" in await problem(oauth, limit_s=0.3)

    async def compressed(request: web.Request) -> web.Response:
        return web.Response(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})

    oauth.replaced[METADATA] = compressed
    assert "no JSON object" in await problem(oauth)


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        ("<html>", 200, "no JSON object"),
        ({"error": "invalid_redirect_uri", "error_description": "not\x1b[31m red"}, 400, "invalid_redirect_uri: not"),
        ({"client_id": ""}, 201, "client_id"),
        ({"client_id": "x\r\nInjected: yes"}, 201, "client_id"),
        ({"client_id": "x", "token_endpoint_auth_method": "private_key_jwt"}, 201, "private_key_jwt"),
        ({"client_id": "x", "token_endpoint_auth_method": "client_secret_post"}, 201, "client_secret_post"),
    ],
)
async def test_a_registration_that_cannot_be_used_is_refused(
    oauth: OAuthServer, content: JsonValue, status: int, reason: str
) -> None:
    at = await found(oauth)
    oauth.replaced["/register"] = answering(content, status)
    with pytest.raises(McpError) as caught:
        await register(NamedAddresses(oauth.mcp, judge_here), at, "http://127.0.0.1:1/callback")
    assert reason in str(caught.value) and str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("<html>", 200),
        ({}, 200),
        ({"error": "temporarily_unavailable"}, 200),
        ({"access_token": "a", "token_type": "mac"}, 200),
        ({"access_token": "a b", "token_type": "Bearer"}, 200),
        ({"access_token": "a\r\nX: y", "token_type": "Bearer"}, 200),
        ({"access_token": "x" * 20_000, "token_type": "Bearer"}, 200),
        ({"access_token": ["a"], "token_type": "Bearer"}, 200),
        ({"access_token": "ok", "token_type": "Bearer", "refresh_token": "\n"}, 200),
        ({"access_token": "ok", "token_type": "Bearer"}, 500),
    ],
)
async def test_a_token_that_cannot_be_used_is_refused(oauth: OAuthServer, content: JsonValue, status: int) -> None:
    oauth.replaced["/token"] = answering(content, status)
    with pytest.raises(McpError, match=r"gave no token|sent a |of a kind"):
        await renew(NamedAddresses(oauth.mcp, judge_here), held(oauth))


async def test_a_token_request_that_is_redirected_sends_nothing_there(oauth: OAuthServer) -> None:
    oauth.replaced["/token"] = answering({}, 307, Location="/stolen")
    with pytest.raises(McpError, match="is redirected"):
        await renew(NamedAddresses(oauth.mcp, judge_here), held(oauth))
    assert "/stolen" not in oauth.seen


@pytest.mark.parametrize(
    ("life", "bounds"),
    [("7200", (7_100, 7_300)), (1e300, (1e8, 1e9)), (-5, (-10, 1)), ("soon", None), ("nan", None), (None, None)],
)
async def test_the_life_of_a_token_is_read_with_bounds(
    oauth: OAuthServer, life: JsonValue, bounds: tuple[float, float] | None
) -> None:
    oauth.replaced["/token"] = answering({"access_token": "ok", "token_type": "bearer", "expires_in": life})
    renewed = await renew(NamedAddresses(oauth.mcp, judge_here), held(oauth))
    assert renewed.refresh_token == "refresh-me-1"
    if bounds is None or renewed.expires_at is None:
        assert bounds is None and renewed.expires_at is None
    else:
        assert bounds[0] < renewed.expires_at - time.time() < bounds[1]
    assert "ok" not in repr(renewed) and "refresh-me-1" not in repr(renewed)


def held(oauth: OAuthServer) -> Credentials:
    return Credentials(
        server=oauth.mcp,
        issuer=oauth.url,
        token_endpoint=f"{oauth.url}/token",
        revocation_endpoint="",
        resource=oauth.mcp,
        client=Client(client_id="client-1"),
        access_token="old",
        refresh_token="refresh-me-1",
    )
