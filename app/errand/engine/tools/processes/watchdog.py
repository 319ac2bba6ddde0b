"""The engine's side of the watchdog, and the report of an engine whose event loop stalled."""

import faulthandler
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from errand.engine.core.heartbeat import Heartbeat
from errand.engine.tools.processes import watchdog_child
from errand.engine.tools.processes.marks import MarkedSession, ProcessMark, all_marks, all_sessions
from errand.engine.tools.processes.process_table import has_proc
from errand.engine.tools.processes.watchdog_child import ENDED
from errand.protocol.engine import Condition
from errand.system.paths import Paths

# The watchdog drops old marks when it receives the full list.
_RESEND_EVERY = 256
_LAST_S = 1.0
# Space for the marks of ten thousand calls while the watchdog does not read.
_PIPE_BYTES = 1024 * 1024
# A line has up to 120 bytes, and PIPE_BUF is 4,096.
_LINES = 32

_logger = logging.getLogger(__name__)
_MAX_REPORT_BYTES = 200_000


class _Watchdog:
    """The watchdog of this process; idle until `start_watchdog`."""

    def __init__(self) -> None:
        self.is_enabled = False
        self.process: subprocess.Popen[bytes] | None = None
        self._sent_count = 0
        self._heartbeat: Heartbeat | None = None
        self._stall: tuple[Path, float] = (Path(), 0.0)

    def watch(self, heartbeat: Heartbeat, report: Path, longest_s: float) -> None:
        self._heartbeat, self._stall = heartbeat, (report, longest_s)
        heartbeat.watch(self._request_check)

    def _request_check(self) -> None:
        if not self.is_enabled:
            return
        if self._is_running():
            self._write(["look\n"])
        else:
            self._start()  # it starts with a check
            self._send_all()

    def send_mark(self, mark: ProcessMark) -> None:
        if not self.is_enabled:
            return
        self._sent_count += 1
        if not self._is_running():
            self._start()
        elif self._sent_count % _RESEND_EVERY:
            self._write([_line(mark)])
            return
        self._send_all()

    def send_session(self, session: MarkedSession) -> None:
        if self.is_enabled:
            self._write([_session_line(session)])

    def _send_all(self) -> None:
        self._write(["clear\n", *map(_line, all_marks())])
        self._write([*map(_session_line, all_sessions())])

    def _is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def end(self) -> None:
        self.is_enabled = False
        if self.process is None:
            return
        self._write(["bye\n"])
        if self.process.stdin is not None:
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_S)
        self.process = None

    def _start(self) -> None:
        heartbeat = self._heartbeat
        watched = () if heartbeat is None else (heartbeat.descriptor,)
        loop = () if heartbeat is None else (str(heartbeat.descriptor), str(os.getpid()), *map(str, self._stall))
        with suppress(OSError):  # without it the sweep at the next start remains
            self.process = subprocess.Popen(
                [*_command(), *loop],
                pass_fds=watched,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=Path("/"),
                start_new_session=True,
                pipesize=_PIPE_BYTES,
            )
            assert self.process.stdin is not None
            os.set_blocking(self.process.stdin.fileno(), False)

    def _write(self, lines: Sequence[str]) -> None:
        """Write in chunks that a pipe accepts atomically: an incomplete line would end the watchdog."""
        if self.process is None or self.process.stdin is None:
            return
        with suppress(OSError):  # it hangs, or was killed: the next call starts another
            for start in range(0, len(lines), _LINES):
                os.write(self.process.stdin.fileno(), "".join(lines[start : start + _LINES]).encode())


_watchdog = _Watchdog()


def start_watchdog() -> Callable[[], None]:
    """Start watching tool processes. Returns the function that ends it in order; does nothing without /proc."""
    _watchdog.is_enabled = has_proc()
    return _watchdog.end


def watch(heartbeat: Heartbeat, report: Path, longest_s: float) -> None:
    """End this process if its event loop stalls for `longest_s` seconds; the stack goes to `report`.

    The watchdog starts as soon as the loop has work.
    """
    _watchdog.watch(heartbeat, report, longest_s)


def watch_mark(mark: ProcessMark) -> None:
    """Announce a process that is about to start with this mark."""
    _watchdog.send_mark(mark)


def watch_session(session: MarkedSession) -> None:
    """Announce a command that leads a session: all processes of the session belong to it."""
    _watchdog.send_session(session)


def is_watchdog(pid: int) -> bool:
    return _watchdog.process is not None and _watchdog.process.pid == pid


def _command() -> list[str]:
    """An installed bundle's executable is errand itself."""
    is_frozen = bool(getattr(sys, "frozen", False))
    return [sys.executable, *(["watchdog"] if is_frozen else ["-I", "-S", watchdog_child.__file__])]


def _line(mark: ProcessMark) -> str:
    return f"+ {mark.task_id} {mark.number}\n"


def _session_line(session: MarkedSession) -> str:
    return f"session {session.leader} {session.earliest} {session.latest}\n"


def write_on_signal(paths: Paths) -> None:
    """Write, on SIGUSR1, the stack of each thread, even while a library blocks the interpreter.

    The watchdog sends the signal and adds a line before it ends this process.
    """
    paths.stall.unlink(missing_ok=True)
    if sys.platform != "win32":
        # Opened in advance for faulthandler: during a stall no file may be available.
        faulthandler.register(signal.SIGUSR1, paths.stall.open("ab", buffering=0), all_threads=True)


def take_report(paths: Paths) -> Condition | None:
    """Collect the report of the previous engine, once: for the log, a file for the doctor, and people."""
    try:
        status = paths.stall.stat()
        with paths.stall.open("rb") as file:
            file.seek(max(0, status.st_size - _MAX_REPORT_BYTES))
            report = file.read(_MAX_REPORT_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    if ENDED not in report:
        return None
    frame = _innermost_frame(report)
    text = f"The engine stood still and was ended{f': {frame}' if frame else ''}."
    _logger.error("%s\n%s", text, report)
    since = datetime.fromtimestamp(status.st_mtime, UTC)
    paths.last_stall.write_text(f"{since:%Y-%m-%d %H:%M} UTC: {text}\n\n{report}", encoding="utf-8")
    advice = (
        f"Its tasks were interrupted and can be resumed. Where it stood is in {paths.last_stall}: please report it."
    )
    return Condition(kind="stalled", text=text, advice=advice, since=since, holds=False)


def _innermost_frame(report: str) -> str:
    """Return the innermost frame of our code in the main thread, which comes last: `errand/engine/x.py, line 5, in
    work`.
    """
    _, _, main_thread = report.rpartition("hread 0x")
    for line in main_thread.splitlines():
        path, _, rest = line.strip().removeprefix('File "').partition('", line ')
        _, folder, name = path.rpartition("/errand/")
        number, _, function = rest.partition(" in ")
        if folder and function:
            return f"errand/{name}, line {number}, in {function}"
    return ""
