import os
import tracemalloc
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.base import Tool
from errand.engine.tools.context import ToolContext
from errand.protocol.base import JsonObject
from tests.support.loop_parts import detail, failure, make_tool_context, run, text_of, tool_of


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_tool_context(tmp_path)


@pytest.fixture
def code(context: ToolContext) -> Tool:
    return tool_of(context, "code")


def put(context: ToolContext, name: str, content: bytes | str = "") -> None:
    path = context.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


async def test_read_gives_the_exact_text(context: ToolContext, code: Tool) -> None:
    put(context, "f", "\tone\n\n  two\n")
    result = await run(code, {"action": "read", "path": "f"})
    assert (text_of(result), result.summary) == ("\tone\n\n  two", "3 lines")


async def test_read_of_a_range_says_how_to_continue(context: ToolContext, code: Tool) -> None:
    put(context, "f", "".join(f"{number}\n" for number in range(1, 11)))
    result = await run(code, {"action": "read", "path": "f", "start_line": 3, "end_line": 4})
    assert text_of(result) == "3\n4\n[lines 3–4 of 10; go on with start_line=5]"
    result = await run(code, {"action": "read", "path": "f", "start_line": 9})
    assert text_of(result) == "9\n10\n[lines 9–10 of 10]"


@pytest.mark.parametrize(
    ("arguments", "text"), [({"start_line": 9}, "after its end"), ({"start_line": 3, "end_line": 2}, "before")]
)
async def test_an_impossible_range_is_refused(
    context: ToolContext, code: Tool, arguments: dict[str, int], text: str
) -> None:
    put(context, "f", "1\n2\n3\n")
    assert text in str(await failure(code, {"action": "read", "path": "f", **arguments}))


async def test_a_read_past_the_end_says_where_the_file_ends(context: ToolContext, code: Tool) -> None:
    put(context, "f", "1\n2\n3\n")
    result = await run(code, {"action": "read", "path": "f", "start_line": 2, "end_line": 9})
    assert text_of(result) == "2\n3\n[lines 2–3 of 3]\n[the file ends at line 3]"


@pytest.mark.parametrize(
    ("content", "has"),
    [("", "is empty"), ("1", "has one line"), ("1\n2\n", "has 2 lines"), ("x\n" * 3_000_001, "has 3,000,001 lines")],
    ids=["empty", "one line", "small", "large"],
)
async def test_a_start_past_the_end_is_answered_with_the_number_of_lines(
    context: ToolContext, code: Tool, content: str, has: str
) -> None:
    put(context, "f", content)
    start = content.count("\n") + 1 + (not content.endswith("\n"))
    error = await failure(code, {"action": "read", "path": "f", "start_line": start})
    assert str(error) == f"The file {has}: start_line {start} is after its end."


async def test_a_large_file_with_a_nul_in_the_part_that_is_read_is_binary(context: ToolContext, code: Tool) -> None:
    put(context, "f", b"a" * 9_000 + b"\0" * 6_000_000)
    assert "f is a binary file of 6,009,000 bytes" in str(await failure(code, {"action": "read", "path": "f"}))


async def test_a_search_says_which_files_it_left_out_for_their_size(context: ToolContext, code: Tool) -> None:
    put(context, "large", "needle" * 1_000_000)
    put(context, "small", "needle")
    matches = text_of(await run(code, {"action": "search", "pattern": "needle"}))
    assert matches == "small:1: needle\n[1 file of more than 5 MB left out; to search one, give it as path]"


async def test_names_of_lists_and_searches_can_be_read_as_they_stand(context: ToolContext, code: Tool) -> None:
    put(context, "src/deep/a.py", "one\n")
    assert text_of(await run(code, {"action": "list", "path": "src/deep"})) == "src/deep/a.py"
    assert text_of(await run(code, {"action": "list", "path": "src", "glob": "*.py"})) == "src/deep/a.py"
    for path in ("src", "src/deep/a.py"):
        matches = text_of(await run(code, {"action": "search", "pattern": "one", "path": path}))
        assert matches == "src/deep/a.py:1: one"
    assert text_of(await run(code, {"action": "read", "path": matches.partition(":")[0]})) == "one"


