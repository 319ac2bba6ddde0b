"""A loopback socket to the engine: whole messages, one error type. The only module that imports websockets."""

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from errand.client.errors import SocketFailed

_OPEN_S = 5.0
_CLOSE_S = 1.0
_MAX_UNTRUSTED_BYTES = 65_536


class Socket:
    """Made by `open_socket`. `send` and `receive` raise `SocketFailed` after the connection is lost."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, frame: bytes) -> None:
        try:
            await self._socket.send(frame, text=True)
        except WebSocketException as error:
            raise SocketFailed(_close_reason(error)) from error

    async def receive(self) -> bytes:
        try:
            return await self._socket.recv(decode=False)
        except WebSocketException as error:
            raise SocketFailed(_close_reason(error)) from error

    def lift_size_limit(self) -> None:
        """The server is the engine: accept messages of any length, such as a page of pictures."""
        self._socket.protocol.max_message_size = None

    async def close(self) -> None:
        await self._socket.close()


async def open_socket(url: str) -> Socket:
    """Raises OSError, TimeoutError or `SocketFailed` if no engine answers."""
    try:
        socket = await connect(
            url,
            compression=None,
            proxy=None,  # the loopback needs none, whatever the environment says
            max_size=_MAX_UNTRUSTED_BYTES,  # until the server is authenticated
            ping_interval=None,  # the engine pings; a loopback socket ends with its process
            open_timeout=_OPEN_S,
            close_timeout=_CLOSE_S,
        )
    except WebSocketException as error:
        raise SocketFailed(str(error)) from error
    return Socket(socket)


def _close_reason(error: WebSocketException) -> str:
    """Return the engine's reason for closing. A killed engine sends none, and the library's text is for experts."""
    if not isinstance(error, ConnectionClosed):
        return str(error)
    return (error.rcvd.reason if error.rcvd is not None else "") or "The connection was lost."
