"""Patches whose white space differs from the file's, and several edits at once."""

from pathlib import Path

import pytest

from errand.engine.tools.base import Tool
from errand.engine.tools.context import ToolContext
from errand.protocol.base import JsonObject, JsonValue
from tests.support.loop_parts import detail, failure, make_tool_context, run, text_of, tool_of


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


def patch(old: str, new: str) -> JsonObject:
    return {"action": "patch", "path": "f", "old": old, "new": new}


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (
            "class A:\n    def f(self):\n        return 1\n",
            "def f(self):\n    return 1\n",
            "def f(self):\n    if self:\n        return 2\n    return 1\n",
            "class A:\n    def f(self):\n        if self:\n            return 2\n        return 1\n",
        ),
        (
            "\tif x {\n\t\ty()\n\t}\n",
            "    if x {\n        y()\n    }",
            "    if x {\n        z()\n    }",
            "\tif x {\n\t\tz()\n\t}\n",
        ),
        (
            "\tif x {\n\t\ty()\n\t}\n",
            "  if x {\n    y()\n  }",
            "  if x {\n    if z {\n      y()\n    }\n  }",
            "\tif x {\n\t\tif z {\n\t\t\ty()\n\t\t}\n\t}\n",
        ),
        ("  a:\n    b: 1\n", "\ta:\n\t\tb: 1\n", "\ta:\n\t\tb: 1\n\t\tc: 2\n", "  a:\n    b: 1\n    c: 2\n"),
        ("one  \ntwo\t\nthree\n", "one\ntwo", "one\n2", "one  \n2\nthree\n"),
        ("a\t= 1\nb = 2\n", "a = 1\n", "a = 3\n", "a = 3\nb = 2\n"),
        ("a  \nb\nc\n", "a\nb\n", "", "c\n"),
        ("a\r\nb \r\nc\r\n", "a\r\nb\r\n", "x\r\n", "x\r\nc\r\n"),
    ],
    ids=["deeper", "tabs", "tabs for two blanks", "blanks for tabs", "ends", "inside", "removal", "line ends"],
)
async def test_a_patch_finds_lines_that_differ_in_white_space_only(
    context: ToolContext, code: Tool, before: str, old: str, new: str, after: str
) -> None:
    file = put(context, "f", before)
    result = await run(code, patch(old, new))
    assert file.read_bytes().decode() == after
    assert "[matched ignoring white space; line" in text_of(result)


async def test_the_result_names_the_lines_that_were_matched(context: ToolContext, code: Tool) -> None:
    put(context, "f", "a\nb\n  c\n  d\n")
    result = await run(code, patch("c\nd", "e"))
    assert text_of(result) == "Changed f (+1 −2)\n[matched ignoring white space; lines 3–4]"


async def test_the_approval_shows_what_a_loose_match_changes(context: ToolContext, code: Tool) -> None:
    put(context, "f", "if x:\n    y()\n")
    access = code.access(patch("if x:\n  y()", "if x:\n  z()"))
    assert access.preview == "--- f\n+++ f\n@@ -1,2 +1,2 @@\n if x:\n-    y()\n+    z()\n"


async def test_two_places_that_differ_in_white_space_are_not_guessed_between(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "  x = 1\n\n    x = 1\n")
    for arguments in (patch("x =  1", "y"), {**patch("x =  1", "y"), "replace_all": True}):
        assert "there 2 times, at lines 1, 3" in str(await failure(code, arguments))
    assert file.read_text() == "  x = 1\n\n    x = 1\n"


@pytest.mark.parametrize(("old", "new"), [(" \n\t\n", "x"), ("ab", "x"), ("a b c", "x"), ("a\tb", "a b")])
async def test_less_than_whole_lines_do_not_match_loosely(context: ToolContext, code: Tool, old: str, new: str) -> None:
    file = put(context, "f", "a b\n")
    await failure(code, patch(old, new))
    assert file.read_text() == "a b\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ('a = 1\nprint("b", c)\n', "print('b', c)", "print('b', d)", 'a = 1\nprint("b", d)\n'),
        ("print('b')\n", 'print("b")', 'print("c", "d")', "print('c', 'd')\n"),
        ("x = \"it's\"\ny = 'a'\n", 'y = "a"', 'y = "b"', "x = \"it's\"\ny = 'b'\n"),
        ("x = 'a'\r\n", 'x = "a"', 'x = "b"\ny = "c"', "x = 'b'\r\ny = 'c'\r\n"),
    ],
)
async def test_a_patch_takes_the_quotes_of_the_file(
    context: ToolContext, code: Tool, before: str, old: str, new: str, after: str
) -> None:
    file = put(context, "f", before)
    result = await run(code, patch(old, new))
    assert file.read_bytes().decode() == after
    assert "[matched ignoring the kind of quotes; line" in text_of(result)


