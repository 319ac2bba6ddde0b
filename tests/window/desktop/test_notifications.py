"""Notifications on a real session bus: the messages, the buttons, and servers that start and end."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest

from errand.window.desktop.notifications import DBusNotifications
from errand.window.stores.notifications import Notification, ask_notification, ended_notification
from tests.support.desktop_services import NOTIFICATIONS_NAME, NOTIFICATIONS_PATH, NotificationServer, Service, on_bus
from tests.support.protocol_events import ask, ended
from tests.support.window import until

APPROVAL = ask_notification(ask("ask_1"), "Build it")
QUESTION = ask_notification(ask("ask_2", kind="question"), "Paint it")
DONE = ended_notification(ended("task_1", summary="All green."), "Test it")


class Shown:
    """A notification backend, and the buttons that were pressed."""

    def __init__(self) -> None:
        self.notifications = DBusNotifications()
        self.acted: list[tuple[str, str, str]] = []
        self.notifications.button_clicked.connect(self._on_acted)

    def show(self, *notices: Notification) -> None:
        self.notifications.show(notices)

    def _on_acted(self, key: str, button: str, activation: str) -> None:
        self.acted.append((key, button, activation))


@pytest.fixture
async def notifier(qapp: object) -> AsyncGenerator[Shown]:
    harness = Shown()
    running = asyncio.get_running_loop().create_task(harness.notifications.run())
    yield harness
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_notification_is_sent_with_the_dbus_types_that_servers_expect(
    server: NotificationServer, notifier: Shown
) -> None:
    notifier.show(APPROVAL, DONE)
    await until(lambda: len(server.shown) == 2)
    notification = server.of("Approval needed: Build it")
    assert notification.signature == "susssasa{sv}i"
    assert notification.types == {"desktop-entry": "s", "urgency": "y"}
    assert (notification.body, notification.labels, notification.expires) == ("make", ("Allow once", "Deny", "Open"), 0)
    assert server.of("Done: Test it").expires == -1
    assert notification.actions[:2] == ("default", "Open")


async def test_text_that_looks_like_markup_is_shown_literally(bus_address: str, notifier: Shown) -> None:
    server = await NotificationServer.start(bus_address)
    notifier.show(QUESTION)
    await until(lambda: len(server.shown) == 1)
    assert server.told[0].body == "Which &lt;b&gt;colour&lt;/b&gt; &amp; why?"
    await server.leave()
    plain = await NotificationServer.start(bus_address, ("actions", "body"))
    await until(lambda: len(plain.shown) == 1)
    assert plain.told[0].body == "Which <b>colour</b> & why?"
    await plain.leave()


async def test_a_server_that_shows_no_body_gets_no_allow_button(bus_address: str, notifier: Shown) -> None:
    server = await NotificationServer.start(bus_address, ("actions",))
    notifier.show(APPROVAL)
    await until(lambda: len(server.shown) == 1)
    assert (server.told[0].body, server.told[0].labels) == ("", ("Open",))
    await server.leave()


async def test_a_server_without_actions_gets_none(bus_address: str, notifier: Shown) -> None:
    server = await NotificationServer.start(bus_address, ("body",))
    notifier.show(APPROVAL)
    await until(lambda: len(server.shown) == 1)
    assert server.told[0].actions == ()
    await server.leave()


async def test_a_clicked_button_arrives_with_its_activation_token(server: NotificationServer, notifier: Shown) -> None:
    notifier.show(APPROVAL, QUESTION)
    await until(lambda: len(server.shown) == 2)
    server.press(server.of("Question: Paint it"), "choice 1")
    server.press(server.of("Approval needed: Build it"), "default")
    await until(lambda: len(notifier.acted) == 2)
    assert notifier.acted == [("ask_2", "choice 1", "token-of-the-click"), ("ask_1", "open", "token-of-the-click")]


async def test_a_button_clicked_at_once_is_not_lost(server: NotificationServer, notifier: Shown) -> None:
    server.presses = "allow"
    notifier.show(APPROVAL)
    await until(lambda: bool(notifier.acted))
    assert notifier.acted[0][:2] == ("ask_1", "allow")


async def test_signals_of_other_senders_on_the_bus_are_ignored(
    bus_address: str, server: NotificationServer, notifier: Shown
) -> None:
    notifier.show(APPROVAL)
    await until(lambda: len(server.shown) == 1)
    stranger = Service(await on_bus(bus_address), "org.example.Stranger")
    number = server.told[0].number
    for name in (server.clients[0], None):
        stranger.send_to(name, NOTIFICATIONS_PATH, NOTIFICATIONS_NAME, "ActionInvoked", "us", number, "allow")
    await stranger.own()  # afterwards the bus has delivered everything sent before
    server.press(server.told[0], "deny")
    await until(lambda: bool(notifier.acted))
    assert [button for _, button, _ in notifier.acted] == ["deny"]
    await stranger.leave()


async def test_outdated_notifications_are_closed_and_dismissed_ones_stay_dismissed(
    server: NotificationServer, notifier: Shown
) -> None:
    notifier.show(APPROVAL, DONE)
    await until(lambda: len(server.shown) == 2)
    server.close(server.of("Done: Test it").number)
    notifier.show(DONE, QUESTION)
    await until(lambda: server.titles == ["Question: Paint it"])
    assert len(server.told) == 3


async def test_a_restarted_server_shows_the_current_notifications_again(bus_address: str, notifier: Shown) -> None:
    first = await NotificationServer.start(bus_address)
    notifier.show(APPROVAL, DONE)
    await until(lambda: len(first.shown) == 2)
    await first.leave()
    notifier.show(APPROVAL)
    second = await NotificationServer.start(bus_address)
    await until(lambda: second.titles == ["Approval needed: Build it"])
    second.press(second.told[0], "allow")
    await until(lambda: bool(notifier.acted))
    await second.leave()


async def test_a_server_that_starts_later_shows_the_current_notifications(
    bus_address: str, notifier: Shown, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "errand.window.desktop.notifications")
    notifier.show(APPROVAL)
    await until(lambda: len(caplog.messages) == 1)
    server = await NotificationServer.start(bus_address)
    await until(lambda: len(server.shown) == 1)
    await server.leave()


async def test_a_missing_bus_is_only_logged(
    notifier: Shown, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "errand.window.desktop.notifications")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at/all")
    notifier.show(APPROVAL)
    await until(lambda: len(caplog.messages) == 1)
    notifier.show()
    await until(lambda: len(caplog.messages) == 2)
    assert all(text.startswith("No notification can be shown: ") for text in caplog.messages)
    assert notifier.acted == []


async def test_closing_the_window_closes_its_notifications(server: NotificationServer, qapp: object) -> None:
    harness = Shown()
    running = asyncio.get_running_loop().create_task(harness.notifications.run())
    harness.show(APPROVAL, DONE)
    await until(lambda: len(server.shown) == 2)
    server.press(server.of("Done: Test it"), "default")
    await until(lambda: bool(harness.acted))  # it was the last one: both are known to be shown
    running.cancel()
    await asyncio.wait([running])
    assert server.shown == {}
