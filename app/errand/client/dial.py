"""One connection attempt: the socket, the proof that the server is the engine, and the first call."""

from typing import TYPE_CHECKING, TypeVar

import msgspec

from errand.client.errors import CallError, SocketFailed
from errand.protocol.base import Method, Wire
from errand.protocol.engine import (
    CHALLENGE,
    INITIALIZE,
    PROTOCOL_VERSION,
    ChallengeParams,
    Endpoint,
    InitializeParams,
    InitializeResult,
)
from errand.protocol.methods import FailureObject, Request, Response
from errand.system.local_trust import is_valid_proof, new_nonce, proof

if TYPE_CHECKING:
    from errand.client.socket import Socket

# Raised if no engine is at the address, or not the one of the endpoint file.
DIAL_ERRORS = (OSError, TimeoutError, SocketFailed)

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)

_GREET_S = 10.0


async def dial(endpoint: Endpoint, params: InitializeParams) -> "tuple[Socket, InitializeResult]":
    """Open a socket and complete the handshake. Raises DIAL_ERRORS, or `CallError` if the engine refuses the client."""
    if endpoint.protocol_version != PROTOCOL_VERSION:
        raise CallError(
            "invalid_params",
            f"The engine that runs speaks another version of the protocol. End it (process {endpoint.pid}) and try "
            "again: what it has under way is interrupted and can be resumed.",
        )
    import asyncio

    from errand.client.socket import open_socket  # both take 40 ms to import; the window paints before it dials

    socket = await open_socket(endpoint.url)
    try:
        async with asyncio.timeout(_GREET_S):
            return socket, await _greet(socket, endpoint, params)
    except BaseException:
        await socket.close()
        raise


async def _greet(socket: "Socket", endpoint: Endpoint, params: InitializeParams) -> InitializeResult:
    """Send only a random number until the server proves that it knows the token of the endpoint file."""
    nonce = new_nonce()
    try:
        engine = await _ask(socket, CHALLENGE, ChallengeParams(nonce=nonce))
    except CallError as error:  # the text of an untrusted server is not shown
        raise SocketFailed(f"What answers on port {endpoint.port} takes no part in the handshake.") from error
    if not is_valid_proof(engine.proof, endpoint.token, "answers", nonce, engine.nonce):
        raise SocketFailed(f"What answers on port {endpoint.port} is not the engine that wrote the endpoint file.")
    socket.lift_size_limit()
    own = proof(endpoint.token, "asks", nonce, engine.nonce)
    return await _ask(socket, INITIALIZE, msgspec.structs.replace(params, proof=own))


async def _ask(socket: "Socket", method: Method[P, R], params: P) -> R:
    request = Request(method=method.name, id=method.name, params=msgspec.Raw(msgspec.json.encode(params)))
    await socket.send(msgspec.json.encode(request))
    try:
        response = msgspec.json.decode(await socket.receive(), type=Response)
        if isinstance(response.result, msgspec.UnsetType):
            raise call_error(response.error)
        return msgspec.json.decode(response.result, type=method.result)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SocketFailed(f"What answers to {method.name} is not an engine: {error}.") from error


def call_error(failure: FailureObject | msgspec.UnsetType) -> CallError:
    if isinstance(failure, msgspec.UnsetType):
        return CallError("bad_answer", "The engine's answer held neither a result nor an error.")
    word = (failure.data or {}).get("code")
    return CallError(word if isinstance(word, str) else str(failure.code), failure.message)