@pytest.mark.parametrize(
    ("before", "old", "new"),
    [
        ('say("b")\n', "say('b')", 'say("it\'s")'),
        ("say(\"b\", 'c')\n", "say('b', 'c')", "say('d', 'c')"),
        ("say('b', 'c')\n", "say(\"b\", 'c')", "say(\"it's\", 'c')"),
        ('say("b")\nsay("b")\n', "say('b')", "say('c')"),
        ('say("b")\n', "say('b')", 'say("b")'),
    ],
    ids=["another quote in the new text", "one kind for two", "two kinds for one", "two places", "nothing to change"],
)
async def test_quotes_that_are_not_clear_are_not_guessed(
    context: ToolContext, code: Tool, before: str, old: str, new: str
) -> None:
    file = put(context, "f", before)
    await failure(code, patch(old, new))
    assert file.read_text() == before


async def test_edits_are_applied_in_order_in_one_write(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "one\n  two\nthree\nthree\n")
    edits: list[JsonValue] = [
        {"old": "one", "new": "1"},
        {"old_string": "1\n  two", "new_string": "1\n  2"},
        {"old": "three", "new": "3", "replace_all": True},
        {"old": "2\n 3", "new": "2\n 4"},
    ]
    result = await run(code, {"action": "edit", "path": "f", "edits": edits})
    assert file.read_text() == "1\n  2\n4\n3\n"
    assert text_of(result) == "Changed f (+4 −4)\n[edit 4: matched ignoring white space; lines 2–3]"
    assert str(detail(result, "diff")).count("@@") == 2


async def test_one_edit_that_fails_leaves_the_file_as_it_was(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "one\ntwo\n")
    edits: list[JsonValue] = [{"old": "one", "new": "1"}, {"old": "three", "new": "3"}]
    error = await failure(code, {"action": "edit", "path": "f", "edits": edits})
    assert str(error).startswith(
        "Edit 2 of 2: The text to replace was not found in f."
    ) and "Nothing was changed." in str(error)
    assert error.summary == "Edit 2 of 2: text to replace not found"
    assert file.read_text() == "one\ntwo\n"


@pytest.mark.parametrize("edits", [None, []])
async def test_an_edit_without_edits_is_refused(context: ToolContext, code: Tool, edits: JsonValue) -> None:
    put(context, "f", "one\n")
    assert "edit needs `edits`" in str(await failure(code, {"action": "edit", "path": "f", "edits": edits}))


async def test_edits_sent_as_text_are_understood(context: ToolContext, code: Tool) -> None:
    file = put(context, "f", "one\n")
    await run(code, {"action": "edit", "path": "f", "edits": '[{"old_text": "one", "new_text": "1"}]'})
    assert file.read_text() == "1\n"


async def test_a_preview_of_edits_too_large_to_compare_names_their_places(context: ToolContext, code: Tool) -> None:
    put(context, "f", "a\n" + "x" * 300_000 + "\nb\n")
    edits: list[JsonValue] = [{"old": "a\nx", "new": "c\nx"}, {"old": "x\nb", "new": "x\nd"}]
    access = code.access({"action": "edit", "path": "f", "edits": edits})
    assert access.is_partial and access.preview.count("Too large to be compared") == 2
    assert "at line 1.\n-a\n-x\n+c\n+x\n" in access.preview


@pytest.mark.parametrize(
    ("before", "old", "hint"),
    [
        ('a\nsay("b")\nsay("b")\n', "say('b')", "It is at line 2 but for its quotes: where the text to replace has"),
        ("a = 1\nb = 2\n", "a = 1\\nb = 2", "It is at line 1 but for backslashes: give line ends, tabs and quotes as"),
        ('x\nsay("b")\n', 'say(\\"b\\")', "It is at line 2 but for backslashes"),
        ("name: one\nsize: 2\n", "size: 3", "The nearest place is line 2"),
    ],
)
async def test_text_that_differs_in_quotes_or_escapes_alone_is_named(
    context: ToolContext, code: Tool, before: str, old: str, hint: str
) -> None:
    file = put(context, "f", before)
    assert hint in str(await failure(code, patch(old, "new")))
    assert file.read_text() == before
