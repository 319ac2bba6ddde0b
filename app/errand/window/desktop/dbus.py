"""The session bus: calls and signals in our types. The only module that uses dbus-fast; import it lazily."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
from dbus_fast import DBusFastError, Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.unpack import unpack_variants

from errand.system.listeners import Listeners

R = TypeVar("R", bound=tuple[object, ...])

_CALL_TIMEOUT_S = 10.0
_BUS = "org.freedesktop.DBus"
_BUS_PATH = "/org/freedesktop/DBus"
# dbus-fast raises these if there is no bus, the connection is lost, or a message is invalid.
_ERRORS = (DBusFastError, OSError, EOFError, TimeoutError)


class BusError(Exception):
    """There is no bus, the name has no owner, or the call was refused."""


@dataclass(frozen=True, slots=True)
class BusSignal:
    """`sender` is the unique name of the sender: any program on the bus can send us any signal."""

    sender: str
    path: str
    interface: str
    member: str
    body: tuple[object, ...]

    def read(self, kind: type[R]) -> R | None:
        """Return the body, or None if it is not of that type."""
        try:
            return msgspec.convert(self.body, kind)
        except msgspec.ValidationError:
            return None


def session_address(environment: Mapping[str, str]) -> str | None:
    """Return the address of the session bus; None if there is none."""
    address = environment.get("DBUS_SESSION_BUS_ADDRESS")
    if address:
        return address
    runtime = environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    socket = Path(runtime, "bus")
    return f"unix:path={socket}" if socket.is_socket() else None


def variant(signature: str, value: object) -> object:
    """Return a value with an explicit type, for parameters of type variant."""
    return Variant(signature, value)


class SessionBus:
    """Created by `open`. Receives only the signals requested with `watch`."""

    def __init__(self, bus: MessageBus) -> None:
        self._bus = bus
        self._loop = asyncio.get_running_loop()
        self._listeners = Listeners[[BusSignal]]()
        bus.add_message_handler(self._on_message)

    @classmethod
    async def open(cls) -> "SessionBus":
        """Raises `BusError`."""
        address = session_address(os.environ)
        if address is None:
            raise BusError("There is no session bus.")
        try:
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                return cls(await MessageBus(bus_address=address).connect())
        except _ERRORS as error:
            raise BusError(f"The session bus cannot be used: {error}") from error

    @property
    def is_open(self) -> bool:
        return self._bus.connected

    @property
    def unique_name(self) -> str:
        return self._bus.unique_name or ""

    async def call(
        self,
        reply: type[R],
        name: str,
        path: str,
        member: str,
        signature: str = "",
        body: tuple[object, ...] = (),
        *,
        interface: str = "",
    ) -> R:
        """Returns the values of the reply, validated against the type. `interface` defaults to `name`.

        Raises `BusError`, also after 10 s without a reply.
        """
        if not self._bus.connected:
            raise BusError("The session bus is gone.")
        try:
            message = Message(
                destination=name,
                path=path,
                interface=interface or name,
                member=member,
                signature=signature,
                body=list(body),
            )
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                answer = await self._bus.call(message)
            if answer.message_type is MessageType.ERROR:
                raise BusError(f"{name}.{member}: {answer.error_name}: {answer.body}")
            return msgspec.convert(tuple(unpack_variants(answer.body)), reply)
        except (*_ERRORS, msgspec.ValidationError) as error:
            raise BusError(f"{name}.{member}: {error}") from error

    async def watch(self, rule: str) -> None:
        """Subscribe to the signals that match a D-Bus match rule."""
        await self.call(tuple[()], _BUS, _BUS_PATH, "AddMatch", "s", (f"type='signal',{rule}",))

    async def watch_owner(self, name: str) -> str:
        """Watch changes of the owner of `name`; returns its current owner, or "" for none."""
        await self.watch(f"sender='{_BUS}',interface='{_BUS}',member='NameOwnerChanged',arg0='{name}'")
        try:
            (owner,) = await self.call(tuple[str], _BUS, _BUS_PATH, "GetNameOwner", "s", (name,))
        except BusError:
            return ""
        return owner

    def subscribe(self, listener: Callable[[BusSignal], None]) -> Callable[[], None]:
        """Call `listener` for each signal from now on; returns the function that unsubscribes."""
        return self._listeners.add(listener)

    def close(self) -> None:
        self._bus.disconnect()

    def _on_message(self, message: Message) -> None:
        if message.message_type is MessageType.SIGNAL:
            signal = BusSignal(
                message.sender or "",
                message.path or "",
                message.interface or "",
                message.member or "",
                tuple(unpack_variants(message.body)),
            )
            # A signal right after a reply is delivered after the code that awaits the reply has resumed.
            self._loop.call_soon(self._listeners.notify, signal)


def owner_change(signal: BusSignal, name: str) -> str | None:
    """Return the new owner of `name` ("" for none), or None if the signal is about something else."""
    if (signal.sender, signal.member) != (_BUS, "NameOwnerChanged") or signal.body[:1] != (name,):
        return None
    return str(signal.body[2])
