"""Selecting and copying across rows, by mouse and keyboard."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QMouseEvent, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import Row
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.text_view import TextView
from tests.support.rows import end, image, notice, reply, thinking, tool, user
from tests.window.transcript.conftest import Page

MakePage = Callable[..., Page]


class Mouse:
    """Delivers events like a real mouse: to the text under the press, until the button is released."""

    def __init__(self, page: Page) -> None:
        self._viewport = page.view.viewport()
        self._taker: QWidget = self._viewport

    def press(self, at: QPoint, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        self._taker = self._viewport.childAt(at) or self._viewport
        self._send(QEvent.Type.MouseButtonPress, at, modifiers)

    def move(self, at: QPoint) -> None:
        self._send(QEvent.Type.MouseMove, at)

    def release(self, at: QPoint) -> None:
        self._send(QEvent.Type.MouseButtonRelease, at)

    def drag(self, start: QPoint, end: QPoint) -> None:
        self.press(start)
        self.move((start + end) / 2)
        self.move(end)
        self.release(end)

    def double_click(self, at: QPoint) -> None:
        self.press(at)
        self.release(at)
        self._send(QEvent.Type.MouseButtonDblClick, at)
        self.release(at)

    def _send(
        self, kind: QEvent.Type, at: QPoint, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
    ) -> None:
        none = Qt.MouseButton.NoButton
        left = Qt.MouseButton.LeftButton
        button = none if kind is QEvent.Type.MouseMove else left
        held = none if kind is QEvent.Type.MouseButtonRelease else left
        local = QPointF(self._taker.mapFrom(self._viewport, at))
        event = QMouseEvent(kind, local, QPointF(self._viewport.mapToGlobal(at)), button, held, modifiers)
        QApplication.sendEvent(self._taker, event)


def letter(page: Page, text: str, word: str, *, after: bool = False) -> QPoint:
    """The start or end of a word in the row view that shows this text."""
    view = next(
        view for row_view in page.row_views() for view in row_view.findChildren(TextView) if view.toPlainText() == text
    )
    cursor = QTextCursor(view.document())
    cursor.setPosition(text.index(word) + (len(word) if after else 0))
    return view.viewport().mapTo(page.view.viewport(), view.cursorRect(cursor).center())


def copied(page: Page) -> str:
    QTest.keyClick(page.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    return page.actions.copied[-1] if page.actions.copied else ""


def marked(page: Page) -> list[str]:
    """The text painted as selected, row by row."""
    views = [view for row_view in page.row_views() for view in row_view.findChildren(TextView) if view.isVisible()]
    return [view.cursor_between(mark.start, mark.end).selectedText() for view in views for mark in view.highlights]


THREE: list[Row] = [
    user("What is it?", "u"),
    reply("It is **bold** and `code`.", "r1"),
    reply("And the *end* of it.", "r2"),
]


def test_a_drag_within_one_row_copies_plain_text(page: MakePage) -> None:
    transcript = page(THREE)
    text = "It is bold and code."
    Mouse(transcript).drag(letter(transcript, text, "is"), letter(transcript, text, "code", after=True))
    assert marked(transcript) == ["is bold and code"]
    assert copied(transcript) == "is **bold** and `code`"


@pytest.mark.parametrize("backwards", [False, True])
def test_a_drag_over_several_rows_copies_markdown(page: MakePage, *, backwards: bool) -> None:
    transcript = page(THREE)
    start = letter(transcript, "What is it?", "is")
    end = letter(transcript, "And the end of it.", "end", after=True)
    Mouse(transcript).drag(*((end, start) if backwards else (start, end)))
    assert marked(transcript) == ["is it?", "It is bold and code.", "And the end"]
    assert copied(transcript) == "is it?\n\nIt is **bold** and `code`.\n\nAnd the *end*"


def test_a_click_clears_the_selection_and_shift_click_extends_it(page: MakePage) -> None:
    transcript = page(THREE)
    mouse = Mouse(transcript)
    mouse.drag(letter(transcript, "What is it?", "is"), letter(transcript, "And the end of it.", "end"))
    start = letter(transcript, "It is bold and code.", "bold")
    mouse.press(start)
    mouse.release(start)
    assert marked(transcript) == []
    assert copied(transcript) == ""
    there = letter(transcript, "And the end of it.", "the", after=True)
    mouse.press(there, Qt.KeyboardModifier.ShiftModifier)
    mouse.release(there)
    assert marked(transcript) == ["bold and code.", "And the"]


def test_a_double_click_selects_a_word_and_a_triple_click_the_paragraph(page: MakePage) -> None:
    transcript = page([reply("one\n\ntwo words here", "r")])
    point = letter(transcript, "one\ntwo words here", "words") + QPoint(4, 0)
    mouse = Mouse(transcript)
    mouse.double_click(point)
    assert copied(transcript) == "words"


def test_select_all_copies_all_rows_with_cards_as_one_line(page: MakePage) -> None:
    rows: list[Row] = [
        user("Do it.", "u"),
        thinking("Hm.", "t"),
        reply("| a | b |\n|---|---|\n| 1 | 2 |", "table"),
        reply("```python\nx = 1\n```", "code"),
        tool("shell", {"command": "make"}, "ok\n", "c1", summary="exit 0"),
        tool("shell", {"command": "ls"}, "a.txt\n", "c2", summary="exit 0"),
        image(key="i"),
        notice("stopped", "Stopped.", "n"),
        end("completed", summary="All **done**.", key="e"),
    ]
    transcript = page(rows)
    lines = [line for row_view in transcript.row_views() for line in row_view.findChildren(DisclosureButton)]
    next(line for line in lines if line.text().startswith("ran ls")).click()
    transcript.view.lay_out()
    QTest.keyClick(transcript.view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert copied(transcript).split("\n\n") == [
        "Do it.",
        "Thought",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "```python\nx = 1\n```",
        "ran make · exit 0",
        "ran ls · exit 0",
        "```\na.txt\n```",
        "(a picture)",
        "Stopped.",
        "Task complete",
        "All **done**.",
    ]


def test_a_drag_to_the_edge_scrolls_and_keeps_hidden_rows_selected(page: MakePage, qtbot: QtBot) -> None:
    transcript = page([reply(f"row {number}", f"r{number}") for number in range(200)])
    transcript.view.to_start()
    mouse = Mouse(transcript)
    mouse.press(letter(transcript, "row 1", "row"))
    mouse.move(QPoint(100, 300))
    mouse.move(QPoint(100, 2_000))
    qtbot.waitUntil(lambda: transcript.view.shown.start > 100)
    mouse.move(QPoint(100, 300))
    mouse.release(QPoint(100, 300))
    text = copied(transcript)
    assert text.startswith("row 1\n\nrow 2\n\n")
    assert "row 60" in text
    transcript.view.to_start()
    assert marked(transcript)[:2] == ["row 1", "row 2"]


def test_the_selection_survives_streaming_below_and_older_rows_above(page: MakePage) -> None:
    transcript = page([reply("first", "r1"), reply("second wo", "r2", streaming=True)])
    Mouse(transcript).drag(letter(transcript, "first", "irst"), letter(transcript, "second wo", "second", after=True))
    transcript.rows.change(1, reply("second word and more", "r2", streaming=True))
    transcript.rows.insert(0, [reply("older", "r0")])
    transcript.view.lay_out()
    assert marked(transcript) == ["irst", "second"]
    transcript.rows.remove(1, 1)
    transcript.view.lay_out()
    assert marked(transcript) == []


def test_the_menu_copies_the_selection(page: MakePage) -> None:
    transcript = page(THREE)
    text = "It is bold and code."
    Mouse(transcript).drag(letter(transcript, text, "bold"), letter(transcript, text, "code", after=True))
    row_view = transcript.row_views()[1]
    middle = row_view.rect().center()
    QApplication.sendEvent(
        row_view, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, middle, row_view.mapToGlobal(middle))
    )
    entries = [entry for menu in row_view.findChildren(QMenu) for entry in menu.actions()]
    assert [entry.text() for entry in entries][:2] == ["Copy", "Copy as plain text"]
    for entry in entries[:2]:
        entry.trigger()
    assert transcript.actions.copied == ["**bold** and `code`", "bold and code"]


def test_a_click_on_a_link_opens_it_and_a_drag_over_it_selects(page: MakePage) -> None:
    transcript = page([reply("See [the guide](https://example.org/guide) first.", "r")])
    text = "See the guide first."
    mouse = Mouse(transcript)
    point = letter(transcript, text, "guide")
    mouse.press(point)
    mouse.release(point)
    assert transcript.actions.links == ["https://example.org/guide"]
    mouse.drag(letter(transcript, text, "the"), letter(transcript, text, "first"))
    assert transcript.actions.links == ["https://example.org/guide"]
    assert copied(transcript) == "[the guide](https://example.org/guide) "
