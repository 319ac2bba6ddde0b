"""The tab bar."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTabBar, QToolButton
from pytestqt.qtbot import QtBot

from errand.window.theme.theme import Theme
from errand.window.views.shell.tab_bar import TabBarView, TabState
from errand.window.widgets.pulse import PulseTimer
from errand.window.widgets.status_dot import DotState, StatusDotView


@pytest.fixture
def tabs(qtbot: QtBot, theme: Theme) -> TabBarView:
    view = TabBarView(theme, PulseTimer(theme))
    qtbot.addWidget(view)
    for key in ("a", "b", "c"):
        view.add(key, TabState(f"Title {key}"))
    view.resize(900, 40)
    view.show()
    return view


def test_keys_stay_with_their_tabs_when_these_are_moved(tabs: TabBarView) -> None:
    tabs.moveTab(0, 2)
    tabs.go_to("a")
    assert (tabs.keys, tabs.current, tabs.currentIndex()) == (("b", "c", "a"), "a", 2)


def test_the_accessible_name_of_a_tab_has_its_state_and_unread_count(tabs: TabBarView) -> None:
    tabs.show_state("b", TabState("Mend the shop", "waiting", 2))
    assert tabs.tabToolTip(1) == tabs.accessibleTabName(1) == "Mend the shop · waiting for you · 2 new"


def test_a_long_title_is_elided_with_the_full_one_as_tool_tip(tabs: TabBarView) -> None:
    title = "A title that goes on and on & on"
    tabs.show_state("a", TabState(title))
    assert (tabs.tabText(0), tabs.tabToolTip(0)) == ("A title that goes on an…", title)


def test_with_many_tabs_a_status_dot_takes_no_space_from_the_title(tabs: TabBarView) -> None:
    for number in range(20):
        tabs.add(f"n{number}", TabState("A title of some length", "working", number % 2))
    QApplication.processEvents()
    widths = [tabs.tabRect(tabs.keys.index(key)).width() for key in ("n1", "n2")]
    mark = tabs.tabButton(tabs.keys.index("n1"), QTabBar.ButtonPosition.LeftSide)
    plain = tabs.tabButton(tabs.keys.index("n2"), QTabBar.ButtonPosition.LeftSide)
    assert widths[0] - widths[1] == mark.sizeHint().width() - plain.sizeHint().width() > 0


def test_a_middle_click_asks_to_close(tabs: TabBarView) -> None:
    closed: list[str] = []
    tabs.close_requested.connect(closed.append)
    middle: QPoint = tabs.tabRect(1).center()
    QTest.mouseClick(tabs, Qt.MouseButton.MiddleButton, Qt.KeyboardModifier.NoModifier, middle)
    assert closed == ["b"]


def test_a_tab_with_a_pulsing_dot_can_be_removed(tabs: TabBarView) -> None:
    tabs.show_state("a", TabState("Title a", "working"))
    assert tabs.tabButton(0, QTabBar.ButtonPosition.LeftSide).isVisible()
    tabs.remove("a")
    assert tabs.keys == ("b", "c")


def test_pinned_tabs_are_narrow_and_on_the_left_in_pinning_order(tabs: TabBarView) -> None:
    tabs.show_state("c", TabState("Title of the third"))
    wide = tabs.tabRect(2).width()
    tabs.show_state("c", TabState("Title of the third", pinned=True))
    tabs.show_state("b", TabState("Title b", pinned=True))
    assert tabs.keys == ("c", "b", "a")
    assert tabs.tabText(0) == "Title of…"
    assert not tabs.tabButton(0, QTabBar.ButtonPosition.RightSide).isVisible()
    assert tabs.tabRect(0).width() < wide
    assert tabs.accessibleTabName(0) == "Title of the third · pinned"


def test_a_tab_is_moved_by_keys_but_not_past_pinned_tabs(tabs: TabBarView) -> None:
    tabs.show_state("a", TabState("Title a", pinned=True))
    tabs.go_to("c")
    tabs.shift(-1)
    tabs.shift(-1)
    assert tabs.keys == ("a", "c", "b")
    tabs.go_to("a")
    tabs.shift(1)
    assert tabs.keys == ("a", "c", "b")


def test_delete_requests_closing_the_current_tab_and_its_button_names_it(tabs: TabBarView) -> None:
    closed: list[str] = []
    tabs.close_requested.connect(closed.append)
    tabs.go_to("b")
    QTest.keyClick(tabs, Qt.Key.Key_Delete)
    assert closed == ["b"]
    assert tabs.tabButton(1, QTabBar.ButtonPosition.RightSide).accessibleName() == "Close Title b"


def test_a_tab_dragged_off_the_bar_requests_its_own_window(tabs: TabBarView) -> None:
    left: list[str] = []
    dropped: list[QPoint] = []

    def take(key: str, point: QPoint) -> None:
        left.append(key)
        dropped.append(point)

    tabs.own_window_requested.connect(take)
    tabs.go_to("b")
    QTest.mousePress(tabs, Qt.MouseButton.LeftButton, pos=tabs.tabRect(1).center())
    QTest.mouseRelease(tabs, Qt.MouseButton.LeftButton, pos=QPoint(200, 400))
    assert (left, dropped) == (["b"], [tabs.mapToGlobal(QPoint(200, 400))])


def test_the_bar_reports_when_not_all_tabs_fit(tabs: TabBarView) -> None:
    assert not tabs.overflows(tabs.width())
    for number in range(30):
        tabs.add(f"more {number}", TabState(f"Title {number}"))
    assert tabs.overflows(tabs.width())


def closable(tabs: TabBarView) -> list[str]:
    """Keys of the tabs whose close button is shown."""
    return [
        key
        for index, key in enumerate(tabs.keys)
        if tabs.tabButton(index, QTabBar.ButtonPosition.RightSide).isVisible()
    ]


def test_the_close_button_is_on_the_current_tab_and_the_one_below_the_mouse(tabs: TabBarView) -> None:
    assert closable(tabs) == ["a"]
    widths = [tabs.tabRect(index).width() for index in range(3)]
    QTest.mouseMove(tabs, tabs.tabRect(2).center())
    QApplication.processEvents()
    assert closable(tabs) == ["a", "c"]
    tabs.go_to("b")
    assert closable(tabs) == ["b", "c"]
    QTest.mouseMove(tabs, QPoint(tabs.width() - 5, 5))
    QApplication.processEvents()
    assert closable(tabs) == ["b"]
    assert [tabs.tabRect(index).width() for index in range(3)] == widths


@pytest.mark.parametrize(
    ("state", "unread", "dot"),
    [
        ("working", 0, "working"),
        ("waiting", 1, "waiting"),
        ("done", 1, "idle"),
        ("failed", 0, "idle"),
        ("failed", 2, "failed"),
        ("stopped", 0, "idle"),
    ],
)
def test_a_tab_has_a_dot_for_what_runs_waits_or_failed_unseen(
    tabs: TabBarView, state: DotState, unread: int, dot: DotState
) -> None:
    tabs.show_state("b", TabState("Title b", state, unread))
    mark = tabs.tabButton(1, QTabBar.ButtonPosition.LeftSide).findChild(StatusDotView)
    assert isinstance(mark, StatusDotView)
    assert (mark.state, mark.isVisible()) == (dot, dot != "idle")


def test_the_wheel_scrolls_many_tabs_and_leaves_the_current_one(tabs: TabBarView) -> None:
    for number in range(36):
        tabs.add(f"n{number}", TabState("Fix the login of the shop"))
    QApplication.processEvents()
    beginning = tabs.fontMetrics().horizontalAdvance("Fix the login")
    assert min(tabs.tabRect(index).width() for index in range(3, tabs.count())) > beginning
    first = tabs.tabRect(0).left()
    turn(tabs, -240)
    assert (tabs.tabRect(0).left() < first, tabs.current) == (True, "a")
    turn(tabs, 480)
    assert tabs.tabRect(0).left() == first


def turn(tabs: TabBarView, by: int) -> None:
    middle = QPointF(tabs.rect().center())
    event = QWheelEvent(
        middle,
        QPointF(tabs.mapToGlobal(middle.toPoint())),
        QPoint(),
        QPoint(0, by),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(tabs, event)


def test_marks_of_tabs_that_are_cut_off_are_not_seen_below_the_scroll_buttons(tabs: TabBarView, theme: Theme) -> None:
    for number in range(12):
        tabs.add(f"t{number}", TabState(f"A conversation with number {number}", unread=1))
    badge = QColor(theme.tokens.accent)
    for width in range(300, 500, 10):  # at some of them a badge reaches below a button
        tabs.resize(width, tabs.sizeHint().height())
        QApplication.processEvents()
        picture = tabs.grab().toImage()
        for name in ("ScrollLeftButton", "ScrollRightButton"):
            button = tabs.findChild(QToolButton, name)
            assert isinstance(button, QToolButton) and button.isVisible()
            rect = button.geometry()
            row = [picture.pixelColor(x, rect.center().y()) for x in range(rect.left(), rect.right())]
            assert badge not in row
