"""The first program of a command that has the network: gives the engine a socket to serve, then becomes the command.

The command has a network of its own without any way out. The socket listens there, and the engine accepts its
connections. It runs without the rest of the app and imports none of it. Arguments: the descriptor of the connection to
the engine, and the command.
"""

import array
import os
import socket
import sys

# Free, because the network is new.
PORT = 3128


def main(arguments: list[str]) -> int:
    with socket.socket(fileno=int(arguments[0])) as engine, socket.create_server(("127.0.0.1", PORT)) as listener:
        engine.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))])
    try:
        os.execvp(arguments[1], arguments[1:])
    except OSError as error:
        sys.stderr.write(f"{arguments[1]}: {error.strerror}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
