"""The tray's menu and icon: open asks, running tasks, and showing and quitting the window."""

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu

from errand.protocol.events import AskUpdate, TaskUpdate
from errand.protocol.tasks.task import replace_fields
from errand.window.desktop.notifications import TrayNotifications
from errand.window.desktop.tray import Tray, TrayMenu, tray_icon
from errand.window.stores.notifications import ended_notification
from errand.window.stores.stores import Stores
from tests.support.protocol_events import ask, at_work, ended
from tests.support.window import until


def texts(menu: QMenu) -> list[str]:
    return [action.text() for action in menu.actions() if action.text()]


def find(menu: QMenu, text: str) -> QAction:
    return next(action for action in menu.actions() if action.text() == text)


async def test_the_menu_lists_asks_and_running_tasks_each_with_a_stop(qapp: QApplication, stores: Stores) -> None:
    menu = TrayMenu(stores)
    assert texts(menu) == ["New task", "Quick task…", "Open Errand", "Quit…"]
    opened: list[str] = []
    stopped: list[str] = []
    menu.opened.connect(opened.append)
    menu.stop_requested.connect(stopped.append)
    stores.apply(AskUpdate(ask=ask("ask_1", "conv_1", kind="question")))
    stores.apply(TaskUpdate(task=at_work("task_2", "conv_2", activity="running make & co")))
    await until(lambda: len(texts(menu)) == 8)
    assert texts(menu)[:4] == [
        "Waiting for you (1)",
        "Which <b>colour</b> && why?",
        "Running (1)",
        "The work of task_2 · Running make && co",
    ]
    find(menu, "Which <b>colour</b> && why?").trigger()
    running = find(menu, "The work of task_2 · Running make && co").menu()
    assert isinstance(running, QMenu)
    find(running, "Stop").trigger()
    find(running, "Open").trigger()
    assert (opened, stopped) == (["conv_1", "conv_2"], ["task_2"])
    stores.apply(TaskUpdate(task=ended("task_2", conversation_id="conv_2")))
    await until(lambda: "Running (1)" not in texts(menu))


async def test_an_approval_shows_its_command(qapp: QApplication, stores: Stores) -> None:
    menu = TrayMenu(stores)
    stores.apply(AskUpdate(ask=ask("ask_1", "conv_1")))
    await until(lambda: texts(menu)[:2] == ["Waiting for you (1)", "make"])


async def test_a_stop_is_not_offered_twice_and_a_hundred_tasks_do_not_fill_the_screen(
    qapp: QApplication, stores: Stores
) -> None:
    menu = TrayMenu(stores)
    for number in range(100):
        stores.apply(TaskUpdate(task=at_work(f"task_{number}", f"conv_{number}")))
    stores.apply(TaskUpdate(task=replace_fields(at_work("task_new", "conv_new"), stopping=True)))
    await until(lambda: "and 93 more" in texts(menu))
    newest = find(menu, "The work of task_new · Stopping…").menu()
    assert isinstance(newest, QMenu)
    assert not find(newest, "Stopping…").isEnabled()


@pytest.mark.parametrize("waiting", [1, 9, 120])
def test_the_icon_has_a_badge_in_each_size(qapp: QApplication, waiting: int) -> None:
    plain, badged = tray_icon(0), tray_icon(waiting)
    for side in (16, 22, 48):
        assert badged.pixmap(side, side).toImage() != plain.pixmap(side, side).toImage()


async def test_the_tool_tip_of_the_icon_counts_asks_and_running_tasks(qapp: QApplication, stores: Stores) -> None:
    tray = Tray(stores)
    assert tray.icon.toolTip() == "Errand"
    stores.apply(AskUpdate(ask=ask()))
    stores.apply(TaskUpdate(task=at_work()))
    assert tray.icon.toolTip() == "Errand: 1 waiting for you, 1 task running"
    tray.icon.hide()


async def test_a_tray_notification_is_shown_once_and_its_click_opens_the_newest(
    qapp: QApplication, stores: Stores
) -> None:
    tray = Tray(stores)
    notifications = TrayNotifications(tray.icon)
    acted: list[str] = []

    def on_acted(key: str, button: str, activation: str) -> None:
        acted.append(key)

    notifications.button_clicked.connect(on_acted)
    first, second = ended_notification(ended("task_1"), "One"), ended_notification(ended("task_2"), "Two")
    notifications.show((first, second))
    notifications.show((first,))
    tray.icon.messageClicked.emit()
    assert acted == ["task_2"]
    tray.icon.hide()
