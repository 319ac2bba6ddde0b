"""Small pure functions: environment, output clean-up, diffs, glob patterns, schemas, the registry."""

from pathlib import Path

import pytest

from errand.engine.core.errors import ConfigurationError
from errand.engine.tools.code.edits import diff_texts
from errand.engine.tools.files.file_walk import matches
from errand.engine.tools.plain_text import clean_output, without_hidden
from errand.engine.tools.registry import TOOLS, bind, common_tools
from errand.engine.tools.shell.environment import clean_environment
from tests.support.loop_parts import make_tool_context


def test_commands_get_the_users_environment_without_keys() -> None:
    own = {"PATH": "/bin", "LC_ALL": "C", "SSH_AUTH_SOCK": "/run/agent", "LD_PRELOAD": "/lib/own.so"}
    keys = {"OPENAI_API_KEY": "my-key-0123", "COPY": "my-key-0123", "AWS_SECRET_ACCESS_KEY": "x"}
    none = clean_environment({})
    assert none["PATH"] == "/usr/local/bin:/usr/bin:/bin"
    assert clean_environment(own | keys) == none | own
    assert clean_environment({"KUBE_EDITOR": "vim", "EDITOR": "vim"}) == none | {"KUBE_EDITOR": none["EDITOR"]}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\n", "a\nb\n"),
        (b"1%\r50%\r100%\n", "100%\n"),
        (b"100%\r", "100%"),
        (b"\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link", "red link"),
        (b"a\x08b\x00c\td\n", "b\ufffdc\td\n"),
        (b"\xff", "\ufffd"),
    ],
)
def test_output_is_cleaned(data: bytes, text: str) -> None:
    assert clean_output(data) == text


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("".join(chr(0xE0000 + ord(letter)) for letter in "obey") + "plain", "plain"),
        ("in\u00advisible\u200b\u2060\ufeff", "invisible"),
        ("a" + "\u200c\u200d" * 8 + "b", "ab"),
        ("x\ufe00\ufe01\ufe02\ufe03\U000e0101y", "xy"),
        ("👩\u200d💻 ✔\ufe0f \u200fשלום\u200e می\u200cخواهم", "👩\u200d💻 ✔\ufe0f \u200fשלום\u200e می\u200cخواهم"),
    ],
)
def test_what_is_hidden_in_a_text_is_left_out(text: str, visible: str) -> None:
    assert without_hidden(text) == visible


def test_equal_texts_have_no_difference() -> None:
    assert diff_texts("a\n", "a\n", "f").diff == ""


def test_a_change_in_a_long_text_shows_its_true_line_numbers() -> None:
    lines = [f"{number}\n" for number in range(1, 30_001)]
    change = diff_texts("".join(lines), "".join([*lines[:20_000], "new\n", *lines[20_000:]]), "f")
    assert change.diff.startswith("--- f\n+++ f\n@@ -19998,6 +19998,7 @@\n 19998\n")
    assert (change.added, change.removed, change.summary) == (1, 0, "+1 −0")


def test_a_text_replaced_whole_is_counted_and_its_diff_is_bounded() -> None:
    change = diff_texts("".join(f"a{n}\n" for n in range(9000)), "".join(f"b{n}\n" for n in range(9000)), "f")
    assert (change.added, change.removed) == (9000, 9000)
    assert len(change.diff) < 21_000


def test_a_missing_last_newline_is_marked() -> None:
    assert diff_texts("a", "b", "f").diff.splitlines()[3:] == [
        "-a",
        "\\ No newline at end of file",
        "+b",
        "\\ No newline at end of file",
    ]


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("src/a.py", "*.py", True),
        ("src/a.py", "src/*.py", True),
        ("src/deep/a.py", "src/*.py", False),
        ("src/deep/a.py", "src/**/*.py", True),
        ("src/a.py", "src/**/*.py", True),
        ("a.py", "**/*.py", True),
        ("a.ts", "*.{js,ts}", True),
        ("a{b}", "a{b}", True),
        ("src/a.py", "./src/a.py", True),
        ("a" * 200, "*a*a*a*a*a*a*a*a*a*a*a*a*b", False),
        ("a", "{a,b}" * 40, False),
    ],
)
def test_glob_patterns_match_as_people_expect(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, pattern) is expected


def test_schemas_are_plain_objects_without_references(tmp_path: Path) -> None:
    for tool in bind(make_tool_context(tmp_path)):
        assert tool.parameters["type"] == "object"
        assert "$ref" not in str(tool.parameters) and "anyOf" not in str(tool.parameters)


def test_tools_are_bound_by_name_and_unknown_names_are_refused(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    assert [tool.name for tool in bind(context)] == [tool.name for tool in TOOLS]
    assert [tool.name for tool in bind(context, ("code",))] == ["code"]
    named = ", ".join(sorted([*(tool.name for tool in TOOLS), "mcp", "code:read", "shell:read", "browser:read"]))
    with pytest.raises(ConfigurationError, match=f"There is no tool nothing; there are {named}"):
        bind(context, ("nothing",))


@pytest.mark.parametrize(
    ("lists", "common"),
    [
        (((), ()), ()),
        ((("shell", "code"), ()), ("shell", "code")),
        (((), ("mcp:a",)), ("mcp:a",)),
        ((("mcp", "shell"), ("mcp:a", "b__one", "code")), ("mcp:a", "b__one")),
        ((("mcp:a",), ("a__one", "b__one"), ()), ("a__one",)),
        ((("code:read", "shell"), ("code", "shell:read")), ("code:read", "shell:read")),
        (((), ("code:read",), ("code",)), ("code:read",)),
    ],
)
def test_what_lists_of_tools_have_in_common(lists: tuple[tuple[str, ...], ...], common: tuple[str, ...]) -> None:
    assert common_tools(*lists) == common


def test_lists_without_a_common_tool_are_refused_since_an_empty_list_is_all() -> None:
    with pytest.raises(ConfigurationError, match="None of these tools may be used here: code"):
        common_tools(("shell",), ("code",), ("shell",))
