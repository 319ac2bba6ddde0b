"""The bar of tabs."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTabBar
from pytestqt.qtbot import QtBot

from app.window.theme.theme import Theme
from app.window.views.tabs import TabLook, TabsView
from app.window.widgets.pulse import Pulse


@pytest.fixture
def tabs(qtbot: QtBot, theme: Theme) -> TabsView:
    view = TabsView(theme, Pulse(theme))
    qtbot.addWidget(view)
    for key in ("a", "b", "c"):
        view.add(key, TabLook(f"Title {key}"))
    view.resize(900, 40)
    view.show()
    return view


def test_keys_stay_with_their_tabs_when_these_are_moved(tabs: TabsView) -> None:
    tabs.moveTab(0, 2)
    tabs.go_to("a")
    assert (tabs.keys, tabs.current, tabs.currentIndex()) == (("b", "c", "a"), "a", 2)


def test_a_tab_says_its_state_and_what_is_new_in_words(tabs: TabsView) -> None:
    tabs.show_look("b", TabLook("Mend the shop", "waiting", 2))
    assert tabs.tabToolTip(1) == tabs.accessibleTabName(1) == "Mend the shop · waiting for you · 2 new"


def test_a_long_title_is_cut_and_the_whole_one_is_the_tool_tip(tabs: TabsView) -> None:
    title = "A title that goes on and on & on"
    tabs.show_look("a", TabLook(title))
    assert (tabs.tabText(0), tabs.tabToolTip(0)) == ("A title that goes on an…", title)


def test_a_middle_click_asks_to_close(tabs: TabsView) -> None:
    closed: list[str] = []
    tabs.close_asked.connect(closed.append)
    middle: QPoint = tabs.tabRect(1).center()
    QTest.mouseClick(tabs, Qt.MouseButton.MiddleButton, Qt.KeyboardModifier.NoModifier, middle)
    assert closed == ["b"]


def test_a_tab_that_works_can_be_removed_while_it_pulses(tabs: TabsView) -> None:
    tabs.show_look("a", TabLook("Title a", "working"))
    assert tabs.tabButton(0, QTabBar.ButtonPosition.LeftSide).isVisible()
    tabs.remove("a")
    assert tabs.keys == ("b", "c")
