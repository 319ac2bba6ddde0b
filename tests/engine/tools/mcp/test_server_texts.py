"""What a server starts, as a person sees it before they trust it: no argument can look like another line."""

import shlex
import subprocess

import pytest

from errand.engine.core.errors import InvalidParams
from errand.engine.core.setting_values import McpServer
from errand.engine.tools.mcp.configuration import ServerSpec, check_server, started_text
from errand.text.visible_text import argument_text, command_text

HIDDEN = ("\n", "\r", "\t", "\0", "\x1b[2K", "\u202e", "\u2066", "\u200b", "\u2028", "\x85", "\u00a0", "\U000e0041")


def test_a_part_of_a_server_stays_on_its_line_whatever_it_contains() -> None:
    forged = "x\nFolder: /safe\r\u2028Runs in the sandbox\u202e"
    server = ServerSpec("a", ("run", forged, "b"), environment=(("A", forged),), workspace=f"/w/{forged}")
    lines = started_text(server).splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == ["Command", "Variable", "Folder"]
    assert lines[-1].startswith("Runs outside the sandbox")
    web = ServerSpec("a", url="https://example.org/\u202emcp", headers=(("A", forged),))
    address, header = started_text(web).splitlines()
    assert (address, header[:12]) == ("Address: https://example.org/\\u202emcp", "Header: A: $")


@pytest.mark.parametrize("character", HIDDEN)
def test_every_hidden_character_of_an_argument_is_spelled_out(character: str) -> None:
    quoted = argument_text(f"a{character}b")
    assert quoted.isprintable() and quoted.startswith("$'a\\") and quoted != argument_text("ab")


@pytest.mark.parametrize("argument", ["a\nb", "it's\n", "\t'\\u202e", "\x1b[1m\n", "plain", "two words", "it's", "é"])
def test_what_is_displayed_is_what_a_shell_would_run(argument: str) -> None:
    line = command_text(("printf", "%s.", argument, ""))
    assert "\n" not in line
    run = subprocess.run(["bash", "-c", line], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}, timeout=120)
    assert run.stdout.decode() == f"{argument}.."


def test_an_ordinary_command_is_quoted_as_usual() -> None:
    argv = ("npx", "-y", "@scope/server", "two words", "$HOME", "")
    assert command_text(argv) == shlex.join(argv)


def test_a_wrong_name_of_a_variable_is_spelled_out_in_the_error() -> None:
    server = McpServer(name="a", command=("run",), env={"N\u3164M\n": "x"})
    with pytest.raises(InvalidParams, match=r"^env: \$'N\\u3164M\\n' is not the name of a variable\.$"):
        check_server(server)
