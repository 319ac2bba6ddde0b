"""A private session bus: a real dbus-daemon with only the services that a test provides."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.unpack import unpack_variants

_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:dir={folder}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
  </policy>
</busconfig>
"""

NOTIFICATIONS_NAME = "org.freedesktop.Notifications"
NOTIFICATIONS_PATH = "/org/freedesktop/Notifications"
ABILITIES = ("actions", "body", "body-markup", "persistence")

PORTAL_NAME = "org.freedesktop.portal.Desktop"
PORTAL_PATH = "/org/freedesktop/portal/desktop"
KEYS = "org.freedesktop.portal.GlobalShortcuts"
SESSION = "/org/freedesktop/portal/desktop/session/1_1/errand"

TRAY_NAME = "org.kde.StatusNotifierWatcher"
_INTROSPECTION = f"""<!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
<node><interface name="{TRAY_NAME}">
  <method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
  <property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
</interface></node>"""


@asynccontextmanager
async def session_bus() -> AsyncGenerator[str]:
    """Start a bus; yields its address."""
    with tempfile.TemporaryDirectory(prefix="bus") as folder:  # a socket's path has at most 107 bytes
        async with _daemon(_config_in(folder)) as address:
            yield address


def _config_in(folder: str) -> Path:
    config = Path(folder, "bus.conf")
    config.write_text(_CONFIG.format(folder=folder), encoding="utf-8")
    return config


