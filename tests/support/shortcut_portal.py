"""A desktop's portal for keys that work everywhere: gives what it is asked for, or refuses, and presses the key."""

from dbus_fast import Message, Variant
from dbus_fast.aio import MessageBus

from tests.support.session_bus import Service, on_bus

NAME = "org.freedesktop.portal.Desktop"
PATH = "/org/freedesktop/portal/desktop"
KEYS = "org.freedesktop.portal.GlobalShortcuts"
SESSION = "/org/freedesktop/portal/desktop/session/1_1/errand"


class ShortcutPortal(Service):
    """`asked` has the shortcuts it was asked to bind."""

    def __init__(self, bus: MessageBus, *, refuses: bool) -> None:
        super().__init__(bus, NAME)
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
        request = f"{PATH}/request/{sender}/{options['handle_token'].value}"
        self.reply(Message.new_method_return(message, "o", [request]))
        results = {"session_handle": Variant("s", SESSION)}
        if message.member == "BindShortcuts":
            session, shortcuts, _, _ = message.body
            assert session == SESSION
            self.asked += [shortcut[0] for shortcut in shortcuts]
            told = [[shortcut[0], {"trigger_description": Variant("s", "Ctrl+Alt+Space")}] for shortcut in shortcuts]
            results = {"shortcuts": Variant("a(sa{sv})", told)}
        code = 1 if self._refuses and message.member == "BindShortcuts" else 0
        self.send(request, "org.freedesktop.portal.Request", "Response", "ua{sv}", code, results)

    def press(self, shortcut: str) -> None:
        options = {"activation_token": Variant("s", "token-of-the-key")}
        self.send(PATH, KEYS, "Activated", "osta{sv}", SESSION, shortcut, 1, options)
