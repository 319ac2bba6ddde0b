"""The highlighted conversation of the list is the open one, and no row stays lit that the pointer has left."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from errand.window.theme.theme import Theme
from tests.window.accessibility.full_window import WindowFixture, window_fixture


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[WindowFixture]:
    async with window_fixture(qapp, theme, tmp_path) as fixture:
        fixture.window.activateWindow()
        QApplication.processEvents()
        yield fixture


def highlighted(fixture: WindowFixture) -> str:
    selected = fixture.window.sidebar.list.selected
    return selected.id if selected is not None else ""


def row_of(fixture: WindowFixture, conversation_id: str) -> QPoint:
    view = fixture.window.sidebar.list
    model = view.model()
    for number in range(model.rowCount()):
        view.setCurrentIndex(model.index(number, 0))
        if highlighted(fixture) == conversation_id:
            point = view.visualRect(model.index(number, 0)).center()
            view.select(fixture.window.conversations.active_id)
            return point
    raise AssertionError(conversation_id)


async def test_what_the_arrow_keys_highlight_ends_with_the_focus(fixture: WindowFixture) -> None:
    await fixture.open(fixture.branched)
    view = fixture.window.sidebar.list
    view.setFocus(Qt.FocusReason.TabFocusReason)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Up):
        QTest.keyClick(view, key)
        if highlighted(fixture) != fixture.branched:
            break
    assert highlighted(fixture) != fixture.branched
    fixture.front.composer.setFocus()
    assert highlighted(fixture) == fixture.branched


@pytest.mark.parametrize("button", [Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton])
async def test_other_buttons_than_the_left_one_highlight_nothing(
    fixture: WindowFixture, button: Qt.MouseButton
) -> None:
    await fixture.open(fixture.branched)
    view = fixture.window.sidebar.list
    point = row_of(fixture, fixture.busy)
    QTest.mousePress(view.viewport(), button, pos=point)
    assert highlighted(fixture) == fixture.branched
    QTest.mouseRelease(view.viewport(), button, pos=point)
    assert highlighted(fixture) == fixture.branched


async def test_a_press_that_is_let_go_elsewhere_opens_and_highlights_nothing(fixture: WindowFixture) -> None:
    await fixture.open(fixture.branched)
    view = fixture.window.sidebar.list
    QTest.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=row_of(fixture, fixture.busy))
    QTest.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(2, view.viewport().height() - 2))
    assert highlighted(fixture) == fixture.window.conversations.active_id == fixture.branched


async def test_a_row_is_not_lit_after_its_menu_closes_with_the_pointer_elsewhere(fixture: WindowFixture) -> None:
    await fixture.open(fixture.branched)
    view = fixture.window.sidebar.list
    point = row_of(fixture, fixture.busy)
    view.clearFocus()
    QTest.mouseMove(fixture.front.composer.field)
    QApplication.processEvents()
    unlit = view.viewport().grab().toImage()
    QTest.mouseMove(view.viewport(), point)
    QApplication.processEvents()
    assert view.viewport().grab().toImage() != unlit
    view.customContextMenuRequested.emit(point)
    menu = next(widget for widget in QApplication.topLevelWidgets() if isinstance(widget, QMenu) and widget.isVisible())
    QTest.mouseMove(menu, QPoint(5, 5))
    menu.close()
    QTest.mouseMove(fixture.front.composer.field)
    QApplication.processEvents()
    assert view.viewport().grab().toImage() == unlit