@asynccontextmanager
async def _daemon(config: Path) -> AsyncGenerator[str]:
    process = await asyncio.create_subprocess_exec(
        *("dbus-daemon", f"--config-file={config}", "--nofork", "--print-address"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # it logs limits of this machine
    )
    assert process.stdout is not None
    try:
        address = (await process.stdout.readline()).decode().strip()
        assert address, "dbus-daemon did not start"
        yield address
    finally:
        process.terminate()
        await process.communicate()


class Service:
    """A service that owns a name on the bus. `answer` handles each call to it and returns the reply."""

    def __init__(self, bus: MessageBus, name: str) -> None:
        self.bus = bus
        self.name = name
        bus.add_message_handler(self._on_message)

    async def own(self) -> None:
        await self.bus.request_name(self.name)

    def answer(self, message: Message) -> Message | None:
        """Overridden by each service; None if it has sent the reply itself."""
        raise AssertionError(f"{self.name} cannot {message.member}.")

    def send(self, path: str, interface: str, member: str, signature: str, *body: object) -> None:
        """Send a signal to everyone."""
        self.send_to(None, path, interface, member, signature, *body)

    def send_to(self, name: str | None, path: str, interface: str, member: str, signature: str, *body: object) -> None:
        """Send a signal to one connection, whether it subscribed or not."""
        signal = Message.new_signal(path, interface, member, signature, list(body))
        signal.destination = name
        self.reply(signal)

    def reply(self, message: Message) -> None:
        """Send a reply made by `answer`."""
        self.bus.send(message)  # pyright: ignore[reportUnknownMemberType] -- dbus-fast returns a bare Future

    async def leave(self) -> None:
        """Disconnect like a process that dies; returns once the bus has noticed."""
        self.bus.disconnect()
        await self.bus.wait_for_disconnect()

    def _on_message(self, message: Message) -> Message | bool:
        if message.message_type is not MessageType.METHOD_CALL:
            return False
        return self.answer(message) or True


async def on_bus(address: str) -> MessageBus:
    return await MessageBus(bus_address=address).connect()


@dataclass(frozen=True, slots=True)
class Told:
    """A call of Notify. `hints` are unpacked, `types` are their original types."""

    number: int
    replaces: int
    title: str
    body: str
    actions: tuple[str, ...]
    hints: dict[str, object]
    types: dict[str, str]
    expires: int
    signature: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the buttons; the first pair is a click on the notification itself."""
        return self.actions[3::2]


class NotificationServer(Service):
    """A notification server. `shown` are the current notifications, `told` all received ones."""

    def __init__(self, bus: MessageBus, abilities: tuple[str, ...]) -> None:
        super().__init__(bus, NOTIFICATIONS_NAME)
        self._abilities = abilities
        self.told: list[Told] = []
        self.shown: dict[int, Told] = {}
        self.clients: list[str] = []
        self.presses = ""  # a button that is pressed before the sender has read the reply

    @classmethod
    async def start(cls, address: str, abilities: tuple[str, ...] = ABILITIES) -> "NotificationServer":
        server = cls(await on_bus(address), abilities)
        await server.own()
        return server

    def answer(self, message: Message) -> Message | None:
        match message.member:
            case "GetCapabilities":
                return Message.new_method_return(message, "as", [list(self._abilities)])
            case "Notify":
                self._notify(message)
                return None
            case "CloseNotification":
                (number,) = message.body
                self.close(number, 3)
                return Message.new_method_return(message)
            case other:
                raise AssertionError(f"A notification server cannot {other}.")

    @property
    def titles(self) -> list[str]:
        return [notification.title for notification in self.shown.values()]

    def of(self, title: str) -> Told:
        """The notification with that title."""
        return next(notification for notification in self.shown.values() if notification.title == title)

    def press(self, notification: Told, button: str) -> None:
        """Like GNOME and KDE: send the token and the button, then close the notification."""
        self.send(
            NOTIFICATIONS_PATH, NOTIFICATIONS_NAME, "ActivationToken", "us", notification.number, "token-of-the-click"
        )
        self.send(NOTIFICATIONS_PATH, NOTIFICATIONS_NAME, "ActionInvoked", "us", notification.number, button)
        self.close(notification.number, 2)

    def close(self, number: int, reason: int = 2) -> None:
        """Reason 2: dismissed by the user; 3: withdrawn by its sender."""
        if self.shown.pop(number, None) is not None:
            self.send(NOTIFICATIONS_PATH, NOTIFICATIONS_NAME, "NotificationClosed", "uu", number, reason)

    def _notify(self, message: Message) -> None:
        _, replaces, _, title, body, actions, hints, expires = message.body
        number = replaces or len(self.told) + 1
        self.clients.append(message.sender or "")
        notification = Told(
            number,
            replaces,
            title,
            body,
            tuple(actions),
            unpack_variants(hints),
            {name: hint.signature for name, hint in hints.items()},
            expires,
            message.signature,
        )
        self.told.append(notification)
        self.shown[number] = notification
        self.reply(Message.new_method_return(message, "u", [number]))
        if self.presses:
            self.press(notification, self.presses)


class ShortcutPortal(Service):
    """The global shortcuts portal. `asked` has the shortcuts it was asked to bind."""

    def __init__(self, bus: MessageBus, *, refuses: bool) -> None:
        super().__init__(bus, PORTAL_NAME)
        self._refuses = refuses
        self.asked: list[str] = []

    @classmethod
    async def start(cls, address: str, *, refuses: bool = False) -> "ShortcutPortal":
        portal = cls(await on_bus(address), refuses=refuses)
        await portal.own()
        return portal

    def answer(self, message: Message) -> None:
        options = message.body[-1]
        sender = (message.sender or "").lstrip(":").replace(".", "_")
        request = f"{PORTAL_PATH}/request/{sender}/{options['handle_token'].value}"
        self.reply(Message.new_method_return(message, "o", [request]))
        results = {"session_handle": Variant("s", SESSION)}
        if message.member == "BindShortcuts":
            session, shortcuts, _, _ = message.body
            assert session == SESSION
            self.asked += [shortcut[0] for shortcut in shortcuts]
            bound = [[shortcut[0], {"trigger_description": Variant("s", "Ctrl+Alt+Space")}] for shortcut in shortcuts]
            results = {"shortcuts": Variant("a(sa{sv})", bound)}
        code = 1 if self._refuses and message.member == "BindShortcuts" else 0
        self.send(request, "org.freedesktop.portal.Request", "Response", "ua{sv}", code, results)

    def press(self, shortcut: str) -> None:
        options = {"activation_token": Variant("s", "token-of-the-key")}
        self.send(PORTAL_PATH, KEYS, "Activated", "osta{sv}", SESSION, shortcut, 1, options)


class TrayHost(Service):
    """A tray host. `has_item` is set once an app has registered its icon."""

    def __init__(self, bus: MessageBus) -> None:
        super().__init__(bus, TRAY_NAME)
        self.has_item = asyncio.Event()

    @classmethod
    async def start(cls, address: str) -> "TrayHost":
        host = cls(await on_bus(address))
        await host.own()
        return host

    def answer(self, message: Message) -> Message:
        match message.member:
            case "Introspect":
                return Message.new_method_return(message, "s", [_INTROSPECTION])
            case "Get":
                return Message.new_method_return(message, "v", [Variant("b", True)])
            case "RegisterStatusNotifierItem":
                self.has_item.set()
                return Message.new_method_return(message)
            case other:
                raise AssertionError(f"A tray cannot {other}.")
