"""The scroll position when rows are inserted, removed and resized."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import Row, ThinkingRow
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.text_view import TextView
from errand.window.rows.thinking import ThinkingView
from tests.support.rows import long_conversation, reply, thinking, tool, user
from tests.window.transcript.conftest import Page

MakePage = Callable[..., Page]


def _many(count: int, word: str = "row") -> list[Row]:
    return [reply(f"{word} {number}", f"{word}{number}") for number in range(count)]


def _button(page: Page) -> QAbstractButton:
    buttons = page.view.findChildren(QAbstractButton)
    return next(button for button in buttons if button.accessibleName() == "Jump to new messages")


def test_a_long_conversation_opens_at_its_end_with_few_widgets(page: MakePage) -> None:
    shown = page(long_conversation(10_000))
    assert shown.view.is_at_end
    assert shown.view.shown.stop == 10_000
    assert shown.made() < 60


def test_a_short_conversation_starts_at_the_top(page: MakePage) -> None:
    shown = page([user("Hello"), reply("Good day.")])
    assert shown.texts() == ["Hello", "Good day."]
    assert 0 < shown.top_of("Hello") < 50


def test_an_empty_conversation_shows_its_first_rows(page: MakePage) -> None:
    shown = page([])
    shown.rows.append(user("Hello"))
    shown.view.lay_out()
    assert shown.texts() == ["Hello"]


def test_the_view_stays_at_the_end_while_rows_are_added_and_grow(page: MakePage) -> None:
    shown = page(_many(100))
    shown.rows.append(reply("new", "s", streaming=True))
    for length in range(1, 60, 10):
        shown.rows.change(100, reply("word " * 30 * length, "s", streaming=True))
        shown.view.lay_out()
        assert shown.view.is_at_end
        last = shown.row_views()[-1]
        assert last.y() + last.height() <= shown.view.viewport().height()


def test_a_view_that_resizes_with_its_first_row_does_not_leave_the_end(
    page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_row = ThinkingView.set_row

    def set_row_and_resize(view: ThinkingView, row: ThinkingRow) -> None:
        set_row(view, row)
        view.resized.emit()

    monkeypatch.setattr(ThinkingView, "set_row", set_row_and_resize)
    shown = page(_many(100))
    shown.rows.append(thinking("Hm."))
    shown.view.lay_out()
    assert shown.view.shown.stop == 101
    assert shown.view.is_at_end


def _line_of(page: Page, words: str) -> DisclosureButton:
    lines = [line for row_view in page.row_views() for line in row_view.findChildren(DisclosureButton)]
    return next(line for line in lines if line.text().endswith(words))


def _top(page: Page, words: str) -> int:
    return _line_of(page, words).mapTo(page.view.viewport(), QPoint(0, 0)).y()


def _calls(count: int) -> list[Row]:
    output = "\n".join(f"line {number}" for number in range(15))
    return [tool("shell", {"command": f"make {number}"}, output, f"call{number}") for number in range(count)]


@pytest.mark.parametrize("count", [2, 14, 60])
def test_a_row_that_is_opened_and_closed_stays_under_the_mouse(page: MakePage, count: int) -> None:
    shown = page(_calls(count))
    for number in (count - 1, count - 2):
        words = f"make {number}"
        before = _top(shown, words)
        for _ in range(2):
            _line_of(shown, words).click()
            shown.view.lay_out()
            assert _top(shown, words) == before


def test_room_that_a_closed_row_leaves_is_filled_before_the_view_follows_again(page: MakePage) -> None:
    shown = page(_calls(60))
    line = _line_of(shown, "make 59")
    line.click()
    shown.view.to_end()
    before = _top(shown, "make 59")
    _line_of(shown, "make 59").click()
    shown.view.lay_out()
    assert (_top(shown, "make 59"), shown.view.is_at_end) == (before, True)
    shown.view.scroll_by(100)
    assert _top(shown, "make 59") == before, "there is nothing below"
    shown.rows.append(reply("word " * 20, "new"))
    shown.view.lay_out()
    assert (_top(shown, "make 59"), shown.view.is_at_end) == (before, True)
    shown.rows.append(reply("word\n\n" * 40, "newer"))
    shown.view.lay_out()
    assert shown.view.is_at_end and shown.row_views()[-1].y() + shown.row_views()[-1].height() <= 600


def test_the_view_does_not_move_while_scrolled_up(page: MakePage, qtbot: QtBot) -> None:
    shown = page(_many(100))
    shown.view.scroll_by(-700)
    text = shown.texts()[2]
    before = shown.top_of(text)
    shown.rows.append(*_many(20, "later"))
    shown.rows.change(119, reply("long " * 2_000, "later19", streaming=True))
    shown.view.lay_out()
    assert shown.top_of(text) == before
    assert _button(shown).isVisible()
    QTest.mouseClick(_button(shown), Qt.MouseButton.LeftButton)
    assert shown.view.is_at_end
    assert not _button(shown).isVisible()


def test_older_rows_above_move_nothing(page: MakePage) -> None:
    shown = page(_many(40), has_older=True)
    for y in (0, 10, 30, 200):
        shown.view.to_start()
        shown.view.scroll_by(y)
        text = shown.texts()[1]
        before = shown.top_of(text)
        shown.rows.insert(0, _many(50, f"older{y}."))
        shown.view.lay_out()
        assert shown.top_of(text) == before


def test_measuring_the_rows_above_moves_nothing(page: MakePage, qtbot: QtBot) -> None:
    shown = page([reply(f"{number}. " + "word " * (number * 37 % 400), f"r{number}") for number in range(300)])
    shown.view.to_row(150)
    first = shown.texts()[0]
    before = shown.top_of(first)
    for _ in range(30):
        shown.view.scroll_by(-300)
        qtbot.wait(0)
    for _ in range(30):
        shown.view.scroll_by(300)
        qtbot.wait(0)
    assert shown.top_of(first) == before


def test_a_new_width_keeps_the_row_at_the_top(page: MakePage) -> None:
    shown = page(long_conversation(400))
    shown.view.to_row(200)
    for width in (420, 1_200, 800):
        shown.view.resize(width, 600)
        assert shown.view.shown.start == 200


def test_rows_removed_above_move_nothing(page: MakePage) -> None:
    shown = page(_many(200))
    shown.view.to_row(100)
    text = shown.texts()[3]
    before = shown.top_of(text)
    shown.rows.remove(10, 20)
    shown.view.lay_out()
    assert shown.top_of(text) == before


def test_a_row_can_change_its_kind(page: MakePage) -> None:
    shown = page(_many(3))
    shown.rows.change(1, user("now a question", "row1"))
    shown.view.lay_out()
    assert shown.texts() == ["row 0", "now a question", "row 2"]


def test_all_rows_can_be_replaced(page: MakePage) -> None:
    shown = page(_many(300))
    shown.view.to_row(100)
    shown.rows.replace(_many(2, "other"))
    shown.view.lay_out()
    assert shown.texts() == ["other 0", "other 1"]
    shown.rows.replace([])
    shown.view.lay_out()
    assert shown.texts() == []


def test_older_rows_are_asked_for_once_when_the_first_one_is_near(page: MakePage) -> None:
    shown = page(_many(100), has_older=True)
    assert shown.actions.older == 0
    shown.view.to_start()
    shown.view.scroll_by(20)
    assert shown.actions.older == 1
    shown.rows.insert(0, _many(50, "older"))
    shown.view.lay_out()
    assert shown.actions.older == 1
    shown.view.to_start()
    assert shown.actions.older == 2


def test_a_transcript_in_the_background_is_laid_out_when_it_is_shown(page: MakePage) -> None:
    shown = page(_many(10))
    shown.view.hide()
    made = shown.made()
    shown.rows.append(*_many(500, "later"))
    shown.view.lay_out()
    assert shown.made() == made
    shown.view.show()
    assert shown.texts()[-1] == "later 499"


def test_the_column_is_760_pixels_wide_and_centred(page: MakePage) -> None:
    shown = page(_many(3))
    shown.view.resize(1_400, 600)
    row_view = shown.row_views()[0]
    assert row_view.width() == 760
    assert abs(row_view.x() - (shown.view.viewport().width() - 760) // 2) <= 1


def test_the_scroll_bar_does_not_shift_the_column(page: MakePage) -> None:
    short, long = page(_many(1)), page(_many(200))
    assert long.view.verticalScrollBar().maximum() > 0
    assert {row_view.x() for row_view in short.row_views()} == {row_view.x() for row_view in long.row_views()}


def test_a_shorter_conversation_replaces_a_longer_one_with_pending_measurements(page: MakePage, qtbot: QtBot) -> None:
    found = _about_to_measure(page, qtbot)
    found.rows.replace(_many(3, "new"))
    qtbot.waitUntil(lambda: found.texts() == ["new 0", "new 1", "new 2"])


def test_removed_rows_are_no_longer_measured(page: MakePage, qtbot: QtBot) -> None:
    found = _about_to_measure(page, qtbot)
    found.rows.remove(3, 197)
    qtbot.waitUntil(lambda: found.texts() == ["row 0", "row 1", "row 2"])


def _about_to_measure(page: MakePage, qtbot: QtBot) -> Page:
    """At the end of 200 rows, with rows near the view to be measured in the next iteration of the loop."""
    found = page(_many(200))
    qtbot.waitUntil(found.view.windowHandle().isExposed)
    found.view.to_end()
    return found


def test_a_changed_row_is_shown_when_it_is_laid_out_wherever_it_moved(page: MakePage) -> None:
    shown = page(_many(4))
    shown.rows.change(1, reply("other 1", "row1"))
    shown.rows.change(2, user("other 2", "row2"))
    shown.rows.insert(0, _many(2, "new"))
    shown.rows.remove(2, 1)
    shown.rows.change(0, reply("other new 0", "new0"))
    shown.view.lay_out()
    assert shown.texts() == ["other new 0", "new 1", "other 1", "other 2", "row 3"]


def test_changes_below_the_view_are_not_laid_out(page: MakePage, qtbot: QtBot) -> None:
    shown = page(_many(100))
    shown.view.to_start()
    below = shown.view.shown.stop
    qtbot.waitUntil(lambda: _shows(shown, f"row {below}"))
    shown.rows.change(below, reply("other", f"row{below}"))
    shown.view.lay_out()
    QTest.qWait(0)
    assert not _shows(shown, "other")
    shown.view.to_row(below)
    assert shown.texts()[0] == "other"


def _shows(page: Page, text: str) -> bool:
    """True if a row view has this text, visible or not."""
    return any(view.toPlainText() == text for view in page.view.findChildren(TextView))
