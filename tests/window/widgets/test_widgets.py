"""Small widgets: accessible names, keys, and no timers while hidden."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.shell.tab_bar import Badge
from errand.window.widgets.banner import BannerView
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.code_excerpt import CodeBoxView
from errand.window.widgets.forms.search_field import SearchField
from errand.window.widgets.labels import ElidedLabel
from errand.window.widgets.pulse import PulseTimer
from errand.window.widgets.status_dot import STATE_LABELS, DotState, StatusDotView


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_a_button_is_pressed_by_enter_and_by_space(theme: Theme, qtbot: QtBot, key: Qt.Key) -> None:
    button = push_button("Go")
    qtbot.addWidget(button)
    with qtbot.waitSignal(button.clicked):
        QTest.keyClick(button, key)


def test_an_icon_button_has_a_name_and_a_tool_tip_with_its_shortcut(theme: Theme, qtbot: QtBot) -> None:
    button = IconButton(theme, "plus", "New conversation", shortcut="Ctrl+T")
    qtbot.addWidget(button)
    assert button.accessibleName() == "New conversation"
    assert button.toolTip() == "New conversation (Ctrl+T)"
    assert button.focusPolicy() == Qt.FocusPolicy.TabFocus
    button.set_icon_and_name("x", "Close")
    assert button.accessibleName() == "Close"


@pytest.mark.parametrize(("count", "text", "is_visible"), [(0, "0", False), (3, "3", True), (100, "99+", True)])
def test_a_badge_shows_up_to_99_and_nothing_at_zero(
    theme: Theme, qtbot: QtBot, count: int, text: str, is_visible: bool
) -> None:
    badge = Badge(theme)
    qtbot.addWidget(badge)
    badge.set_count(count)
    assert (badge.text, badge.isVisible(), badge.accessibleName()) == (text, is_visible, f"{count} new")


@pytest.mark.parametrize("state", STATE_LABELS)
def test_a_state_has_a_label_besides_its_colour(theme: Theme, qtbot: QtBot, state: DotState) -> None:
    dot = StatusDotView(theme, PulseTimer(theme))
    qtbot.addWidget(dot)
    dot.set_state(state)
    assert dot.accessibleName() == STATE_LABELS[state]


def test_the_pulse_runs_only_with_a_visible_working_dot_and_motion_enabled(theme: Theme, qtbot: QtBot) -> None:
    theme.set_motion(True)
    pulse = PulseTimer(theme)
    first, second = StatusDotView(theme, pulse), StatusDotView(theme, pulse)
    for dot in (first, second):
        qtbot.addWidget(dot)
        dot.set_state("working")
    assert not pulse.is_running
    first.show()
    second.show()
    assert pulse.is_running
    theme.set_motion(False)
    assert (pulse.is_running, pulse.strength) == (False, 1.0)
    theme.set_motion(True)
    first.hide()
    second.set_state("done")
    assert not pulse.is_running


def test_a_dot_deleted_while_working_stops_the_pulse(theme: Theme, qtbot: QtBot) -> None:
    theme.set_motion(True)
    pulse = PulseTimer(theme)
    remaining, deleted = StatusDotView(theme, pulse), StatusDotView(theme, pulse)
    qtbot.addWidget(remaining)
    for dot in (remaining, deleted):
        dot.set_state("working")
        dot.show()
    gone: list[bool] = []
    deleted.destroyed.connect(lambda: gone.append(True))
    deleted.deleteLater()
    qtbot.waitUntil(lambda: bool(gone))
    theme.changed.emit()  # repaints the followers, as a frame does
    assert pulse.is_running
    remaining.hide()
    assert not pulse.is_running


def test_a_banner_shows_a_message_has_an_action_and_can_be_dismissed(theme: Theme, qtbot: QtBot) -> None:
    banner = BannerView(theme)
    qtbot.addWidget(banner)
    assert banner.isHidden()
    banner.show_message("The engine has ended.", "failed", "Start again")
    action, dismiss = banner.findChildren(QPushButton)[0], banner.findChildren(IconButton)[0]
    assert (banner.isVisible(), action.text(), banner.accessibleName()) == (
        True,
        "Start again",
        "The engine has ended.",
    )
    with qtbot.waitSignal(banner.action_clicked):
        action.click()
    with qtbot.waitSignal(banner.dismissed):
        dismiss.click()
    assert banner.isHidden()


def test_an_elided_label_keeps_the_whole_text_for_its_tool_tip(theme: Theme, qtbot: QtBot) -> None:
    label = ElidedLabel(theme, "a long title that has\nno room at all")
    qtbot.addWidget(label)
    label.resize(60, 20)
    label.show()
    assert label.text().endswith("…")
    assert label.toolTip() == label.accessibleName() == label.full_text == "a long title that has\nno room at all"
    label.set_text("· 12 s")
    label.resize(label.fontMetrics().horizontalAdvance("· 1"), 20)
    assert (label.text(), label.toolTip()) == ("", "· 12 s"), "a dot alone says nothing"


def test_search_is_debounced_emits_each_text_once_and_escape_clears(theme: Theme, qtbot: QtBot) -> None:
    field = SearchField(theme, "Search")
    qtbot.addWidget(field)
    searches: list[str] = []
    field.searched.connect(searches.append)
    QTest.keyClicks(field, "tests ")
    assert searches == []
    QTest.keyClick(field, Qt.Key.Key_Return)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert searches == ["tests"]
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert (searches, field.text()) == (["tests", ""], "")


def test_a_code_box_is_as_high_as_its_text_up_to_its_maximum(theme: Theme, qtbot: QtBot) -> None:
    box = CodeBoxView(theme, "What will run", most_lines=10)
    qtbot.addWidget(box)
    line = box.fontMetrics().lineSpacing()
    box.set_text("one")
    one_line = box.heightForWidth(400)
    box.set_text("one\ntwo")
    assert box.heightForWidth(400) == one_line + line
    box.set_text("x" * 200)
    assert box.heightForWidth(400) > one_line
    box.set_text("line\n" * 100_000)
    assert box.heightForWidth(400) == one_line + 9 * line


def test_a_code_box_shows_all_of_its_text_without_a_bar_where_it_fits(theme: Theme, qtbot: QtBot) -> None:
    box = CodeBoxView(theme, "What will run", most_lines=10)
    qtbot.addWidget(box)
    box.set_text("x" * 200 + "\n" + "漢字 " * 30)
    box.show()
    for width in range(400, 800, 37):
        box.resize(width, box.heightForWidth(width))
        assert box.verticalScrollBar().maximum() == 0
