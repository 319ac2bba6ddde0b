"""Shows notifications: through the desktop's D-Bus protocol, or through the tray icon as a fallback."""

import asyncio
import html
import importlib
import logging
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QSystemTrayIcon

from errand.text.translation import tr
from errand.window.stores.notifications import OPEN, Notification, NotificationButton

if TYPE_CHECKING:
    from errand.window.desktop.dbus import BusSignal, SessionBus


_NAME = "org.freedesktop.Notifications"
_PATH = "/org/freedesktop/Notifications"
_ICON = Path(str(files("errand.resources") / "app_icon" / "errand-64.png"))
_SERVER_DEFAULT_MS, _NEVER = -1, 0
_CLOSE_TIMEOUT_S = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Shown:
    """`number` is the server's id; 0 after the user has dismissed it."""

    notice: Notification
    number: int


class DBusNotifications(QObject):
    """`button_clicked` gives the key of a notification, the button, and the Wayland activation token, or "".

    Connects to the bus at the first notification. Without a bus or a notification server nothing happens; a server that
    starts later receives the notifications that are current then.
    """

    button_clicked = Signal(str, str, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._wanted: tuple[Notification, ...] = ()
        self._shown: dict[str, _Shown] = {}
        self._wake = asyncio.Event()
        self._bus: SessionBus | None = None
        self._owner = ""
        self._capabilities: frozenset[str] = frozenset()
        self._activation_token = ""

    def show(self, wanted: tuple[Notification, ...]) -> None:
        """Show exactly these notifications."""
        self._wanted = wanted
        self._wake.set()

    async def run(self) -> None:
        """Runs until cancelled, then closes the notifications that are still shown."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._update()
        finally:
            self._wanted = ()
            if self._shown:
                with suppress(TimeoutError):
                    async with asyncio.timeout(
                        _CLOSE_TIMEOUT_S
                    ):  # a server that hangs must not delay closing the window
                        await self._update()
            if self._bus is not None:
                self._bus.close()

    async def _update(self) -> None:
        await asyncio.to_thread(importlib.import_module, "errand.window.desktop.dbus")  # 90 ms of imports
        from errand.window.desktop.dbus import BusError

        try:
            await self._show_all(await self._connection())
        except BusError as error:
            _log.info("No notification can be shown: %s", error)

    async def _connection(self) -> "SessionBus":
        from errand.window.desktop.dbus import SessionBus

        if self._bus is None or not self._bus.is_open:
            self._forget("")
            self._bus = bus = await SessionBus.open()
            bus.subscribe(self._on_signal)
            self._owner = await bus.watch_owner(_NAME)
            await bus.watch(f"sender='{_NAME}',interface='{_NAME}'")
        if not self._capabilities:
            (capabilities,) = await self._bus.call(tuple[list[str]], _NAME, _PATH, "GetCapabilities")
            self._capabilities = frozenset({*capabilities, "asked"})
        return self._bus

    async def _show_all(self, bus: "SessionBus") -> None:
        notices = {notice.key: notice for notice in self._wanted}
        for key in self._shown.keys() - notices.keys():
            open_notice = self._shown.pop(key)
            if open_notice.number:
                await bus.call(tuple[()], _NAME, _PATH, "CloseNotification", "u", (open_notice.number,))
        for notice in notices.values():
            open_notice = self._shown.get(notice.key)
            if open_notice is None or open_notice.notice != notice:
                await self._notify(bus, notice, open_notice.number if open_notice else 0)

    async def _notify(self, bus: "SessionBus", notice: Notification, replaces: int) -> None:
        from errand.window.desktop.dbus import variant

        expires = _NEVER if notice.stays else _SERVER_DEFAULT_MS
        hints = {"desktop-entry": variant("s", "errand"), "urgency": variant("y", 1)}
        body, actions = self._body(notice), self._actions(notice)
        values = ("Errand", replaces, _ICON.as_uri(), notice.title, body, actions, hints, expires)
        (number,) = await bus.call(tuple[int], _NAME, _PATH, "Notify", "susssasa{sv}i", values)
        self._shown[notice.key] = _Shown(notice, number)

    def _body(self, notice: Notification) -> str:
        """Escape only for servers with markup: others would show the escapes. "" for servers without body text."""
        if "body" not in self._capabilities:
            return ""
        return html.escape(notice.body, quote=False) if "body-markup" in self._capabilities else notice.body

    def _actions(self, notice: Notification) -> list[str]:
        """Pairs of key and label. `default` is a click on the notification itself."""
        if "actions" not in self._capabilities:
            return []
        buttons = notice.buttons if "body" in self._capabilities else (NotificationButton(OPEN, tr("Open")),)
        return ["default", tr("Open"), *(word for button in buttons for word in (button.key, button.label))]

    def _on_signal(self, signal: "BusSignal") -> None:
        from errand.window.desktop.dbus import owner_change

        owner = owner_change(signal, _NAME)
        if owner is not None:
            self._forget(owner)
        elif signal.sender == self._owner and signal.interface == _NAME:  # any program could send "allow"
            self._on_server_signal(signal)

    def _forget(self, owner: str) -> None:
        """The server was replaced or has gone, and shows none of ours. Dismissed notifications stay dismissed."""
        self._owner = owner
        self._capabilities = frozenset()
        self._shown = {key: open_notice for key, open_notice in self._shown.items() if not open_notice.number}
        if owner:
            self._wake.set()

    def _on_server_signal(self, signal: "BusSignal") -> None:
        match signal.member, signal.body:
            case "ActivationToken", (_, str(token)):
                self._activation_token = token
            case "ActionInvoked", (int(number), str(button)):
                token, self._activation_token = self._activation_token, ""
                key = self._key_of(number)
                if key:
                    self.button_clicked.emit(key, OPEN if button == "default" else button, token)
            case "NotificationClosed", (int(number), _):
                key = self._key_of(number)
                if key:
                    self._shown[key] = _Shown(self._shown[key].notice, 0)
            case _:
                pass

    def _key_of(self, number: int) -> str:
        return next((key for key, open_notice in self._shown.items() if open_notice.number == number), "")


class TrayNotifications(QObject):
    """Shows each notification once; the system removes it. Same interface as `DBusNotifications`."""

    button_clicked = Signal(str, str, str)

    def __init__(self, icon: QSystemTrayIcon) -> None:
        super().__init__(icon)
        self._icon = icon
        self._shown: dict[str, Notification] = {}
        self._newest = ""
        icon.messageClicked.connect(self._on_clicked)

    def show(self, wanted: tuple[Notification, ...]) -> None:
        """Shows those that were not shown yet."""
        for notice in wanted:
            if self._shown.get(notice.key) != notice:
                self._newest = notice.key
                self._icon.showMessage(notice.title, notice.body, self._icon.icon())
        self._shown = {notice.key: notice for notice in wanted}

    def _on_clicked(self) -> None:
        self.button_clicked.emit(self._newest, OPEN, "")
