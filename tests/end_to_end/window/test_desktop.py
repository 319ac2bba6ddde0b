"""Behaviours 110 to 120: notifications, second starts, quick tasks, and quitting."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from errand.system.paths import Paths
from errand.window.desktop.integration import DesktopIntegration, desktop_integration
from errand.window.desktop.quit_dialog import QuitDialog
from errand.window.desktop.single_instance import wake_running_window
from errand.window.stores.task_options import TaskOptions
from errand.window.stores.window_state import WindowStateStore
from tests.support.command_line import Errand, rest, statuses
from tests.support.desktop_services import NotificationServer, ShortcutPortal, TrayHost, session_bus
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import DONE, shell, speak_to
from tests.support.model_server import ModelServer, Reply
from tests.support.open_window import OpenWindow, open_window
from tests.support.processes import file_appears, is_alive, until
from tests.support.screens import screen


@pytest.fixture
async def model(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[ModelServer]:
    def answer(turn: int) -> Reply:
        return shell("touch made") if turn == 0 else DONE

    async with ModelServer(answer=lambda request: answer(request.turn)) as server:
        speak_to(monkeypatch, server)
        yield server


@pytest.fixture
async def desktop(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[NotificationServer]:
    async with session_bus() as address:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        server = await NotificationServer.start(address)
        yield server
        await server.leave()


@pytest.fixture
async def person(qapp: QApplication, own_errand: Errand, model: ModelServer) -> AsyncGenerator[OpenWindow]:
    async with open_window(qapp, own_errand.home) as opened:
        await opened.until(lambda: opened.stores.session.state == "ready")
        yield opened


@pytest.fixture
async def integration(
    person: OpenWindow, own_errand: Errand, desktop: NotificationServer
) -> AsyncGenerator[DesktopIntegration]:
    state, instance_file = WindowStateStore(own_errand.home / "quick.json"), Paths(own_errand.home).window_instance_file
    async with desktop_integration(
        person.application, person.window, person.stores, person.theme, state, instance_file
    ) as integration:
        yield integration


async def begin(person: OpenWindow, folder: Path, prompt: str) -> None:
    """Start a task whose command needs approval."""
    person.front.input_panel.set_options(TaskOptions(workspace=str(folder)))
    person.type(prompt)
    person.enter()
    await person.until(lambda: bool(person.stores.asks.waiting()))


def dialog(person: OpenWindow) -> QuitDialog:
    return next(widget for widget in person.window.findChildren(QuitDialog) if widget.isVisible())


async def test_an_approval_is_given_from_its_notification_and_the_end_is_notified(
    person: OpenWindow, integration: DesktopIntegration, desktop: NotificationServer, workspace: Path
) -> None:
    person.window.hide()
    await begin(person, workspace, "make it")
    conversation_id = person.window.tabs.active_id
    await person.until(lambda: "Approval needed: make it" in desktop.titles)
    desktop.press(desktop.of("Approval needed: make it"), "allow")
    await person.until((workspace / "made").exists)
    await person.until(lambda: desktop.titles == ["Done: make it"])
    assert desktop.told[0].body.startswith("touch made")
    assert not person.window.isVisible()
    desktop.press(desktop.of("Done: make it"), "open")
    await person.until(person.window.isVisible)
    assert person.window.tabs.active_id == conversation_id
    await person.until(lambda: desktop.shown == {})


async def test_an_ask_answered_in_the_window_withdraws_its_notification(
    person: OpenWindow, integration: DesktopIntegration, desktop: NotificationServer, workspace: Path
) -> None:
    person.front.input_panel.set_options(TaskOptions(workspace=str(workspace)))
    person.type("make it")
    person.enter()
    await person.until(lambda: bool(person.window.tabs.active_id))
    conversation_id = person.window.tabs.active_id
    person.window.commands.trigger("new_task")
    await person.until(lambda: desktop.titles == ["Approval needed: make it"])
    assert person.window.windowTitle() == "(1) Errand"
    person.window.conversations.open(conversation_id)
    await person.until(lambda: desktop.titles == [])
    assert person.window.windowTitle() == "(1) Errand — make it"
    await person.press("Allow once")
    await person.until(lambda: person.window.windowTitle() == "Errand — make it")


async def test_without_running_tasks_quit_shows_no_dialog(person: OpenWindow, integration: DesktopIntegration) -> None:
    left: list[bool] = []
    person.window.closed.connect(lambda: left.append(True))
    person.window.commands.trigger("quit")
    assert left == [True]


async def test_quit_can_stop_all_tasks_and_end_the_engine(
    person: OpenWindow, integration: DesktopIntegration, own_errand: Errand, workspace: Path
) -> None:
    await begin(person, workspace, "make it")
    engine, left = own_errand.engine_pid(), asyncio.Event()
    person.window.closed.connect(left.set)
    person.window.commands.trigger("quit")
    person.window.commands.trigger("quit")
    await person.press("Stop tasks and quit", dialog(person))
    await person.until(left.is_set)
    await until(lambda: not is_alive(engine))
    assert not (own_errand.home / "run" / "engine.json").exists()
    again = await own_errand.run("tasks", "--json")
    assert [task["status"] for task in again.lines] == ["cancelled"]


async def test_quit_can_keep_the_tasks_running_and_can_be_cancelled(
    person: OpenWindow, integration: DesktopIntegration, own_errand: Errand, workspace: Path
) -> None:
    await begin(person, workspace, "make it")
    left: list[bool] = []
    person.window.closed.connect(lambda: left.append(True))
    person.window.commands.trigger("quit")
    await person.press("Cancel", dialog(person))
    assert left == []
    person.window.commands.trigger("quit")
    await person.press("Keep running in the background", dialog(person))
    assert left == [True]
    assert is_alive(own_errand.engine_pid())
    assert len(person.stores.asks.waiting()) == 1


async def test_without_a_tray_closing_ends_the_window(person: OpenWindow, integration: DesktopIntegration) -> None:
    assert integration.tray is None
    left: list[bool] = []
    person.window.closed.connect(lambda: left.append(True))
    person.window.close()
    assert left == [True]


async def test_with_a_tray_closing_hides_the_window_until_it_is_shown_again(
    person: OpenWindow, integration: DesktopIntegration, own_errand: Errand
) -> None:
    person.window.has_tray = True
    left: list[bool] = []
    person.window.closed.connect(lambda: left.append(True))
    person.window.close()
    assert (left, person.window.isVisible()) == ([], False)
    instance_file = Paths(own_errand.home).window_instance_file
    assert await asyncio.to_thread(wake_running_window, instance_file, "show")
    await person.until(person.window.isVisible)
    person.window.has_tray = False


async def test_a_quick_task_is_started_in_the_background_and_opened_from_there(
    person: OpenWindow, integration: DesktopIntegration, own_errand: Errand
) -> None:
    instance_file = Paths(own_errand.home).window_instance_file
    assert await asyncio.to_thread(wake_running_window, instance_file, "quick")
    quick = integration.quick_task.dialog
    assert quick is not None
    await person.until(quick.field.hasFocus)
    QTest.keyClicks(quick.field, "half a thought")
    QTest.keyClick(quick.field, Qt.Key.Key_Escape)
    assert not quick.isVisible()
    person.window.commands.trigger("quick")
    await person.until(quick.field.hasFocus)
    assert quick.field.toPlainText() == "half a thought"
    QTest.keyClicks(quick.field, "count the files")  # over what was marked
    QTest.keyClick(quick.field, Qt.Key.Key_Return)
    QTest.keyClick(quick.field, Qt.Key.Key_Return)
    await person.until(lambda: quick.status == "Started: count the files")
    assert len(person.window.tabs.open_ids) == 0
    assert [task.request.prompt for task in person.stores.tasks.running()] == ["count the files"]
    await person.press("Open", quick)
    await person.until(lambda: len(person.window.tabs.open_ids) == 1)
    assert not quick.isVisible()


async def test_the_quick_task_shortcut_is_bound_or_the_command_to_bind_is_shown(
    person: OpenWindow, integration: DesktopIntegration, desktop: NotificationServer
) -> None:
    person.window.commands.trigger("quick_key")
    await person.until(lambda: "errand quick" in person.front.notices.text)
    portal = await ShortcutPortal.start(os.environ["DBUS_SESSION_BUS_ADDRESS"])
    person.window.commands.trigger("quick_key")
    await person.until(lambda: "Ctrl+Alt+Space" in person.front.notices.text)
    portal.press("quick")
    await person.until(lambda: integration.quick_task.dialog is not None and integration.quick_task.dialog.isVisible())
    await portal.leave()


async def test_a_second_start_brings_the_open_window_to_the_front_and_a_quick_task_needs_no_window(
    own_errand: Errand, model: ModelServer
) -> None:
    async with screen() as display:
        keys = {"OPENAI_API_KEY": "sk-test-0123456789", "OPENAI_BASE_URL": model.url}
        there = {"DISPLAY": display.display, "QT_QPA_PLATFORM": "xcb", **keys}
        alone = await own_errand.start("quick", variables=there)
        await display.window("Quick task")
        await display.type("count the files")
        await display.keys("Return")
        await statuses(own_errand, ["waiting_user"])
        await display.keys("Escape")
        assert (await rest(alone)).code == 0
        first, second = await own_errand.start("window", variables=there), await own_errand.start(variables=there)
        done, pending = await asyncio.wait(
            [asyncio.create_task(rest(first)), asyncio.create_task(rest(second))],
            return_when=asyncio.FIRST_COMPLETED,
        )
        assert [task.result().code for task in done] == [0]
        opened = first if first.returncode is None else second
        opened.send_signal(signal.SIGTERM)
        assert (await pending.pop()).code == 0


async def test_with_a_tray_the_window_hides_and_a_second_start_shows_it_again(
    own_errand: Errand,
) -> None:
    async with session_bus() as address, screen() as display:
        tray = await TrayHost.start(address)
        there = {"DISPLAY": display.display, "QT_QPA_PLATFORM": "xcb", "DBUS_SESSION_BUS_ADDRESS": address}
        window = await own_errand.start("window", variables=there)
        await display.window("Errand")
        async with asyncio.timeout(WAIT_LIMIT_S):
            await tray.has_item.wait()
        await display.close("Errand")
        assert (await own_errand.run("window", variables=there)).code == 0
        await display.window("Errand")
        await file_appears(Paths(own_errand.home).endpoint)  # an engine that is still starting would outlive the test
        await display.keys("ctrl+q")
        assert (await rest(window)).code == 0
        await tray.leave()


async def test_a_tray_that_starts_after_the_window_is_found_on_closing(own_errand: Errand) -> None:
    async with session_bus() as address, screen() as display:
        there = {"DISPLAY": display.display, "QT_QPA_PLATFORM": "xcb", "DBUS_SESSION_BUS_ADDRESS": address}
        window = await own_errand.start("window", variables=there)
        await display.window("Errand")
        await file_appears(Paths(own_errand.home).window_instance_file)  # from then on it follows the desktop
        tray = await TrayHost.start(address)
        await display.close("Errand")
        async with asyncio.timeout(WAIT_LIMIT_S):
            await tray.has_item.wait()
        assert (await own_errand.run("window", variables=there)).code == 0
        await display.window("Errand")
        await file_appears(Paths(own_errand.home).endpoint)  # an engine that is still starting would outlive the test
        await display.keys("ctrl+q")
        assert (await rest(window)).code == 0
        await tray.leave()
