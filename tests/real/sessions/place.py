"""The setup in which another program runs: an empty home, a workspace, and a scripted model at an address."""

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

from tests.real.sessions.scripted_model import Script, ScriptedModel

_PROGRAM_TIMEOUT_S = 60.0
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def red_square() -> bytes:
    """A picture of 2 × 2 red pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + b"\xff\0\0" * 2 for _ in range(2)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@dataclass(frozen=True, slots=True)
class Step:
    """Something typed into a terminal, once its screen has shown `after` since the last step."""

    after: str
    keys: str


class Place:
    def __init__(self, folder: Path, programs: Path, script: Script, variables: dict[str, str] | None = None) -> None:
        self.home, self.work, self.programs = folder / "home", folder / "work", programs
        for path in (self.home, self.work):
            path.mkdir(parents=True, exist_ok=True)
        self.picture = self.work / "red.png"
        self.picture.write_bytes(red_square())
        (self.work / "notes.txt").write_text("one\ntwo\nthree\n")
        self.model = ScriptedModel(script)
        self.address = self.model.start()
        self._variables = {name: text.replace("ADDRESS", self.address) for name, text in (variables or {}).items()}

    def write(self, path: str, text: str) -> Path:
        """A file below the home, with the model's address in place of ADDRESS."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("ADDRESS", self.address))
        return file

    def run(self, *command: str, stop: int | None = None) -> str:
        """Run a program to its end; with `stop` it gets this signal once the model has sent a reply that hangs."""
        self.model.hung.clear()
        with subprocess.Popen(
            self._command(command), cwd=self.work, env=self._environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        ) as process:  # fmt: skip
            if stop is not None and self.model.hung.wait(_PROGRAM_TIMEOUT_S):
                time.sleep(1.5)  # the program shows the text that came so far
                process.send_signal(stop)
            try:
                output = process.communicate(timeout=_PROGRAM_TIMEOUT_S)[0].decode("utf-8", "replace")
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output = process.communicate()[0].decode("utf-8", "replace") + "\n(ended after its time)"
        sys.stdout.write(f"$ {' '.join(command)[:160]} → {process.returncode}\n")
        if os.environ.get("SHOW"):
            sys.stdout.write(f"{output}\n")
        return output

    @contextmanager
    def serving(self, *command: str) -> Generator[None]:
        """Run a program in the background for a while."""
        out = subprocess.DEVNULL
        with subprocess.Popen(
            self._command(command), cwd=self.work, env=self._environment(), stdout=out, stderr=out
        ) as process:
            try:
                yield
            finally:
                process.terminate()

    def type(self, *command: str, steps: Sequence[Step]) -> str:
        """Run a program in a terminal of its own and type; it ends after the last step, or is ended."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            full = self._command(command)
            os.execvpe(full[0], full, self._environment() | {"TERM": "xterm-256color"})
        ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 160, 0, 0))
        output = ""
        try:
            for step in steps:
                output += self._until(terminal, lambda screen, step=step: re.search(step.after, screen) is not None)
                time.sleep(0.7)
                for key in step.keys:
                    os.write(terminal, key.encode())
                    time.sleep(0.06)
            output += self._until(terminal, lambda screen: False, 8)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)
        sys.stdout.write(f"$ {' '.join(command)[:160]} (typed {len(steps)} times)\n")
        if os.environ.get("SHOW"):
            sys.stdout.write(f"{output}\n")
        return output

    def _until(self, terminal: int, is_done: Callable[[str], bool], longest_s: float = 40) -> str:
        screen, end = "", time.monotonic() + longest_s
        while time.monotonic() < end and not is_done(screen):
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            try:
                screen += _ESCAPES.sub(" ", os.read(terminal, 65_536).decode("utf-8", "replace"))
            except OSError:
                break
        return screen

    def _command(self, command: Sequence[str]) -> list[str]:
        return [str(self.programs / "node_modules" / ".bin" / command[0]), *command[1:]]

    def _environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return inherited | {"HOME": str(self.home), "SHELL": "/bin/sh"} | self._variables
