"""Wire cases (`ws`) against a real engine with its socket, as far as our protocol has what they model.

Their methods and tokens are a model: `_METHODS` maps the methods, a revoked or expired token is one that the engine
does not know, revoking a token is replacing it, `command_sha256` is the `basis` of the approval. A refusal must have
no effect: the command that waits for an answer has not run. Not run are the cases that expect service over HTTP, from
the network, by pairing, in batches or by a token with rights of its own: the engine has none of these. Where such a
request is to be refused it is sent.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeAlias

import msgspec
from websockets.exceptions import ConnectionClosed, InvalidStatus

from errand.engine.permissions.verdict import Verdict
from errand.protocol.base import JsonObject, JsonValue
from errand.system.local_trust import proof
from tests.conformance.wire_engine import WireEngine, wire_engine
from tests.support.connections import RawClient
from tests.support.engine_server import TOKEN
from tests.support.limits import WAIT_LIMIT_S

_MAX_WAIT_S = 6.0
_MODEL_PORT = "8765"
_METHODS = {
    "ping": "unsubscribe",
    "session.list": "conversation/list",
    "session.send": "task/start",
    "permission.reply": "ask/answer",
    "settings.set": "settings/set",
}
_UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
_ALLOWING = ("allow", "allow_once", "allow_always", "allow_session", "once", "always")
_FRAMES = frozenset(
    f"send_{form}" for form in ("json", "text", "hex", "repeat", "nested", "fragments", "batch", "deflate_bomb")
)
_CLIENT = frozenset(("reconnect", "fail_auth", "replay_recorded"))
_EXPIRY = ("timeout", "expire")
_SERVER = ("revoke", "rotate", "answer", "mutate", "issue", *_EXPIRY)
_COMPRESSED_TEXT_HEAD = bytes((0xC1, 0xFE))
_Step: TypeAlias = Mapping[str, JsonValue]


class WireInput(msgspec.Struct, frozen=True):
    transport: str
    path: str = "/ws"
    peer: str = "127.0.0.1"
    headers: tuple[tuple[str, str], ...] = ()
    token: JsonValue = None
    steps: tuple[JsonObject, ...] = ()
    http_method: str = "GET"
    body: JsonValue = None


class _Pending(msgspec.Struct, frozen=True):
    id: str = "perm-7"
    command_sha256: str = "H_ORIGINAL"


class _Context(msgspec.Struct, frozen=True):
    pending_permission: _Pending = _Pending()


class WireCase(msgspec.Struct, frozen=True):
    id: str
    expected: Verdict
    input: WireInput
    context: _Context = _Context()


def not_run(case: WireCase) -> str | None:
    """Why a case has no counterpart here; None if it has."""
    served, steps = case.expected == "allow", case.input.steps
    if case.input.transport != "ws":
        return "the engine serves nothing over HTTP" if served else None
    if served and any("pair" in str(step) for step in steps):
        return "the engine has no pairing"
    if _is_from_network(case):
        return "the engine serves nobody from the network" if served else None
    if served and case.input.token == "TOKEN_PHONE":
        return "no token has rights of its own"
    if served and any("send_batch" in step for step in steps):
        return "the engine takes one request in a message"
    if any(not _is_known(step) for step in steps):
        return f"it has a step that is not known, or waits longer than {_MAX_WAIT_S:.0f} s"
    return None


async def decide(case: WireCase, folder: Path) -> Verdict:
    """Allow if the last step is served, deny if the connection or the step is refused, without effect."""
    async with wire_engine(folder) as engine:
        if case.context.pending_permission.id in msgspec.json.encode(case.input).decode():
            await engine.raise_ask(expires=any(_expires(step) for step in case.input.steps))
        served = await _is_served(case, engine)
        if served:
            return "allow"
        allowed = sum("answer" in str(step.get("server")) or "other_client" in step for step in case.input.steps)
        answers = sum(_json(step).get("method") == "permission.reply" for step in case.input.steps)
        assert engine.effects() <= max(allowed, answers - 1), "refused, but not without effect"
        return "deny"


async def _is_served(case: WireCase, engine: WireEngine) -> bool:
    if _is_from_network(case):
        return await engine.is_reached_from_elsewhere()
    if case.input.transport != "ws":
        return (await _status(case, engine)).startswith("2")
    if await _status(case, engine) != "101":
        return False
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(WAIT_LIMIT_S):
                player = _Player(case, engine, stack)
                await player.connect()
                return await player.play()
        except (ConnectionClosed, InvalidStatus, ConnectionError, TimeoutError):
            return False


async def _status(case: WireCase, engine: WireEngine) -> str:
    """The status of the answer to the case's HTTP request, which for `ws` is the one that opens the connection."""
    wire_input, port = case.input, engine.server.port
    headers = "".join(f"{name}: {value.replace(_MODEL_PORT, str(port))}\r\n" for name, value in wire_input.headers)
    if wire_input.transport == "ws":
        head, body = f"GET {wire_input.path.replace('/ws', '/rpc', 1)} HTTP/1.1\r\n{_UPGRADE}", b""
    else:
        body = wire_input.body.encode() if isinstance(wire_input.body, str) else msgspec.json.encode(wire_input.body)
        head = f"{wire_input.http_method} {wire_input.path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n"
        if isinstance(wire_input.token, str):
            headers += f"Authorization: Bearer {wire_input.token.replace('TOKEN_DESKTOP', TOKEN)}\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{head}{headers}\r\n".encode() + body)
    line = await asyncio.wait_for(reader.readline(), WAIT_LIMIT_S)
    writer.close()
    return line.decode("latin-1").split(" ")[1] if b" " in line else ""


