"""The way out of a sandbox: the commands inside get a socket to the proxy of the engine, with a password."""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from errand.engine.sandbox import network_child
from errand.engine.sandbox.http_proxy import HttpProxy, Judge, ProxyLogin
from errand.engine.sandbox.inside_program import inside_program

_MAX_CONNECTIONS = 64
_OWN_HOSTS = "localhost,127.0.0.1,::1"
# Both spellings are in use; curl reads http_proxy in lower case alone.
_VARIABLES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
_UNPROXIED = ("no_proxy", "NO_PROXY")


@dataclass(frozen=True, slots=True)
class ProxyAccess:
    """The proxy of one command: the connection from which its socket comes, and the password that it asks for.

    Commands without the network may share the localhost on which the socket listens.
    """

    connection: socket.socket
    login: ProxyLogin = field(default_factory=ProxyLogin)

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables for the environment of the command; the network program adds the port."""
        url = f"http://{self.login.user_info}{network_child.NO_PORT}"
        return {**dict.fromkeys(_VARIABLES, url), **dict.fromkeys(_UNPROXIED, _OWN_HOSTS)}


@dataclass(slots=True)
class NetworkProxy:
    """Serves the sandboxes of one task until `close`."""

    judge: Judge
    _http: HttpProxy = field(init=False)
    # Where sockets to serve will arrive.
    _expected: set[socket.socket] = field(default_factory=set[socket.socket])
    # The sockets of the last command.
    _latest: set[socket.socket] = field(default_factory=set[socket.socket])

    def __post_init__(self) -> None:
        self._http = HttpProxy(self.judge, _MAX_CONNECTIONS)

    def expect(self, access: ProxyAccess) -> None:
        """Wait for the socket to serve, which arrives on its connection, or for the end of that."""
        connection = access.connection
        connection.setblocking(False)
        self._expected.add(connection)
        self._latest = {connection}
        asyncio.get_running_loop().add_reader(connection, self._on_handover, access)

    def close_latest(self) -> None:
        """Close the sockets of the last command, which has left no process: they would keep its network alive."""
        for connection in self._latest:
            self._drop(connection)
            self._http.drop(connection)

    async def close(self) -> None:
        for connection in tuple(self._expected):
            self._drop(connection)
        await self._http.close()

    def _drop(self, connection: socket.socket) -> None:
        if connection in self._expected:
            self._expected.discard(connection)
            asyncio.get_running_loop().remove_reader(connection)
            connection.close()

    def _on_handover(self, access: ProxyAccess) -> None:
        connection = access.connection
        descriptors: list[int] = []
        with suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        self._drop(connection)
        for descriptor in descriptors:
            listener = socket.socket(fileno=descriptor)
            if connection in self._latest:
                self._latest.add(listener)
            self._http.listen(listener, access.login)


def network_program() -> tuple[str, ...]:
    """Return the beginning of a command that has the network; see network_child.py for its arguments."""
    return inside_program("sandbox-network", network_child.__file__)
