"""Rows of tool calls and task ends."""

from importlib.resources import files
from typing import get_args

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.client.safe_text import output_text
from app.protocol.blocks import ToolIcon
from app.protocol.tasks import TaskStopReason
from app.window.rows.base import RowView
from app.window.rows.code_view import CodeView
from app.window.rows.disclosure import DisclosureButton
from app.window.rows.row import Row, ToolCallRow
from app.window.rows.text_view import TextView
from app.window.rows.tool import TOOL_ICONS, DiffView
from app.window.theme.theme import Theme
from app.window.transcript.view import TranscriptView
from app.window.widgets.labels import one_line
from tests.support.rows import KeptActions, RowList, end, reply, tool
from tests.window.rows.conftest import WIDTH, MakeBlock, part

_DIFF = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-old\n+new\n"


def _line(block: RowView[Row]) -> DisclosureButton:
    return block.findChildren(DisclosureButton)[0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (tool("shell", {"command": "make\n  test"}), "running make ↵ test …"),
        (
            tool("shell", {"command": "make test"}, "12 passed", summary="exit 0", details={"duration_ms": 1210}),
            "ran make test · exit 0 · 1.2 s",
        ),
        (
            tool("shell", {"command": "rm x"}, "Not allowed.", is_error=True),
            "running rm x · Not allowed.",
        ),
        (
            tool("shell", {"command": "x"}, "no", is_error=True, summary="exit 2", details={"duration_ms": 9}),
            "ran x · exit 2 · 0.0 s",
        ),
        (
            tool("shell", {"command": "x"}, "no", is_error=True, summary="a\u202egnp.exe\x1b[31m"),
            "running x · agnp.exe",
        ),
        (
            tool("code", {"action": "patch", "path": "a.py"}, "ok", details={"diff": _DIFF, "added": 1, "removed": 2}),
            "changed a.py +1 −2",
        ),
        (tool("code", {"action": "search", "pattern": "def x"}, "", summary="2 hits"), "searched for def x · 2 hits"),
        (tool("code", {"action": "write", "path": "b"}, "ok", details={"added": 5, "removed": 0}), "wrote b +5"),
        (tool("shell", {"command": "rm x"}, waiting=True), "waits for you before running rm x"),
        (
            tool("shell", {"command": "make deploy"}, unknown=True),
            "cut off while running make deploy · outcome unknown",
        ),
        (tool("shell", {"command": "ls"}, interrupted=True), "running ls · the task was interrupted"),
        (tool("weather", {"city": "Oslo"}, "rain"), "used weather"),
        (tool("weather", {"city": "Oslo"}), "using weather …"),
    ],
)
def test_a_call_is_summarised_in_one_line(show: MakeBlock, row: ToolCallRow, words: str) -> None:
    line = _line(show(row))
    assert line.text() == line.accessibleName() == words


def test_a_call_expands_to_its_arguments_and_output(show: MakeBlock, qtbot: QtBot) -> None:
    block = show(tool("shell", {"command": "make"}, "one\ntwo"))
    closed = block.height_for(WIDTH)
    with qtbot.waitSignals([block.resized, block.opened]):
        QTest.mouseClick(_line(block), Qt.MouseButton.LeftButton)
    block.resize(WIDTH, block.height_for(WIDTH))
    assert part(block, CodeView, "Arguments").toPlainText() == "make"
    assert part(block, CodeView, "Output").toPlainText() == "one\ntwo"
    assert block.height() > closed
    QTest.keyClick(_line(block), Qt.Key.Key_Space)
    assert block.height_for(WIDTH) == closed


def test_an_expanded_call_shows_its_output_live(show: MakeBlock) -> None:
    block = show(tool("shell", {"command": "make"}, output=""))
    block.set_open(True)
    text = ""
    for number in range(100):
        text += f"line {number}\n"
        block.set_row(tool("shell", {"command": "make"}, output=text))
    block.resize(WIDTH, block.height_for(WIDTH))
    output = part(block, CodeView, "Output")
    assert output.toPlainText() == text.rstrip("\n")
    assert output.height() < 500
    block.set_row(tool("shell", {"command": "make"}, "all done"))
    assert output.toPlainText() == "all done"


