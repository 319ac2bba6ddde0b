"""What a change keeps of a file: links, attributes, rights and line ends; look-alike characters are named."""

import errno
import os
import resource
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest

from errand.engine.tools.base import Tool
from errand.engine.tools.context import ToolContext
from errand.protocol.base import JsonObject
from errand.system.regular_file import replace_file
from tests.support.loop_parts import failure, make_tool_context, run, tool_of

WRITES_IN_LITTLE_ROOM = """
import resource, signal, sys
from pathlib import Path
from errand.system.regular_file import replace_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
try:
    replace_file(Path(sys.argv[1]), b"new" * 3_000)
except OSError as error:
    print(error.errno)
"""


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_tool_context(tmp_path)


@pytest.fixture
def code(context: ToolContext) -> Tool:
    return tool_of(context, "code")


def put(context: ToolContext, name: str, content: str) -> Path:
    path = context.workspace / name
    path.write_bytes(content.encode())
    return path


def patch(old: str, new: str, name: str = "f") -> JsonObject:
    return {"action": "patch", "path": name, "old": old, "new": new}


@pytest.mark.parametrize(
    "arguments",
    [
        patch("one", "1"),
        {"action": "write", "path": "f", "content": "1\n"},
        {"action": "write", "path": "f", "content": "1\n" * 9_000},
        {"action": "edit", "path": "f", "edits": [{"old": "one", "new": "1"}]},
    ],
)
async def test_all_names_of_a_file_see_a_change(context: ToolContext, code: Tool, arguments: JsonObject) -> None:
    file, other = put(context, "f", "one\n"), context.workspace / "other"
    file.chmod(0o750)
    os.link(file, other)
    await run(code, arguments)
    assert other.read_text().startswith("1\n") and other.samefile(file)
    assert file.stat().st_mode & 0o777 == 0o750
    assert sorted(os.listdir(context.workspace)) == ["f", "other"]


@pytest.mark.skipif(sys.platform != "linux", reason="Python reads extended attributes on Linux alone")
async def test_extended_attributes_stay(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "one\n")
    if sys.platform == "linux":
        try:
            os.setxattr(file, "user.note", b"keep")
        except OSError as error:
            pytest.skip(f"this file system has none: {error}")
        await run(code, patch("one", "1"))
        assert (file.read_text(), os.getxattr(file, "user.note")) == ("1\n", b"keep")


@pytest.mark.parametrize("mode", [0o444, 0o400, 0o555])
@pytest.mark.parametrize("action", ["patch", "write"])
async def test_read_only_file_is_named_and_stays(context: ToolContext, code: Tool, mode: int, action: str) -> None:
    file = put(context, "f", "one\n")
    file.chmod(mode)
    error = await failure(code, {**patch("one", "1"), "action": action, "content": "1\n"})
    assert f"f is read-only (mode {mode:04o})" in str(error) and file.read_text() == "one\n"
    assert file.stat().st_mode & 0o777 == mode


def test_overwriting_without_room_leaves_the_old_content(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] != 0
    file = tmp_path / "f"
    file.write_bytes(b"old" * 1_000)
    os.link(file, tmp_path / "other")
    ran = subprocess.run([sys.executable, "-c", WRITES_IN_LITTLE_ROOM, str(file)], capture_output=True, check=True)
    assert ran.stdout.decode().strip() == str(errno.EFBIG)
    assert file.read_bytes() == b"old" * 1_000


