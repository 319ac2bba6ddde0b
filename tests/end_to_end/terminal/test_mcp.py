"""MCP servers from the command line; none is left, however the engine ends."""

import json
from pathlib import Path

from errand.cli.exit_codes import EXIT_USAGE
from errand.protocol.servers import MCP_LIST, McpListParams
from tests.support.command_line import Errand, connected
from tests.support.loop_parts import until
from tests.support.mcp_servers import command
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import running


async def _gone(marker: str) -> None:
    await until(lambda: not running(marker))


async def test_a_server_is_added_with_a_key_that_stands_in_no_file(own_errand: Errand, tmp_path: Path) -> None:
    marker = f"marker-{tmp_path.name}"
    added = await own_errand.run(
        *("mcp", "add", "test", "--env", "A_TOKEN", "--env", "PLAIN=word", "--", *command("good", marker)),
        variables={"A_TOKEN": "a-secret-of-this-test"},
    )
    assert added.code == 0, added.err
    details = await own_errand.run("mcp", "show", "test")
    assert "test__echo" in details.out and "resource test://one" in details.out and "prompt ask city=" in details.out
    settings = (own_errand.home / "settings.json").read_text()
    assert '"${A_TOKEN}"' in settings and "a-secret-of-this-test" not in settings
    assert "started as good" in (await own_errand.run("mcp", "log", "test")).out
    for filled in (("city=Rome",), ("--argument", "city=Rome"), ("--argument=city=Rome",)):
        assert (await own_errand.run("mcp", "prompt", "test/ask", *filled)).out == "How is Rome?\n"
    assert (await own_errand.run("mcp", "prompt", "test/ask", "--argument", "Rome")).code == EXIT_USAGE
    assert "test__echo" in (await own_errand.run("tools")).out
    assert (await own_errand.run("mcp", "remove", "test")).code == 0
    await _gone(marker)


async def test_a_server_that_ignores_signals_is_gone_when_the_engine_is_killed(
    own_errand: Errand, tmp_path: Path
) -> None:
    marker = f"marker-{tmp_path.name}"
    await own_errand.run("mcp", "add", "test", "--", *command("stubborn", marker))
    assert "ready" in (await own_errand.run("mcp", "restart", "test")).out
    assert running(marker)
    own_errand.kill_engine()
    await _gone(marker)


async def test_a_server_ends_with_the_engine(own_errand: Errand, tmp_path: Path) -> None:
    marker = f"marker-{tmp_path.name}"
    await own_errand.run("mcp", "add", "test", "--", *command("good", marker))
    await own_errand.run("mcp", "show", "test")
    async with connected(own_errand) as client:
        (server,) = (await client.call(MCP_LIST, McpListParams())).servers
        assert server.process_id is not None
    assert (await own_errand.run("engine", "--stop")).code == 0
    await _gone(marker)


async def test_a_task_begins_with_a_prompt_of_a_server(own_errand: Errand) -> None:
    await own_errand.run("mcp", "add", "test", "--", *command())
    async with ModelServer(replies=[Reply(text="Fine."), Reply(text="Fine again.")]) as model:
        variables = {"OPENAI_API_KEY": "sk-test-key-of-the-tests", "OPENAI_BASE_URL": model.url}
        options = ("--prompt", "test/ask", "--argument", "city=Rome")
        alone = await own_errand.run("run", *options, variables=variables)
        more = await own_errand.run("run", *options, "In one word.", variables=variables)
        sent = [str(request.body) for request in model.requests]
    assert alone.code == more.code == 0, alone.err + more.err
    assert "How is Rome?" in sent[0] and "In one word." not in sent[0]
    assert "How is Rome?\\n\\nIn one word." in sent[1]
    for wrong in (("--prompt", "ask"), ("--prompt", "test/ask", "--argument", "Rome"), ("go", "--argument", "a=b"), ()):
        refused = await own_errand.run("run", *wrong, variables=variables)
        assert refused.code == EXIT_USAGE and refused.err.startswith("errand: "), wrong


async def test_what_a_file_of_the_workspace_starts_is_displayed_as_it_would_run(own_errand: Errand) -> None:
    hidden = "safe\u202e\x1b[2K\u200b\nFolder: /elsewhere\rRuns in the sandbox"
    entry = {"command": "/bin/echo", "args": [hidden], "env": {"LEVEL": hidden}}
    (own_errand.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"db": entry}}))
    spelled = r"$'safe\u202e\u001b[2K\u200b\nFolder: /elsewhere\u000dRuns in the sandbox'"
    trusted = await own_errand.run("mcp", "trust", "db", "--yes")
    lines = trusted.out.splitlines()
    assert lines[:2] == [f"Command: /bin/echo {spelled}", f"Variable: LEVEL={spelled}"], trusted.out + trusted.err
    assert sum(line.startswith("Folder: ") for line in lines) == 1
    assert f"/bin/echo {spelled}" in (await own_errand.run("mcp")).out
