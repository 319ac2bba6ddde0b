"""Invalid input gets a clear error, and the engine keeps serving this client and others."""

import asyncio
from typing import get_args, get_type_hints

import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from errand.engine.core.settings import Settings
from errand.engine.server.dispatcher import ROUTES
from errand.protocol.methods import METHODS
from tests.support.connections import RawClient, error_of, raw_client
from tests.support.engine_server import EngineServer


async def still_serves(client: RawClient) -> None:
    answer = await client.ask("unsubscribe", "still", scope="all")
    assert answer == {"jsonrpc": "2.0", "id": "still", "result": {}}


def test_every_method_of_the_protocol_has_a_handler() -> None:
    assert sorted(route.name for route in ROUTES) == sorted(method.name for method in METHODS)
    assert {route.name: route.changes for route in ROUTES} == {method.name: method.changes for method in METHODS}


async def test_unknown_method_error_suggests_similar_names(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        code, word, text = error_of(await client.ask("task/strat"))
        assert (code, word) == (-32601, "unknown_method")
        assert "task/start" in text
        await still_serves(client)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "prompt"),
        ({"prompt": 7}, "$.prompt"),
        ({"prompt": "x", "maxTurns": "many"}, "$.maxTurns"),
        ({"prompt": "x", "mode": "fast"}, "$.mode"),
        ({"prompt": "x", "colour": "red"}, "colour"),
    ],
)
async def test_wrong_params_error_names_the_field(engine: EngineServer, params: dict[str, object], reason: str) -> None:
    async with raw_client(engine) as client:
        code, word, text = error_of(await client.ask("task/start", 1, **params))
        assert (code, word) == (-32602, "invalid_params")
        assert reason in text
        await still_serves(client)


@pytest.mark.parametrize("params", ["[]", "null", "7", '"x"'])
async def test_params_must_be_an_object(engine: EngineServer, params: str) -> None:
    async with raw_client(engine) as client:
        await client.send(f'{{"jsonrpc":"2.0","id":4,"method":"task/list","params":{params}}}')
        assert error_of(await client.read())[0] == -32602
        await still_serves(client)


@pytest.mark.parametrize(
    ("frame", "code", "reason", "request_id"),
    [
        ("", -32700, "Not JSON", None),
        ("hello", -32700, "Not JSON", None),
        ('{"jsonrpc":"2.0","id":1,"method":"task/list"', -32700, "Not JSON", None),
        ('{"jsonrpc":"2.0","id":1,"method":"task/list"}}', -32700, "Not JSON", None),
        ("7", -32600, "Not a request", None),
        ('{"id":5,"jsonrpc":"2.0"}', -32600, "method", 5),
        ('{"jsonrpc":"2.0","method":"task/list"}', -32600, "id", None),
        ('{"jsonrpc":"1.0","id":6,"method":"task/list"}', -32600, "jsonrpc", 6),
        ('{"jsonrpc":"2.0","id":[1],"method":"task/list"}', -32600, "id", None),
        ('{"jsonrpc":"2.0","id":7,"method":"task/list","extra":1}', -32600, "extra", 7),
        ('[{"jsonrpc":"2.0","id":1,"method":"task/list"}]', -32600, "one request in a message", None),
    ],
)
async def test_invalid_request_error_gives_the_reason(
    engine: EngineServer, frame: str, code: int, reason: str, request_id: int | None
) -> None:
    async with raw_client(engine) as client:
        await client.send(frame)
        message = await client.read()
        assert error_of(message)[0] == code
        assert reason in error_of(message)[2]
        assert message["id"] == request_id
        await still_serves(client)


