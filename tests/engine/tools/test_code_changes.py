import os
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.base import Tool
from errand.engine.tools.context import ToolContext
from errand.engine.tools.results import ToolResult
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import EditedLines, FileEdit
from errand.text.key_formats import REMOVED
from tests.support.loop_parts import detail, failure, make_tool_context, run, text_of, tool_of


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_tool_context(tmp_path)


@pytest.fixture
def code(context: ToolContext) -> Tool:
    return tool_of(context, "code")


def put(context: ToolContext, name: str, content: bytes | str) -> Path:
    path = context.workspace / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


async def test_write_makes_a_file_and_its_folders(context: ToolContext, code: Tool) -> None:
    result = await run(code, {"action": "write", "path": "a/b/c.txt", "content": "one\ntwo\n"})
    assert (context.workspace / "a/b/c.txt").read_bytes() == b"one\ntwo\n"
    assert (text_of(result), result.summary) == ("Created a/b/c.txt (+2 −0)", "+2 −0")
    assert detail(result, "diff") == "--- a/b/c.txt\n+++ a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"


async def test_write_replaces_a_file_and_shows_the_difference(context: ToolContext, code: Tool) -> None:
    put(context, "f", "one\ntwo\nthree\n")
    result = await run(code, {"action": "write", "path": "f", "content": "one\n2\nthree\n"})
    assert detail(result, "diff") == "--- f\n+++ f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert [detail(result, name) for name in ("added", "removed", "created")] == [1, 1, False]


async def test_write_without_content_is_refused_and_an_empty_content_is_not(context: ToolContext, code: Tool) -> None:
    put(context, "f", "text")
    assert "write needs `content`" in str(await failure(code, {"action": "write", "path": "f"}))
    await run(code, {"action": "write", "path": "f", "content": ""})
    assert (context.workspace / "f").read_bytes() == b""


async def test_change_keeps_permissions_and_follows_a_link(context: ToolContext, code: Tool) -> None:
    script = put(context, "run.sh", "echo a\n")
    script.chmod(0o754)
    (context.workspace / "link").symlink_to("run.sh")
    await run(code, {"action": "patch", "path": "link", "old": "a", "new": "b"})
    assert (context.workspace / "link").is_symlink()
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("echo b\n", 0o754)
    assert sorted(os.listdir(context.workspace)) == ["link", "run.sh"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nx\r\nc\r\n"),
        (b"a\nb\nc", b"a\nB\nx\nc"),
        (b"\xef\xbb\xbfa\nb\nc\n", b"\xef\xbb\xbfa\nB\nx\nc\n"),
        ("ä\nb\nc\n".encode("utf-16"), "ä\nB\nx\nc\n".encode("utf-16")),
        ("ä\nb\nc\n".encode("latin-1"), "ä\nB\nx\nc\n".encode("latin-1")),
    ],
    ids=["CRLF", "no last newline", "UTF-8 with mark", "UTF-16", "Latin-1"],
)
async def test_patch_keeps_encoding_and_newlines(context: ToolContext, code: Tool, before: bytes, after: bytes) -> None:
    file = put(context, "f", before)
    await run(code, {"action": "patch", "path": "f", "old": "b\n", "new": "B\nx\n"})
    assert file.read_bytes() == after


