"""Rows of summaries and kept messages."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMenu, QPushButton

from errand.client.conversation.rows import Row, SummaryRow
from errand.client.texts.context import summary_text
from errand.protocol.blocks import SummaryBlock
from errand.window.rows.base import RowView
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.edit import MessageEditField
from errand.window.rows.text_view import TextView
from tests.support.row_actions import KeptActions
from tests.support.rows import node, reply, user
from tests.window.rows.conftest import WIDTH, MakeRowView, part

SUMMARY = SummaryBlock(text="The **goal**.", until_id="n0", nodes=120, tokens_before=82_400, tokens_after=3_040)
KEPT = "Kept in context: never summarised"


def summary(show: MakeRowView) -> RowView[Row]:
    return show(SummaryRow("s/0", node("s", role="system"), SUMMARY))


def open_line(row_view: RowView[Row]) -> None:
    line = next(disclosure for disclosure in row_view.findChildren(DisclosureButton))
    line.setFocus()
    QTest.keyClick(line, Qt.Key.Key_Return)
    row_view.resize(WIDTH, row_view.height_for(WIDTH))


def test_a_summary_is_one_line_that_expands_to_its_text(show: MakeRowView) -> None:
    row_view = summary(show)
    assert part(row_view, DisclosureButton, "Summary of 120 earlier entries · 82k → 3.0k tokens").isVisible()
    assert row_view.height() < 50
    open_line(row_view)
    assert part(row_view, TextView, "Summary").toPlainText() == "The goal."
    assert row_view.markdown() == "The **goal**."


def test_a_summary_is_edited_inline_and_the_draft_survives(show: MakeRowView, actions: KeptActions) -> None:
    row_view = summary(show)
    open_line(row_view)
    part(row_view, QPushButton, "Edit summary").click()
    field = part(row_view, MessageEditField, "Summary text")
    assert field.toPlainText() == "The **goal**."
    field.setPlainText("Another goal.")
    again = summary(show)
    open_line(again)
    assert part(again, MessageEditField, "Summary text").toPlainText() == "Another goal."
    part(again, QPushButton, "Save summary").click()
    assert actions.context.asked == [("change_summary", "s: Another goal.")]
    assert part(again, TextView, "Summary").isVisible()


def test_esc_cancels_the_edit_of_a_summary(show: MakeRowView, actions: KeptActions) -> None:
    row_view = summary(show)
    open_line(row_view)
    part(row_view, QPushButton, "Edit summary").click()
    QTest.keyClick(part(row_view, MessageEditField, "Summary text"), Qt.Key.Key_Escape)
    assert part(row_view, TextView, "Summary").isVisible()
    assert actions.context.asked == []


def test_during_a_task_a_summary_cannot_be_edited(show: MakeRowView, actions: KeptActions) -> None:
    actions.branches.why = "The agent is at work here."
    row_view = summary(show)
    open_line(row_view)
    assert not part(row_view, QPushButton, "Edit summary").isEnabled()


@pytest.mark.parametrize("row", [user("Keep this", "u"), reply("Keep this", "r", step=2)])
def test_a_kept_message_is_marked_and_its_menu_releases_it(show: MakeRowView, actions: KeptActions, row: Row) -> None:
    row_view = show(row)
    marks = [label for label in row_view.findChildren(QLabel) if label.accessibleName() == KEPT]
    assert [mark.isVisible() for mark in marks] == [False]
    _choose(row_view, "Keep in context")
    assert [mark.isVisible() for mark in marks] == [True]
    _choose(row_view, "Don't keep in context")
    assert [mark.isVisible() for mark in marks] == [False]
    assert [name for name, _ in actions.context.asked] == ["keep", "release"]


def _choose(row_view: RowView[Row], text: str) -> None:
    menu = QMenu()
    row_view.fill_menu(menu)
    next(entry for entry in menu.actions() if entry.text() == text).trigger()


def test_a_summary_of_one_entry_uses_the_singular() -> None:
    assert summary_text(SummaryBlock(text="x", until_id="n", nodes=1)) == "Summary of 1 earlier entry"