async def test_binary_frames_are_refused_and_not_decoded(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        await client.send(b'{"jsonrpc":"2.0","id":1,"method":"task/list"}')
        assert "Binary" in error_of(await client.read())[2]
        await client.socket.send(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', text=True)
        assert error_of(await client.read())[0] == -32700
        await still_serves(client)


async def test_an_oversized_message_is_refused_and_a_huge_one_closes_that_client_alone(engine: EngineServer) -> None:
    async with raw_client(engine, client_id="big") as big, raw_client(engine, client_id="small") as small:
        await big.request("task/start", prompt="x" * 1_100_000)
        assert "at most 1,048,576" in error_of(await big.read())[2]
        await still_serves(big)
        with pytest.raises(ConnectionClosed, match="1009"):
            await big.request("task/start", prompt="x" * 5_000_000)
            await big.read()
        await still_serves(small)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
async def test_a_deeply_nested_message_is_refused_before_it_is_decoded(
    engine: EngineServer, opening: str, closing: str
) -> None:
    async with raw_client(engine) as client:
        for depth in (65, 100_000):
            value = opening * depth + "1" + closing * depth
            await client.send(f'{{"jsonrpc":"2.0","id":1,"method":"settings/set","params":{{"value":{value}}}}}')
            assert "64 levels" in error_of(await client.read())[2]
        await still_serves(client)


async def test_brackets_inside_strings_and_flat_lists_do_not_count_as_depth(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        assert "result" in await client.ask("task/start", prompt='[{"' * 5_000)
        flat: list[list[None]] = [[] for _ in range(1_000)]
        code, _, text = error_of(await client.ask("settings/set", 2, name="default_model", value=flat))
        assert (code, "64 levels" in text) == (-32602, False)


async def test_unbalanced_quotes_do_not_make_the_depth_check_slow(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        await client.send("[" * 70 + '"' + '\\"' * 450_000)
        assert error_of(await client.read())[0] in (-32600, -32700)
        await still_serves(client)


@pytest.mark.parametrize("origin", ["https://example.org", "null"])
async def test_foreign_origin_is_refused_at_the_handshake(engine: EngineServer, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with connect(engine.server.url, additional_headers={"Origin": origin}, proxy=None):
            pass
    assert refused.value.response.status_code == 403
    async with raw_client(engine) as client:
        await still_serves(client)


async def test_host_name_rebound_to_loopback_is_refused(engine: EngineServer) -> None:
    port = engine.server.port
    for host, status in ((f"evil.example:{port}", b"403"), ("127.0.0.1", b"403"), (f"localhost:{port}", b"426")):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        headers = f"Host: {host}\r\nConnection: close"
        writer.write(f"GET /rpc HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        assert (await reader.read()).split()[1] == status
        writer.close()
        await writer.wait_closed()


async def test_own_origin_is_accepted(engine: EngineServer) -> None:
    page = {"Origin": f"http://127.0.0.1:{engine.server.port}"}
    async with connect(engine.server.url, additional_headers=page, proxy=None) as socket:
        client = RawClient(socket)
        assert "result" in await client.initialize("page")
        await still_serves(client)


async def test_calls_before_initialize_and_a_second_initialize_are_refused(engine: EngineServer) -> None:
    async with raw_client(engine, client_id="") as client:
        assert error_of(await client.ask("task/list"))[1] == "not_initialized"
        assert (
            "protocolVersion"
            in error_of(await client.ask("initialize", clientId="a", clientName="a", protocolVersion=99))[2]
        )
        proof = await client.prove()
        assert error_of(await client.ask("initialize", clientId="", clientName="a", proof=proof))[1] == "invalid_params"
        refused = error_of(
            await client.ask("initialize", clientId="a", clientName="a", proof=proof, keys={"HOME": "/secret"})
        )
        assert (refused[1], "'HOME'" in refused[2], "/secret" in refused[2]) == ("invalid_params", True, False)
        assert "result" in await client.ask("initialize", clientId="a", clientName="a", proof=proof)
        assert error_of(await client.ask("initialize", clientId="b", clientName="b", proof=proof))[1] == "conflict"
        await still_serves(client)


@pytest.mark.parametrize(
    ("environment", "reason"),
    [({"": "x"}, "no variable"), ({"A=B": "x"}, "'A=B'"), ({"A": "x\0y"}, "'A'"), ({"A": "x" * 300_000}, "256,000")],
)
async def test_impossible_environment_is_refused(
    engine: EngineServer, environment: dict[str, str], reason: str
) -> None:
    async with raw_client(engine, client_id="") as client:
        names = {"clientId": "a", "clientName": "a", "proof": await client.prove()}
        frame = {"jsonrpc": "2.0", "method": "initialize", "id": 1, "params": names | {"environment": environment}}
        await client.send(msgspec.json.encode(frame).decode())
        assert reason in error_of(await client.read())[2]
        assert "result" in await client.initialize("a")


async def test_client_without_the_token_cannot_initialize(engine: EngineServer) -> None:
    async with raw_client(engine, client_id="") as client:
        assert error_of(await client.ask("initialize", clientId="a", clientName="a", proof="0" * 64))[1] == "conflict"
        for nonce in ("", "short", "x" * 201):
            assert "nonce" in error_of(await client.ask("challenge", nonce=nonce))[2]
        wrong = await client.prove(token="a guess")
        right = await client.prove()
        for proof in ("", wrong, "é", right.upper()):
            answer = error_of(await client.ask("initialize", clientId="a", clientName="a", proof=proof))
            assert (answer[1], "token" in answer[2]) == ("invalid_params", True)
        assert error_of(await client.ask("task/list"))[1] == "not_initialized"
        assert "result" in await client.initialize("a")
    async with raw_client(engine, client_id="") as client:
        earlier = await client.prove()
        await client.prove()
        answer = error_of(await client.ask("initialize", clientId="a", clientName="a", proof=earlier))
        assert (answer[1], "token" in answer[2]) == ("invalid_params", True)
        assert error_of(await client.ask("task/list"))[1] == "not_initialized"
        assert "result" in await client.initialize("a")


async def test_too_many_simultaneous_requests_get_busy_and_the_client_stays_connected(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        for number in range(600):
            await client.request("unsubscribe", number, scope="all")
        answers = [await client.read() for _ in range(600)]
        busy = [answer for answer in answers if "error" in answer]
        assert {error_of(answer)[1] for answer in busy} == {"busy"}
        assert 100 < len(busy) < 250
        assert sorted(msgspec.convert(answer["id"], int) for answer in answers) == list(range(600))


async def test_engine_errors_carry_their_code_and_bugs_are_internal_errors(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        assert error_of(await client.ask("task/stop", taskId="none"))[:2] == (-32000, "not_found")
        assert error_of(await client.ask("task/follow_up", 2, taskId="t", text="x"))[:2] == (-32000, "agent_busy")
        code, word, text = error_of(await client.ask("task/start", 3, prompt="fail"))
        assert (code, word) == (-32603, "internal")
        assert "ZeroDivisionError" not in text
        await still_serves(client)


async def test_client_that_dies_within_a_frame_affects_nobody_else(engine: EngineServer) -> None:
    async with raw_client(engine, client_id="other") as other:
        async with raw_client(engine, client_id="dies") as dies:
            # A frame that announces 100 bytes and has 3.
            dies.socket.transport.write(b"\x81\xe4\x00\x00\x00\x00abc")
            dies.socket.transport.abort()
        await still_serves(other)


def _numbers_of(params: type[msgspec.Struct]) -> list[tuple[str, dict[str, object]]]:
    """Return the name of each number among a method's params, with the other required params."""
    fields = msgspec.structs.fields(params)
    hints = get_type_hints(params)
    required: dict[str, object] = {
        field.encode_name: "x" for field in fields if field.required and hints[field.name] is str
    }
    return [
        (field.encode_name, {name: value for name, value in required.items() if name != field.encode_name})
        for field in fields
        if {int, float} & {hints[field.name], *get_args(hints[field.name])}
    ]


async def test_extreme_numbers_get_a_readable_error(engine: EngineServer) -> None:
    tried = 0
    async with raw_client(engine) as client:
        for method in METHODS:
            for name, others in _numbers_of(method.params):
                for value in (2**63, 2**70, -(2**63), -1, 1e308):
                    # Some of the numbers are event positions, so events arrive between the answers.
                    request_id = f"{method.name} {name} {value}"
                    await client.request(method.name, request_id, **others, **{name: value})
                    answer, _ = await client.answer(request_id)
                    assert "internal" not in str(answer.get("error", "")), (method.name, name, value, answer)
                    tried += 1
    assert tried > 50
    async with raw_client(engine) as client:
        await still_serves(client)


@pytest.mark.parametrize("name", ["max_minutes", "budget_usd", "day_budget_usd", "seconds_between_calls", "max_turns"])
async def test_setting_out_of_bounds_is_refused(engine: EngineServer, name: str) -> None:
    async with raw_client(engine) as client:
        for value in (1e300, -1):
            code, word, text = error_of(await client.ask("settings/set", f"{name} {value}", name=name, value=value))
            assert (code, word) == (-32602, "invalid_params")
            assert f"Setting {name}: Expected" in text


async def test_settings_larger_than_the_readable_limit_are_refused(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        assert "result" in await client.ask("settings/set", name="default_model", value="x" * 700_000)
        code, _, text = error_of(await client.ask("settings/set", 2, name="fallback_models", value="y" * 700_000))
        assert (code, "1,000,000 bytes. Nothing was changed." in text) == (-32602, True)
    assert len(Settings(engine.services.paths.settings).values.default_model) == 700_000
