"""Wire cases (`ws`) against a real server of the engine, as far as our protocol has what they model.

Their methods and tokens are a model: `_METHODS` maps the methods, a revoked or expired token is one that the engine
does not know. It has no HTTP interface, no access from the network, no rights per token and no revocation of a token
under way: those cases are not run.
"""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec
from websockets.exceptions import ConnectionClosed

from app.engine.permissions.verdict import Verdict
from app.local_trust import proof
from app.protocol.base import JsonObject, JsonValue
from tests.support.connections import RawClient, raw_client
from tests.support.engine_server import TOKEN, engine_server

_PATIENCE_S = 10.0
_MODEL_PORT = "8765"
_METHODS = {"ping": "unsubscribe", "session.list": "conversation/list", "session.send": "task/start"}
_ANSWER = "permission.reply"
_UPGRADE = (
    "GET /rpc HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
_FRAMES = frozenset(("send_json", "send_text", "send_hex", "send_repeat", "send_nested"))
_Step: TypeAlias = Mapping[str, JsonValue]


class WireInput(msgspec.Struct, frozen=True):
    transport: str
    peer: str = "127.0.0.1"
    headers: tuple[tuple[str, str], ...] = ()
    token: JsonValue = None
    steps: tuple[JsonObject, ...] = ()


class _Server(msgspec.Struct, frozen=True):
    lan_enabled: bool = False


class _Context(msgspec.Struct, frozen=True):
    server: _Server = _Server()


class WireCase(msgspec.Struct, frozen=True):
    id: str
    input: WireInput
    context: _Context = _Context()


def not_run(case: WireCase) -> str | None:
    """Why a case has no counterpart here; None if it has."""
    if case.input.transport != "ws":
        return "the engine has no HTTP interface"
    if case.context.server.lan_enabled or not case.input.peer.startswith("127."):
        return "the engine cannot be reached from the network"
    if any(_FRAMES.isdisjoint(step) or _as(step) for step in case.input.steps):
        return "the engine has no such step"
    asks = [step for step in case.input.steps if _json(step).get("method") == _ANSWER]
    if len(asks) != len(case.input.steps) and asks:
        return "the engine has no such step"
    if any(_params(step).get("id") != "perm-999" for step in asks):
        return "an open ask would have to be made first"
    return None


async def decide(case: WireCase, folder: Path) -> Verdict:
    """Allow if the last step is served, deny if the connection or the step is refused."""
    async with engine_server(folder) as engine:
        if not await _may_connect(case, engine.server.port):
            return "deny"
        try:
            async with asyncio.timeout(_PATIENCE_S), raw_client(engine, client_id="") as client:
                return "allow" if await _is_served(case, client) else "deny"
        except ConnectionClosed:
            return "deny"


async def _may_connect(case: WireCase, port: int) -> bool:
    """True if the server accepts the handshake with these headers."""
    headers = "".join(f"{name}: {value.replace(_MODEL_PORT, str(port))}\r\n" for name, value in case.input.headers)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{_UPGRADE}{headers}\r\n".encode())
    status = await asyncio.wait_for(reader.readline(), _PATIENCE_S)
    writer.close()
    return b" 101 " in status


async def _is_served(case: WireCase, client: RawClient) -> bool:
    token = case.input.token
    given: JsonValue = token
    if isinstance(token, str):
        await client.prove()  # asks for the challenge; the proof of the case's token is made of a new one
        given = await _proof(client, token.replace("TOKEN_DESKTOP", TOKEN))
    if token is not None:
        await client.ask("initialize", "i", clientId="wire", clientName="wire", proof=given)
    answer: JsonObject = {}
    for step in case.input.steps:
        for frame in _frames(step):
            await client.socket.send(frame, text=True)
        answer = await client.read()
    return "result" in answer


async def _proof(client: RawClient, token: str) -> str:
    nonce = "another-nonce-of-the-test"
    challenge = (await client.ask("challenge", "c", nonce=nonce))["result"]
    assert isinstance(challenge, dict)
    return proof(token, "asks", nonce, str(challenge["nonce"]))


def _frames(step: _Step) -> Iterator[str | bytes]:
    if "send_json" in step:
        yield msgspec.json.encode(_request(_json(step)))
    elif "send_hex" in step:
        yield bytes.fromhex(str(step["send_hex"]))
    elif "send_text" in step:
        yield _real(str(step["send_text"]))
    else:
        made = step.get("send_repeat") or step.get("send_nested")
        assert isinstance(made, dict)
        count = made["count"]
        assert isinstance(count, int)
        if "unit" in made:
            yield _real(f"{made['prefix']}{str(made['unit']) * count}{made['suffix']}")
        else:
            yield f"{str(made['open']) * count}{made.get('leaf', '')}{str(made['close']) * count}"


def _real(text: str) -> str:
    """A text of the model with the names of our protocol, so that nothing but what the case is about is wrong."""
    for name, ours in _METHODS.items():
        text = text.replace(f'"method":"{name}"', f'"jsonrpc":"2.0","method":"{ours}"')
    return text


def _request(message: JsonObject) -> JsonObject:
    method, params = message.get("method"), message.get("params")
    ours: JsonObject = {"jsonrpc": "2.0", **message}
    if isinstance(method, str):
        ours["method"] = "ask/answer" if method == _ANSWER else _METHODS.get(method, method)
    given = params if isinstance(params, dict) else {}
    match method:
        case "ping":
            ours["params"] = {"scope": "all"}
        case "session.send":
            kept = {name: value for name, value in given.items() if name not in ("session", "text")}
            ours["params"] = {"prompt": given.get("text"), **kept}
        case "permission.reply":
            ours["params"] = {"askId": given.get("id"), "allow": True}
        case _:
            ours["params"] = given
    return ours


def _json(step: _Step) -> JsonObject:
    found = step.get("send_json")
    return found if isinstance(found, dict) else {}


def _params(step: _Step) -> JsonObject:
    found = _json(step).get("params")
    return found if isinstance(found, dict) else {}


def _as(step: _Step) -> bool:
    made = step.get("send_nested")
    return isinstance(made, dict) and "as" in made
