"""The global shortcut for quick tasks, through the desktop portal."""

import asyncio
import importlib
import itertools
import logging
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from errand.text.translation import tr

if TYPE_CHECKING:
    from errand.window.desktop.dbus import BusSignal, SessionBus

_NAME = "org.freedesktop.portal.Desktop"
_PATH = "/org/freedesktop/portal/desktop"
_KEYS = "org.freedesktop.portal.GlobalShortcuts"
_REQUEST = "org.freedesktop.portal.Request"
_ID = "quick"
_PREFERRED = "CTRL+ALT+space"
_DONE = 0
_log = logging.getLogger(__name__)


class GlobalShortcut(QObject):
    """`pressed` gives an activation token that lets a window come to the front under Wayland, or "".

    `bound` gives the desktop's name of the shortcut, possibly "". `refused` is emitted if the desktop has no global
    shortcuts, or the user declined.
    """

    pressed = Signal(str)
    bound = Signal(str)
    refused = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bus: SessionBus | None = None
        self._numbers = itertools.count(1)
        self._answers: dict[str, asyncio.Future[tuple[int, dict[str, object]]]] = {}
        self._session = ""
        self._is_binding = False

    async def bind(self) -> None:
        """Ask the desktop for the shortcut. The desktop may ask the user, without a timeout."""
        if self._is_binding:
            return  # its dialog is open
        self._is_binding = True
        await asyncio.to_thread(importlib.import_module, "errand.window.desktop.dbus")
        from errand.window.desktop.dbus import BusError

        try:
            self.bound.emit(await self._bind())
        except BusError as error:
            _log.info("No key for quick tasks: %s", error)
            self.close()
            self.refused.emit()
        finally:
            self._is_binding = False

    def close(self) -> None:
        """Closes the connection; the desktop releases the shortcut with it."""
        if self._bus is not None:
            self._bus.close()
            self._bus = None

    async def _bind(self) -> str:
        from errand.window.desktop.dbus import SessionBus, variant

        self.close()
        self._bus = bus = await SessionBus.open()
        bus.subscribe(self._on_signal)
        await bus.watch(f"sender='{_NAME}',interface='{_REQUEST}'")
        await bus.watch(f"sender='{_NAME}',interface='{_KEYS}'")
        session = await self._request(bus, "CreateSession", "", (), {"session_handle_token": variant("s", "errand")})
        self._session = str(session.get("session_handle", ""))
        description = {
            "description": variant("s", tr("Quick task in Errand")),
            "preferred_trigger": variant("s", _PREFERRED),
        }
        bound = await self._request(bus, "BindShortcuts", "oa(sa{sv})s", (self._session, [[_ID, description]], ""), {})
        return _trigger(bound)

    async def _request(
        self, bus: "SessionBus", member: str, signature: str, body: tuple[object, ...], options: dict[str, object]
    ) -> dict[str, object]:
        """Call the portal and return its answer, which arrives as a signal on a request path that is known in
        advance.
        """
        from errand.window.desktop.dbus import BusError, variant

        token = f"errand{next(self._numbers)}"
        path = f"{_PATH}/request/{bus.unique_name.lstrip(':').replace('.', '_')}/{token}"
        answer = self._answers[path] = asyncio.get_running_loop().create_future()
        try:
            values = (*body, options | {"handle_token": variant("s", token)})
            await bus.call(tuple[str], _NAME, _PATH, member, f"{signature}a{{sv}}", values, interface=_KEYS)
            code, results = await answer
            if code != _DONE:
                raise BusError(f"{member} was refused.")
            return results
        finally:
            del self._answers[path]

    def _on_signal(self, signal: "BusSignal") -> None:
        if signal.member == "Response":
            response = signal.read(tuple[int, dict[str, object]])
            answer = self._answers.get(signal.path)
            if response is not None and answer is not None and not answer.done():
                answer.set_result(response)
        elif signal.member == "Activated":
            press = signal.read(tuple[str, str, int, dict[str, object]])
            if press is not None and press[:2] == (self._session, _ID):
                self.pressed.emit(str(press[3].get("activation_token", "")))


def _trigger(results: dict[str, object]) -> str:
    """Return the desktop's name of the shortcut, from `a(sa{sv})`; the list contains only the one we requested."""
    try:
        shortcuts = msgspec.convert(results.get("shortcuts", []), list[tuple[str, dict[str, object]]])
    except msgspec.ValidationError:
        return ""
    return "".join(str(details.get("trigger_description", "")) for _, details in shortcuts)