_ODD_NAMES = (
    *(b"new\nline", b" before", b"after ", b"caf\xe9", "caf\u00e9".encode(), b'quo"te', b'"quoted"', b"~", b"~root"),
    *(b"back\\slash", b"tab\t", "zero\u200bwidth".encode(), b"a:3: b", b"$HOME", b"-dash", b"a" * 255, b"\\351"),
)


@pytest.mark.parametrize("folder", [b"", b"o\xe9\n/"], ids=["workspace", "odd folder"])
async def test_odd_names_of_lists_and_searches_can_be_read_as_they_stand(
    context: ToolContext, code: Tool, folder: bytes
) -> None:
    for name in _ODD_NAMES:
        put(context, os.fsdecode(folder + name), b"needle " + repr(name).encode())
    root = "." if not folder else text_of(await run(code, {"action": "list"}))
    listed = text_of(await run(code, {"action": "list", "path": root})).splitlines()
    matches = text_of(await run(code, {"action": "search", "pattern": "needle", "path": root})).splitlines()
    assert len(listed) == len(_ODD_NAMES)
    for name, hit in zip(listed, matches, strict=True):
        assert hit == f"{name}:1: {text_of(await run(code, {'action': 'read', 'path': name}))}"


async def test_a_name_that_is_not_utf_8_is_read_but_not_changed(context: ToolContext, code: Tool) -> None:
    put(context, os.fsdecode(b"caf\xe9"), "text")
    result = await run(code, {"action": "read", "path": '"caf\\351"'})
    assert (text_of(result), detail(result, "path")) == ("text", f'"{context.workspace}/caf\\351"')
    error = await failure(code, {"action": "patch", "path": '"caf\\351"', "old": "text", "new": "more"})
    assert "rename it first" in str(error) and str(error).isprintable()


async def test_a_misspelt_odd_name_is_answered_with_the_name_to_use(context: ToolContext, code: Tool) -> None:
    put(context, "src/new\nline.txt")
    error = await failure(code, {"action": "read", "path": "src/new\ufffdline.txt"})
    assert str(error) == 'There is no file src/new\ufffdline.txt. There is "src/new\\nline.txt".'


async def test_a_path_from_the_folder_of_the_shell_is_answered_with_that_of_the_workspace(
    context: ToolContext, code: Tool
) -> None:
    put(context, "src/deep/a.py", "one\n")
    await run(tool_of(context, "shell"), {"command": "cd src"})
    error = await failure(code, {"action": "read", "path": "deep/a.py"})
    assert str(error) == "There is no file deep/a.py. Paths start at the workspace: src/deep/a.py is there."


@pytest.mark.parametrize("lines", [5_000, 1_000_000], ids=["long", "very large"])
async def test_a_long_file_is_read_in_windows(context: ToolContext, code: Tool, lines: int) -> None:
    put(context, "f", "".join(f"line {number}\n" for number in range(1, lines + 1)))
    text = text_of(await run(code, {"action": "read", "path": "f"}))
    assert text.startswith("line 1\n") and text.endswith("go on with start_line=2001]")
    text = text_of(await run(code, {"action": "read", "path": "f", "start_line": 2001, "end_line": 2002}))
    assert text.startswith("line 2001\nline 2002\n[lines 2001–2002")


async def test_very_long_line_is_truncated(context: ToolContext, code: Tool) -> None:
    put(context, "f", "x" * 6_000_000)
    assert len(text_of(await run(code, {"action": "read", "path": "f"}))) < 51_000


async def test_a_large_file_of_one_line_is_read_and_searched_in_pieces(context: ToolContext, code: Tool) -> None:
    with (context.workspace / "f").open("wb") as file:
        for _ in range(40):
            file.write(b"x" * 1_000_000)
        file.write(b"needle\nneedle in the last line\n")
    tracemalloc.start()
    try:
        read = text_of(await run(code, {"action": "read", "path": "f"}))
        last = text_of(await run(code, {"action": "read", "path": "f", "start_line": 2}))
        matches = text_of(await run(code, {"action": "search", "path": "f", "pattern": "needle"}))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "[line 1 is cut after 50,000 characters" in read
    assert last.startswith("needle in the last line")
    assert [line.partition(": ")[0] for line in matches.splitlines()] == ["f:1", "f:2"]
    assert peak < 40_000_000


