"""Servers as processes: started when needed, bounded if hostile, restarted with a delay, ended with all they began."""

import asyncio
from pathlib import Path

import psutil
import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import Image
from errand.engine.core.setting_values import McpServer as StoredServer
from errand.engine.tools.mcp.definitions import SchemaRoom, checked_tools
from errand.engine.tools.mcp.json_rpc import McpError
from errand.engine.tools.mcp.tool import McpResources
from errand.engine.tools.results import ToolError, ToolResult
from errand.protocol.base import JsonObject, JsonValue
from tests.support.loop_parts import make_tool_context, text_of, until
from tests.support.mcp_servers import command, echo, pool_of, server_of, stored, tool_of_server
from tests.support.processes import PYTHON


async def _failure(work: "asyncio.Future[ToolResult] | asyncio.Task[ToolResult]") -> ToolError:
    with pytest.raises(ToolError) as caught:
        await work
    return caught.value


async def test_a_server_starts_when_it_is_first_needed_and_serves_all_who_ask(tmp_path: Path) -> None:
    async with pool_of(tmp_path, stored("one"), stored("two")) as pool:
        server, other = await pool.servers()
        assert (server.state, other.state, server.process_id) == ("idle", "idle", None)
        first, second = await asyncio.gather(server.connected(), server.connected())
        assert first is second and server.process_id is not None
        assert [tool.name for tool in first.tools.tools] == ["one__echo"]
        assert (server.state, other.state) == ("ready", "idle")
        assert await pool.servers() == (server, other)


