"""A pseudo terminal for a command: its size, the keys that can be typed into it, and whether somebody reads."""

import os
import shutil
import struct
import sys
from pathlib import Path

from errand.engine.tools.results import ToolError

if sys.platform != "win32":
    import fcntl
    import termios

_ROWS, _COLUMNS = 40, 120
ENVIRONMENT = {"TERM": "xterm-256color", "COLUMNS": str(_COLUMNS), "LINES": str(_ROWS)}
KEYS = {
    "enter": "\r",
    "tab": "\t",
    "escape": "\x1b",
    "space": " ",
    "backspace": "\x7f",
    "delete": "\x1b[3~",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "page-up": "\x1b[5~",
    "page-down": "\x1b[6~",
    **{f"ctrl-{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}
# Keys that can only end or interrupt.
HARMLESS = frozenset(("ctrl-c", "ctrl-d", "ctrl-z"))
_MAX_INPUT_BYTES = 64 * 1024
# Where the kernel waits for input of a terminal; and for events, of which keys are one.
_READS = ("n_tty_read", "wait_woken")
_POLLS = ("poll_schedule_timeout", "do_select", "do_sys_poll", "ep_poll", "do_epoll_wait")


def open_terminal() -> tuple[int, int]:
    """Our end and the command's. Raises OSError."""
    if sys.platform == "win32":
        raise ToolError("There are no pseudo terminals on Windows. Run it without pty.")
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    return ours, theirs


def in_terminal(arguments: list[str]) -> list[str]:
    """Return the call of a shell, whose last argument is the command line, with the terminal on its input as its own.

    No other program shares this terminal, so nothing that a command puts into it reaches anybody else.
    """
    program = shutil.which("setsid")
    if program is None:
        raise ToolError("A terminal needs the program setsid (util-linux), which is not installed. Run it without pty.")
    *shell, line = arguments
    # `setsid` does not pass on that its child was killed: the shell stays to say it.
    return [program, "--ctty", "--wait", *shell, f"{line}\nexit $?"]


def typed(text: str, keys: tuple[str, ...]) -> bytes:
    """Return what the terminal gets. Raises `ToolError` for an unknown key, or too much."""
    unknown = [key for key in keys if key.lower() not in KEYS]
    if unknown:
        raise ToolError(f"There is no key {unknown[0]!r}; there are {', '.join(KEYS)}.")
    data = (text.replace("\r\n", "\n").replace("\n", "\r") + "".join(KEYS[key.lower()] for key in keys)).encode(
        "utf-8", "replace"
    )
    if len(data) > _MAX_INPUT_BYTES:
        raise ToolError(f"This is too much to type: {_MAX_INPUT_BYTES:,} bytes at most. Write a file and name it.")
    return data


def is_read(descriptor: int, pids: tuple[int, ...]) -> bool:
    """Return True if one of these processes, in the foreground of the terminal, waits for input."""
    try:
        front = os.tcgetpgrp(descriptor)
    except OSError:
        return False
    waiting_calls = (*_READS, *_POLLS) if _takes_keys(descriptor) else _READS
    return any(_waits(pid, waiting_calls) and _group(pid) == front for pid in pids)


def has_terminal(pid: int) -> bool:
    """Return True if the process has a controlling terminal, such as one that a script gave it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return len(fields) > 4 and fields[4] != b"0"


def _takes_keys(descriptor: int) -> bool:
    """Return True if a program reads single keys, such as an editor or a prompt with a history, and not lines."""
    if sys.platform == "win32":
        return False
    try:
        return not termios.tcgetattr(descriptor)[3] & termios.ICANON
    except termios.error:
        return False


def _waits(pid: int, places: tuple[str, ...]) -> bool:
    try:
        return Path(f"/proc/{pid}/wchan").read_text().startswith(places)
    except OSError:
        return False


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0
