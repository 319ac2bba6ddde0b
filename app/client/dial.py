"""One attempt to reach an engine: the socket with its token, and the first call."""

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from app.client.errors import CallError
from app.protocol.endpoint import Endpoint
from app.protocol.engine import InitializeParams, InitializeResult
from app.protocol.wire import INITIALIZE, Failure, Request, Response

# What an attempt raises when there is no engine at the address, or not the one of the endpoint file.
DIAL_ERRORS = (OSError, TimeoutError, WebSocketException)

_OPEN_S = 5.0
_CLOSE_S = 1.0


async def dial(endpoint: Endpoint, params: InitializeParams) -> tuple[ClientConnection, InitializeResult]:
    """An open socket that has said who it is. Raises DIAL_ERRORS, or `CallError` when the engine refuses the client."""
    socket = await connect(
        endpoint.url,
        additional_headers={"Authorization": f"Bearer {endpoint.token}"},
        compression=None,
        proxy=None,  # the loopback needs none, whatever the environment says
        max_size=None,  # a page of pictures may be long; the engine is ours
        ping_interval=None,  # the engine pings; a loopback socket ends when its process does
        open_timeout=_OPEN_S,
        close_timeout=_CLOSE_S,
    )
    try:
        return socket, await _greet(socket, params)
    except BaseException:
        await socket.close()
        raise


async def _greet(socket: ClientConnection, params: InitializeParams) -> InitializeResult:
    request = Request(method=INITIALIZE.name, id="initialize", params=msgspec.Raw(msgspec.json.encode(params)))
    await socket.send(msgspec.json.encode(request), text=True)
    response = msgspec.json.decode(await socket.recv(decode=False), type=Response)
    if isinstance(response.result, msgspec.UnsetType):
        raise call_error(response.error)
    return msgspec.json.decode(response.result, type=InitializeResult)


def call_error(failure: Failure | msgspec.UnsetType) -> CallError:
    if isinstance(failure, msgspec.UnsetType):
        return CallError("bad_answer", "The engine's answer held neither a result nor an error.")
    word = (failure.data or {}).get("code")
    return CallError(word if isinstance(word, str) else str(failure.code), failure.message)
