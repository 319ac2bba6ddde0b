"""The memory of a transcript: constant over many pages."""

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.transcript.view import TranscriptView
from tests.support.row_actions import KeptActions
from tests.support.rows import RowList, long_conversation

_PAGES = 30


def test_pages_leave_no_widgets_behind(theme: Theme) -> None:
    view = TranscriptView(RowList(long_conversation(2_000)), theme, KeptActions())
    view.resize(500, 300)
    view.show()
    view.lay_out()
    _turn_back_and_forth(view)
    count_before = len(view.findChildren(QWidget))
    for _ in range(3):
        _turn_back_and_forth(view)
    grown = len(view.findChildren(QWidget)) - count_before
    assert grown < 3 * _PAGES  # the pool still fills; a leak per page would be twice as many
    view.close()


def _turn_back_and_forth(view: TranscriptView) -> None:
    _page(view, -_PAGES)
    _page(view, _PAGES)


def _page(view: TranscriptView, pages: int) -> None:
    for _ in range(abs(pages)):
        view.scroll_by(view.viewport().height() * (1 if pages > 0 else -1))
        view.viewport().repaint()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)  # as Qt's event loop does


def test_a_hidden_transcript_gives_its_rows_back_and_is_the_same_when_it_is_shown(qtbot: QtBot, theme: Theme) -> None:
    view = TranscriptView(RowList(long_conversation(200)), theme, KeptActions())
    qtbot.addWidget(view)
    view.resize(500, 300)
    view.show()
    view.to_row(100, 7)
    before, shown_rows = len(view.findChildren(TextView)), view.shown
    view.hide()
    qtbot.waitUntil(lambda: not view.findChildren(TextView))
    view.show()
    view.lay_out()
    assert before > 0
    assert (view.scroll_position, view.shown) == ((100, 7), shown_rows)
    assert view.findChildren(TextView)
