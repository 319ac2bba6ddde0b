"""A desktop's notification server: records what it is told to show, and presses buttons as a person would."""

from dataclasses import dataclass

from dbus_fast import Message
from dbus_fast.aio import MessageBus
from dbus_fast.unpack import unpack_variants

from tests.support.session_bus import Service, on_bus

NAME = "org.freedesktop.Notifications"
PATH = "/org/freedesktop/Notifications"
ABILITIES = ("actions", "body", "body-markup", "persistence")


@dataclass(frozen=True, slots=True)
class Told:
    """A call of Notify. `hints` are unpacked, `types` are the types they had."""

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
        """The buttons; the first pair is a click on the notice itself."""
        return self.actions[3::2]


class NotificationServer(Service):
    """`shown` is what stands on the screen now, `told` all that ever was."""

    def __init__(self, bus: MessageBus, abilities: tuple[str, ...]) -> None:
        super().__init__(bus, NAME)
        self._abilities = abilities
        self.told: list[Told] = []
        self.shown: dict[int, Told] = {}
        self.clients: list[str] = []
        self.presses = ""  # a button that is pressed before who showed it has read the reply

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
        return [told.title for told in self.shown.values()]

    def of(self, title: str) -> Told:
        """What is shown under that title."""
        return next(told for told in self.shown.values() if told.title == title)

    def press(self, told: Told, button: str) -> None:
        """As GNOME and KDE do it: the token, the button, and the notice is closed."""
        self.send(PATH, NAME, "ActivationToken", "us", told.number, "token-of-the-click")
        self.send(PATH, NAME, "ActionInvoked", "us", told.number, button)
        self.close(told.number, 2)

    def close(self, number: int, reason: int = 2) -> None:
        """2 is put away by a person, 3 taken back by who showed it."""
        if self.shown.pop(number, None) is not None:
            self.send(PATH, NAME, "NotificationClosed", "uu", number, reason)

    def _notify(self, message: Message) -> None:
        _, replaces, _, title, body, actions, hints, expires = message.body
        number = replaces or len(self.told) + 1
        self.clients.append(message.sender or "")
        told = Told(
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
        self.told.append(told)
        self.shown[number] = told
        self.reply(Message.new_method_return(message, "u", [number]))
        if self.presses:
            self.press(told, self.presses)
