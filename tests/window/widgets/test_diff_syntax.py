"""Syntax colours in diffs: the language of the file, the lines in sight alone, both themes, long lines plain."""

from collections.abc import Callable

import pytest
from PySide6.QtGui import QTextBlock
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit
from pytestqt.qtbot import QtBot

from errand.protocol.changes import DiffHunk
from errand.window.rows.code_view import DiffView
from errand.window.theme.theme import Theme
from errand.window.views.review.diff_pane import DiffPane
from errand.window.widgets.code_excerpt import CodeBoxView
from errand.window.widgets.diff.lines import diff_lines
from errand.window.widgets.highlighting import language_of

HEADER = "@@ -1,4 +1,5 @@"
TEXT = ' import os\n-def alpha(name):\n+def beta(name):\n+    return "größer 🦊" if name else 12  # why\n '
DIFF = f"--- tool.py\n+++ tool.py\n{HEADER}\n{TEXT}\n"
Colours = list[tuple[str, str]]


def colours(block: QTextBlock) -> Colours:
    """The coloured parts of a line with their colours."""
    text = block.text().encode("utf-16-le")
    return [
        (text[2 * run.start : 2 * (run.start + run.length)].decode("utf-16-le"), run.format.foreground().color().name())  # pyright: ignore[reportAttributeAccessIssue] -- PySide6's stubs omit the fields of FormatRange
        for run in block.layout().formats()
    ]


def wanted(theme: Theme) -> list[Colours]:
    tokens = theme.tokens
    return [
        [("import", tokens.syntax_keyword)],
        [("def ", tokens.syntax_keyword), ("alpha", tokens.syntax_name)],
        [("def ", tokens.syntax_keyword), ("beta", tokens.syntax_name)],
        [
            ("return ", tokens.syntax_keyword),
            ('"größer 🦊" ', tokens.syntax_string),
            ("if ", tokens.syntax_keyword),
            ("else ", tokens.syntax_keyword),
            ("12  ", tokens.syntax_number),
            ("# why", tokens.syntax_comment),
        ],
    ]


def found(edit: QPlainTextEdit | QTextEdit) -> list[Colours]:
    blocks = (edit.document().findBlockByNumber(number) for number in range(4))
    return [[(text, colour) for text, colour in colours(block) if text.strip()] for block in blocks]


def stripped(parts: list[Colours]) -> list[Colours]:
    return [[(text.strip(), colour) for text, colour in line] for line in parts]


def approval(theme: Theme) -> CodeBoxView:
    box = CodeBoxView(theme, "What will change", most_lines=20, diff=True)
    box.set_text(DIFF)
    return box


def tool_row(theme: Theme) -> DiffView:
    view = DiffView(theme)
    view.show_lines(diff_lines(DIFF), "tool.py")
    return view


def review(theme: Theme) -> DiffPane:
    pane = DiffPane(theme)
    pane.show_hunks("tool.py", (hunk(HEADER, f"{TEXT}\n"),), keeps_place=False, can_undo=False)
    return pane


def hunk(header: str, text: str) -> DiffHunk:
    return DiffHunk(id="1", header=header, text=text, added=1, removed=1)


@pytest.mark.parametrize("make", [approval, tool_row, review])
def test_lines_have_the_colours_of_their_language_in_both_themes(
    make: Callable[[Theme], CodeBoxView | DiffView | DiffPane], theme: Theme, qtbot: QtBot
) -> None:
    view = make(theme)
    qtbot.addWidget(view)
    view.resize(700, 300)
    view.show()
    edit = view.unified if isinstance(view, DiffPane) else view
    for mode in ("light", "dark"):
        theme.set_mode(mode)
        view.grab()
        qtbot.waitUntil(lambda: stripped(found(edit)) == stripped(wanted(theme)))
        view.grab()
        assert all(edit.document().findBlockByNumber(number).layout().lineCount() for number in range(4))


def test_side_by_side_each_side_has_the_colours_of_its_text(theme: Theme, qtbot: QtBot) -> None:
    pane = review(theme)
    qtbot.addWidget(pane)
    pane.resize(900, 300)
    pane.show()
    pane.set_side_by_side(True)
    pane.grab()
    sides = {edit.accessibleName(): edit for edit in pane.findChildren(QPlainTextEdit)}
    context, removed, *added = wanted(theme)
    qtbot.waitUntil(lambda: stripped(found(sides["The file before"])) == stripped([context, removed, [], []]))
    qtbot.waitUntil(lambda: stripped(found(sides["The file now"])) == stripped([context, *added, []]))


def test_of_a_large_diff_the_lines_in_sight_are_coloured_also_after_scrolling(theme: Theme, qtbot: QtBot) -> None:
    lines = "".join(f"+value_{number} = {number}\n" for number in range(16_000))
    pane = DiffPane(theme)
    qtbot.addWidget(pane)
    pane.resize(700, 400)
    pane.show()
    pane.show_hunks("values.py", (hunk("@@ -0,0 +1,16000 @@", lines),), keeps_place=False, can_undo=False)
    edit = pane.unified
    block = edit.document().findBlockByNumber
    qtbot.waitUntil(lambda: bool(colours(block(0))))
    assert not colours(block(200)) and not colours(block(9_000))
    edit.verticalScrollBar().setValue(9_000)
    pane.grab()
    qtbot.waitUntil(lambda: bool(colours(block(9_000))))
    assert stripped([colours(block(9_000))]) == [[("9000", theme.tokens.syntax_number)]]
    assert not colours(block(15_000))


def test_long_lines_and_files_of_unknown_languages_stay_plain(theme: Theme, qtbot: QtBot) -> None:
    pane = DiffPane(theme)
    qtbot.addWidget(pane)
    pane.resize(700, 400)
    pane.show()
    text = f"+def one(): pass\n+x = '{'y' * 600}'\n+def two(): pass\n"
    pane.show_hunks("a.py", (hunk("@@ -0,0 +1,3 @@", text),), keeps_place=False, can_undo=False)
    block = pane.unified.document().findBlockByNumber
    qtbot.waitUntil(lambda: bool(colours(block(0)) and colours(block(2))))
    assert not colours(block(1))
    pane.show_hunks("a.unknown", (hunk("@@ -0,0 +1,3 @@", text),), keeps_place=False, can_undo=False)
    pane.grab()
    assert not colours(block(0))


def test_a_language_is_told_by_the_name_of_the_file() -> None:
    names = ("src/a.py", "Makefile", "b/Dockerfile", "x.H", "a.patch", "notes", "a.b/c", "C:\\web\\page.htm")
    assert [language_of(name) for name in names] == ["py", "make", "docker", "c", "", "", "", "html"]