class _Player:
    """Plays the steps of a case on one connection, or on another one after a reconnect."""

    def __init__(self, case: WireCase, engine: WireEngine, stack: AsyncExitStack) -> None:
        self._case = case
        self._engine = engine
        self._stack = stack
        self._sent = set[str]()
        self._recorded = list[str | bytes]()

    async def connect(self) -> None:
        self._client = await self._stack.enter_async_context(self._engine.client())
        token, token_proof = self._case.input.token, self._case.input.token
        if any("fail_auth" in step.values() for step in self._case.input.steps):
            return  # it authenticates after its failures
        if isinstance(token, str):
            token_proof = await _proof(self._client, token.replace("TOKEN_DESKTOP", TOKEN))
        if token is not None:
            await self._introduce(token_proof)

    async def play(self) -> bool:
        """Play all steps and tell whether the last one was served."""
        served = True
        for step in self._case.input.steps:
            served = await self._play(step)
        return served

    async def _play(self, step: _Step) -> bool:
        if "server" in step:
            await self._act_as_server(str(step["server"]))
        elif step.get("other_client") == "pair":
            pass  # as above
        elif "other_client" in step:
            await self._engine.answer(allow=str(step.get("decision", "allow")) in _ALLOWING)
        elif "client" in step:
            await self._act_as_client(step)
        elif isinstance(wait := step.get("wait_s"), int | float):
            await asyncio.sleep(wait)
        else:
            return await self._send(step)
        return True

    async def _send(self, step: _Step) -> bool:
        pieces = step.get("fragments")
        for frame in self._frames(step):
            if isinstance(pieces, int) and isinstance(frame, str | bytes):
                frame = _cut(frame if isinstance(frame, str) else frame.decode(), pieces)
            self._recorded.append(frame if isinstance(frame, str | bytes) else "")
            await self._client.socket.send(frame, text=step.get("opcode") != "binary")
        if "send_deflate_bomb" in step:
            self._client.socket.transport.write(_compressed_frame())
        answer = await self._client.read()
        if _json(step).get("method") != "permission.reply":
            return "result" in answer
        return await self._has_taken_effect(answer)

    async def _has_taken_effect(self, answer: JsonObject) -> bool:
        result = answer.get("result")
        if not isinstance(result, dict) or not result["won"]:
            return False
        await self._engine.settled()
        ask = result["ask"]
        assert isinstance(ask, dict)
        return not ask["allowed"] or self._engine.effects() == 1

    async def _act_as_server(self, verb: str) -> None:
        if verb.startswith(("revoke", "rotate")):
            self._engine.token.rotate()
        elif verb.startswith(_EXPIRY):
            await self._engine.time_out()
        elif verb.startswith("answer"):
            await self._engine.answer(allow=True)
        elif verb.startswith("issue"):
            pass  # the engine knows no codes: whoever comes with one is to be refused
        else:
            self._engine.change_what_is_asked()

    async def _act_as_client(self, step: _Step) -> None:
        match step["client"]:
            case "reconnect":
                await self.connect()
            case "replay_recorded":
                self._client = await self._stack.enter_async_context(self._engine.client())
                for frame in self._recorded:
                    await self._client.socket.send(frame, text=True)
                    await self._client.read()
            case _:
                times = next((value for value in step.values() if isinstance(value, int)), 1)
                for _ in range(times):
                    await self._introduce(await _proof(self._client, "TOKEN_WRONG"))
                await self._introduce(await _proof(self._client, TOKEN))

    async def _introduce(self, token_proof: JsonValue) -> None:
        params: JsonObject = {"clientId": "wire", "clientName": "wire", "proof": token_proof}
        frame = msgspec.json.encode({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params})
        self._recorded.append(frame)
        await self._client.socket.send(frame, text=True)
        await self._client.read()

    def _frames(self, step: _Step) -> Iterator[str | bytes | Sequence[str]]:
        if "send_json" in step:
            yield msgspec.json.encode(self._request(_json(step)))
        elif "send_batch" in step:
            batch = step["send_batch"]
            request: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "conversation/list", "params": {}}
            yield msgspec.json.encode([request] * (len(batch) if isinstance(batch, list) else _number(batch)))
        elif "send_hex" in step:
            yield bytes.fromhex(str(step["send_hex"]))
        elif "send_text" in step:
            yield _real(str(step["send_text"]))
        elif "send_fragments" in step:
            yield self._fragments(step["send_fragments"])
        elif "send_deflate_bomb" not in step:
            yield from _made(step)

    def _fragments(self, spec: JsonValue) -> Sequence[str]:
        """One message in fragments: a list of them, a text or request with their number or size, or a repeated unit."""
        if isinstance(spec, list):
            parts = [part if isinstance(part, str) else msgspec.json.encode(part).decode() for part in spec]
            return _cut(_real("".join(parts)), len(parts)) if parts else [""]
        if not isinstance(spec, dict):
            return _cut(_real(spec), len(spec)) if isinstance(spec, str) else ["a"] * _number(spec)
        listed = next((value for value in spec.values() if isinstance(value, list)), None)
        if listed is not None:
            return self._fragments(listed)
        if "unit" in spec:
            unit, count = str(spec["unit"]), _number(spec)
            return [str(spec.get("prefix", "")), *[unit] * count, str(spec.get("suffix", ""))]
        content = next((value for value in spec.values() if isinstance(value, str | dict)), None)
        if content is None:
            return ["a"] * _number(spec)
        text = _real(content) if isinstance(content, str) else msgspec.json.encode(self._request(content)).decode()
        numbers = [(name, value) for name, value in spec.items() if isinstance(value, int)]
        name, number = numbers[0] if numbers else ("count", 2)
        return _cut(text, -(-len(text) // max(1, number)) if "size" in name or "bytes" in name else number)

    def _request(self, message: JsonObject) -> JsonObject:
        method, params = message.get("method"), message.get("params")
        ours: JsonObject = {"jsonrpc": "2.0", **message}
        if isinstance(method, str):
            ours["method"] = _METHODS.get(method, method)
        # For the engine the same id means the same command, which it does once and answers twice.
        if str(message.get("id")) in self._sent:
            ours["id"] = f"{message.get('id')} again {len(self._sent)}"
        self._sent.add(str(ours.get("id")))
        fields = params if isinstance(params, dict) else {}
        match method:
            case "ping":
                ours["params"] = {"scope": "all", **fields}
            case "session.send":
                other_fields = {name: value for name, value in fields.items() if name not in ("session", "text")}
                model = {"model": "openai_compatible/test-model", "apiBase": self._engine.parts.model.url}
                ours["params"] = {"prompt": fields.get("text"), "apiKey": "none", **model, **other_fields}
            case "settings.set":
                ours["params"] = {"name": fields.get("key"), "value": fields.get("value")}
            case "permission.reply":
                ours["params"] = self._answer(fields)
            case _:
                ours["params"] = fields
        return ours

    def _answer(self, fields: Mapping[str, JsonValue]) -> JsonObject:
        pending, decision = self._case.context.pending_permission, fields.get("decision")
        ask = self._engine.ask
        answer: JsonObject = {
            name: value for name, value in fields.items() if name not in ("id", "decision", "command_sha256", "session")
        }
        answer["askId"] = ask.id if ask is not None and fields.get("id") == pending.id else fields.get("id")
        answer["allow"] = decision in _ALLOWING if isinstance(decision, str) else decision
        if decision in ("allow_always", "always"):
            answer["remember"] = "workspace"
        if (command_hash := fields.get("command_sha256")) is not None:
            approval = ask.approval if ask is not None else None
            answer["basis"] = (
                approval.basis if approval is not None and command_hash == pending.command_sha256 else command_hash
            )
        return answer


async def _proof(client: RawClient, token: str) -> str:
    nonce = "another-nonce-of-the-test"
    challenge = (await client.ask("challenge", "c", nonce=nonce))["result"]
    assert isinstance(challenge, dict)
    return proof(token, "asks", nonce, str(challenge["nonce"]))


def _made(step: _Step) -> Iterator[str]:
    spec = step.get("send_repeat") or step.get("send_nested")
    assert isinstance(spec, dict)
    count = _number(spec)
    if "unit" in spec:
        yield _real(f"{spec['prefix']}{str(spec['unit']) * count}{spec['suffix']}")
        return
    nested = f"{str(spec['open']) * count}{spec.get('leaf', '')}{str(spec['close']) * count}"
    if "as" in spec:  # a field of the params of a request
        nested = f'{{"jsonrpc":"2.0","id":1,"method":"unsubscribe","params":{{"scope":"all","data":{nested}}}}}'
    yield nested


def _compressed_frame() -> bytes:
    """A masked text frame that says it is compressed, of 1 KB of zeros."""
    return _COMPRESSED_TEXT_HEAD + (1024).to_bytes(2, "big") + bytes(4) + bytes(1024)


def _cut(text: str, count: int) -> list[str]:
    """The text in so many parts of about the same length, the last ones empty if it is short."""
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at * size : (at + 1) * size] for at in range(max(1, count))]


def _real(text: str) -> str:
    """A text of the model with the names of our protocol, so that nothing but what the case is about is wrong."""
    for name, ours in _METHODS.items():
        text = text.replace(f'"method":"{name}"', f'"jsonrpc":"2.0","method":"{ours}"')
    return text


def _is_from_network(case: WireCase) -> bool:
    return not case.input.peer.startswith("127.") and case.input.peer != "::1"


def _is_known(step: _Step) -> bool:
    if isinstance(wait := step.get("wait_s"), int | float):
        return wait <= _MAX_WAIT_S
    if "server" in step:
        return str(step["server"]).startswith(_SERVER)
    if "client" in step:
        return step["client"] in _CLIENT
    return "other_client" in step or not _FRAMES.isdisjoint(step)


def _expires(step: _Step) -> bool:
    return str(step.get("server")).startswith(_EXPIRY)


def _number(spec: JsonValue) -> int:
    """The number of repetitions that a step names."""
    counts = [value for value in spec.values() if isinstance(value, int)] if isinstance(spec, dict) else [spec]
    (count,) = counts
    assert isinstance(count, int)
    return count


def _json(step: _Step) -> JsonObject:
    message = step.get("send_json")
    return message if isinstance(message, dict) else {}
