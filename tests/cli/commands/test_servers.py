"""MCP servers and tools as the terminal writes them."""

from datetime import UTC, datetime

import pytest

from errand.cli.arguments import UsageError
from errand.cli.commands.servers import prompt_line, server_lines, tool_line, variables
from errand.cli.terminal.style import PLAIN, Style
from errand.protocol.servers import McpPrompt, McpPromptArgument, McpServer, McpTool, ServerState, ToolInfo

EVERYONE = frozenset({"assistant", "coder"})


def server(
    state: ServerState = "idle", problem: str = "", *, enabled: bool = True, tools: tuple[McpTool, ...] = ()
) -> McpServer:
    return McpServer(
        id="time",
        name="time",
        started="",
        fingerprint="",
        state=state,
        command=("uvx", "mcp-server-time", "a b"),
        problem=problem,
        enabled=enabled,
        tools=tools,
    )


def tool(name: str, *users: str, origin: str = "", used: datetime | None = None, changed: bool = False) -> ToolInfo:
    return ToolInfo(
        name=name,
        label=name,
        description="",
        tier="run",
        origin=origin,
        personalities=users,
        last_used_at=used,
        changed=changed,
    )


@pytest.mark.parametrize(
    ("listed", "line"),
    [
        (server(), "time  starts when needed"),
        (server("ready", tools=(McpTool(name="time__now", own_name="now", description=""),)), "time  ready, 1 tool"),
        (server("given_up"), "time  failed too often: restart it"),
        (server("needs_login"), "time  sign-in required"),
        (server(enabled=False), "time  off"),
    ],
)
def test_a_server_has_a_line_for_its_state_and_one_for_its_exact_command(listed: McpServer, line: str) -> None:
    assert server_lines(listed, PLAIN) == [line, "  uvx mcp-server-time 'a b'"]


def test_a_failure_is_written_below_and_only_the_state_is_coloured() -> None:
    style = Style(colour=True, unicode=True)
    lines = server_lines(server("failed", "It ended\x1b[31m at once."), style)
    assert lines[0].endswith(style.amber("failed, tries again when needed"))
    assert lines[2] == f"  {style.amber('It ended at once.')}"


def test_personalities_are_named_only_if_not_all_have_a_tool() -> None:
    at = datetime(2026, 11, 23, 7, 51, tzinfo=UTC)
    used = f"last used {at.astimezone():%Y-%m-%d %H:%M}"
    assert tool_line(tool("shell", "coder", "assistant", used=at), EVERYONE, PLAIN) == f"{'shell':<18}  run · {used}"
    assert tool_line(tool("python", "coder"), EVERYONE, PLAIN).endswith("run · not used recently · available to coder")
    assert tool_line(tool("task"), EVERYONE, PLAIN).endswith("available to nobody")
    changed = tool_line(tool("time__now", *EVERYONE, origin="time", changed=True), EVERYONE, PLAIN)
    assert changed.endswith("run · from time · not used recently · description changed: permissions do not apply")


def test_names_are_aligned_with_colours_too() -> None:
    style = Style(colour=True, unicode=True)
    assert tool_line(tool("task"), EVERYONE, style).startswith(style.bold(f"{'task':<18}") + "  ")


def test_a_prompt_shows_which_arguments_it_needs() -> None:
    arguments = (McpPromptArgument(name="city", required=True), McpPromptArgument(name="day"))
    assert prompt_line(McpPrompt(name="ask", arguments=arguments)) == "ask city=… [day=…]"
    assert prompt_line(McpPrompt(name="ask", description="Asks.")) == "ask  Asks."


def test_keys_among_the_variables_are_stored_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "secret-value-of-a-token")
    environment, keys = variables(("A_TOKEN", "PLAIN=word", "OTHER_KEY=${A_TOKEN}"))
    assert environment == {"A_TOKEN": "${A_TOKEN}", "PLAIN": "word", "OTHER_KEY": "${A_TOKEN}"}
    assert keys == {"A_TOKEN": "secret-value-of-a-token"}
    with pytest.raises(UsageError, match="MISSING is not set here"):
        variables(("MISSING",))
