"""A terminal for a command to run in: what it shows is read, what a person would type is written."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

LONGEST_S = 20.0


class PseudoTerminal:
    """`errand ARGUMENTS` in a terminal of 100 columns. `seen` is everything it wrote."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._folder = folder
        # Without cursor reports: nothing answers them here. NO_COLOR, so that texts can be looked for.
        self._environment = {**environment, "TERM": "xterm", "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self._ours = -1
        self._grew = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._read_from = 0
        self.seen = ""

    async def __aenter__(self) -> Self:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "app",
            *self._arguments,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self._folder,
            env=self._environment,
            start_new_session=True,
        )
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
        """Ctrl+C while no prompt is there to read it: this terminal controls no session that would make a signal."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)

    async def shows(self, text: str) -> None:
        """Wait until the text was written since the last text that was waited for."""
        try:
            async with asyncio.timeout(LONGEST_S):
                while (place := self.seen.find(text, self._read_from)) < 0:
                    self._grew.clear()
                    await self._grew.wait()
        except TimeoutError:
            raise AssertionError(f"The terminal did not show {text!r} but:\n{self.seen[self._read_from :]}") from None
        self._read_from = place + len(text)

    async def ended(self) -> int:
        """Wait for the command to end; its exit code."""
        assert self._process is not None
        async with asyncio.timeout(LONGEST_S):
            return await self._process.wait()

    def _read(self) -> None:
        try:
            self.seen += os.read(self._ours, 65536).decode(errors="replace")
        except OSError:  # EIO: the command has closed its side
            asyncio.get_running_loop().remove_reader(self._ours)
        self._grew.set()
