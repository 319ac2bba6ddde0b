"""Rows of what was recalled: one line, its entries, and the way to where they were said."""

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

from errand.client.conversation.node_rows import NodeExtras, node_rows
from errand.client.conversation.rows import RecallRow, Row
from errand.client.number_format import moment_text
from errand.protocol.blocks import RecallBlock, RecalledEntry, WithheldEntries
from errand.window.rows.base import RowView
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.recall import RECALL
from errand.window.rows.text_view import TextView
from tests.support.row_actions import KeptActions
from tests.support.rows import node, recalled
from tests.window.rows.conftest import WIDTH, MakeRowView, part


def row(*entries: RecalledEntry) -> RecallRow:
    return RecallRow("m/0", node("m", role="system"), RecallBlock(entries=entries))


TWO = row(recalled("We water on Sundays.", 0.91, "n1"), recalled("The hose\nleaks.", 0.4, "n2", "words", ("hose",)))


def toggle(row_view: RowView[Row]) -> None:
    line = next(disclosure for disclosure in row_view.findChildren(DisclosureButton))
    line.setFocus()
    QTest.keyClick(line, Qt.Key.Key_Return)
    row_view.resize(WIDTH, row_view.height_for(WIDTH))


def texts(row_view: RowView[Row]) -> list[str]:
    return [view.toPlainText() for view in row_view.findChildren(TextView) if view.isVisible()]


def sources(row_view: RowView[Row]) -> list[QPushButton]:
    return [button for button in row_view.findChildren(QPushButton) if button.isVisible()]


def test_what_was_recalled_is_one_line_that_expands_to_the_entries_and_why(show: MakeRowView) -> None:
    row_view = show(TWO)
    assert part(row_view, DisclosureButton, "Recalled 2 earlier entries from memory").isVisible()
    assert (row_view.height() < 50, texts(row_view)) == (True, [])
    toggle(row_view)
    assert texts(row_view) == ["We water on Sundays.", "The hose\nleaks."]
    labels = [label.accessibleName() or label.text() for label in row_view.findChildren(QLabel) if label.isVisible()]
    assert "has “hose”" in labels and "similar meaning" in labels
    assert any(
        label == f"You, {moment_text(TWO.recall.entries[0].at)}, in “The garden”, /srv/garden" for label in labels
    )
    toggle(row_view)
    assert (row_view.height() < 50, texts(row_view)) == (True, [])


def test_each_entry_leads_to_where_it_was_said_also_by_keyboard(show: MakeRowView, actions: KeptActions) -> None:
    row_view = show(TWO)
    toggle(row_view)
    first, second = (button for button in sources(row_view) if button.text() == "Go to source")
    first.click()
    second.setFocus()
    QTest.keyClick(second, Qt.Key.Key_Return)
    assert actions.opened_sources == [("c0", "n1"), ("c0", "n2")]
    assert first.accessibleName().startswith("Go to source: You, ")


def test_a_reused_view_shows_the_entries_of_its_new_row_alone(show: MakeRowView) -> None:
    row_view = show(TWO)
    toggle(row_view)
    row_view.set_row(row(recalled("Roses bloom in June.")))
    assert texts(row_view) == ["Roses bloom in June."]
    assert part(row_view, DisclosureButton, "Recalled 1 earlier entry from memory").isVisible()


def test_of_ten_thousand_entries_of_a_file_the_first_fifty_are_shown(show: MakeRowView) -> None:
    row_view = show(row(*(recalled(f"Entry {number}.") for number in range(10_000))))
    toggle(row_view)
    assert len(texts(row_view)) == 50
    hint = "9,950 more entries not shown. The agent read this with the message above."
    assert any(label.text() == hint for label in row_view.findChildren(QLabel) if label.isVisible())


def test_of_an_endless_entry_of_a_file_the_beginning_is_shown(show: MakeRowView) -> None:
    row_view = show(row(recalled("x" * 1_000_000)))
    toggle(row_view)
    assert texts(row_view) == ["x" * 8_000 + "…"]


def test_escape_sequences_and_markup_in_an_entry_are_shown_as_text(show: MakeRowView) -> None:
    row_view = show(row(recalled("\x1b[31m<b>red</b>\u202e")))
    toggle(row_view)
    assert texts(row_view) == ["<b>red</b>"]


def test_find_and_copy_have_the_texts_of_the_entries() -> None:
    assert RECALL.text(TWO) == "We water on Sundays.\nThe hose\nleaks."
    assert RECALL.markdown(TWO, False) == "Recalled 2 earlier entries from memory"
    copied = RECALL.markdown(TWO, True).splitlines()
    assert copied[0] == "Recalled 2 earlier entries from memory" and copied[3] == "> We water on Sundays."


def test_a_message_of_the_engine_with_what_was_recalled_is_that_row() -> None:
    message = msgspec.structs.replace(node("m", role="system"), author="engine", blocks=(TWO.recall,))
    assert node_rows(message, NodeExtras({}, {}, ())) == [RecallRow("m/0", message, TWO.recall)]
    nothing = msgspec.structs.replace(message, blocks=(RecallBlock(entries=()),))
    assert node_rows(nothing, NodeExtras({}, {}, ())) == []


def test_an_entry_can_be_given_never_again_and_that_can_be_taken_back(show: MakeRowView, actions: KeptActions) -> None:
    row_view = show(TWO)
    toggle(row_view)
    button = next(button for button in sources(row_view) if button.text() == "Not this again")
    button.click()
    assert (actions.recall.not_given, button.text()) == ({"n1"}, "Give it again")
    button.click()
    assert (actions.recall.not_given, button.text()) == (set[str](), "Not this again")


def test_the_person_is_asked_below_the_message_whether_another_folder_shares_its_memory(
    show: MakeRowView, actions: KeptActions
) -> None:
    withheld = WithheldEntries(folder="/clients/zwolle", count=3)
    recall = RecallBlock(entries=(), withheld=(withheld,), folder="/clients/utrecht")
    row_view = show(RecallRow("m/0", node("m", role="system"), recall))
    question = (
        "3 entries in /clients/zwolle may help here. That folder does not share its memory with /clients/utrecht."
    )
    assert any(label.text() == question for label in row_view.findChildren(QLabel) if label.isVisible())
    buttons = {button.text(): button for button in sources(row_view)}
    assert set(buttons) == {"Share between these two", "Share all folders", "Keep apart"}
    buttons["Share between these two"].click()
    assert actions.recall.decisions == {("/clients/utrecht", "/clients/zwolle"): "share"}
    answer = "Memory of /clients/zwolle is shared with this folder from now on."
    assert any(label.text() == answer for label in row_view.findChildren(QLabel) if label.isVisible())
    row_view.set_row(TWO)
    assert sources(row_view) == []
