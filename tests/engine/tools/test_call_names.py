"""What a name in a call can mean, with tools of servers beside the app's own."""

import pytest

from errand.engine.tools.call_names import meanings, names_text

TOOLS = (
    "shell",
    "code",
    "web_fetch",
    "files__read_file",
    "github__create_issue",
    "gitlab__create_issue",
    "a__b",
    "A__B",
)


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("WebFetch", ["web_fetch"]),
        ("files.read_file", ["files__read_file"]),
        ("mcp__files__read_file", ["files__read_file"]),
        ("mcp_github_create_issue", ["github__create_issue"]),
        ("github:create_issue", ["github__create_issue"]),
        ("code.read", ["code"]),
        ("read_file", ["files__read_file", "code"]),
        ("create_issue", ["github__create_issue", "gitlab__create_issue"]),
        ("a.b", ["a__b", "A__B"]),
        ("a__b", ["a__b"]),
        ("files.shell", []),
        ("gone__shell", []),
        ("gone__read_file", []),
        ("github.read_file", []),
        ("python", []),
        ("", []),
    ],
)
def test_name_means_these_tools(name: str, tools: list[str]) -> None:
    assert [meaning.tool for meaning in meanings(name, TOOLS)] == tools


def test_sentence_names_the_tools_of_an_ambiguous_name_alone() -> None:
    assert "github__create_issue or gitlab__create_issue" in names_text("create_issue", TOOLS, TOOLS)
    assert "web_fetch" in names_text("launch_rocket", TOOLS, TOOLS)


def test_long_list_of_tools_is_cut() -> None:
    names = [f"server__tool{number}" for number in range(100)]
    text = names_text("launch_rocket", names, names)
    assert text.endswith("server__tool59 and 40 more.")
