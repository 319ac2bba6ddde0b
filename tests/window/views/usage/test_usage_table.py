"""The heading of the usage table shows how its rows are ordered."""

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from errand.protocol.usage import Usage, UsageRow
from errand.window.theme.theme import Theme
from errand.window.views.usage.table import UsageTableView

_LONG = "acme-gateway/scribe-large-2026"
_ARROW = 14  # pixels at the left of a heading


@pytest.mark.parametrize("order", [Qt.SortOrder.DescendingOrder, Qt.SortOrder.AscendingOrder])
def test_the_arrow_points_down_when_the_largest_is_on_top(
    theme: Theme, qapp: QApplication, qtbot: QtBot, order: Qt.SortOrder
) -> None:
    table = UsageTableView(theme)
    qtbot.addWidget(table)
    table.resize(800, 300)
    table.show()
    table.sortByColumn(1, order)
    qapp.processEvents()
    head = table.horizontalHeader()
    arrow_area = QRect(head.sectionViewportPosition(1), 0, _ARROW, head.height() - 2)
    widths = _inked(head.viewport().grab(arrow_area).toImage())
    points_down = widths[0] > widths[-1]
    assert points_down == (order is Qt.SortOrder.DescendingOrder), widths


def test_the_names_of_models_have_room(theme: Theme, qapp: QApplication, qtbot: QtBot) -> None:
    table = UsageTableView(theme)
    qtbot.addWidget(table)
    table.show_rows((UsageRow(by="model", key="m", title=_LONG, usage=Usage(), turns=1, tasks=1),), "Model")
    table.resize(800, 300)
    table.show()
    qapp.processEvents()
    text_width = table.fontMetrics().horizontalAdvance(_LONG)
    assert table.columnWidth(0) > text_width


def test_an_unknown_cost_is_explained_where_it_stands(theme: Theme, qtbot: QtBot) -> None:
    table = UsageTableView(theme)
    qtbot.addWidget(table)
    table.show_rows(
        (UsageRow(by="model", key="m", title=_LONG, usage=Usage(), turns=2, tasks=1, unpriced_turns=2),), ""
    )
    index = table.model().index(0, 1)
    assert (index.data(), index.data(Qt.ItemDataRole.ToolTipRole)) == (
        "?",
        "The prices of 2 turns are unknown and not included.",
    )


def _inked(image: QImage) -> list[int]:
    """The width of what is drawn in each line of an image that has something drawn."""
    paper = image.pixel(0, 0)
    lines = [[x for x in range(image.width()) if image.pixel(x, y) != paper] for y in range(image.height())]
    return [inked[-1] - inked[0] + 1 for inked in lines if inked]