async def test_patch_leaves_mixed_newlines_alone(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", b"a\r\nb\nc\r\n")
    await run(code, {"action": "patch", "path": "f", "old": "b\n", "new": "B\n"})
    assert file.read_bytes() == b"a\r\nB\nc\r\n"


async def test_character_missing_in_the_encoding_is_refused(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "ä b".encode("latin-1"))
    error = await failure(code, {"action": "patch", "path": "f", "old": "b", "new": "→"})
    assert "latin-1" in str(error) and "'→'" in str(error)
    assert file.read_bytes() == "ä b".encode("latin-1")


async def test_patch_that_does_not_match_shows_the_most_similar_lines(context: ToolContext, code: Tool) -> None:
    put(context, "f.py", "import os\n\ndef area(width, height):\n    return width * height\n")
    wrong = {"action": "patch", "path": "f.py", "old": "def area(width, hight):\n    return", "new": "x"}
    error = await failure(code, {**wrong})
    assert "was not found in f.py" in str(error)
    assert "The nearest place is line 3:\ndef area(width, height):\n    return width * height" in str(error)


async def test_patch_that_matches_twice_names_the_lines(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "a\nb\na\n")
    arguments = {"action": "patch", "path": "f", "old": "a", "new": "x"}
    assert "found 2 times in f, at lines 1, 3" in str(await failure(code, {**arguments}))
    assert file.read_text() == "a\nb\na\n"
    await run(code, {**arguments, "replace_all": True})
    assert file.read_text() == "x\nb\nx\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"old": "", "new": "x"}, "The text to replace is empty"),
        ({"old": "a", "new": "a"}, "the same"),
        ({"old": "a"}, "The new text is missing"),
        ({"path": "nothing.txt", "old": "a", "new": "b"}, "There is no file nothing.txt. There is nothing.md."),
        ({"path": "folder", "old": "a", "new": "b"}, "folder is a folder"),
        ({"path": "binary", "old": "a", "new": "b"}, "binary file"),
        ({"path": "a\0b", "old": "a", "new": "b"}, "NUL"),
        ({"path": "a\ud800", "old": "a", "new": "b"}, "not a usable path"),
        ({"path": "x" * 5000, "old": "a", "new": "b"}, "the system takes 4,096 at most"),
    ],
)
async def test_impossible_patch_is_a_clear_error(
    context: ToolContext, code: Tool, arguments: dict[str, str], text: str
) -> None:
    put(context, "f", "a")
    put(context, "nothing.md", "")
    put(context, "binary", b"a\0")
    (context.workspace / "folder").mkdir()
    assert text in str(await failure(code, {"action": "patch", "path": "f", **arguments}))


async def test_text_in_other_case_is_shown_as_it_is(context: ToolContext, code: Tool) -> None:
    put(context, "settings.py", "# Settings\nTIMEOUT = 30\nHOST = 'localhost'\n")
    arguments = {"action": "patch", "path": "settings.py", "old": "timeout = 30", "new": "timeout = 45"}
    assert str(await failure(code, {**arguments})).endswith("The nearest place is line 2:\nTIMEOUT = 30")


async def test_patch_that_multiplies_the_size_of_a_file_is_refused(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "a" * 100_000)
    arguments: JsonObject = {"action": "patch", "path": "f", "old": "a", "new": "b" * 100_000, "replace_all": True}
    assert code.access(arguments).preview == ""
    assert "f would get 10,000,000,000 characters" in str(await failure(code, arguments))
    assert file.read_text() == "a" * 100_000


async def test_file_changed_by_others_must_be_read_again(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "one\n")
    await run(code, {"action": "read", "path": "f"})
    file.write_text("another's\n")
    for change in ({"action": "patch", "old": "one", "new": "1"}, {"action": "write", "content": "mine"}):
        assert "has changed since you read it" in str(await failure(code, {"path": "f", **change}))
    assert file.read_text() == "another's\n"
    await run(code, {"action": "read", "path": "f"})
    await run(code, {"action": "write", "path": "f", "content": "mine"})
    await run(code, {"action": "patch", "path": "f", "old": "mine", "new": "ours"})
    assert file.read_text() == "ours"


async def test_a_touched_but_equal_file_may_be_changed(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "one\n")
    await run(code, {"action": "read", "path": "f"})
    os.utime(file, (1, 1))
    await run(code, {"action": "patch", "path": "f", "old": "one", "new": "1"})
    assert file.read_text() == "1\n"


async def test_write_to_an_impossible_path_is_a_clear_error(context: ToolContext, code: Tool) -> None:
    put(context, "file", "")
    error = await failure(code, {"action": "write", "path": "file/below", "content": "x"})
    assert "file/below" in str(error)


async def test_create_dir_makes_parents_and_may_be_repeated(context: ToolContext, code: Tool) -> None:
    assert text_of(await run(code, {"action": "create_dir", "path": "a/b"})) == "Created a/b/"
    assert text_of(await run(code, {"action": "create_dir", "path": "a/b"})) == "There already is a/b/"
    assert (context.workspace / "a/b").is_dir()


async def test_action_names_of_other_tools_are_accepted(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "a")
    await run(code, {"action": "patch", "file_path": "f", "old_string": "a", "new_string": "b", "start_line": None})
    assert file.read_text() == "b"


