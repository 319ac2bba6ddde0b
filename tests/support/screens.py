"""Asks a window on an X display to close, as a window manager does; older versions of xdotool can only kill it."""

import asyncio
import ctypes
import fcntl
import os
import pty
import shutil
import signal
import struct
import termios
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.forked_process import start_program
from tests.support.limits import WAIT_LIMIT_S
from tests.support.warm_errand import Command

_CLIENT_MESSAGE = 33

_PAUSE_S = 0.02

HAS_SCREEN = shutil.which("Xvfb") is not None and shutil.which("xdotool") is not None


class _ClientMessage(ctypes.Structure):
    """XClientMessageEvent of Xlib.h, padded to the size of an XEvent."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("padding", ctypes.c_long * 24),
    )


def ask_to_close(display: str, window: int) -> None:
    x11 = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = ctypes.c_ulong
    line = ctypes.c_void_p(x11.XOpenDisplay(display.encode()))
    protocols = x11.XInternAtom(line, b"WM_PROTOCOLS", 0)
    delete = x11.XInternAtom(line, b"WM_DELETE_WINDOW", 0)
    message = _ClientMessage(type=_CLIENT_MESSAGE, window=window, message_type=protocols, format=32)
    message.data[0] = delete
    x11.XSendEvent(line, ctypes.c_ulong(window), 0, ctypes.c_long(0), ctypes.byref(message))
    x11.XCloseDisplay(line)


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen. `display` goes into the environment of programs that show windows there."""

    display: str

    async def window(self, title: str) -> None:
        """Wait for a window with that title and focus it, since there is no window manager."""
        await self._do("search", "--sync", "--onlyvisible", "--name", f"^{title}$", "windowfocus", "--sync")

    async def close(self, title: str) -> None:
        """Close it like the button in a window's frame; returns once it is gone."""
        search = ("search", "--onlyvisible", "--name", f"^{title}$")
        ask_to_close(self.display, int((await self._do(*search)).split()[0]))
        async with asyncio.timeout(WAIT_LIMIT_S):
            while (await self._run(*search))[0] == 0:  # noqa: ASYNC110 -- the display sets no asyncio event
                await asyncio.sleep(_PAUSE_S)

    async def keys(self, *keys: str) -> None:
        await self._do("key", *keys)

    async def type(self, text: str) -> None:
        await self._do("type", text)

    async def click(self, x: int, y: int) -> None:
        await self._do("mousemove", str(x), str(y), "click", "1")

    async def _do(self, *arguments: str) -> str:
        code, output = await self._run(*arguments)
        assert code == 0
        return output

    async def _run(self, *arguments: str) -> tuple[int, str]:
        environment = os.environ | {"DISPLAY": self.display}
        process = await asyncio.create_subprocess_exec(
            "xdotool", *arguments, env=environment, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode()


@asynccontextmanager
async def screen() -> AsyncGenerator[Screen]:
    """A screen of 1280 by 900; the server chooses a free number."""
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *("Xvfb", "-displayfd", str(writing), "-screen", "0", "1280x900x24", "-nolisten", "tcp"),
        pass_fds=(writing,),
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as numbers:
            number = await asyncio.to_thread(numbers.readline)
        yield Screen(f":{number.strip()}")
    finally:
        process.terminate()
        await process.wait()


class PseudoTerminal:
    """`errand ARGUMENTS` in a terminal of 100 columns. `seen` is all of its output."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._folder = folder
        # No cursor reports, since nothing answers them here; NO_COLOR, so that texts can be searched.
        self._environment = {**environment, "TERM": "xterm", "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self._ours = -1
        self._grew = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._read_from = 0
        self.seen = ""

    async def __aenter__(self) -> Self:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        command = Command(self._arguments, str(self._folder), self._environment, new_session=True)
        self._process = await start_program(command, (theirs, theirs, theirs))
        os.close(theirs)
        asyncio.get_running_loop().add_reader(self._ours, self._read)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._ours)
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        os.close(self._ours)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Ctrl+C while no prompt reads it: this terminal controls no session, so the signal is sent directly."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)

    async def shows(self, text: str, then: str = "") -> None:
        """Wait until the text is written, starting after the last text that was waited for; then type `then`."""
        try:
            async with asyncio.timeout(WAIT_LIMIT_S):
                while (position := self.seen.find(text, self._read_from)) < 0:
                    self._grew.clear()
                    await self._grew.wait()
        except TimeoutError:
            raise AssertionError(f"The terminal did not show {text!r} but:\n{self.seen[self._read_from :]}") from None
        self._read_from = position + len(text)
        if then:
            self.type(then)

    async def ended(self) -> int:
        """Wait until the command exits; returns its exit code."""
        assert self._process is not None
        async with asyncio.timeout(WAIT_LIMIT_S):
            return await self._process.wait()

    def _read(self) -> None:
        try:
            self.seen += os.read(self._ours, 65536).decode(errors="replace")
        except OSError:  # EIO: the command has closed its side
            asyncio.get_running_loop().remove_reader(self._ours)
        self._grew.set()
