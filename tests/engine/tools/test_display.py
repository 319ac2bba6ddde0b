"""The display of calls, as declared by their tools."""

from importlib.resources import files
from typing import cast

import pytest

from errand.engine.tools.call_display import display_of, summary_with_time, with_facts
from errand.engine.tools.registry import CONTROL_TOOLS, TOOLS
from errand.protocol.base import JsonObject
from errand.protocol.blocks import CallDisplay, Location, ResultFacts, ToolResultBlock

CALLS: tuple[tuple[str, JsonObject, CallDisplay], ...] = (
    (
        "shell",
        {"command": "make test"},
        CallDisplay(
            kind="execute",
            running="running",
            done="ran",
            target="make test",
            icon="terminal",
            content="command",
            language="bash",
            shows_output_end=True,
        ),
    ),
    (
        "shell",
        {"command": "make\n\tall", "working_dir": "src"},
        CallDisplay(
            kind="execute",
            running="running",
            done="ran",
            target="make\n\tall",
            icon="terminal",
            content="command",
            shows_output_end=True,
        ),
    ),
    (
        "code",
        {"action": "read", "path": "a/b.py"},
        CallDisplay(
            kind="read",
            locations=(Location(path="a/b.py"),),
            running="reading",
            done="read",
            target="a/b.py",
            target_is_path=True,
            icon="file-text",
        ),
    ),
    (
        "code",
        {"action": "write", "path": "a\u202eb", "content": "x"},
        CallDisplay(
            kind="edit",
            locations=(Location(path="a\u202eb"),),
            running="writing",
            done="wrote",
            target="a\u202eb",
            target_is_path=True,
            icon="file-plus",
        ),
    ),
    (
        "code",
        {"action": "patch", "path": " ", "old": "x"},
        CallDisplay(
            kind="edit",
            locations=(Location(path=" "),),
            running="changing",
            done="changed",
            target=" ",
            target_is_path=True,
            icon="file-pen",
        ),
    ),
    (
        "code",
        {"action": "list"},
        CallDisplay(
            kind="search",
            locations=(Location(path="."),),
            running="listing",
            done="listed",
            target=".",
            target_is_path=True,
            icon="folder",
        ),
    ),
    (
        "code",
        {"action": "create_dir", "path": 7},
        CallDisplay(
            kind="edit",
            locations=(Location(path="."),),
            running="making",
            done="made",
            target=".",
            target_is_path=True,
            icon="folder",
        ),
    ),
    (
        "code",
        {"action": "search", "pattern": "def main", "path": "src"},
        CallDisplay(
            kind="search",
            locations=(Location(path="src"),),
            running="searching for",
            done="searched for",
            target="def main",
            icon="text-search",
        ),
    ),
    (
        "code",
        {"action": "fly"},
        CallDisplay(
            kind="other",
            locations=(Location(path="."),),
            running="code fly",
            done="code fly",
            target=".",
            target_is_path=True,
        ),
    ),
    (
        "code",
        {},
        CallDisplay(
            kind="other",
            locations=(Location(path="."),),
            running="code ",
            done="code ",
            target=".",
            target_is_path=True,
        ),
    ),
    (
        "task_complete",
        {"summary": "Done."},
        CallDisplay(
            kind="other", running="finishing", done="finished", icon="flag", role="completion", content="summary"
        ),
    ),
    (
        "ask_user",
        {"question": "Which?"},
        CallDisplay(
            kind="other",
            running="asking you",
            done="asked you",
            icon="circle-question-mark",
            role="question",
            content="question",
        ),
    ),
    (
        "send_update",
        {},
        CallDisplay(
            kind="other",
            running="telling you",
            done="told you",
            icon="message-square",
            role="message",
            content="message",
        ),
    ),
    ("unreadable_call", {}, CallDisplay(kind="other", running="reading a call", done="read a call")),
    (
        "fetch\nit",
        {"url": "x"},
        CallDisplay(kind="other", running="using fetch\nit", done="used fetch\nit", target="x"),
    ),
)


