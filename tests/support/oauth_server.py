"""An MCP server that wants a sign-in, with its authorization server, on a free port of this machine."""

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp import web

from errand.protocol.base import JsonObject, JsonValue

RESOURCE = "/.well-known/oauth-protected-resource/mcp"
METADATA = "/.well-known/oauth-authorization-server"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class _Grant:
    client_id: str
    redirect_uri: str
    challenge: str
    resource: str
    scope: str


@dataclass(slots=True)
class OAuthServer:
    """`replaced` answers a path otherwise. `seen` are the paths of all requests, `tokens` those that are valid now."""

    url: str = ""
    replaced: dict[str, Handler] = field(default_factory=dict[str, Handler])
    metadata: JsonObject = field(default_factory=dict[str, JsonValue])
    challenge: str = ""
    expires_in: JsonValue = 3600
    rotates: bool = True
    gives_refresh: bool = True
    secret_method: str = ""
    needs_scope: str = ""
    seen: list[str] = field(default_factory=list[str])
    tokens: set[str] = field(default_factory=set[str])
    refresh_tokens: set[str] = field(default_factory=set[str])
    sent_tokens: list[str] = field(default_factory=list[str])
    clients: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    authorized: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    granted: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    revoked: list[str] = field(default_factory=list[str])
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0
    refused_calls: int = 0
    _codes: dict[str, _Grant] = field(default_factory=dict[str, _Grant])

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    async def silence(self, request: web.Request) -> web.StreamResponse:
        """A handler that does not answer."""
        await self.closing.wait()
        raise web.HTTPServiceUnavailable

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request.path)
        if (other := self.replaced.get(request.path)) is not None:
            return await other(request)
        match request.method, request.path:
            case "GET", "/.well-known/oauth-protected-resource/mcp":
                return web.json_response({"resource": self.mcp, "authorization_servers": [self.url]})
            case "GET", "/.well-known/oauth-authorization-server":
                return web.json_response(self._metadata())
            case "POST", "/register":
                return self._register(await request.json())
            case "GET", "/authorize":
                return self._authorize(dict(request.query))
            case "POST", "/token":
                return self._token({name: str(value) for name, value in (await request.post()).items()}, request)
            case "POST", "/revoke":
                self.revoked.append(str((await request.post())["token"]))
                return web.Response()
            case "POST", "/mcp":
                return await self._message(request)
            case _:
                return web.Response(status=404, text="<html>not here</html>", content_type="text/html")

    def _metadata(self) -> JsonObject:
        usual: JsonObject = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "revocation_endpoint": f"{self.url}/revoke",
            "code_challenge_methods_supported": ["plain", "S256"],
            "token_endpoint_auth_methods_supported": [self.secret_method or "none"],
            "authorization_response_iss_parameter_supported": True,
        }
        return {name: value for name, value in {**usual, **self.metadata}.items() if value is not None}

    def _register(self, registration: JsonObject) -> web.Response:
        client_id = f"client-{len(self.clients) + 1}"
        self.clients[client_id] = registration
        secret: JsonObject = {"client_secret": f"secret-of-{client_id}-1"} if self.secret_method else {}
        return web.json_response({**registration, "client_id": client_id, **secret}, status=201)

    def _authorize(self, query: dict[str, str]) -> web.Response:
        self.authorized.append(query)
        client = self.clients[query["client_id"]]
        uris = client["redirect_uris"]
        assert isinstance(uris, list) and query["redirect_uri"] in uris
        assert query["code_challenge_method"] == "S256" and query["response_type"] == "code"
        code = secrets.token_urlsafe(16)
        self._codes[code] = _Grant(
            query["client_id"],
            query["redirect_uri"],
            query["code_challenge"],
            query["resource"],
            query.get("scope", ""),
        )
        back = urlencode({"code": code, "state": query["state"], "iss": self.url})
        raise web.HTTPFound(f"{query['redirect_uri']}?{back}")

    def _token(self, form: dict[str, str], request: web.Request) -> web.Response:
        self.granted.append(form)
        if self.secret_method == "client_secret_basic":
            pair = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
            form["client_id"], form["client_secret"] = pair.split(":")
        if self.secret_method and form.get("client_secret") != f"secret-of-{form['client_id']}-1":
            return web.json_response({"error": "invalid_client"}, status=401)
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refresh_tokens:
                return web.json_response({"error": "invalid_grant", "error_description": "it was used"}, status=400)
            if self.rotates:
                self.refresh_tokens.discard(form["refresh_token"])
            return self._issued(self.rotates)
        grant = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        right = (form["client_id"], form["redirect_uri"], proof, form["resource"])
        if grant is None or right != (grant.client_id, grant.redirect_uri, grant.challenge, grant.resource):
            return web.json_response({"error": "invalid_grant"}, status=400)
        return self._issued(self.gives_refresh)

    def _issued(self, with_refresh: bool) -> web.Response:
        access, refresh = (f"{kind}-{secrets.token_urlsafe(24)}-1" for kind in ("access", "refresh"))
        self.tokens.add(access)
        answer: JsonObject = {"access_token": access, "token_type": "Bearer", "expires_in": self.expires_in}
        if with_refresh:
            self.refresh_tokens.add(refresh)
            answer["refresh_token"] = refresh
        return web.json_response({name: value for name, value in answer.items() if value is not None})

    async def _message(self, request: web.Request) -> web.Response:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.sent_tokens.append(token)
        if token not in self.tokens:
            where = f'resource_metadata="{self.url}{RESOURCE}"'
            headers = {"WWW-Authenticate": self.challenge or f"Bearer {where}"}
            return web.Response(status=401, headers=headers)
        message = msgspec.json.decode(await request.read(), type=JsonObject)
        if message.get("method") == "tools/call" and self.needs_scope:
            self.refused_calls += 1
            want = f'Bearer error="insufficient_scope", scope="{self.needs_scope}"'
            return web.Response(status=403, headers={"WWW-Authenticate": want})
        if message.get("id") is None:
            return web.Response(status=202)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": self._result(message["method"])})

    def _result(self, method: JsonValue) -> JsonObject:
        match method:
            case "initialize":
                about: JsonObject = {"name": "guarded", "version": "1"}
                return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
            case "tools/list":
                schema: JsonObject = {"type": "object", "properties": {}}
                return {"tools": [{"name": "echo", "description": "Say hello.", "inputSchema": schema}]}
            case _:
                self.calls += 1
                return {"content": [{"type": "text", "text": "hello"}]}


@asynccontextmanager
async def oauth_server() -> AsyncGenerator[OAuthServer]:
    server = OAuthServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        server.closing.set()
        await runner.cleanup()


def answering(content: JsonValue, status: int = 200, **headers: str) -> Handler:
    """A handler that always sends this as JSON, or as the page that a text is."""

    async def handle(request: web.Request) -> web.Response:
        if isinstance(content, str):
            return web.Response(status=status, text=content, content_type="text/html", headers=headers)
        return web.json_response(content, status=status, headers=headers)

    return handle


async def visit(address: str) -> tuple[int, str]:
    """Open an address as a browser does, and follow it to where the sign-in ends."""
    async with aiohttp.ClientSession() as session, session.get(address) as response:
        return response.status, await response.text()


async def back_address(address: str) -> str:
    """Return where the authorization server sends the browser, without going there."""
    async with aiohttp.ClientSession() as session, session.get(address, allow_redirects=False) as response:
        return response.headers["Location"]
