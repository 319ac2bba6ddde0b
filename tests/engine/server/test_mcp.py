"""MCP servers and tools through the dispatcher."""

import json

import msgspec
import pytest

from errand.protocol.agents import PersonalityListResult
from errand.protocol.base import JsonObject
from errand.protocol.servers import (
    McpListResult,
    McpLoginResult,
    McpPromptListResult,
    McpServer,
    McpServerResult,
    McpShowResult,
    ToolListResult,
)
from tests.support.connections import RawClient, error_of, raw_client
from tests.support.engine_server import EngineServer
from tests.support.mcp_servers import command
from tests.support.oauth_server import oauth_server, visit


async def listed(client: RawClient, request_id: int, **params: str) -> tuple[McpServer, ...]:
    return msgspec.convert((await client.ask("mcp/list", request_id, **params))["result"], McpListResult).servers


def server_of(answer: JsonObject) -> McpServer:
    return msgspec.convert(answer["result"], McpServerResult).server


async def test_a_server_is_added_shown_switched_off_and_removed(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        argv = list(command())
        added = server_of(await client.ask("mcp/save", 1, name="test", command=argv, environment={"A": "b"}))
        assert (added.state, added.trust, added.enabled) == ("idle", "trusted", True)
        assert "Variable: A=b" in added.started
        assert "already" in error_of(await client.ask("mcp/save", 2, name="Test", command=argv))[2]
        details = msgspec.convert((await client.ask("mcp/show", 3, name="test"))["result"], McpShowResult)
        assert [tool.name for tool in details.server.tools] == ["test__echo"]
        assert [prompt.name for prompt in details.prompts] == ["ask"]
        assert [resource.uri for resource in details.resources] == ["test://one"]
        text = (await client.ask("mcp/prompt", 4, name="test", prompt="ask", arguments={"city": "Rome"}))["result"]
        assert text == {"text": "How is Rome?"}
        assert not server_of(await client.ask("mcp/set_enabled", 5, name="test", enabled=False)).enabled
        await client.ask("mcp/remove", 6, name="test")
        assert await listed(client, 7) == ()


async def test_servers_that_cannot_be_are_refused_with_a_reason(engine: EngineServer) -> None:
    wrong: list[tuple[JsonObject, str]] = [
        ({"name": "a__b"}, "name:"),
        ({"name": "../x"}, "name:"),
        ({"name": "x" * 33}, "name:"),
        ({"command": []}, "a command or a url"),
        ({"url": "https://example.org/mcp"}, "a command or a url"),
        ({"command": [], "url": "file:///etc/passwd"}, "http"),
        ({"command": [], "url": "https://me:secret@example.org/"}, "before @"),
        ({"command": ["a\0b"]}, "NUL"),
        ({"environment": {"A B": "c"}}, "name of a variable"),
        ({"environment": {"API_TOKEN": "abcdef123456789"}}, "looks like a key"),
        ({"headers": {"X-A": "b"}}, "headers"),
        ({"timeoutS": 0}, "timeout"),
        ({"clientId": "x"}, "client_id"),
        ({"command": [], "url": "https://example.org/", "clientId": "a b"}, "client_id"),
        ({"command": [], "url": "https://example.org/", "clientId": "a", "clientSecret": "plain"}, "client_secret"),
        ({"command": [], "url": "https://example.org/", "clientSecret": "${A}"}, "client_secret"),
        ({"command": [], "url": "https://example.org/", "clientId": "a", "callbackPort": 80}, "callback_port"),
    ]
    async with raw_client(engine) as client:
        for number, (change, reason) in enumerate(wrong):
            params: JsonObject = {"name": "test", "command": ["x"], **change}
            assert reason in error_of(await client.ask("mcp/save", number, **params))[2], change
        assert await listed(client, 100) == ()


async def test_a_key_is_stored_apart_and_reaches_the_server_alone(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        params: JsonObject = {"name": "test", "command": list(command()), "environment": {"MY_TOKEN": "${MY_TOKEN}"}}
        failed = await client.ask("mcp/save", 1, **params)
        assert "error" not in failed
        assert "MY_TOKEN has no value" in error_of(await client.ask("mcp/show", 2, name="test"))[2]
        await client.ask("mcp/set_key", 3, name="test", variable="MY_TOKEN", value="a-secret-of-mine-1")
        assert "no variable" in error_of(await client.ask("mcp/set_key", 4, name="test", variable="X", value="y"))[2]
        restarted = server_of(await client.ask("mcp/restart", 5, name="test"))
        assert restarted.state == "ready"
        assert "a-secret-of-mine-1" not in (engine.services.paths.settings).read_text()


async def test_servers_of_a_workspace_are_listed_and_trusted_by_their_fingerprint(engine: EngineServer) -> None:
    workspace = engine.services.paths.home / "work"
    (workspace / ".errand").mkdir(parents=True)
    argv = command()
    good = {"command": argv[0], "args": list(argv[1:]), "sandbox": False, "type": "stdio"}
    (workspace / ".errand" / "mcp.json").write_text(json.dumps({"mcpServers": {"good": good, "bad name": good}}))
    (workspace / ".mcp.json").write_text('{"mcpServers": {"good": {"command": "other"}, "more": {"url": "http://x/"}}}')
    async with raw_client(engine) as client:
        good_one, bad, more = await listed(client, 1, workspace=str(workspace))
        assert (good_one.trust, good_one.file, good_one.command) == ("unknown", ".errand/mcp.json", argv)
        assert "name:" in bad.problem and more.url == "http://x/"
        refused = error_of(await client.ask("mcp/show", 2, name="good", workspace=str(workspace)))
        assert "nobody has trusted it" in refused[2]
        params: JsonObject = {"name": "good", "workspace": str(workspace), "trusted": True}
        stale = error_of(await client.ask("mcp/trust", 3, **params, fingerprint="0"))
        assert "has changed since" in stale[2]
        trusted = server_of(await client.ask("mcp/trust", 4, **params, fingerprint=good_one.fingerprint))
        assert trusted.trust == "trusted"
        await client.ask("mcp/show", 5, name="good", workspace=str(workspace))
        (workspace / ".errand" / "mcp.json").write_text(json.dumps({"mcpServers": {"good": {**good, "args": ["x"]}}}))
        changed = (await listed(client, 6, workspace=str(workspace)))[0]
        assert (changed.trust, changed.changed) == ("unknown", True)


async def test_tools_are_listed_and_switched_for_a_personality(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        await client.ask("mcp/save", 1, name="test", command=list(command()))
        await client.ask("mcp/show", 2, name="test")

        async def tools(request_id: int) -> dict[str, tuple[str, ...]]:
            tool_list = msgspec.convert((await client.ask("tool/list", request_id))["result"], ToolListResult)
            return {tool.name: tool.personalities for tool in tool_list.tools}

        assert "assistant" in (await tools(3))["test__echo"]
        off: JsonObject = {"personalityId": "assistant", "tool": "test__echo"}
        await client.ask("tool/switch", 4, **off, on=False)
        now = await tools(5)
        assert "assistant" not in now["test__echo"] and "assistant" in now["shell"] and "assistant" in now["code"]
        await client.ask("tool/switch", 6, **off, on=True)
        assert "assistant" in (await tools(7))["test__echo"]
        assert "no tool" in error_of(await client.ask("tool/switch", 8, **{**off, "tool": "telepathy"}, on=True))[2]


@pytest.mark.parametrize(
    ("tools", "switched", "expected"),
    [
        (("code:read", "shell:read", "browser:read"), "browser", {"code:read", "shell:read", "browser:read"}),
        (("code:read", "web_fetch"), "shell", {"code:read", "web_fetch", "shell:read"}),
        (("code", "shell:read"), "browser", {"code", "shell:read", "browser"}),
        (("web_fetch", "python"), "code", {"web_fetch", "python", "code"}),
    ],
)
async def test_a_personality_that_only_reads_is_given_tools_in_their_reading_form(
    engine: EngineServer, tools: tuple[str, ...], switched: str, expected: set[str]
) -> None:
    async with raw_client(engine) as client:
        reader: JsonObject = {"id": "reader", "name": "Reader", "systemPrompt": "", "tools": [*tools]}
        await client.ask("personality/save", 1, personality=reader)
        for number, is_on in ((2, False), (3, True)):
            await client.ask("tool/switch", number, personalityId="reader", tool=switched, on=is_on)
        assert await tools_of(client, 4, "reader") == expected


async def test_a_personality_that_comes_with_errand_keeps_the_forms_of_its_tools(engine: EngineServer) -> None:
    writer: JsonObject = {"id": "writer", "name": "Writer", "systemPrompt": "", "tools": ["code", "shell:read"]}
    async with raw_client(engine) as client:
        await client.ask("personality/save", 1, personality=writer)
        for number, tool, is_on in ((2, "shell", False), (3, "code", False), (4, "shell", True), (5, "code", True)):
            await client.ask("tool/switch", number, personalityId="writer", tool=tool, on=is_on)
            await client.ask("tool/switch", number + 10, personalityId="writer", tool="web_fetch", on=True)
        assert await tools_of(client, 20, "writer") == {"code", "shell:read", "web_fetch"}


async def tools_of(client: RawClient, request_id: int, personality_id: str) -> set[str]:
    answer = await client.ask("personality/list", request_id)
    personalities = msgspec.convert(answer["result"], PersonalityListResult).personalities
    return {name for personality in personalities if personality.id == personality_id for name in personality.tools}


async def test_a_person_signs_in_and_out_and_a_changed_address_forgets_the_sign_in(engine: EngineServer) -> None:
    async with oauth_server() as oauth, raw_client(engine) as client:
        await client.ask("mcp/save", 1, name="guarded", url=oauth.mcp)
        begun = msgspec.convert((await client.ask("mcp/login", 2, name="guarded"))["result"], McpLoginResult)
        assert begun.server.login_address == begun.address and not begun.server.has_login
        assert (await visit(begun.address))[0] == 200
        (server,) = await listed(client, 3)
        assert server.has_login and not server.login_address and not server.login_problem
        assert server_of(await client.ask("mcp/set_enabled", 4, name="guarded", enabled=False)).has_login
        away: JsonObject = {"name": "guarded", "url": f"{oauth.url}/other", "replace": True}
        assert not server_of(await client.ask("mcp/save", 5, **away)).has_login
        assert oauth.revoked and stored_keys(engine) == {}
        back: JsonObject = {**away, "url": oauth.mcp}
        assert not server_of(await client.ask("mcp/save", 6, **back)).has_login
        assert "not signed in" in error_of(await client.ask("mcp/logout", 7, name="guarded"))[2]
        await client.ask("mcp/login", 8, name="guarded")
        await client.ask("mcp/cancel_login", 9, name="guarded")
        (server,) = await listed(client, 10)
        assert not server.login_address and "cancelled" in server.login_problem
        begun = msgspec.convert((await client.ask("mcp/login", 11, name="guarded"))["result"], McpLoginResult)
        await visit(begun.address)
        await client.ask("mcp/remove", 12, name="guarded")
        assert len(oauth.revoked) == 2 and stored_keys(engine) == {}


async def test_servers_that_have_no_sign_in_say_so(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        await client.ask("mcp/save", 1, name="program", command=list(command()))
        assert "no sign-in" in error_of(await client.ask("mcp/login", 2, name="program"))[2]
        key: JsonObject = {"name": "key", "url": "http://127.0.0.1:9/mcp", "headers": {"authorization": "Bearer ${T}"}}
        await client.ask("mcp/save", 3, **key)
        assert "header" in error_of(await client.ask("mcp/login", 4, name="key"))[2]
        await client.ask("mcp/save", 5, name="nobody", url="http://127.0.0.1:9/mcp")
        assert "no connection" in error_of(await client.ask("mcp/login", 6, name="nobody"))[2]
        assert "No sign-in" in error_of(await client.ask("mcp/finish_login", 7, name="nobody", address="x"))[2]


def stored_keys(engine: EngineServer) -> object:
    return json.loads((engine.services.paths.keys / "stored.json").read_bytes())


async def test_prompts_are_listed_of_connected_servers_and_of_all_if_wanted(engine: EngineServer) -> None:
    async with raw_client(engine) as client:

        async def prompts(request_id: int, *, start: bool) -> McpPromptListResult:
            answer = await client.ask("mcp/prompts", request_id, start=start)
            return msgspec.convert(answer["result"], McpPromptListResult)

        assert await prompts(1, start=True) == McpPromptListResult()
        await client.ask("mcp/save", 2, name="test", command=list(command()))
        await client.ask("mcp/save", 3, name="bad", command=list(command("dies")))
        await client.ask("mcp/save", 4, name="off", command=list(command()), enabled=False)
        assert await prompts(5, start=False) == McpPromptListResult(idle=("test", "bad"))
        started = await prompts(6, start=True)
        assert [(server_prompt.server, server_prompt.prompt.name) for server_prompt in started.prompts] == [
            ("test", "ask")
        ]
        assert started.idle == () and "bad is not available" in started.problems[0]
        assert (await prompts(7, start=False)).prompts == started.prompts