def test_a_running_call_shows_the_end_of_a_very_long_output(show: MakeBlock) -> None:
    block = show(tool("shell", {"command": "make"}))
    block.set_open(True)
    block.set_row(tool("shell", {"command": "make"}, output="".join(f"line {number}\n" for number in range(9_000))))
    lines = part(block, CodeView, "Output").toPlainText().splitlines()
    assert (lines[-1], len(lines)) == ("line 8999", 200)


def test_a_file_change_shows_its_diff_instead_of_its_arguments(show: MakeBlock) -> None:
    row = tool("code", {"action": "patch", "path": "a.py"}, "ok", details={"diff": _DIFF, "added": 1, "removed": 1})
    block = show(row)
    block.set_open(True)
    block.set_row(row)
    assert part(block, DiffView, "Changes").toPlainText() == "@@ -1 +1 @@\n-old\n+new"
    names = [view.accessibleName() for view in block.findChildren(TextView) if view.isVisible()]
    assert names == ["Changes"]


def test_an_expanded_call_stays_expanded_after_scrolling_away(qtbot: QtBot, theme: Theme) -> None:
    rows = RowList([tool("shell", {"command": "make"}, "out", "t"), *(reply("x\n\ny", f"r{n}") for n in range(200))])
    theme.set_motion(False)
    view = TranscriptView(rows, theme, KeptActions())
    qtbot.addWidget(view)
    view.resize(800, 600)
    view.show()
    view.to_start()
    line = next(line for line in view.findChildren(DisclosureButton) if line.isVisible())
    line.click()
    view.to_end()
    view.to_start()
    made: list[RowView[Row]] = view.findChildren(RowView)
    block = next(block for block in made if block.isVisible() and block.findChildren(DisclosureButton))
    assert part(block, CodeView, "Output").toPlainText() == "out"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("completed", "Task complete"),
        ("manual_stop", "Stopped"),
        ("error", "Failed"),
        ("iteration_limit", "Ended at its limit of turns"),
        ("time_limit", "Ended at its limit of time"),
        ("budget_limit", "Ended at its budget"),
    ],
)
def test_the_end_of_a_task_shows_its_outcome_and_totals(show: MakeBlock, reason: TaskStopReason, words: str) -> None:
    block = show(end(reason))
    labels = [label.text() for label in block.findChildren(QLabel) if label.isVisible() and label.text()]
    assert labels == [words, "6 turns · 8,840 tokens · $0.0312 · 1 min 14 s"]
    assert block.accessibleName() == words


def test_the_end_of_a_task_shows_its_summary_or_error(show: MakeBlock) -> None:
    assert part(show(end("completed", summary="All **done**.")), TextView, "Summary").toPlainText() == "All done."
    assert part(show(end("error", error="No *key*.")), TextView, "What went wrong").toPlainText() == "No *key*."


def test_terminal_control_sequences_are_removed_from_output() -> None:
    assert output_text("\x1b[32mok\x1b[0m\r\n10 %\r20 %\rdone\n\x07") == "ok\ndone\n"
    assert output_text("tab\tstays\r\n") == "tab\tstays\n"
    assert one_line("a\n  b   c", 20) == "a b c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


def test_a_diff_line_that_looks_like_a_file_header_is_shown(show: MakeBlock) -> None:
    diff = "--- a.sql\n+++ a.sql\n@@ -1 +1 @@\n--- DROP TABLE old;\n+++ DROP TABLE new\u202e;\n"
    block = show(tool("code", {"action": "patch", "path": "a.sql"}, "ok", details={"diff": diff}))
    _line(block).click()
    shown = part(block, CodeView, "Changes").toPlainText()
    assert shown == "@@ -1 +1 @@\n--- DROP TABLE old;\n+++ DROP TABLE new\\u202e;"


@pytest.mark.parametrize("icon", get_args(ToolIcon))
def test_every_icon_that_a_tool_can_declare_exists(icon: ToolIcon) -> None:
    assert (files("resources") / "icons" / f"{TOOL_ICONS[icon]}.svg").is_file()
