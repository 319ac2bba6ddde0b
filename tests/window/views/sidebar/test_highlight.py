"""The highlighted conversation of the list is the open one, and no row stays lit that the pointer has left."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from errand.window.theme.theme import Theme
from tests.window.accessibility.full_window import Office, office


@pytest.fixture
async def opened(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[Office]:
    async with office(qapp, theme, tmp_path) as found:
        found.window.activateWindow()
        QApplication.processEvents()
        yield found


def highlighted(opened: Office) -> str:
    selected = opened.window.sidebar.list.selected
    return selected.id if selected is not None else ""


def row_of(opened: Office, conversation_id: str) -> QPoint:
    view = opened.window.sidebar.list
    model = view.model()
    for number in range(model.rowCount()):
        view.setCurrentIndex(model.index(number, 0))
        if highlighted(opened) == conversation_id:
            point = view.visualRect(model.index(number, 0)).center()
            view.select(opened.window.conversations.active_id)
            return point
    raise AssertionError(conversation_id)


async def test_what_the_arrow_keys_highlight_ends_with_the_focus(opened: Office) -> None:
    await opened.open(opened.told)
    view = opened.window.sidebar.list
    view.setFocus(Qt.FocusReason.TabFocusReason)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Up):
        QTest.keyClick(view, key)
        if highlighted(opened) != opened.told:
            break
    assert highlighted(opened) != opened.told
    opened.front.composer.setFocus()
    assert highlighted(opened) == opened.told


@pytest.mark.parametrize("button", [Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton])
async def test_other_buttons_than_the_left_one_highlight_nothing(opened: Office, button: Qt.MouseButton) -> None:
    await opened.open(opened.told)
    view = opened.window.sidebar.list
    point = row_of(opened, opened.busy)
    QTest.mousePress(view.viewport(), button, pos=point)
    assert highlighted(opened) == opened.told
    QTest.mouseRelease(view.viewport(), button, pos=point)
    assert highlighted(opened) == opened.told


async def test_a_press_that_is_let_go_elsewhere_opens_and_highlights_nothing(opened: Office) -> None:
    await opened.open(opened.told)
    view = opened.window.sidebar.list
    QTest.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=row_of(opened, opened.busy))
    QTest.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(2, view.viewport().height() - 2))
    assert highlighted(opened) == opened.window.conversations.active_id == opened.told


async def test_a_row_is_not_lit_after_its_menu_closes_with_the_pointer_elsewhere(opened: Office) -> None:
    await opened.open(opened.told)
    view = opened.window.sidebar.list
    point = row_of(opened, opened.busy)
    view.clearFocus()
    QTest.mouseMove(opened.front.composer.field)
    QApplication.processEvents()
    unlit = view.viewport().grab().toImage()
    QTest.mouseMove(view.viewport(), point)
    QApplication.processEvents()
    assert view.viewport().grab().toImage() != unlit
    view.customContextMenuRequested.emit(point)
    menu = next(widget for widget in QApplication.topLevelWidgets() if isinstance(widget, QMenu) and widget.isVisible())
    QTest.mouseMove(menu, QPoint(5, 5))
    menu.close()
    QTest.mouseMove(opened.front.composer.field)
    QApplication.processEvents()
    assert view.viewport().grab().toImage() == unlit
