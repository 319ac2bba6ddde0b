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
    transcript = page(long_conversation(10_000))
    assert transcript.view.is_at_end
    assert transcript.view.shown.stop == 10_000
    assert transcript.made() < 60


def test_a_short_conversation_starts_at_the_top(page: MakePage) -> None:
    transcript = page([user("Hello"), reply("Good day.")])
    assert transcript.texts() == ["Hello", "Good day."]
    assert 0 < transcript.top_of("Hello") < 50


def test_an_empty_conversation_shows_its_first_rows(page: MakePage) -> None:
    transcript = page([])
    transcript.rows.append(user("Hello"))
    transcript.view.lay_out()
    assert transcript.texts() == ["Hello"]


def test_the_view_stays_at_the_end_while_rows_are_added_and_grow(page: MakePage) -> None:
    transcript = page(_many(100))
    transcript.rows.append(reply("new", "s", streaming=True))
    for length in range(1, 60, 10):
        transcript.rows.change(100, reply("word " * 30 * length, "s", streaming=True))
        transcript.view.lay_out()
        assert transcript.view.is_at_end
        last = transcript.row_views()[-1]
        assert last.y() + last.height() <= transcript.view.viewport().height()


def test_a_view_that_resizes_with_its_first_row_does_not_leave_the_end(
    page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_row = ThinkingView.set_row

    def set_row_and_resize(view: ThinkingView, row: ThinkingRow) -> None:
        set_row(view, row)
        view.resized.emit()

    monkeypatch.setattr(ThinkingView, "set_row", set_row_and_resize)
    transcript = page(_many(100))
    transcript.rows.append(thinking("Hm."))
    transcript.view.lay_out()
    assert transcript.view.shown.stop == 101
    assert transcript.view.is_at_end


def _line_of(page: Page, label: str) -> DisclosureButton:
    lines = [line for row_view in page.row_views() for line in row_view.findChildren(DisclosureButton)]
    return next(line for line in lines if line.text().endswith(label))


def _top(page: Page, label: str) -> int:
    return _line_of(page, label).mapTo(page.view.viewport(), QPoint(0, 0)).y()


def _calls(count: int) -> list[Row]:
    output = "\n".join(f"line {number}" for number in range(15))
    return [tool("shell", {"command": f"make {number}"}, output, f"call{number}") for number in range(count)]


@pytest.mark.parametrize("count", [2, 14, 60])
def test_a_row_that_is_opened_and_closed_stays_under_the_mouse(page: MakePage, count: int) -> None:
    transcript = page(_calls(count))
    for number in (count - 1, count - 2):
        label = f"make {number}"
        before = _top(transcript, label)
        for _ in range(2):
            _line_of(transcript, label).click()
            transcript.view.lay_out()
            assert _top(transcript, label) == before


def test_room_that_a_closed_row_leaves_is_filled_before_the_view_follows_again(page: MakePage) -> None:
    transcript = page(_calls(60))
    line = _line_of(transcript, "make 59")
    line.click()
    transcript.view.to_end()
    before = _top(transcript, "make 59")
    _line_of(transcript, "make 59").click()
    transcript.view.lay_out()
    assert (_top(transcript, "make 59"), transcript.view.is_at_end) == (before, True)
    transcript.view.scroll_by(100)
    assert _top(transcript, "make 59") == before, "there is nothing below"
    transcript.rows.append(reply("word " * 20, "new"))
    transcript.view.lay_out()
    assert (_top(transcript, "make 59"), transcript.view.is_at_end) == (before, True)
    transcript.rows.append(reply("word\n\n" * 40, "newer"))
    transcript.view.lay_out()
    assert transcript.view.is_at_end and transcript.row_views()[-1].y() + transcript.row_views()[-1].height() <= 600


def test_the_view_does_not_move_while_scrolled_up(page: MakePage, qtbot: QtBot) -> None:
    transcript = page(_many(100))
    transcript.view.scroll_by(-700)
    text = transcript.texts()[2]
    before = transcript.top_of(text)
    transcript.rows.append(*_many(20, "later"))
    transcript.rows.change(119, reply("long " * 2_000, "later19", streaming=True))
    transcript.view.lay_out()
    assert transcript.top_of(text) == before
    assert _button(transcript).isVisible()
    QTest.mouseClick(_button(transcript), Qt.MouseButton.LeftButton)
    assert transcript.view.is_at_end
    assert not _button(transcript).isVisible()


def test_older_rows_above_move_nothing(page: MakePage) -> None:
    transcript = page(_many(40), has_older=True)
    for y in (0, 10, 30, 200):
        transcript.view.to_start()
        transcript.view.scroll_by(y)
        text = transcript.texts()[1]
        before = transcript.top_of(text)
        transcript.rows.insert(0, _many(50, f"older{y}."))
        transcript.view.lay_out()
        assert transcript.top_of(text) == before


def test_measuring_the_rows_above_moves_nothing(page: MakePage, qtbot: QtBot) -> None:
    transcript = page([reply(f"{number}. " + "word " * (number * 37 % 400), f"r{number}") for number in range(300)])
    transcript.view.to_row(150)
    first = transcript.texts()[0]
    before = transcript.top_of(first)
    for _ in range(30):
        transcript.view.scroll_by(-300)
        qtbot.wait(0)
    for _ in range(30):
        transcript.view.scroll_by(300)
        qtbot.wait(0)
    assert transcript.top_of(first) == before


def test_a_new_width_keeps_the_row_at_the_top(page: MakePage) -> None:
    transcript = page(long_conversation(400))
    transcript.view.to_row(200)
    for width in (420, 1_200, 800):
        transcript.view.resize(width, 600)
        assert transcript.view.shown.start == 200


def test_rows_removed_above_move_nothing(page: MakePage) -> None:
    transcript = page(_many(200))
    transcript.view.to_row(100)
    text = transcript.texts()[3]
    before = transcript.top_of(text)
    transcript.rows.remove(10, 20)
    transcript.view.lay_out()
    assert transcript.top_of(text) == before


def test_a_row_can_change_its_kind(page: MakePage) -> None:
    transcript = page(_many(3))
    transcript.rows.change(1, user("now a question", "row1"))
    transcript.view.lay_out()
    assert transcript.texts() == ["row 0", "now a question", "row 2"]


def test_all_rows_can_be_replaced(page: MakePage) -> None:
    transcript = page(_many(300))
    transcript.view.to_row(100)
    transcript.rows.replace(_many(2, "other"))
    transcript.view.lay_out()
    assert transcript.texts() == ["other 0", "other 1"]
    transcript.rows.replace([])
    transcript.view.lay_out()
    assert transcript.texts() == []


def test_older_rows_are_asked_for_once_when_the_first_one_is_near(page: MakePage) -> None:
    transcript = page(_many(100), has_older=True)
    assert transcript.actions.older == 0
    transcript.view.to_start()
    transcript.view.scroll_by(20)
    assert transcript.actions.older == 1
    transcript.rows.insert(0, _many(50, "older"))
    transcript.view.lay_out()
    assert transcript.actions.older == 1
    transcript.view.to_start()
    assert transcript.actions.older == 2


def test_a_transcript_in_the_background_is_laid_out_when_it_is_shown(page: MakePage) -> None:
    transcript = page(_many(10))
    transcript.view.hide()
    count_before = transcript.made()
    transcript.rows.append(*_many(500, "later"))
    transcript.view.lay_out()
    assert transcript.made() == count_before
    transcript.view.show()
    assert transcript.texts()[-1] == "later 499"


def test_the_column_is_760_pixels_wide_and_centred(page: MakePage) -> None:
    transcript = page(_many(3))
    transcript.view.resize(1_400, 600)
    row_view = transcript.row_views()[0]
    assert row_view.width() == 760
    assert abs(row_view.x() - (transcript.view.viewport().width() - 760) // 2) <= 1


def test_the_scroll_bar_does_not_shift_the_column(page: MakePage) -> None:
    short, long = page(_many(1)), page(_many(200))
    assert long.view.verticalScrollBar().maximum() > 0
    assert {row_view.x() for row_view in short.row_views()} == {row_view.x() for row_view in long.row_views()}


def test_a_shorter_conversation_replaces_a_longer_one_with_pending_measurements(page: MakePage, qtbot: QtBot) -> None:
    transcript = _about_to_measure(page, qtbot)
    transcript.rows.replace(_many(3, "new"))
    qtbot.waitUntil(lambda: transcript.texts() == ["new 0", "new 1", "new 2"])


def test_removed_rows_are_no_longer_measured(page: MakePage, qtbot: QtBot) -> None:
    transcript = _about_to_measure(page, qtbot)
    transcript.rows.remove(3, 197)
    qtbot.waitUntil(lambda: transcript.texts() == ["row 0", "row 1", "row 2"])


def _about_to_measure(page: MakePage, qtbot: QtBot) -> Page:
    """Return a page at the end of 200 rows, with rows near the view to be measured in the next loop iteration."""
    transcript = page(_many(200))
    qtbot.waitUntil(transcript.view.windowHandle().isExposed)
    transcript.view.to_end()
    return transcript


def test_a_changed_row_is_shown_when_it_is_laid_out_wherever_it_moved(page: MakePage) -> None:
    transcript = page(_many(4))
    transcript.rows.change(1, reply("other 1", "row1"))
    transcript.rows.change(2, user("other 2", "row2"))
    transcript.rows.insert(0, _many(2, "new"))
    transcript.rows.remove(2, 1)
    transcript.rows.change(0, reply("other new 0", "new0"))
    transcript.view.lay_out()
    assert transcript.texts() == ["other new 0", "new 1", "other 1", "other 2", "row 3"]


def test_changes_below_the_view_are_not_laid_out(page: MakePage, qtbot: QtBot) -> None:
    transcript = page(_many(100))
    transcript.view.to_start()
    below = transcript.view.shown.stop
    qtbot.waitUntil(lambda: _shows(transcript, f"row {below}"))
    transcript.rows.change(below, reply("other", f"row{below}"))
    transcript.view.lay_out()
    QTest.qWait(0)
    assert not _shows(transcript, "other")
    transcript.view.to_row(below)
    assert transcript.texts()[0] == "other"


def _shows(page: Page, text: str) -> bool:
    """True if a row view has this text, visible or not."""
    return any(view.toPlainText() == text for view in page.view.findChildren(TextView))
