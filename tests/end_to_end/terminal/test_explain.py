"""`errand explain` answers from the policy, without an engine."""

import asyncio
import shlex
import sys
from asyncio.subprocess import PIPE

import msgspec

from errand.system.paths import Paths
from tests.support.command_line import Errand


async def test_a_command_a_path_and_an_address_are_explained(errand: Errand) -> None:
    command = await errand.run("explain", "cat a | wc -l > b; rm -rf build")
    assert command.code == 0
    assert command.out.startswith("ask: deletes files for good\nrule    danger\n")
    assert "part 2  |   'wc' '-l'  > 'b'\n" in command.out
    assert "also    ask, redirect: it writes to b\n" in command.out
    path = await errand.run("explain", "--path", "../x")
    assert path.out.startswith("deny: ../x leaves the workspace by ..\nrule    path\n")
    assert "`errand grants` lists what you allowed and denied\n" in path.out
    address = await errand.run("explain", "--address", "http://localhost@evil.example/")
    assert address.out == "deny: a name before @ hides the real host\nrule    address\n"


async def test_a_workspace_that_errand_made_is_explained_as_the_engine_judges_it(errand: Errand) -> None:
    own = Paths(errand.home).workspaces / "one"
    own.mkdir(parents=True)
    for path, expected in (("a", "allow"), (".env", "ask"), ("../../settings.toml", "deny")):
        explained = await errand.run("explain", "--path", path, "--workspace", str(own))
        assert explained.out.startswith(f"{expected}: ")


async def test_cases_are_answered_line_by_line_and_broken_ones_are_asked_about(errand: Errand) -> None:
    case = {"id": "a", "kind": "shell", "input": {"command": "ls"}, "context": {"trusted": True}}
    lines = [msgspec.json.encode(case).decode(), "{broken", '{"id":"b","kind":"ws","input":{}}']
    answered = await errand.run("explain", "--json", typed="\n".join(lines) + "\n")
    assert [(line["id"], line["decision"]) for line in answered.lines] == [("a", "allow"), ("", "ask"), ("b", "ask")]


async def test_naming_nothing_or_two_things_is_wrong_usage(errand: Errand) -> None:
    refused = await errand.run("explain")
    assert (refused.code, refused.out) == (2, "")
    (error,) = (await errand.run("explain", "ls", "--json")).lines
    assert error["error"] and error["exitCode"] == 2


async def test_a_reader_that_has_enough_ends_it_without_an_error_text() -> None:
    case = msgspec.json.encode({"id": "a", "kind": "url", "input": {"url": "http://localhost/"}})
    line = f"{shlex.join((sys.executable, '-m', 'errand'))} explain --json | head -n 1"
    process = await asyncio.create_subprocess_exec("bash", "-c", line, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    out, err = await process.communicate((case + b"\n") * 5_000)
    assert (out.count(b"\n"), err) == (1, b"")
