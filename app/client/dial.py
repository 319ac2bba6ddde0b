"""One attempt to reach an engine: the socket with its token, and the first call."""

from typing import TYPE_CHECKING

import msgspec

from app.client.errors import CallError, SocketFailed
from app.protocol.endpoint import Endpoint
from app.protocol.engine import InitializeParams, InitializeResult
from app.protocol.wire import INITIALIZE, Failure, Request, Response

if TYPE_CHECKING:
    from app.client.socket import Socket

# What an attempt raises when there is no engine at the address, or not the one of the endpoint file.
DIAL_ERRORS = (OSError, TimeoutError, SocketFailed)


async def dial(endpoint: Endpoint, params: InitializeParams) -> "tuple[Socket, InitializeResult]":
    """An open socket that has said who it is. Raises DIAL_ERRORS, or `CallError` when the engine refuses the client."""
    from app.client.socket import open_socket  # 40 ms to import: the window paints before it dials

    socket = await open_socket(endpoint.url, endpoint.token)
    try:
        return socket, await _greet(socket, params)
    except BaseException:
        await socket.close()
        raise


async def _greet(socket: "Socket", params: InitializeParams) -> InitializeResult:
    request = Request(method=INITIALIZE.name, id="initialize", params=msgspec.Raw(msgspec.json.encode(params)))
    await socket.send(msgspec.json.encode(request))
    response = msgspec.json.decode(await socket.receive(), type=Response)
    if isinstance(response.result, msgspec.UnsetType):
        raise call_error(response.error)
    return msgspec.json.decode(response.result, type=InitializeResult)


def call_error(failure: Failure | msgspec.UnsetType) -> CallError:
    if isinstance(failure, msgspec.UnsetType):
        return CallError("bad_answer", "The engine's answer held neither a result nor an error.")
    word = (failure.data or {}).get("code")
    return CallError(word if isinstance(word, str) else str(failure.code), failure.message)
