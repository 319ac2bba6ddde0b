"""A session bus of one's own: a real dbus-daemon that knows no services but those that a test brings."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus

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


@asynccontextmanager
async def session_bus() -> AsyncGenerator[str]:
    """Its address."""
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
        stderr=asyncio.subprocess.DEVNULL,  # it tells of limits of this machine
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
    """Somebody on the bus who owns a name. `answer` is given each call to it and returns the reply."""

    def __init__(self, bus: MessageBus, name: str) -> None:
        self.bus = bus
        self.name = name
        bus.add_message_handler(self._on_message)

    async def own(self) -> None:
        await self.bus.request_name(self.name)

    def answer(self, message: Message) -> Message | None:
        """Overridden by each kind of service; None where it has sent the reply itself."""
        raise AssertionError(f"{self.name} cannot {message.member}.")

    def send(self, path: str, interface: str, member: str, signature: str, *body: object) -> None:
        """A signal to all."""
        self.send_to(None, path, interface, member, signature, *body)

    def send_to(self, name: str | None, path: str, interface: str, member: str, signature: str, *body: object) -> None:
        """A signal to one, whether they asked for it or not."""
        signal = Message.new_signal(path, interface, member, signature, list(body))
        signal.destination = name
        self.reply(signal)

    def reply(self, message: Message) -> None:
        """Send what `answer` made itself."""
        self.bus.send(message)  # pyright: ignore[reportUnknownMemberType] -- dbus-fast returns a bare Future

    async def leave(self) -> None:
        """End as a process does that dies; once it is told, the bus knows."""
        self.bus.disconnect()
        await self.bus.wait_for_disconnect()

    def _on_message(self, message: Message) -> Message | bool:
        if message.message_type is not MessageType.METHOD_CALL:
            return False
        return self.answer(message) or True


async def on_bus(address: str) -> MessageBus:
    return await MessageBus(bus_address=address).connect()