@pytest.mark.parametrize(("tool", "arguments", "expected"), CALLS)
def test_a_tool_declares_how_its_calls_are_shown(tool: str, arguments: JsonObject, expected: CallDisplay) -> None:
    assert display_of(tool, arguments) == expected


def test_a_very_long_target_is_cut_since_the_arguments_have_all_of_it() -> None:
    target = display_of("shell", {"command": "echo " + "x" * 100_000}).target
    assert (len(target), target[-1]) == (1_001, "…")


def result(summary: str, details: JsonObject | None) -> ToolResultBlock:
    return ToolResultBlock(call_id="1", tool="shell", text="out", is_error=False, summary=summary, details=details)


def test_facts_replace_result_details() -> None:
    change: JsonObject = {"path": "/a", "diff": "-a\n+b\n", "added": 1, "removed": 0, "created": False}
    assert with_facts(result("+1 −0", change)) == ToolResultBlock(
        call_id="1",
        tool="shell",
        text="out",
        is_error=False,
        summary="+1 −0",
        details={"path": "/a", "created": False},
        facts=ResultFacts(diff="-a\n+b\n", added=1, removed=0),
    )
    command = with_facts(result("exit 0", {"exit_code": 0, "duration_ms": 1210, "stderr_file": "/b"}))
    assert (command.details, command.facts) == ({"exit_code": 0}, ResultFacts(duration_ms=1210, output_file="/b"))


def test_call_that_did_not_run_has_no_facts_and_invalid_details_are_ignored() -> None:
    refused = result("denied", None)
    assert with_facts(refused) == refused
    odd: JsonObject = {"duration_ms": "long", "diff": ["x"], "added": True, "removed": 1.5, "stdout_file": 7}
    assert with_facts(result("", odd)).facts == ResultFacts()


def test_facts_are_made_once() -> None:
    described = with_facts(result("exit 0", {"duration_ms": 9}))
    assert with_facts(described) == described


@pytest.mark.parametrize("summary", ["exit 0", "exit 0, 1.2 s"])
def test_duration_is_separate_from_the_summary_also_for_older_records(summary: str) -> None:
    details: JsonObject = {"duration_ms": 1210}
    assert with_facts(result(summary, details)).summary == "exit 0"
    assert summary_with_time(summary, details) == "exit 0, 1.2 s"


def test_a_result_without_a_time_is_listed_by_its_summary() -> None:
    assert (summary_with_time("12 lines", {"lines": 12}), summary_with_time("denied", None)) == ("12 lines", "denied")


def test_a_tool_of_another_program_is_shown_with_the_argument_that_tells_most() -> None:
    ran = display_of("Bash", {"description": "List the files", "command": "ls"})
    read = display_of("Read", {"file_path": "/home/nobody/notes.txt", "limit": 5})
    other = display_of("no_such_tool", {"a": 1, "path": 7})
    assert (ran.done, ran.target, ran.target_is_path) == ("used Bash", "ls", False)
    assert (read.running, read.target, read.target_is_path) == ("using Read", "/home/nobody/notes.txt", True)
    assert other.target == ""


def actions_of(parameters: JsonObject) -> list[str]:
    properties = cast(dict[str, dict[str, list[str]]], parameters["properties"])
    return [name for argument in ("action", "operation") for name in properties.get(argument, {}).get("enum", [])]


@pytest.mark.parametrize(
    ("name", "actions"), [(tool.name, actions_of(tool.parameters)) for tool in (*TOOLS, *CONTROL_TOOLS)]
)
def test_the_icons_that_a_tool_declares_are_vendored(name: str, actions: list[str]) -> None:
    icons = {display_of(name, {"action": action}).icon for action in (*actions, "")}
    missing = {icon for icon in icons if not (files("errand.resources") / "icons" / f"{icon}.svg").is_file()}
    assert not missing, "add resources/icons/NAME.svg from lucide.dev"
