"""A transcript in a window, with its rows in memory."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import Row
from errand.window.rows.base import RowView
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.transcript.view import TranscriptView
from tests.support.row_actions import KeptActions
from tests.support.rows import RowList


class Page:
    """A transcript as its user sees it."""

    def __init__(self, view: TranscriptView, rows: RowList, actions: KeptActions) -> None:
        self.view = view
        self.rows = rows
        self.actions = actions

    def row_views(self) -> list[RowView[Row]]:
        """The visible row views, from top to bottom."""
        height = self.view.viewport().height()
        views: list[RowView[Row]] = self.view.findChildren(RowView)
        seen = [row_view for row_view in views if row_view.isVisible() and row_view.y() < height]
        return sorted((row_view for row_view in seen if row_view.y() + row_view.height() > 0), key=QWidget.y)

    def made(self) -> int:
        """The number of row views, visible or not."""
        views: list[RowView[Row]] = self.view.findChildren(RowView)
        return len(views)

    def texts(self) -> list[str]:
        return [text for text in map(text_of, self.row_views()) if text]

    def top_of(self, text: str) -> int:
        """The top of the row view with this text, in pixels of the view."""
        row_view = next(row_view for row_view in self.row_views() if text_of(row_view) == text)
        return row_view.mapTo(self.view.viewport(), QPoint(0, 0)).y()


def text_of(row_view: RowView[Row]) -> str:
    texts = [view for view in row_view.findChildren(TextView) if view.isVisible()]
    return texts[0].toPlainText() if texts else ""


@pytest.fixture
def page(qtbot: QtBot, theme: Theme) -> Callable[..., Page]:
    """Creates a transcript of 800 × 600 with these rows, shown and laid out, without smooth scrolling."""
    theme.set_motion(False)

    def make(rows: list[Row], *, has_older: bool = False) -> Page:
        source, actions = RowList(rows, has_older=has_older), KeptActions()
        view = TranscriptView(source, theme, actions)
        qtbot.addWidget(view)
        view.resize(800, 600)
        view.show()
        return Page(view, source, actions)

    return make
