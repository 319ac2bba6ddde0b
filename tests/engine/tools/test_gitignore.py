"""What .gitignore names is left out of lists and searches; the expected paths are what git itself says."""

from pathlib import Path

import pytest

from app.engine.tools.base import Tool, ToolContext
from app.engine.tools.file_walk import is_file, walk
from app.engine.tools.gitignore import GitIgnore
from tests.support.loop_parts import make_workplace, run, text_of, tool_of

NOTE = "[what .gitignore names is left out; set ignored to have it]"


@pytest.fixture
def workplace(tmp_path: Path) -> ToolContext:
    return make_workplace(tmp_path)


@pytest.fixture
def code(workplace: ToolContext) -> Tool:
    return tool_of(workplace, "code")


def put(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def kept(root: Path) -> list[str]:
    found = walk(root, lambda: False, GitIgnore(root).leaves_out)
    return [name for name, entry in found if is_file(entry) and entry.name != ".gitignore"]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("# a comment\n\n", ["a.log", "b/a.log", "b/c/d", "build/x", "keep.log", "x y"]),
        ("*.log", ["b/c/d", "build/x", "x y"]),
        ("*.log\n!keep.log", ["b/c/d", "build/x", "keep.log", "x y"]),
        ("!keep.log\n*.log", ["b/c/d", "build/x", "x y"]),
        ("/a.log", ["b/a.log", "b/c/d", "build/x", "keep.log", "x y"]),
        ("b/a.log", ["a.log", "b/c/d", "build/x", "keep.log", "x y"]),
        ("build/", ["a.log", "b/a.log", "b/c/d", "keep.log", "x y"]),
        ("keep.log/", ["a.log", "b/a.log", "b/c/d", "build/x", "keep.log", "x y"]),
        ("**/d", ["a.log", "b/a.log", "build/x", "keep.log", "x y"]),
        ("b/**/d", ["a.log", "b/a.log", "build/x", "keep.log", "x y"]),
        ("b/**\n!b/a.log", ["a.log", "b/a.log", "build/x", "keep.log", "x y"]),
        ("b\n!b/a.log", ["a.log", "build/x", "keep.log", "x y"]),
        ("[!k]*.log", ["b/c/d", "build/x", "keep.log", "x y"]),
        ("[^k]*.log", ["b/c/d", "build/x", "keep.log", "x y"]),
        ("x y  ", ["a.log", "b/a.log", "b/c/d", "build/x", "keep.log"]),
        ("\\x\\ y\n\\*.log", ["a.log", "b/a.log", "b/c/d", "build/x", "keep.log"]),
        ("*", []),
    ],
)
def test_rules_mean_what_they_mean_to_git(tmp_path: Path, rules: str, expected: list[str]) -> None:
    put(tmp_path, {name: "" for name in ("a.log", "keep.log", "b/a.log", "b/c/d", "build/x", "x y")})
    put(tmp_path, {".gitignore": rules})
    assert kept(tmp_path) == expected


def test_a_file_deeper_down_decides_before_those_above_it(tmp_path: Path) -> None:
    put(
        tmp_path,
        {".gitignore": "*.log\n/b", "a/.gitignore": "!a.log\nb", "a/a.log": "", "a/b": "", "a/c.log": ""},
    )
    put(tmp_path, {"b": "", "c/b": ""})
    assert kept(tmp_path) == ["a/a.log", "c/b"]


def test_the_rules_of_the_repository_hold_in_its_folders(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    put(tmp_path, {".gitignore": "*", "repository/.git/HEAD": "", "repository/.gitignore": "*.log\n/src/made"})
    put(repository, {"src/a": "", "src/a.log": "", "src/made/b": "", "src/made/c.log": ""})
    assert kept(repository / "src") == ["a"]
    assert kept(repository / "src" / "made") == ["b", "c.log"]  # it was asked for


def test_outside_of_a_repository_folders_above_have_no_say(tmp_path: Path) -> None:
    put(tmp_path, {".gitignore": "*", "src/a": "", "src/b": "", "src/.gitignore": "b"})
    assert kept(tmp_path / "src") == ["a"]


def test_a_file_that_cannot_be_read_has_no_rules(tmp_path: Path) -> None:
    put(tmp_path, {"rules": "*", "a/x": "", "b/x": "", "c/x": "", "c/.gitignore": "x\n" * 300_000})
    (tmp_path / "a" / ".gitignore").symlink_to(tmp_path / "rules")
    (tmp_path / "b" / ".gitignore").mkdir()
    assert kept(tmp_path) == ["a/x", "b/x", "c/x", "rules"]


def test_a_hostile_pattern_does_not_hold_up_a_walk(tmp_path: Path) -> None:
    """With a regular expression that backtracks this would take years."""
    put(tmp_path, {".gitignore": f"{'*a' * 100}b\n{'**/a/' * 80}b\n[\n[z-a]\n{'(' * 50}", "a" * 200: ""})
    assert kept(tmp_path) == ["a" * 200]


async def test_lists_and_searches_leave_out_what_gitignore_names(workplace: ToolContext, code: Tool) -> None:
    put(workplace.workspace, {".gitignore": "build/\n", "a.py": "x\n", "build/b.py": "x\n"})
    assert text_of(await run(code, {"action": "list"})) == f".gitignore\na.py\n{NOTE}"
    assert text_of(await run(code, {"action": "list", "glob": "*.py"})) == f"a.py\n{NOTE}"
    assert text_of(await run(code, {"action": "search", "pattern": "x"})) == f"a.py:1: x\n{NOTE}"
    assert text_of(await run(code, {"action": "search", "pattern": "y"})) == f"(no hits)\n{NOTE}"
    assert text_of(await run(code, {"action": "search", "pattern": "x", "path": "build"})) == "b.py:1: x"
    assert text_of(await run(code, {"action": "search", "pattern": "x", "path": "build/b.py"})) == "b.py:1: x"
    assert text_of(await run(code, {"action": "list", "ignored": True})) == ".gitignore\na.py\nbuild/"
    assert text_of(await run(code, {"action": "list", "ignored": True, "glob": "*.py"})) == "a.py\nbuild/b.py"
    found = await run(code, {"action": "search", "pattern": "x", "ignored": True})
    assert text_of(found) == "a.py:1: x\nbuild/b.py:1: x"
