"""The transcript with every kind of row: accessible names, themes, and leaks."""

import gc
from collections.abc import Callable
from typing import get_args

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QTextDocument
from PySide6.QtWidgets import QWidget
from shiboken6 import delete, isValid

from errand.client.conversation.rows import Row, StepRow
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.registry import ROW_KINDS
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.transcript.view import TranscriptView
from tests.support.row_actions import KeptActions
from tests.support.rows import RowList, end, image, long_conversation, notice, reply, thinking, tool, user
from tests.window.transcript.conftest import Page

MakePage = Callable[..., Page]


def test_every_row_has_a_kind() -> None:
    missing = set(get_args(Row)) - {kind.row for kind in ROW_KINDS}
    assert missing == set(), "add the kind of each to window/rows/registry.py"
    assert len(ROW_KINDS) == len(get_args(Row))


def _every_kind() -> list[Row]:
    return [
        user("a question", "u"),
        StepRow("s", 1),
        thinking("a thought", "th"),
        reply("an answer with [a link](https://example.org)", "r", step=1),
        reply("```python\nprint(1)\n```", "f"),
        tool("shell", {"command": "ls"}, "x", "t"),
        image(key="i"),
        notice("info", "a remark", "n"),
        end("completed", summary="done", key="e"),
    ]


def test_every_control_has_a_name_and_is_reached_by_tab(page: MakePage) -> None:
    transcript = page(_every_kind())
    transcript.view.resize(800, 1_200)
    for line in transcript.view.findChildren(DisclosureButton):
        line.click()
    transcript.view.lay_out()
    controls = [
        widget
        for row_view in transcript.row_views()
        for widget in row_view.findChildren(QWidget)
        if widget.isVisible() and widget.focusPolicy() != Qt.FocusPolicy.NoFocus
    ]
    assert len(controls) >= 12
    for control in controls:
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, control
        interface = QAccessible.queryAccessibleInterface(control)
        assert interface.text(QAccessible.Text.Name), control


def test_another_theme_repaints_all_rows_and_moves_none(page: MakePage, theme: Theme) -> None:
    transcript = page([*long_conversation(100), *_every_kind(), *long_conversation(100)])
    transcript.view.to_row(100)
    before = (transcript.texts(), [row_view.y() for row_view in transcript.row_views()])
    light = {view.palette().text().color().name() for view in transcript.view.findChildren(TextView)}
    theme.set_mode("dark")
    transcript.view.lay_out()
    assert (transcript.texts(), [row_view.y() for row_view in transcript.row_views()]) == before
    dark = {view.palette().text().color().name() for view in transcript.view.findChildren(TextView) if view.isVisible()}
    assert dark.isdisjoint(light)


def _documents() -> int:
    gc.collect()
    return sum(isinstance(candidate, QTextDocument) and isValid(candidate) for candidate in gc.get_objects())


def test_a_closed_transcript_leaves_no_document(theme: Theme) -> None:
    before = _documents()
    view = TranscriptView(RowList(_every_kind()), theme, KeptActions())
    view.show()
    assert _documents() > before
    delete(view)
    assert _documents() <= before


def test_row_views_that_scrolled_away_are_not_kept(page: MakePage) -> None:
    before = _documents()
    transcript = page(long_conversation(2_000))
    for _ in range(100):
        transcript.view.scroll_by(-500)
    assert _documents() - before < 120
