"""`errand mcp login`: opens the browser, says where to go without one, and waits until the person has signed in."""

import asyncio
import os
import sys
import webbrowser
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import msgspec

from errand.cli.exit_codes import EXIT_ERROR
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import plain
from errand.client.connection import Connection
from errand.client.errors import CallError, ConnectionLost
from errand.client.safe_text import escape_hidden_line
from errand.client.subscription import ConnectionDown, ConnectionMessage, ConnectionRestored
from errand.protocol.events import EventRecord, McpUpdate
from errand.protocol.servers import (
    MCP_CANCEL_LOGIN,
    MCP_FINISH_LOGIN,
    MCP_LIST,
    MCP_LOGIN,
    McpFinishLoginParams,
    McpListParams,
    McpLoginParams,
    McpLoginResult,
    McpServer,
    McpServerParams,
)
from errand.text.translation import tr
from errand.text.visible_text import argument_text

_CANCEL_S = 3.0


class ServerLogin:
    """One sign-in. The engine owns it; `run` follows it to its end and cancels it if the person leaves."""

    def __init__(
        self, connection: Connection, terminal: Terminal, named: McpServerParams, issuer: str, *, as_json: bool
    ) -> None:
        self._connection = connection
        self._terminal = terminal
        self._named = named
        self._issuer = issuer
        self._as_json = as_json
        self._changed = asyncio.Event()

    async def run(self) -> int:
        unsubscribe = self._connection.subscribe(self._on_message)
        await self._connection.subscribe_scope()
        try:
            login = await self._begin()
            self._show_address(login.server.name, login.address)
            server = await self._ended(login.server.id)
        except asyncio.CancelledError:
            with suppress(CallError, ConnectionLost, TimeoutError):
                async with asyncio.timeout(_CANCEL_S):
                    await self._connection.call(MCP_CANCEL_LOGIN, self._named)
            raise
        finally:
            unsubscribe()
        if self._as_json:
            self._terminal.line(msgspec.json.encode(server).decode())
        elif server.has_login and not server.login_problem:
            self._terminal.line(tr("You are signed in to {name}.").format(name=plain(server.name)))
        else:
            problem = server.login_problem or tr("The engine ended meanwhile. Try again.")
            self._terminal.note(
                tr("errand: you are not signed in to {name}. {problem}").format(
                    name=plain(server.name), problem=plain(problem)
                )
            )
        return 0 if server.has_login and not server.login_problem else EXIT_ERROR

    async def _begin(self) -> McpLoginResult:
        """Begin it; ask the person before a client secret goes to another authorization server than it was for."""
        params = McpLoginParams(name=self._named.name, workspace=self._named.workspace, issuer=self._issuer)
        try:
            return await self._connection.call(MCP_LOGIN, params)
        except CallError as error:
            issuer = await self._new_issuer()
            if not issuer or not self._is_allowed(issuer, str(error)):
                raise
        return await self._connection.call(MCP_LOGIN, msgspec.structs.replace(params, issuer=issuer))

    async def _new_issuer(self) -> str:
        servers = (await self._connection.call(MCP_LIST, McpListParams(workspace=self._named.workspace))).servers
        server = next((server for server in servers if self._named.name in (server.name, server.id)), None)
        return server.new_issuer if server is not None else ""

    def _is_allowed(self, issuer: str, problem: str) -> bool:
        self._terminal.note(f"errand: {escape_hidden_line(problem)}")
        if not sys.stdin.isatty():
            self._terminal.note(tr("To allow it, add --issuer {issuer}").format(issuer=argument_text(issuer)))
            return False
        sys.stderr.write(tr("Send the client secret to {issuer}? [y/N] ").format(issuer=escape_hidden_line(issuer)))
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    async def answer(self, address: str) -> None:
        """Give the engine the address at which a browser on another machine ended."""
        params = McpFinishLoginParams(name=self._named.name, workspace=self._named.workspace, address=address)
        await self._connection.call(MCP_FINISH_LOGIN, params)

    def _on_message(self, message: ConnectionMessage) -> None:
        match message:
            case EventRecord(event=McpUpdate()) | ConnectionRestored() | ConnectionDown(gave_up=True):
                self._changed.set()
            case _:
                pass

    async def _ended(self, server_id: str) -> McpServer:
        while True:
            self._changed.clear()
            params = McpListParams(workspace=self._named.workspace)
            servers = (await self._connection.call(MCP_LIST, params)).servers
            server = next((candidate for candidate in servers if candidate.id == server_id), None)
            if server is None or not server.login_address:
                return server or McpServer(
                    id=server_id,
                    name=self._named.name,
                    started="",
                    fingerprint="",
                    state="idle",
                    login_problem=tr("The server was removed."),
                )
            await self._changed.wait()

    def _show_address(self, name: str, address: str) -> None:
        if self._as_json:
            self._terminal.line(msgspec.json.encode({"address": address}).decode())
            return
        if has_browser() and webbrowser.open(address):
            self._terminal.line(
                tr("Your browser opens to sign in to {name}. If it does not, open this address:").format(
                    name=plain(name)
                )
            )
            self._terminal.line(f"  {plain(address)}")
        else:
            self._terminal.line(tr("To sign in to {name}, open this address in a browser:").format(name=plain(name)))
            self._terminal.line(f"  {plain(address)}")
            for line in _elsewhere(name, address):
                self._terminal.line(line)
        self._terminal.line(tr("Waiting for you to sign in, for up to 5 minutes. Ctrl+C cancels."))


def has_browser() -> bool:
    """False where a browser would open in the terminal, or on the screen of another machine than the person's."""
    if os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


def _elsewhere(name: str, address: str) -> list[str]:
    back = parse_qs(urlsplit(address).query).get("redirect_uri", [""])[0]
    port = urlsplit(back).port
    return [
        tr(
            "The browser returns to port {port} of this machine. If it runs on another machine, forward the port first:"
        ).format(port=port),
        f"  ssh -L {port}:127.0.0.1:{port} HOST",
        tr("or copy the address of the page that fails to load at the end, and pass it in another terminal:"),
        f"  errand mcp login {plain(name)} --answer '{back}?…'",
    ]
