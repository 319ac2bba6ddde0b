"""Rows of tool calls and task ends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import Row, ToolCallRow
from errand.client.safe_text import output_text
from errand.protocol.tasks.groups import CallProgress, TaskStopReason
from errand.window.rows.base import RowView
from errand.window.rows.code_view import CodeView, DiffView
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.transcript.view import TranscriptView
from errand.window.widgets.buttons import CopyButton
from errand.window.widgets.labels import one_line
from tests.support.row_actions import KeptActions
from tests.support.rows import APPROVAL, RowList, end, reply, tool
from tests.window.rows.conftest import WIDTH, MakeRowView, part

_DIFF = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-old\n+new\n"


def _progress(began_s_ago: float, *, ended_s_ago: float | None = None) -> CallProgress:
    now = datetime.now(UTC)
    ended_at = None if ended_s_ago is None else now - timedelta(seconds=ended_s_ago)
    return CallProgress(call_id="tool", started_at=now - timedelta(seconds=began_s_ago), ended_at=ended_at)


def _line(row_view: RowView[Row]) -> DisclosureButton:
    return row_view.findChildren(DisclosureButton)[0]


def test_a_narrow_line_leaves_out_who_approved_before_it_shortens_the_command(show: MakeRowView) -> None:
    call = tool("shell", {"command": "python3 -m unittest -q shop.test_basket"}, "ok", details={"duration_ms": 1210})
    line = _line(show(replace(call, settled=(msgspec.structs.replace(APPROVAL, status="answered", allowed=True),))))
    line.resize(900, line.height())
    assert line.drawn[-1] == "approved by you"
    line.resize(420, line.height())
    assert line.drawn[-1] == "1.2 s"
    assert "approved by you" in line.accessibleName()
    failed = tool("shell", {"command": "python3 -m unittest -q"}, "", summary="exit 128", details={"duration_ms": 1210})
    line = _line(show(failed))
    line.resize(300, line.height())
    assert line.drawn[-1] == "exit 128"


@pytest.mark.parametrize(
    ("row", "summary"),
    [
        (tool("shell", {"command": "make\n  test"}), "running make ↵ test"),
        (
            tool("shell", {"command": "make test"}, "12 passed", summary="exit 0", details={"duration_ms": 1210}),
            "ran make test · exit 0 · 1.2 s",
        ),
        (
            tool("shell", {"command": "rm x"}, "Not allowed.", is_error=True),
            "rm x · Not allowed.",
        ),
        (
            tool("shell", {"command": "x"}, "no", is_error=True, summary="exit 2", details={"duration_ms": 9}),
            "ran x · exit 2 · 0.0 s",
        ),
        (
            tool("shell", {"command": "x"}, "no", is_error=True, summary="a\u202egnp.exe\x1b[31m"),
            "x · agnp.exe",
        ),
        (
            tool("code", {"action": "patch", "path": "a.py"}, "ok", details={"diff": _DIFF, "added": 1, "removed": 2}),
            "changed a.py +1 −2",
        ),
        (tool("code", {"action": "search", "pattern": "def x"}, "", summary="2 hits"), "searched for def x · 2 hits"),
        (tool("code", {"action": "write", "path": "b"}, "ok", details={"added": 5, "removed": 0}), "wrote b +5"),
        (tool("code", {"action": "list", "path": "."}, "", summary="2 entries"), "listed the workspace · 2 entries"),
        (tool("shell", {"command": "rm x"}, state="asks"), "rm x · waiting for your approval"),
        (
            tool("shell", {"command": "make deploy"}, state="unknown"),
            "make deploy · interrupted · outcome unknown",
        ),
        (tool("shell", {"command": "ls"}, state="interrupted"), "ls · task interrupted"),
        (tool("shell", {"command": "make test"}, state="pending"), "make test · waiting"),
        (tool("weather", {}, state="pending"), "using weather · waiting"),
        (tool("shell", {"command": "ls"}, state="dropped"), "ls · not run"),
        (
            tool("shell", {"command": "ls"}, "Skipped due to …", is_error=True, summary="x", marks=("skipped",)),
            "ls · skipped for your message",
        ),
        (
            tool("shell", {"command": "ls"}, "Operation aborted", is_error=True, summary="stopped", marks=("stopped",)),
            "ls · not run",
        ),
        (
            tool(
                "shell",
                {"command": "sleep 9"},
                "Operation aborted.",
                is_error=True,
                summary="stopped",
                marks=("stopped",),
                details={"duration_ms": 2000},
            ),
            "ran sleep 9 · stopped · 2.0 s",
        ),
        (tool("weather", {"city": "Oslo"}, "rain"), "used weather"),
        (tool("weather", {"city": "Oslo"}), "using weather"),
    ],
)
def test_a_call_is_summarised_in_one_line(show: MakeRowView, row: ToolCallRow, summary: str) -> None:
    line = _line(show(row))
    assert line.text() == line.accessibleName() == summary


def test_a_call_that_has_begun_shows_its_own_time(show: MakeRowView) -> None:
    running = tool("shell", {"command": "ls"}, state="running", progress=_progress(began_s_ago=12.3))
    assert _line(show(running)).text() == "running ls · 12 s"
    ended = tool("shell", {"command": "ls"}, state="ended", progress=_progress(12, ended_s_ago=2))
    assert _line(show(ended)).text() == "ran ls · 10 s"


def test_a_call_expands_to_its_arguments_and_output(show: MakeRowView, qtbot: QtBot) -> None:
    row_view = show(tool("shell", {"command": "make"}, "one\ntwo"))
    closed = row_view.height_for(WIDTH)
    with qtbot.waitSignals([row_view.resized, row_view.opened]):
        QTest.mouseClick(_line(row_view), Qt.MouseButton.LeftButton)
    row_view.resize(WIDTH, row_view.height_for(WIDTH))
    assert part(row_view, CodeView, "Arguments").toPlainText() == "make"
    assert part(row_view, CodeView, "Output").toPlainText() == "one\ntwo"
    assert row_view.height() > closed
    QTest.keyClick(_line(row_view), Qt.Key.Key_Space)
    assert row_view.height_for(WIDTH) == closed


def test_an_expanded_call_shows_its_output_live(show: MakeRowView) -> None:
    row_view = show(tool("shell", {"command": "make"}, output=""))
    row_view.set_open(True)
    text = ""
    for number in range(100):
        text += f"line {number}\n"
        row_view.set_row(tool("shell", {"command": "make"}, output=text))
    row_view.resize(WIDTH, row_view.height_for(WIDTH))
    output = part(row_view, CodeView, "Output")
    assert output.toPlainText() == text.rstrip("\n")
    assert output.height() < 500
    row_view.set_row(tool("shell", {"command": "make"}, "all done"))
    assert output.toPlainText() == "all done"


def test_a_running_call_shows_the_end_of_a_very_long_output(show: MakeRowView) -> None:
    row_view = show(tool("shell", {"command": "make"}))
    row_view.set_open(True)
    row_view.set_row(tool("shell", {"command": "make"}, output="".join(f"line {number}\n" for number in range(9_000))))
    lines = part(row_view, CodeView, "Output").toPlainText().splitlines()
    assert (lines[-1], len(lines)) == ("line 8999", 200)


def test_a_file_change_shows_its_diff_instead_of_its_arguments(show: MakeRowView, actions: KeptActions) -> None:
    row = tool("code", {"action": "patch", "path": "a.py"}, "ok", details={"diff": _DIFF, "added": 1, "removed": 1})
    row_view = show(row)
    row_view.set_open(True)
    row_view.set_row(row)
    assert part(row_view, DiffView, "Changes").toPlainText() == "-old\n+new"
    names = [view.accessibleName() for view in row_view.findChildren(TextView) if view.isVisible()]
    assert names == ["Changes"]
    labels = {label.text() for label in row_view.findChildren(QLabel) if label.isVisible()}
    assert {"a.py", "+1", "−1"} <= labels
    next(button for button in row_view.findChildren(CopyButton) if button.isVisible()).click()
    (copied,) = actions.copied
    assert copied == "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n"


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
    row_views: list[RowView[Row]] = view.findChildren(RowView)
    row_view = next(
        row_view for row_view in row_views if row_view.isVisible() and row_view.findChildren(DisclosureButton)
    )
    assert part(row_view, CodeView, "Output").toPlainText() == "out"


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("manual_stop", "Stopped by you"),
        ("error", "Failed"),
        ("iteration_limit", "Stopped: turn limit reached"),
        ("time_limit", "Stopped: time limit reached"),
        ("budget_limit", "Stopped: budget used up"),
    ],
)
def test_the_end_of_a_task_shows_its_outcome_and_totals(
    show: MakeRowView, reason: TaskStopReason, outcome: str
) -> None:
    row_view = show(end(reason))
    labels = [label.text() for label in row_view.findChildren(QLabel) if label.isVisible() and label.text()]
    assert labels == [outcome, "6 turns · 8,840 tokens · $0.0312 · 1 min 14 s"]
    assert row_view.accessibleName() == outcome


def test_the_end_of_a_task_without_a_summary_is_a_quiet_line_with_its_actions(
    show: MakeRowView, actions: KeptActions
) -> None:
    row = replace(end("completed"), reply="It is **done**.", retry_id="n1", fork_id="n2")
    row_view = show(row)
    buttons = [button for button in row_view.findChildren(QAbstractButton) if button.isVisible()]
    assert [button.accessibleName() for button in buttons] == ["Copy reply", "Retry", "New branch from here"]
    (totals,) = [label.text() for label in row_view.findChildren(QLabel) if label.isVisible() and label.text()]
    assert totals == "Task complete · 6 turns · 8,840 tokens · $0.0312 · 1 min 14 s"
    for button in buttons:
        button.click()
    assert actions.copied == ["It is **done**."]
    assert actions.branches.asked == [("retry", "n1"), ("fork", "n2")]
    assert row_view.height() < show(end("completed", summary="All done.")).height()


def test_the_end_of_a_task_shows_its_summary_or_error(show: MakeRowView) -> None:
    assert part(show(end("completed", summary="All **done**.")), TextView, "Summary").toPlainText() == "All done."
    assert part(show(end("error", error="No *key*.")), TextView, "What went wrong").toPlainText() == "No *key*."


def test_terminal_control_sequences_are_removed_from_output() -> None:
    assert output_text("\x1b[32mok\x1b[0m\r\n10 %\r20 %\rdone\n\x07") == "ok\ndone\n"
    assert output_text("tab\tstays\r\n") == "tab\tstays\n"
    assert one_line("a\n  b   c", 20) == "a b c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


def test_a_diff_line_that_looks_like_a_file_header_is_shown(show: MakeRowView) -> None:
    diff = "--- a.sql\n+++ a.sql\n@@ -1 +1 @@\n--- DROP TABLE old;\n+++ DROP TABLE new\u202e;\n"
    row_view = show(tool("code", {"action": "patch", "path": "a.sql"}, "ok", details={"diff": diff}))
    _line(row_view).click()
    changes = part(row_view, CodeView, "Changes").toPlainText()
    assert changes == "--- DROP TABLE old;\n+++ DROP TABLE new\\u202e;"


def test_arguments_of_several_lines_are_shown_as_lines(show: MakeRowView) -> None:
    row_view = show(tool("weather", {"city": "Oslo", "note": 'first\n  "second"', "days": 3}))
    _line(row_view).click()
    arguments = row_view.findChildren(CodeView)[0].toPlainText()
    assert arguments == 'city: "Oslo"\nnote: |\n  first\n    "second"\ndays: 3'
