"""What becomes known of an engine whose loop stood still: where each thread was, for the log and for people."""

import faulthandler
import logging
import signal
import sys
from datetime import UTC, datetime

from app.engine.tools.watchdog_child import ENDED
from app.paths import Paths
from app.protocol.health import Condition

_logger = logging.getLogger(__name__)
_LARGEST = 200_000


def write_on_signal(paths: Paths) -> None:
    """On SIGUSR1 write where each thread is, also while the interpreter is held up by a library.

    The watchdog sends the signal and adds a line of its own before it ends this process.
    """
    paths.stall.unlink(missing_ok=True)
    if sys.platform != "win32":
        # Kept open by faulthandler: at that time nothing can be opened any more.
        faulthandler.register(signal.SIGUSR1, paths.stall.open("ab", buffering=0), all_threads=True)


def take_report(paths: Paths) -> Condition | None:
    """What the engine before this one left, once: it goes to the log, to a file for the doctor, and to people."""
    try:
        found = paths.stall.stat()
        with paths.stall.open("rb") as file:
            file.seek(max(0, found.st_size - _LARGEST))
            report = file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return None
    if ENDED not in report:
        return None
    place = _place(report)
    text = f"The engine stood still and was ended{f': {place}' if place else ''}."
    _logger.error("%s\n%s", text, report)
    since = datetime.fromtimestamp(found.st_mtime, UTC)
    paths.last_stall.write_text(f"{since:%Y-%m-%d %H:%M} UTC: {text}\n\n{report}", encoding="utf-8")
    advice = (
        f"Its tasks were interrupted and can be resumed. Where it stood is in {paths.last_stall}: please report it."
    )
    return Condition(kind="stalled", text=text, advice=advice, since=since, holds=False)


def _place(report: str) -> str:
    """The innermost place of our own in the main thread, which is told last: `app/engine/x.py, line 5, in work`."""
    _, _, main_thread = report.rpartition("hread 0x")
    for line in main_thread.splitlines():
        path, _, rest = line.strip().removeprefix('File "').partition('", line ')
        _, folder, name = path.rpartition("/app/")
        number, _, function = rest.partition(" in ")
        if folder and function:
            return f"app/{name}, line {number}, in {function}"
    return ""
