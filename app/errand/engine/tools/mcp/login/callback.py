"""Waits on this machine for the browser that comes back from a sign-in. Open only while one is under way."""

import asyncio
import hmac
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from errand.engine.core.errors import ConfigurationError
from errand.engine.tools.mcp.json_rpc import McpError
from errand.text.redaction import redact

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"
PATH = "/callback"
_MAX_CODE_LENGTH = 8_192
_MAX_ERROR_LENGTH = 500
# The page tells how it ended, once the code was exchanged for tokens.
_PATIENCE_S = 40.0
_LAST_S = 1.0
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Errand</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:32em;margin:15vh auto;padding:0 1em}}</style>
<h1>{title}</h1><p>{text}</p></html>
"""


class Callback:
    """The address that the browser comes back to. Answers without `state` are refused and change nothing.

    `settle` must be called with how the sign-in ended, for the page in the browser.
    """

    def __init__(self, state: str) -> None:
        self.redirect_uri = ""
        self._state = state
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._runner: web.AppRunner | None = None

    async def open(self, port: int) -> None:
        """Listen on the port, on any free one if it is 0. Raises `ConfigurationError` if it is taken."""
        from aiohttp import web  # takes 0.3 s to import, and most tasks sign in nowhere

        app = web.Application(client_max_size=1_024)
        app.router.add_get(PATH, self._on_request)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_LAST_S)  # the addresses hold codes
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, port).start()
        except OSError as error:
            await runner.cleanup()
            raise ConfigurationError(
                f"Port {port} of this machine is taken, but the browser has to come back there. End the program that "
                "uses it, or choose another callback port for this server."
            ) from error
        self._runner = runner
        self.redirect_uri = f"http://{HOST}:{runner.addresses[0][1]}{PATH}"

    async def received(self) -> Mapping[str, str]:
        """Return the parameters that the browser brought."""
        return await self._answer

    def bring(self, url: str) -> None:
        """Take the address at which a browser elsewhere ended. Raises `McpError`."""
        try:
            parts = urlsplit(url.strip())
        except ValueError as error:
            raise McpError("That is no web address.") from error
        if parts.path != PATH or not self._take(parse_qsl(parts.query)):
            raise McpError(
                "That address is not the answer to the sign-in that waits now. Copy all of it from the browser, from "
                f"{HOST} on."
            )

    def settle(self, problem: str) -> None:
        """`problem` is empty if the person is signed in."""
        if not self._outcome.done():
            self._outcome.set_result(problem)

    async def close(self) -> None:
        self.settle("The sign-in has ended.")
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _on_request(self, request: "web.Request") -> "web.Response":
        # A page elsewhere may point a name of its own to this machine.
        if request.host != urlsplit(self.redirect_uri).netloc:
            return _page(400, "Not here", "This address is not meant for you.")
        if not self._take(list(request.query.items())):
            return _page(400, "Not this sign-in", "This is not the answer to the sign-in that waits now.")
        await asyncio.wait((self._outcome,), timeout=_PATIENCE_S)
        problem = self._outcome.result() if self._outcome.done() else "It takes long. Errand shows how it ends."
        if problem:
            return _page(400, "Not signed in", problem)
        return _page(200, "You are signed in", "You can close this page and go back to Errand.")

    def _take(self, query: list[tuple[str, str]]) -> bool:
        """Return True for the first answer that has the state of this sign-in, and everything once."""
        parameters = dict(query)
        is_ours = hmac.compare_digest(parameters.get("state", "").encode("utf-8", "replace"), self._state.encode())
        if not is_ours or len(parameters) < len(query) or self._answer.done():
            return False
        self._answer.set_result(parameters)
        return True


def code_of(answer: Mapping[str, str], issuer: str, *, names_issuer: bool) -> str:
    """Return the code in an answer of `issuer`.

    Raises `McpError` if it is a refusal, or one of another server (RFC 9207).
    """
    named = answer.get("iss")
    if (named is not None and named != issuer) or (named is None and names_issuer):
        raise McpError("The answer is not one of the server that was asked, so it was not used. Sign in again.")
    if error := answer.get("error"):
        problem = ": ".join(filter(None, (error, answer.get("error_description", ""))))
        text = redact("".join(filter(str.isprintable, problem)))[:_MAX_ERROR_LENGTH]
        raise McpError("You declined it." if error == "access_denied" else f"The server refused: {text}.")
    code = answer.get("code", "")
    if not 0 < len(code) <= _MAX_CODE_LENGTH:
        raise McpError("The answer has no code that can be used. Sign in again.")
    return code


def _page(status: int, title: str, text: str) -> "web.Response":
    from aiohttp import web

    body = _PAGE.format(title=escape(title), text=escape(text))
    return web.Response(status=status, text=body, content_type="text/html", headers=_HEADERS)
