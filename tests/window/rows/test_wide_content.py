"""Long and wide content and links: outputs, tables, web pictures, and cards by keyboard."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton

from errand.client.conversation.rows import Row
from errand.protocol.base import JsonObject
from errand.window.rows.base import RowView
from errand.window.rows.code_view import CodeView, find_links
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.markdown_view import TableView
from tests.support.row_actions import KeptActions
from tests.support.rows import reply, tool
from tests.window.rows.conftest import WIDTH, MakeRowView, part


def _opened(show: MakeRowView, row: Row) -> RowView[Row]:
    row_view = show(row)
    row_view.findChildren(DisclosureButton)[0].click()
    row_view.resize(WIDTH, row_view.height_for(WIDTH))
    return row_view


def test_a_long_output_shows_its_end_and_is_copied_in_full(show: MakeRowView, actions: KeptActions) -> None:
    lines = [f"line {number} of the output" for number in range(5_000)]
    row_view = _opened(show, tool("shell", {"command": "make"}, "\n".join(lines)))
    output = part(row_view, CodeView, "Output")
    assert output.toPlainText().split("\n") == lines[-200:]
    assert output.verticalScrollBar().value() == output.verticalScrollBar().maximum() > 0
    label_texts = [label.text() for label in row_view.findChildren(QLabel) if label.isVisible()]
    assert "Only the end is shown. Copy takes everything." in label_texts
    part(row_view, QToolButton, "Copy output").click()
    assert actions.copied == ["\n".join(lines)]


def test_an_output_stored_in_a_file_can_be_opened_in_full(show: MakeRowView, actions: KeptActions) -> None:
    details: JsonObject = {"stdout_file": "/tmp/out 1.txt", "stderr_file": None}
    row_view = _opened(show, tool("shell", {"command": "make"}, "the end", details=details))
    part(row_view, QPushButton, "Show full output").click()
    assert actions.links == ["file:///tmp/out 1.txt"]
    row_view.set_row(tool("shell", {"command": "make"}, "short"))
    assert not [button for button in row_view.findChildren(QPushButton) if button.isVisible()]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see https://example.org/a?b=1, or (http://localhost:8000).", ["https://example.org/a?b=1", "http://localhost:8000"]),
        ("  File /home/anna/work/a.py:24:7: error", ["/home/anna/work/a.py:24:7"]),
        ("shop/basket.py:3 and ./x/y.md and ../up/z.txt", ["shop/basket.py:3", "./x/y.md", "../up/z.txt"]),
        ("and/or 12/34 12:30 a.b.c 1.2.3 //x", []),
    ],
)  # fmt: skip
def test_urls_and_paths_in_an_output_are_links(text: str, links: list[str]) -> None:
    pieces = list(find_links(text))
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.link for piece in pieces if piece.link] == links


def test_a_wide_table_scrolls_horizontally_and_breaks_no_word(show: MakeRowView) -> None:
    names = [f"a_long_column_name_{number}" for number in range(14)]
    row = "| " + " | ".join(names) + " |\n|" + "---|" * 14 + "\n|" + " x |" * 14
    table = part(show(reply(row)), TableView, "Table")
    assert table.horizontalScrollBar().maximum() > 0
    assert table.height() < 150
    narrow = part(show(reply("| a | b |\n|---|---|\n| 1 | 2 |")), TableView, "Table")
    assert narrow.horizontalScrollBar().maximum() == 0


def test_a_card_is_expanded_and_collapsed_by_keyboard_alone(show: MakeRowView) -> None:
    line = show(tool("shell", {"command": "ls"}, "x")).findChildren(DisclosureButton)[0]
    states: list[bool] = []
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Return, Qt.Key.Key_Space):
        QTest.keyClick(line, key)
        states.append(line.isChecked())
    assert states == [True, True, False, True, False]


def test_long_lines_of_code_wrap_on_request(show: MakeRowView) -> None:
    code = "```text\n" + "word " * 60 + "\nend\n```"
    row_view = show(reply(code))
    view = part(row_view, CodeView, "Code, text")
    before = row_view.height_for(WIDTH)
    assert view.horizontalScrollBar().maximum() > 0
    part(row_view, QToolButton, "Wrap long lines").click()
    row_view.resize(WIDTH, row_view.height_for(WIDTH))
    assert view.horizontalScrollBar().maximum() == 0
    assert row_view.height() > before + 2 * view.line_height()
    row_view.set_open(False)
    row_view.set_row(reply("```\nshort\n```"))
    assert [button for button in row_view.findChildren(QToolButton) if button.accessibleName().startswith("Wrap")]
    assert not [
        b for b in row_view.findChildren(QToolButton) if b.isVisible() and b.accessibleName().startswith("Wrap")
    ]
