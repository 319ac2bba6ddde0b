"""Servers whose messages are too large, too many or odd: an error of theirs, in little memory; the next call works."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.json_input.foreign_json import (
    TOO_DEEP,
    JsonBounds,
    UnreadableJson,
    decode_bounded,
    decode_foreign,
)
from errand.engine.tools.mcp.connection import shake_hands
from errand.engine.tools.mcp.definitions import SchemaRoom, checked_tools
from errand.engine.tools.mcp.json_rpc import RpcPeer
from errand.protocol.base import JsonObject, JsonValue
from tests.support.command_line import Errand
from tests.support.forked_process import start_program
from tests.support.warm_errand import CHECKOUT, Command

LONG = "%6d%79" * 100_000
_MAX_GROWTH_MB = 100


class Outcome(msgspec.Struct):
    """The results that the client's process reports."""

    hostile: str
    after: str
    growth_mb: float


async def outcome_of(folder: Path, transport: str, kind: str) -> Outcome:
    environment = Errand(folder, folder).environment
    command = Command(
        (str(folder), transport, kind), str(CHECKOUT), environment, module="tests.support.mcp_hostile_client"
    )
    process = await start_program(command, (DEVNULL, PIPE, 2))
    output, _ = await process.communicate()
    return msgspec.json.decode(output, type=Outcome)


@pytest.mark.parametrize("transport", ["stdio", "json", "sse"])
@pytest.mark.parametrize("kind", ["lists", "values", "members", "text"])
async def test_an_answer_beyond_the_bounds_fails_its_call_alone(tmp_path: Path, transport: str, kind: str) -> None:
    outcome = await outcome_of(tmp_path, transport, kind)
    assert outcome.hostile.startswith("error: It") and "more than" in outcome.hostile
    assert outcome.after == "hello" and outcome.growth_mb < _MAX_GROWTH_MB


@pytest.mark.parametrize("transport", ["stdio", "sse"])
@pytest.mark.parametrize("kind", ["digits", "ids", "unasked"])
async def test_a_bad_message_does_not_cost_the_rest_of_what_was_read(tmp_path: Path, transport: str, kind: str) -> None:
    outcome = await outcome_of(tmp_path, transport, kind)
    assert (outcome.hostile, outcome.after) == ("hello", "hello") and outcome.growth_mb < _MAX_GROWTH_MB


async def test_long_texts_of_a_server_are_searched_for_keys_in_part_only() -> None:
    lengths: list[int] = []

    def redact(text: str) -> str:
        lengths.append(len(text))
        return text

    class Answering:
        """A server that answers each request at once."""

        def send(self, data: bytes, request_id: int | None) -> None:
            if request_id is None:
                return
            info = {"name": LONG, "version": LONG}
            prompts = [{"name": LONG}, {"name": "ask"}]
            version = msgspec.json.decode(data)["params"].get("protocolVersion")
            capabilities: JsonObject = {"prompts": {}}
            result = {"protocolVersion": version, "serverInfo": info, "instructions": LONG, "prompts": prompts}
            answer: object = {"jsonrpc": "2.0", "id": request_id, "result": {**result, "capabilities": capabilities}}
            answers.append(asyncio.create_task(peer.receive(msgspec.json.encode(answer))))

        def forget(self, request_id: int) -> None: ...

    answers: list[asyncio.Task[None]] = []
    peer = RpcPeer(Answering(), lambda method, params: None, lambda why: None, lambda line: None)
    connection = await shake_hands("s", peer, lambda version: None, redact)
    assert len(connection.facts.instructions) == 4_000 and len(connection.facts.title) == 100
    assert await connection.prompts() == ({"name": "ask"},)
    tools = await checked_tools("s", [{"name": "t", "description": LONG}], SchemaRoom({}, "s"), redact)
    assert len(tools.tools[0].description) == 8_000 and "characters" in tools.notes[0]
    assert max(lengths) <= 16_000
    await asyncio.gather(*answers)


@pytest.mark.parametrize("kind", ["schemas", "pages"])
async def test_large_lists_of_tools_take_little_memory_and_leave_the_tools(tmp_path: Path, kind: str) -> None:
    outcome = await outcome_of(tmp_path, "stdio", kind)
    assert (outcome.hostile, outcome.after) == ("hello", "hello") and outcome.growth_mb < _MAX_GROWTH_MB


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'{"a": NaN, "b": -Infinity}', {"a": None, "b": None}),
        (b'{"a": "1\n2\x01"}', {"a": "1\n2\x01"}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (b'{"a": "\\ud83d"}', {"a": "?"}),
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b'{"a": 1' + b"0" * 30 + b"}", {"a": 1e30}),
        (b'{"a": ' + b"9" * 400 + b"}", {"a": "9" * 400}),
        (b'{"a": ' + b"9" * 5_000 + b"}", {"a": "9" * 5_000}),
        (b'{"a": 1e400}', {"a": None}),
        (b"[" * 3 + b"[[1],2]" + b"]" * 3, [[[[TOO_DEEP, 2]]]]),
        (b'[[[[{"a": "]}"}, "[[[["]]]]', [[[[TOO_DEEP, "[[[["]]]]),
    ],
)
def test_what_programs_write_in_error_is_read(text: bytes, value: JsonValue) -> None:
    decoded = decode_bounded(text, JsonBounds(max_depth=4))
    assert decoded == value
    msgspec.json.encode(decoded)


@pytest.mark.parametrize(
    "text", [b"", b"Listening", b'{"a": 1', b'{"a"}', b"[" * 100, b"]" * 100, b"[]" * 100, b'"' * 9]
)
async def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(UnreadableJson):
        await decode_foreign(text)


async def test_bounds_hold_for_short_and_long_texts() -> None:
    numbers = msgspec.json.encode(list(range(1_000)))
    for bounds in (JsonBounds(max_values=900), JsonBounds(max_bytes=1_000)):
        for text in (numbers, numbers + b" " * 100_000):
            with pytest.raises(UnreadableJson, match="it has"):
                await decode_foreign(text, bounds)
    assert await decode_foreign(msgspec.json.encode([",[{" * 1_000] * 100), JsonBounds(max_values=200))