async def test_results_have_texts_pictures_and_structured_content(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        tool = await tool_of_server(server, tmp_path)
        assert text_of(await echo(tool, "hello")) == "hello"
        seen = await echo(tool, "picture")
        assert [type(part) for part in seen.content][1:] == [Image] and "1 picture" in seen.summary
        assert '"sum": 3' in text_of(await echo(tool, "structured"))
        failed = await echo(tool, "fails")
        assert failed.is_error and failed.summary == "no such thing"
        odd = text_of(await echo(tool, "odd"))
        assert "unknown kind" in odd and "cannot be read" in odd
        error = await _failure(asyncio.ensure_future(echo(tool, "error")))
        assert "it does not want to" in str(error)


async def test_a_tool_that_rules_cannot_name_is_left_out_and_nothing_is_hidden_in_what_others_say() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    field: JsonObject = {"type": "string", "description": f"A text.{hidden}"}
    schema: JsonObject = {"type": "object", "properties": {"text": field}}
    names: tuple[JsonValue, ...] = ("*", "every*", "ok")
    listed = await checked_tools(
        "one",
        [{"name": name, "description": f"Says.{hidden}", "inputSchema": schema} for name in names],
        SchemaRoom({}, "one"),
    )
    (tool,) = listed.tools
    assert (tool.own_name, tool.description, len(listed.notes)) == ("ok", "Says.", 2)
    assert hidden not in str(tool.parameters) and "A text." in str(tool.parameters)


async def test_a_huge_result_is_cut_and_kept_whole_in_a_file(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        result = await echo(await tool_of_server(server, tmp_path), "huge")
    text = text_of(result)
    assert len(text) < 100_000 and "left out" in text
    (file,) = (tmp_path / "outputs" / "task_1").iterdir()
    assert file.stat().st_size == 3_000_000 and str(file) in text


async def test_progress_is_shown_while_a_call_runs(tmp_path: Path) -> None:
    progress_texts: list[str] = []
    async with server_of(tmp_path) as server:
        await echo(
            await tool_of_server(server, tmp_path),
            "progress",
            on_update=lambda part: progress_texts.append(text_of(part)),
        )
    assert progress_texts and progress_texts[-1] == "3 of 3: step 3"


async def test_a_cancelled_call_returns_at_once_and_tells_the_server(tmp_path: Path) -> None:
    log_file = tmp_path / "told"
    async with server_of(tmp_path, "good", str(log_file)) as server:
        tool, cancel = await tool_of_server(server, tmp_path), CancelSignal()
        call = asyncio.ensure_future(echo(tool, "hang", cancel))
        await asyncio.sleep(0)
        await until(lambda: server.state == "ready")
        asyncio.get_running_loop().call_later(0.05, cancel.set)
        assert str(await _failure(call)) == "Operation aborted"
        assert text_of(await echo(tool, "still there")) == "still there"
        await until(lambda: log_file.exists() and "cancelled" in log_file.read_text())


async def test_a_server_that_does_not_answer_in_time_is_an_error_and_stays(tmp_path: Path) -> None:
    async with server_of(tmp_path, timeout_s=0.2) as server:
        tool = await tool_of_server(server, tmp_path)
        error = await _failure(asyncio.ensure_future(echo(tool, "hang")))
        assert error.summary == "no answer in time"
        assert text_of(await echo(tool, "yes")) == "yes"


async def test_a_server_that_dies_in_a_call_fails_it_and_starts_again_for_the_next(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        tool = await tool_of_server(server, tmp_path)
        first = server.process_id
        assert "exit code 3" in str(await _failure(asyncio.ensure_future(echo(tool, "die"))))
        assert server.state == "failed"
        assert text_of(await echo(tool, "again")) == "again"
        assert server.process_id not in (None, first)


async def test_a_server_that_can_start_is_never_given_up_however_often_it_dies(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        tool = await tool_of_server(server, tmp_path)
        for _ in range(6):
            assert "exit code 3" in str(await _failure(asyncio.ensure_future(echo(tool, "die"))))
        assert text_of(await echo(tool, "again")) == "again"


async def test_a_server_that_cannot_start_is_given_up_and_its_log_says_why(tmp_path: Path) -> None:
    async with server_of(tmp_path, "dies") as server:
        for _ in range(2):
            with pytest.raises(McpError, match="exit code 7"):
                await server.connected()
        assert server.state == "failed"
        assert "I cannot start." in server.log.text()
        assert "sk-abcdef1234567890" not in server.log.text()
        with pytest.raises(McpError, match="exit code 7"):
            await server.connected()  # after a second
        with pytest.raises(McpError, match="exit code 7"):
            await server.connected()  # after five
        assert server.state == "given_up"
        with pytest.raises(McpError, match="errand mcp restart test"):
            await server.connected()


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = stored()
    missing = type(missing)(name="test", command=("/nowhere/server",))
    async with pool_of(tmp_path, missing) as pool:
        server = await pool.find("test")
        with pytest.raises(McpError, match="There is no program /nowhere/server here"):
            await server.connected()


@pytest.mark.parametrize("how", ["flood", "endless"])
async def test_a_flood_ends_the_server_and_the_engine_goes_on(tmp_path: Path, how: str) -> None:
    async with server_of(tmp_path) as server:
        tool = await tool_of_server(server, tmp_path)
        error = await _failure(asyncio.ensure_future(echo(tool, how)))
        assert "nobody asked for" in str(error) or "a line of more than" in str(error)
        assert server.state == "failed"
        assert len(server.log.text()) < 300_000


async def test_garbage_between_messages_is_logged_and_passed_over(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        assert text_of(await echo(await tool_of_server(server, tmp_path), "garbage")) == "garbage"
        assert "no message:" in server.log.text()


async def test_tools_with_odd_schemas_are_kept_and_say_what_is_not_checked(tmp_path: Path) -> None:
    async with server_of(tmp_path, "lies") as server:
        tools = (await server.connected()).tools
    names = [tool.name for tool in tools.tools]
    assert names[0] == "test__echo" and len(names) == 11
    assert all(len(name) <= 64 and name.isascii() for name in names), names
    assert all(len(str(tool.parameters)) < 20_000 and len(tool.description) < 10_000 for tool in tools.tools)
    notes = "\n".join(tools.notes)
    for word in ("no schema", "a list", "broken", "recursive", "deep", "huge", "far", "long", "two tools"):
        assert word in notes, word


async def test_an_unknown_version_of_the_protocol_is_refused(tmp_path: Path) -> None:
    async with server_of(tmp_path, "old") as server:
        with pytest.raises(McpError, match="1999-01-01"):
            await server.connected()


async def test_lists_are_read_page_by_page(tmp_path: Path) -> None:
    async with server_of(tmp_path, "pages") as server:
        assert [tool.own_name for tool in (await server.connected()).tools.tools] == ["echo", "second"]


async def test_everything_a_server_started_ends_with_it(tmp_path: Path) -> None:
    async with server_of(tmp_path, "stubborn") as server:
        child = int(text_of(await echo(await tool_of_server(server, tmp_path), "child")))
        own = server.process_id
        assert own is not None and psutil.pid_exists(child)
    assert not psutil.pid_exists(own) and not psutil.pid_exists(child)


async def test_a_server_that_is_still_starting_can_be_ended(tmp_path: Path) -> None:
    async with server_of(tmp_path, "silent") as server:
        start = asyncio.ensure_future(server.connected())
        await until(lambda: "started as" in server.log.text())
        await server.close()
        with pytest.raises(McpError):
            await start


async def test_no_key_of_a_client_reaches_a_server_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "secret-value-123")
    monkeypatch.setenv("PLAIN_WORD", "seen")
    async with server_of(tmp_path) as server:
        environment = text_of(await echo(await tool_of_server(server, tmp_path), "environment"))
    assert "secret-value-123" not in environment and '"PLAIN_WORD": "seen"' in environment


async def test_variables_are_put_into_the_command_and_the_variables_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODE_OF_SERVER", "good")
    monkeypatch.setenv("SET_HERE", "mine")
    argv = (*command()[:-1], "${MODE_OF_SERVER}")
    variables = {"ONE": "${SET_HERE:-other}", "TWO": "${NOT_SET_HERE:-other}"}
    async with pool_of(tmp_path, StoredServer(name="test", command=argv, env=variables)) as pool:
        server = await pool.find("test")
        environment = text_of(await echo(await tool_of_server(server, tmp_path), "environment"))
        assert "${MODE_OF_SERVER}" in server.log.text()
    assert '"ONE": "mine"' in environment and '"TWO": "other"' in environment


async def test_a_stop_does_not_wait_for_a_server_that_is_starting(tmp_path: Path) -> None:
    argv = (PYTHON, "-c", "import time; time.sleep(60)")
    async with pool_of(tmp_path, StoredServer(name="test", command=argv)) as pool:
        server, cancel = await pool.find("test"), CancelSignal()
        tool = McpResources([server], make_tool_context(tmp_path))
        requests: tuple[JsonObject, ...] = (
            {"operation": "list"},
            {"operation": "read", "server": "test", "uri": "a:b"},
        )
        calls = [asyncio.create_task(tool.execute("c1", request, cancel, lambda _: None)) for request in requests]
        await until(lambda: server.state == "starting")
        cancel.set()
        for call in calls:
            assert str(await _failure(call)) == "Operation aborted"


async def test_resources_are_listed_and_read_by_one_tool(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        await server.connected()
        tool = McpResources([server], make_tool_context(tmp_path))
        listed = await tool.execute("c1", {"operation": "list"}, CancelSignal(), lambda _: None)
        assert text_of(listed) == "test: test://one (one): the first"
        arguments = {"operation": "read", "server": "test", "uri": "test://one"}
        assert "content of one" in text_of(await tool.execute("c2", {**arguments}, CancelSignal(), lambda _: None))
        assert tool.access({**arguments}).service == "test/resources"