def test_shorter_content_leaves_no_rest(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old" * 1_000)
    os.link(file, tmp_path / "other")
    replace_file(file, b"new")
    assert (tmp_path / "other").read_bytes() == b"new"


MIXED = "one\r\ntwo\r\nthree\nfour\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (MIXED, "one", "one\nand", "one\r\nand\r\ntwo\r\nthree\nfour\n"),
        (MIXED, "one\ntwo", "1\n2\n3", "1\r\n2\r\n3\r\nthree\nfour\n"),
        (MIXED, "ne\ntw", "x\ny", "ox\r\nyo\r\nthree\nfour\n"),
        (MIXED, "three\nfour", "3\n4\n5", "one\r\ntwo\r\n3\n4\n5\n"),
        (MIXED, "four", "4\n5", "one\r\ntwo\r\nthree\n4\n5\n"),
        (MIXED, "three\r\nfour", "3\r\n4", "one\r\ntwo\r\n3\n4\n"),
        (MIXED, "  one\n  two", "  1\n  2\n  3", "1\r\n2\r\n3\r\nthree\nfour\n"),
        (MIXED, "one\r\ntwo", "one\ntwo", "one\ntwo\r\nthree\nfour\n"),
        ("a\nb\r\nlast", "last", "x\ny", "a\nb\r\nx\r\ny"),
        ("a\r\nb\r\n", "a", "a\nc", "a\r\nc\r\nb\r\n"),
        ("a\nb\n", "a", "a\nc", "a\nc\nb\n"),
    ],
)
async def test_replacement_has_the_line_ends_of_its_place(
    context: ToolContext, code: Tool, before: str, old: str, new: str, after: str
) -> None:
    file = put(context, "f", before)
    await run(code, patch(old, new))
    assert file.read_bytes().decode() == after


async def test_each_of_several_places_keeps_its_line_ends(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "x\r\nx\nx")
    await run(code, {**patch("x", "y\nz"), "replace_all": True})
    assert file.read_bytes() == b"y\r\nz\r\ny\nz\ny\nz"


@pytest.mark.parametrize(
    ("text", "old", "points"),
    [
        ("say \u2018hi\u2019 now", "say 'hi' now", ("U+0027", "U+2018")),
        ("x = \u201ca\u201d now", 'x = "a" now', ("U+0022", "U+201C")),
        ("1 \u2013 2", "1 - 2", ("U+002D", "U+2013")),
        ("1 - 2", "1 \u2014 2", ("U+2014", "U+002D")),
        ("a b\u00a0c d", "b c", ("U+0020", "U+00A0")),
        ("say \uff46\uff55\uff4c\uff4c now", "full", ("U+0066", "U+FF46")),
        (unicodedata.normalize("NFD", "le caf\u00e9 noir"), "caf\u00e9 noir", ("U+00E9", "U+0065 U+0301")),
        ("le caf\u00e9 noir", unicodedata.normalize("NFD", "caf\u00e9 noir"), ("U+0065 U+0301", "U+00E9")),
        ("y = (1,\t2)", "(1, 2)", ("U+0020", "U+0009")),
        ("zero\u200bwidth x", "zerowidth", ("U+0077", "U+200B")),
        ("pip install \u0441url now", "pip install curl", ("U+0063", "U+0441")),
    ],
)
async def test_first_character_that_only_looks_alike_is_named(
    context: ToolContext, code: Tool, text: str, old: str, points: tuple[str, str]
) -> None:
    put(context, "f", f"first\n{text}\nlast\n")
    error = str(await failure(code, patch(old, "new")))
    assert "line 2" in error
    assert f"where the text to replace has {points[0]} (" in error and f"the file has {points[1]} (" in error


async def test_what_is_just_not_there_names_no_characters(context: ToolContext, code: Tool) -> None:
    put(context, "f", "first\nsecond\n")
    assert "U+" not in str(await failure(code, patch("secund", "new")))


@pytest.mark.parametrize("has_link", [False, True])
def test_python_runs_a_program_as_it_was_changed_within_a_second_and_not_in_its_size(
    tmp_path: Path, has_link: bool
) -> None:
    program = tmp_path / "program.py"
    program.write_text("print(0)")
    if has_link:  # it is overwritten in place
        os.link(program, tmp_path / "link")
    printed: list[str] = []
    for number in range(5):
        replace_file(program, f"print({number})".encode())
        start = subprocess.run(
            [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(tmp_path)!r}); import program"],
            capture_output=True,
            text=True,
            check=True,
        )
        printed.append(start.stdout.strip())
    assert printed == ["0", "1", "2", "3", "4"]


def test_the_time_of_a_change_is_not_moved_far(tmp_path: Path) -> None:
    program, other = tmp_path / "program.py", tmp_path / "other.txt"
    for file in (program, other):
        file.write_text("old")
    os.utime(program, (4e9, 4e9))
    ahead = time.time() + 2
    os.utime(other, (ahead, ahead))
    for file in (program, other):
        replace_file(file, b"new")
        assert file.stat().st_mtime <= time.time()
