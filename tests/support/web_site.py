"""A web site on this machine, and address rules for tools that open it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from aiohttp import web

from errand.engine.permissions.addresses import DEFAULT_ALLOWED, AddressRules, host_of, judge_address
from errand.engine.permissions.network import leads_astray
from errand.engine.server.websocket_server import bind_loopback
from errand.engine.tools.context import ToolContext

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class WebSite:
    """`requests` are the paths that were asked for, in order."""

    port: int
    requests: list[str] = field(default_factory=list[str])

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@asynccontextmanager
async def web_site(pages: Mapping[str, str | Handler]) -> AsyncGenerator[WebSite]:
    """Serves HTML texts, and what handlers answer, until the block ends."""
    site = WebSite(0)

    async def answer(request: web.Request) -> web.StreamResponse:
        site.requests.append(request.path)
        page = pages.get(request.path)
        if page is None:
            return web.Response(status=404, text="<h1>nothing here</h1>", content_type="text/html")
        return web.Response(text=page, content_type="text/html") if isinstance(page, str) else await page(request)

    server = web.Application()
    server.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(server, shutdown_timeout=0.1, handler_cancellation=True, access_log=None)
    await runner.setup()
    listener = bind_loopback(0)
    site.port = listener.getsockname()[1]
    await web.SockSite(runner, listener).start()
    try:
        yield site
    finally:
        await runner.cleanup()


@dataclass(slots=True)
class Rules:
    """An `AddressGuard` by fixed lists. `connections` are the hosts that were judged, with their addresses."""

    allowed: Sequence[str] = DEFAULT_ALLOWED
    denied: Sequence[str] = ()
    own_port: int | None = None
    connections: list[tuple[str, int, tuple[str, ...]]] = field(default_factory=list[tuple[str, int, tuple[str, ...]]])

    def refusal(self, tool: str, url: str, approved: Sequence[str] = ()) -> str | None:
        rules = AddressRules(tuple(self.allowed), tuple(self.denied), own_port=self.own_port)
        judgement = judge_address(url, rules)
        if judgement.verdict == "ask" and approved:
            judgement = judge_address(url, replace(rules, allowed=tuple(map(host_of, approved))))
        return None if judgement.verdict == "allow" else judgement.reason

    def connection_refusal(
        self, tool: str, host: str, port: int, resolved: Sequence[str], approved: Sequence[str] = ()
    ) -> str | None:
        self.connections.append((host, port, tuple(resolved)))
        literal = f"[{host}]" if ":" in host else host
        refused = self.refusal(tool, f"http://{literal}:{port}/", approved)
        return refused or leads_astray(host, port, resolved, (), self.own_port)


def with_rules(context: ToolContext, rules: Rules) -> ToolContext:
    return replace(context, addresses=rules)
