"""Formulas in a transcript: drawn after the first paint, with what is read in its place."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import Row
from errand.window.rows.markup.formulas import FORMULAS
from errand.window.rows.markup.text_objects import OBJECT
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from tests.support.rows import reply, user
from tests.window.transcript.conftest import Page

MakePage = Callable[..., Page]


@pytest.fixture(autouse=True)
def _nothing_is_drawn_yet(theme: Theme) -> None:  # pyright: ignore[reportUnusedFunction]
    FORMULAS.clear()


def _texts(page: Page) -> list[TextView]:
    return [view for row_view in page.row_views() for view in row_view.findChildren(TextView) if view.isVisible()]


def _all_drawn(page: Page) -> bool:
    return not any(view.is_pending for view in _texts(page))


def _paragraphs(count: int) -> str:
    """Return paragraphs of very different heights before and after they are drawn."""
    return "\n\n".join(
        rf"Paragraph {number} $$\sqrt{{\frac{{a_{{{number}}}}}{{\frac{{b}}{{c}}}}}}$$ ends." for number in range(count)
    )


def _rows(count: int) -> list[Row]:
    return [user("Show me"), *(reply(_paragraphs(1).replace("a_", f"x_{n} a_"), f"r{n}") for n in range(count))]


def test_the_first_paint_waits_for_no_formula(page: MakePage, qtbot: QtBot) -> None:
    transcript = page(_rows(30))
    transcript.view.lay_out()
    assert all(view.is_pending for view in _texts(transcript) if OBJECT in view.toPlainText())
    qtbot.waitUntil(lambda: _all_drawn(transcript))
    assert not any("$" in view.toPlainText() for view in _texts(transcript))


def test_at_the_end_the_view_stays_there(page: MakePage, qtbot: QtBot) -> None:
    transcript = page(_rows(30))
    qtbot.waitUntil(lambda: _all_drawn(transcript))
    assert transcript.view.is_at_end
    last = transcript.row_views()[-1]
    assert last.y() + last.height() <= transcript.view.viewport().height()


def test_the_line_that_is_read_stays_where_it_is(page: MakePage, qtbot: QtBot) -> None:
    transcript = page([reply(_paragraphs(24))])
    transcript.view.to_row(0, 800)
    (text,) = _texts(transcript)
    viewport = transcript.view.viewport()
    line = text.cursorForPosition(text.viewport().mapFrom(viewport, QPoint(0, 0)))

    def top() -> int:
        return text.viewport().mapTo(viewport, text.cursorRect(line).topLeft()).y()

    def start() -> int:
        return text.mapTo(viewport, QPoint(0, 0)).y()

    before, start_before = top(), start()
    qtbot.waitUntil(lambda: _all_drawn(transcript))
    assert start() != start_before, "the formulas above have other heights now"
    assert abs(top() - before) <= 1


def test_what_is_above_and_below_the_view_is_drawn_too(page: MakePage, qtbot: QtBot) -> None:
    transcript = page(_rows(30))
    qtbot.waitUntil(lambda: _all_drawn(transcript))
    transcript.view.scroll_by(-transcript.view.viewport().height() // 2)
    qtbot.waitUntil(lambda: _all_drawn(transcript))
    transcript.view.scroll_by(-transcript.view.viewport().height() // 4)
    transcript.view.scroll_by(transcript.view.viewport().height() // 4)
    assert _all_drawn(transcript)


def test_scrolling_waits_for_no_formula(page: MakePage, qtbot: QtBot) -> None:
    warm = page([reply("$x$", "warm")])
    qtbot.waitUntil(lambda: _all_drawn(warm))
    transcript = page(_rows(200))
    for _ in range(5):
        transcript.view.scroll_by(-transcript.view.viewport().height())
        qtbot.wait(0)
        assert not _all_drawn(transcript)
    qtbot.waitUntil(lambda: _all_drawn(transcript))


def test_a_formula_is_drawn_while_its_reply_streams(page: MakePage, qtbot: QtBot) -> None:
    transcript = page([reply("It is $x^2$ an", "s", streaming=True)])
    qtbot.waitUntil(lambda: _all_drawn(transcript))
    transcript.rows.change(0, reply("It is $x^2$ and $y", "s", streaming=True))
    transcript.view.lay_out()
    assert _all_drawn(transcript)
    assert _texts(transcript)[0].toPlainText() == f"It is {OBJECT} and $y"


def test_a_selection_is_copied_with_the_sources(page: MakePage, qtbot: QtBot) -> None:
    text = r"Since $\alpha > 0$, so is $\alpha^2$."
    transcript = page([reply(text)])
    qtbot.waitUntil(lambda: _all_drawn(transcript))
    transcript.view.selection.select_all()
    transcript.view.selection.copy()
    assert transcript.actions.copied == [text]