@pytest.mark.parametrize(("content", "text"), [("", "(empty)"), ("\n", "(empty)")])
async def test_an_empty_file_is_called_empty(context: ToolContext, code: Tool, content: str, text: str) -> None:
    put(context, "f", content)
    assert text_of(await run(code, {"action": "read", "path": "f"})) == text


async def test_binary_files_pipes_and_folders_are_refused_with_advice(context: ToolContext, code: Tool) -> None:
    put(context, "b", b"\x7fELF\0\0")
    os.mkfifo(context.workspace / "pipe")
    put(context, "d/f")
    for name, text in (("b", "binary file of 6 bytes"), ("pipe", "no regular file"), ("d", "is a folder: list it")):
        assert text in str(await failure(code, {"action": "read", "path": name}))


async def test_list_shows_a_folder(context: ToolContext, code: Tool) -> None:
    for name in ("b.py", "a/x.py", ".hidden"):
        put(context, name)
    assert text_of(await run(code, {"action": "list"})) == ".hidden\na/\nb.py"
    assert "not a folder" in str(await failure(code, {"action": "list", "path": "b.py"}))
    assert "There is no nowhere" in str(await failure(code, {"action": "list", "path": "nowhere"}))


@pytest.mark.parametrize("action", ["search", "list"])
async def test_folders_that_are_never_looked_into_are_named(context: ToolContext, code: Tool, action: str) -> None:
    for name in ("a.js", ".git/a.js", "sub/node_modules/a.js", ".venv/a.js", "__pycache__/a.js", "build/a.js"):
        put(context, name, "needle")
    put(context, ".gitignore", "build/\n.venv/\n")
    (context.workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    call: JsonObject = {"action": action, "glob": "*.js", **({"pattern": "needle"} if action == "search" else {})}
    plain = text_of(await run(code, call)).splitlines()
    assert plain[1:] == [
        "[left out: sub/node_modules; to look into one, give it as path]",
        "[what .gitignore names is left out; set ignored to have it]",
    ]
    everything = text_of(await run(code, {**call, "ignored": True})).splitlines()
    assert [line.partition(":")[0] for line in everything[:2]] == ["a.js", "build/a.js"]
    assert everything[2:] == [
        "[left out: .git, .venv, __pycache__, sub/node_modules; to look into one, give it as path]"
    ]
    below = text_of(await run(code, {**call, "ignored": True, "path": "sub"})).splitlines()
    assert below[1:] == ["[left out: sub/node_modules; to look into one, give it as path]"]


async def test_many_folders_that_are_left_out_are_counted(context: ToolContext, code: Tool) -> None:
    for number in range(11):
        put(context, f"p{number:02}/node_modules/a.js", "needle")
    text = text_of(await run(code, {"action": "search", "pattern": "needle"}))
    assert text.startswith("(no hits)\n[left out: p00/node_modules, ") and "and 3 more folders; to look" in text


async def test_list_finds_by_pattern_and_leaves_out_version_control(context: ToolContext, code: Tool) -> None:
    for name in ("b.py", "a/x.py", "a/deep/y.py", "a/z.txt", ".git/config.py", "__pycache__/m.py"):
        put(context, name)
    assert text_of(await run(code, {"action": "list", "glob": "*.py"})) == "a/deep/y.py\na/x.py\nb.py"
    assert text_of(await run(code, {"action": "list", "glob": "a/*.{py,txt}"})) == "a/x.py\na/z.txt"
    assert text_of(await run(code, {"action": "list", "pattern": "**/y.py"})) == "a/deep/y.py"
    assert text_of(await run(code, {"action": "list", "glob": "*.rs"})) == "(nothing)"


async def test_result_counts_are_stated_in_words(context: ToolContext, code: Tool) -> None:
    put(context, "a.py", "one\n")
    calls: tuple[JsonObject, ...] = (
        {"action": "read", "path": "a.py"},
        {"action": "list"},
        {"action": "search", "pattern": "one"},
    )
    alone = [(await run(code, call)).summary for call in calls]
    put(context, "b.py", "one\n")
    assert alone == ["1 line", "1 entry", "1 hit in 1 file"]
    assert [(await run(code, call)).summary for call in calls[1:]] == ["2 entries", "2 hits in 2 files"]


async def test_list_results_are_limited(context: ToolContext, code: Tool) -> None:
    for number in range(600):
        put(context, f"{number:03}")
    result = await run(code, {"action": "list"})
    assert detail(result, "count") == 500
    assert text_of(result).endswith("499\n[there are more; narrow the path or the glob]")


async def test_search_gives_path_line_and_text(context: ToolContext, code: Tool) -> None:
    put(context, "a.py", "x = 1\ny = xx\n")
    put(context, "d/b.txt", "no\r\nx + x\r\n")
    put(context, "bin", b"x\0")
    put(context, ".git/x", "x")
    result = await run(code, {"action": "search", "pattern": "x"})
    assert text_of(result) == "a.py:1: x = 1\na.py:2: y = xx\nd/b.txt:2: x + x"
    assert result.summary == "3 hits in 2 files"
    assert text_of(await run(code, {"action": "search", "pattern": "x", "glob": "*.txt"})) == "d/b.txt:2: x + x"
    assert text_of(await run(code, {"action": "search", "pattern": "^no$"})) == "d/b.txt:1: no"
    assert text_of(await run(code, {"action": "search", "pattern": "x + x", "literal": True})) == "d/b.txt:2: x + x"
    assert text_of(await run(code, {"action": "search", "pattern": "x", "path": "a.py"})).startswith("a.py:1: ")
    assert text_of(await run(code, {"action": "search", "pattern": "absent"})) == "(no hits)"


async def test_search_does_not_follow_links_out_of_the_folder(context: ToolContext, code: Tool) -> None:
    outside = context.workspace.parent / "secret"
    outside.mkdir()
    (outside / "key").write_text("needle")
    (context.workspace / "folder").symlink_to(outside)
    (context.workspace / "file").symlink_to(outside / "key")
    assert text_of(await run(code, {"action": "search", "pattern": "needle"})) == "(no hits)"


async def test_search_results_are_limited(context: ToolContext, code: Tool) -> None:
    put(context, "f", "hit\n" * 1000)
    put(context, "long", "z" * 100_000 + "needle" + "z" * 100_000)
    result = await run(code, {"action": "search", "pattern": "hit"})
    assert (detail(result, "hits"), text_of(result).count("\n")) == (200, 200)
    assert "stopped at 200 hits" in text_of(result)
    text = text_of(await run(code, {"action": "search", "pattern": "needle"}))
    assert "needle" in text and len(text) < 400


async def test_invalid_pattern_is_explained(context: ToolContext, code: Tool) -> None:
    assert "is no usable regular expression" in str(await failure(code, {"action": "search", "pattern": "("}))
    assert "search needs `pattern`" in str(await failure(code, {"action": "search"}))


async def test_a_cancelled_search_stops(context: ToolContext, code: Tool) -> None:
    cancel = CancelSignal()
    cancel.set()
    assert str(await failure(code, {"action": "search", "pattern": "x"}, cancel)) == "Operation aborted"


async def test_file_of_the_same_name_elsewhere_in_the_workspace_is_named(context: ToolContext, code: Tool) -> None:
    for name in ("docs/old/notes.txt", "node_modules/notes.txt", "built/notes.txt"):
        (context.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (context.workspace / name).write_text("text")
    (context.workspace / ".gitignore").write_text("built/\n")
    (context.workspace / "notes.md").write_text("text")
    error = await failure(code, {"action": "read", "path": "notes.txt"})
    assert str(error) == "There is no file notes.txt. There is docs/old/notes.txt."
    error = await failure(code, {"action": "patch", "path": "src/notes.txt", "old": "a", "new": "b"})
    assert str(error) == "There is no file src/notes.txt. There is no folder src either. There is docs/old/notes.txt."


async def test_no_file_outside_the_workspace_is_named(context: ToolContext, code: Tool) -> None:
    (context.workspace.parent / "beyond").mkdir()
    (context.workspace.parent / "beyond" / "notes.txt").write_text("text")
    (context.workspace / "link").symlink_to(context.workspace.parent / "beyond")
    error = await failure(code, {"action": "read", "path": "notes.txt"})
    assert str(error) == "There is no file notes.txt."
