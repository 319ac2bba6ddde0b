"""Single row views, created as the transcript does."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import Row
from errand.window.rows.base import RowView
from errand.window.rows.registry import kind_of
from errand.window.theme.theme import Theme
from tests.support.row_actions import KeptActions

MakeRowView = Callable[[Row], RowView[Row]]
W = TypeVar("W", bound=QWidget)

WIDTH = 700


def part(row_view: RowView[Row], kind: type[W], name: str) -> W:
    """The visible part with this accessible name."""
    for widget in row_view.findChildren(kind):
        if widget.isVisible() and widget.accessibleName() == name:
            return widget
    raise AssertionError(f"no {kind.__name__} named {name}")


@pytest.fixture
def actions() -> KeptActions:
    return KeptActions()


@pytest.fixture
def show(qtbot: QtBot, theme: Theme, actions: KeptActions) -> MakeRowView:
    """Shows a row in a separate view."""

    row_views: list[RowView[Row]] = []  # qtbot has only a weak reference

    def make(row: Row) -> RowView[Row]:
        row_view = kind_of(row).view(theme, actions)
        qtbot.addWidget(row_view)
        row_view.set_row(row)
        row_view.resize(WIDTH, row_view.height_for(WIDTH))
        row_view.show()
        row_views.append(row_view)
        return row_view

    return make