async def test_access_has_real_paths_and_previews_the_change(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "a\n")
    (context.workspace / "out").symlink_to("/usr/share")
    access = code.access({"action": "patch", "path": "f", "old": "a", "new": "b"})
    assert (access.writes, access.reads, access.text) == ((file,), (), "Change f")
    assert access.preview == "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"
    assert code.access({"action": "read", "path": "out/x"}).reads == (Path("/usr/share/x"),)
    assert code.access({"action": "read", "path": "~/x"}).reads == (context.workspace.parent / "x",)


async def test_the_preview_of_a_write_names_the_binary_file_that_it_replaces(context: ToolContext, code: Tool) -> None:
    (context.workspace / "logo.png").write_bytes(b"\x89PNG\0" + bytes(995))
    note = "It replaces a binary file of 1,000 bytes."
    assert (
        code.access({"action": "write", "path": "logo.png", "content": "a\n"}).preview == f"{note}\n@@ -0,0 +1 @@\n+a\n"
    )
    assert code.access({"action": "write", "path": "logo.png", "content": ""}).preview == note
    for name, data in (("empty", b""), ("marked", b"\xef\xbb\xbf")):
        (context.workspace / name).write_bytes(data)
        assert "binary" not in code.access({"action": "write", "path": name, "content": "a\n"}).preview


async def test_stored_output_of_the_task_can_be_read_without_approval(context: ToolContext, code: Tool) -> None:
    own = context.output_dir / "call_1-stdout.txt"
    assert code.access({"action": "read", "path": str(own)}).tier == "free"
    other = str(context.output_dir.parent / "other")
    assert code.access({"action": "read", "path": other}).tier == "read"


class SetWhileItReads(CancelSignal):
    """A signal that is set during a call."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0

    @property
    def is_set(self) -> bool:
        self._looks += 1
        return self._looks > 1


async def test_a_change_that_was_stopped_before_it_was_written_is_not_written(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    (context.workspace / "file").write_text("before")
    arguments: JsonObject = {"action": "write", "path": "file", "content": "after"}
    error = await failure(tool_of(context, "code"), arguments, SetWhileItReads())
    assert str(error).startswith("Operation aborted")  # a slow machine says more
    assert (context.workspace / "file").read_text() == "before"


def edits_of(result: ToolResult) -> tuple[FileEdit, ...]:
    return msgspec.convert(detail(result, "edits"), tuple[FileEdit, ...])


async def test_a_change_has_the_old_and_new_lines_of_each_place_as_data(context: ToolContext, code: Tool) -> None:
    path = put(context, "f", "".join(f"{number}\n" for number in range(1, 21)))
    edits: JsonValue = [{"old": "2\n3\n", "new": "two\n3\n"}, {"old": "\n20\n", "new": "\n20"}]
    result = await run(code, {"action": "edit", "path": "f", "edits": edits})
    parts = (
        EditedLines(line=1, old_text="1\n2\n3\n4\n5\n", new_text="1\ntwo\n3\n4\n5\n"),
        EditedLines(line=17, old_text="17\n18\n19\n20\n", new_text="17\n18\n19\n20"),
    )
    assert edits_of(result) == (FileEdit(path=str(path), parts=parts),)
    assert detail(result, "locations") == [{"path": str(path), "line": 1}]


async def test_a_new_file_has_no_old_lines(context: ToolContext, code: Tool) -> None:
    result = await run(code, {"action": "write", "path": "new", "content": "x\n"})
    (edit,) = edits_of(result)
    assert (edit.is_new, edit.parts) == (True, (EditedLines(line=1, old_text="", new_text="x\n"),))


async def test_what_is_too_large_of_a_change_is_left_out_and_the_edit_says_so(context: ToolContext, code: Tool) -> None:
    put(context, "f", f"a\n{'=' * 30_000}\nb\n")
    result = await run(code, {"action": "write", "path": "f", "content": f"A\n{'-' * 30_000}\nB\n"})
    (edit,) = edits_of(result)
    assert (edit.parts, edit.is_cut) == ((), True)


async def test_keys_are_removed_from_edits(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    context.redactor.add("sk-0123456789abcdef")
    put(context, "f", "key = sk-0123456789abcdef\n")
    code = tool_of(context, "code")
    arguments: JsonObject = {"action": "patch", "path": "f", "old": "key =", "new": "token ="}
    access = code.access(arguments)
    result = await run(code, arguments)
    expected = (EditedLines(line=1, old_text=f"key = {REMOVED}\n", new_text=f"token = {REMOVED}\n"),)
    assert [edit.parts for edit in (*access.edits, *edits_of(result))] == [expected, expected]
