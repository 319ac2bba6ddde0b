"""What .gitignore names is left out of lists and searches; the expected paths are what git itself says."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from errand.engine.tools.base import Tool
from errand.engine.tools.code.search import list_files
from errand.engine.tools.context import ToolContext
from errand.engine.tools.files.file_walk import is_file, keep_all, matches, walk
from errand.engine.tools.files.git_excludes import personal_excludes
from errand.engine.tools.files.gitignore import GitIgnore
from errand.engine.tools.results import ToolError
from tests.support.loop_parts import make_tool_context, run, text_of, tool_of

NOTE = "[what .gitignore names is left out; set ignored to have it]"


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_tool_context(tmp_path)


@pytest.fixture
def code(context: ToolContext) -> Tool:
    return tool_of(context, "code")


def put(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def kept(root: Path, personal: Path | None = None) -> list[str]:
    walked = walk(root, lambda: False, GitIgnore(root, personal).leaves_out)
    return [name for name, entry in walked if is_file(entry) and entry.name != ".gitignore"]


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
def test_rules_have_the_same_meaning_as_in_git(tmp_path: Path, rules: str, expected: list[str]) -> None:
    put(tmp_path, {name: "" for name in ("a.log", "keep.log", "b/a.log", "b/c/d", "build/x", "x y")})
    put(tmp_path, {".gitignore": rules})
    assert kept(tmp_path) == expected


def test_deeper_gitignore_takes_precedence(tmp_path: Path) -> None:
    put(
        tmp_path,
        {".gitignore": "*.log\n/b", "a/.gitignore": "!a.log\nb", "a/a.log": "", "a/b": "", "a/c.log": ""},
    )
    put(tmp_path, {"b": "", "c/b": ""})
    assert kept(tmp_path) == ["a/a.log", "c/b"]


def test_rules_of_a_repository_apply_in_its_folders(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    put(tmp_path, {".gitignore": "*", "repository/.git/HEAD": "", "repository/.gitignore": "*.log\n/src/made"})
    put(repository, {"src/a": "", "src/a.log": "", "src/made/b": "", "src/made/c.log": ""})
    assert kept(repository / "src") == ["a"]
    assert kept(repository / "src" / "made") == ["b", "c.log"]  # it was asked for


def test_outside_a_repository_parent_folders_have_no_effect(tmp_path: Path) -> None:
    put(tmp_path, {".gitignore": "*", "src/a": "", "src/b": "", "src/.gitignore": "b"})
    assert kept(tmp_path / "src") == ["a"]


def test_a_file_that_cannot_be_read_has_no_rules(tmp_path: Path) -> None:
    put(tmp_path, {"rules": "*", "a/x": "", "b/x": "", "c/x": "", "c/.gitignore": "x\n" * 300_000})
    (tmp_path / "a" / ".gitignore").symlink_to(tmp_path / "rules")
    (tmp_path / "b" / ".gitignore").mkdir()
    assert kept(tmp_path) == ["a/x", "b/x", "c/x", "rules"]


@pytest.mark.parametrize(
    ("rule", "left_out"),
    [
        ("[[:alpha:]]x", ["ax"]),
        ("[[:digit:]]y", ["1y"]),
        ("[![:space:][:alnum:]]q", ["\\q", "]q"]),
        ("[a\\]]q", ["]q", "aq"]),
        ("[]a]q", ["]q", "aq"]),
        ("[c-a]?", ["c]"]),  # the reversed range has only its start
        ("c[^a/]", ["c]"]),
        ("c\\]", ["c]"]),
        ("x\\", []),
        ("x\\\\", ["x\\"]),
        ("x\\\\ ", ["x\\"]),
        ("[a", []),
        ("[[:alpha:]", []),
        ("[[:nothing:]a]x", []),
        ("[[:a]]x", []),
        ("**/***/d", ["b/c/d"]),
        ("b//c", []),
        ("//ax", []),
        ("?x", ["ax"]),  # a byte, not a letter
        ("??x", ["\xe4x"]),
    ],
)
def test_brackets_and_escapes_have_the_same_meaning_as_in_git(tmp_path: Path, rule: str, left_out: list[str]) -> None:
    names = ["1y", "\\q", "]q", "aq", "ax", "b/c/d", "c]", "x\\", "\xe4x"]
    put(tmp_path, {name: "" for name in names})
    (tmp_path / ".gitignore").write_bytes(rule.encode() + b"\r\n")
    assert [name for name in names if name not in kept(tmp_path)] == left_out


NAMES = "a x #a d/b d/ab d/1 d/] d/- d/[ d/xb d/a] d/é d/d/a b/a b/c/x c/a/1 c/ab x1/a/b"
PIECES = r"""
    a b c x 1 ] [ - ! ^ # . \ * ** ? / */ **/ /** /**/ x\ \* \x é [a [:] [ab] [!a] [^b] [a-c] [c-a] [a\]] [a-\c] []a]
    []-a] [a-] [--0] [é] [[:alpha:]] [[:digit:]] [[:punct:]x] [!][:space:]] [[:foo:]] [[:alpha:] [[:a]]
"""


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
def test_random_rules_ignore_the_same_files_as_git(tmp_path: Path) -> None:
    """Each folder has its own rules; git lists all of them at once."""
    choices = random.Random(9)
    for number in range(300):
        rules = [
            "".join(choices.choices(PIECES.split(), k=choices.randint(1, 5))) for _ in range(choices.choice([1, 1, 3]))
        ]
        rules = [choices.choice(["", "", "", "!"]) + rule + choices.choice(["", "", "", "/", " "]) for rule in rules]
        put(tmp_path / str(number), {name: "" for name in NAMES.split()})
        put(tmp_path / str(number), {".gitignore": "\n".join(rules)})
    environment = os.environ | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", tmp_path], check=True, env=environment)
    git = ["git", "-C", tmp_path, "ls-files", "-z", "--others", "--exclude-standard"]
    listed = subprocess.run(git, capture_output=True, check=True, env=environment).stdout.decode().split("\0")
    assert sorted(kept(tmp_path)) == sorted(name for name in listed if name and not name.endswith(".gitignore"))


def not_ignored_by_git(folder: Path, environment: dict[str, str]) -> list[str]:
    git = ["git", "-C", folder, "ls-files", "-z", "--others", "--cached", "--exclude-standard"]
    listed = subprocess.run(git, capture_output=True, check=True, env=environment).stdout.decode().split("\0")
    return sorted(
        name for name in listed if (folder / name).is_file() and Path(name).name not in (".gitignore", ".git")
    )


OF_ALL = {name: "" for name in ("a.log", "a.mine", "a.own", "keep.own", "a.sub", "src/a.mine", "src/a.own", "src/x")}


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
def test_excludes_of_the_repository_and_of_the_person_have_the_same_meaning_as_in_git(tmp_path: Path) -> None:
    """Also in a worktree and in a submodule, where `.git` is a file."""
    put(tmp_path, {".gitconfig": '[include]\n  path = "more config" # included\n[core] excludesfile = ~/\\"mine\\"\n'})
    put(tmp_path, {"more config": "[core]\nexcludesFile = /nowhere\n", '"mine"': "*.mine\n*.log\n"})
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(folder: Path, *arguments: str) -> None:
        settings = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
        subprocess.run(("git", "-C", folder, *settings, *arguments), check=True, capture_output=True, env=environment)

    main, other, tree = tmp_path / "main", tmp_path / "other", tmp_path / "tree"
    for folder in (main, other):
        git(tmp_path, "init", "-q", str(folder))
        put(folder, {"first": ""})
        git(folder, "add", "first")
        git(folder, "commit", "-qm", "first")
    git(main, "submodule", "add", str(other), "sub")
    git(main, "commit", "-qm", "sub")
    git(main, "worktree", "add", str(tree))
    put(main, {".gitignore": "!a.log\n*.sub\n", ".git/info/exclude": "*.own\n!keep.own\n!src/a.mine\n"})
    put(main, {".git/modules/sub/info/exclude": "x\n"})
    put(tree, {".gitignore": "src"})
    for folder in (main, main / "sub", tree):
        put(folder, OF_ALL)
    personal = personal_excludes(environment)
    assert personal == tmp_path / '"mine"'
    for folder in (main / "sub", tree):
        assert kept(folder, personal) == not_ignored_by_git(folder, environment), folder
    inner = [name for name in kept(main, personal) if name.startswith("sub/")]
    assert inner == [f"sub/{name}" for name in not_ignored_by_git(main / "sub", environment)]
    outer_names = [name for name in kept(main, personal) if not name.startswith("sub/")]
    assert outer_names == not_ignored_by_git(main, environment)
    assert kept(main / "src", personal) == ["a.mine", "x"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", ".config/git/ignore"),
        ("[core]\n\texcludesFile = ~/x # mine", "x"),
        ('[other]\nexcludesFile = ~/x\n[core "sub"]\nexcludesFile = ~/y', ".config/git/ignore"),
        ("[core]\nexcludesfile=~/x\nexcludesfile = ~/y", "y"),
        ("[core]\nexcludesfile = ~other/x", None),
        ("[core]\nexcludesfile =", None),
        ("[include]\npath = .gitconfig", ".config/git/ignore"),  # itself
        ("\0[core\n=", ".config/git/ignore"),
    ],
)
def test_the_persons_own_file_is_the_one_that_git_would_read(
    tmp_path: Path, settings: str, expected: str | None
) -> None:
    put(tmp_path, {".gitconfig": settings})
    environment = {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    assert personal_excludes(environment) == (tmp_path / expected if expected else None)


def test_a_repository_names_no_file_outside_of_it(tmp_path: Path) -> None:
    put(tmp_path, {"secret": "a\n", "main/.git/config": f"[core]\nexcludesFile = {tmp_path}/secret\n", "main/a": ""})
    assert kept(tmp_path / "main", personal_excludes({"HOME": str(tmp_path)})) == ["a"]


def test_hostile_pattern_does_not_slow_down_a_walk(tmp_path: Path) -> None:
    """A regular expression that backtracks would take years here."""
    put(tmp_path, {".gitignore": f"{'*a' * 49}b\n{'**/a/' * 19}b\n[\n[z-a]\n{'(' * 50}", "a" * 200: ""})
    assert kept(tmp_path) == ["a" * 200]


def test_many_hostile_rules_in_nested_files_do_not_slow_down_a_walk(tmp_path: Path) -> None:
    """The cost of a path depends neither on its depth nor on the number of files."""
    folder = tmp_path
    for _ in range(40):
        put(folder, {".gitignore": f"{'**/*/' * 15}*a*b\n" * 20})
        folder /= "a"
        put(folder, {"a" * (200 + number): "" for number in range(10)})
    assert len(kept(tmp_path)) == 400


def test_rules_beyond_the_limits_have_no_effect(tmp_path: Path) -> None:
    put(tmp_path, {".gitignore": f"{'*' * 99}b\n{'*' * 100}c\n" + "# no rule\n" * 2_000, "b": "", "c": ""})
    assert kept(tmp_path) == ["c"]
    put(tmp_path, {".gitignore": "x\n" * 1_500, "a/.gitignore": "x\n" * 499 + "y\nz", "a/y": "", "a/z": ""})
    assert kept(tmp_path) == ["a/z", "b", "c"]
    put(tmp_path, {"a/b/.gitignore": "y", "a/b/y": "", "a/b/q": ""})
    assert kept(tmp_path) == ["a/b/q", "a/z", "b", "c"]  # by the file above it


@pytest.mark.parametrize(("others", "expected"), [(63, []), (64, ["aq"])])
def test_a_rule_after_too_many_different_brackets_has_no_effect(
    tmp_path: Path, others: int, expected: list[str]
) -> None:
    rules = [f"[{number:02}]z" for number in range(others)]
    put(tmp_path, {".gitignore": "\n".join([*rules, "[ab]q"]), "aq": ""})
    assert kept(tmp_path) == expected


def test_gitignore_files_beyond_the_limits_have_no_effect(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(21):
        put(folder, {".gitignore": "/x", "x": ""})
        folder /= "a"
    assert kept(tmp_path) == ["a/" * 20 + "x"]


def test_gitignore_files_above_an_ignored_folder_count_towards_the_limits(tmp_path: Path) -> None:
    folder = tmp_path
    put(folder, {".git/HEAD": ""})
    for _ in range(20):
        assert kept(folder) == []
        put(folder, {".gitignore": "*", "x": ""})
        folder /= "a"
        folder.mkdir()
    put(folder, {".gitignore": "*", "x": ""})
    assert kept(folder) == ["x"]


def test_a_glob_of_many_repeated_stars_is_matched_at_once() -> None:
    assert matches("a/b/c", "**/" * 1_000_000 + "c")
    assert not matches("a/b/c", "*/" * 1_000_000 + "c")


def test_a_list_of_one_folder_can_be_cancelled(tmp_path: Path) -> None:
    put(tmp_path, {"a": ""})
    with pytest.raises(ToolError, match="Operation aborted"):
        list_files(tmp_path, "", "", lambda: True, keep_all)


async def test_gitignore_is_not_read_if_ignored_files_are_requested(
    context: ToolContext, code: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(root: Path) -> GitIgnore:
        raise AssertionError(f"rules were read for {root}")

    put(context.workspace, {".gitignore": "a.py", "a.py": "x\n"})
    monkeypatch.setattr("errand.engine.tools.code.tool.GitIgnore", fail)
    assert text_of(await run(code, {"action": "list", "ignored": True})) == ".gitignore\na.py"
    assert text_of(await run(code, {"action": "search", "pattern": "x", "ignored": True})) == "a.py:1: x"


async def test_lists_and_searches_omit_ignored_files(context: ToolContext, code: Tool) -> None:
    put(context.workspace, {".gitignore": "build/\n", "a.py": "x\n", "build/b.py": "x\n"})
    assert text_of(await run(code, {"action": "list"})) == f".gitignore\na.py\n{NOTE}"
    assert text_of(await run(code, {"action": "list", "glob": "*.py"})) == f"a.py\n{NOTE}"
    assert text_of(await run(code, {"action": "search", "pattern": "x"})) == f"a.py:1: x\n{NOTE}"
    assert text_of(await run(code, {"action": "search", "pattern": "y"})) == f"(no hits)\n{NOTE}"
    assert text_of(await run(code, {"action": "search", "pattern": "x", "path": "build"})) == "build/b.py:1: x"
    assert text_of(await run(code, {"action": "search", "pattern": "x", "path": "build/b.py"})) == "build/b.py:1: x"
    assert text_of(await run(code, {"action": "list", "ignored": True})) == ".gitignore\na.py\nbuild/"
    assert text_of(await run(code, {"action": "list", "ignored": True, "glob": "*.py"})) == "a.py\nbuild/b.py"
    search_result = await run(code, {"action": "search", "pattern": "x", "ignored": True})
    assert text_of(search_result) == "a.py:1: x\nbuild/b.py:1: x"
