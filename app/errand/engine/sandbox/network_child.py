"""The first program of a command that has the network: gives the engine a socket to serve, then becomes the command.

The command has no way out of its network. The socket listens there, and the engine accepts its connections, if they
know the password in the variables of the proxy. It runs without the rest of the app and imports none of it.
Arguments: the descriptor of the connection to the engine, and the command; or a number, for that many new sockets.
"""

import array
import os
import socket
import sys
from collections.abc import Sequence

# Ends the variables that lack the port of the proxy.
NO_PORT = "@127.0.0.1:0"


def main(arguments: list[str]) -> int:
    with socket.socket(fileno=int(arguments[0])) as engine:
        if len(arguments) == 2 and arguments[1].isdecimal():
            _send(engine, [socket.socket() for _ in range(int(arguments[1]))])
            return 0
        with socket.create_server(("127.0.0.1", 0)) as listener:
            _send(engine, [listener])
            port = listener.getsockname()[1]
    for name, value in list(os.environ.items()):
        if value.endswith(NO_PORT):
            os.environ[name] = f"{value[:-1]}{port}"
    try:
        os.execvp(arguments[1], arguments[1:])
    except OSError as error:
        sys.stderr.write(f"{arguments[1]}: {error.strerror}\n")
        return 127


def _send(engine: socket.socket, sockets: Sequence[socket.socket]) -> None:
    numbers = array.array("i", [open_socket.fileno() for open_socket in sockets])
    engine.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
