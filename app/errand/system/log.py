"""Logging: one rotating file in the data directory, with keys redacted and repeated warnings rate limited."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

from errand.system.paths import Paths
from errand.text.printable import printable
from errand.text.redaction import Redactor


class _Redacting(logging.Formatter):
    """Indents continuation lines, so that untrusted text cannot imitate a log entry."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return printable(self._redactor(super().format(record))).replace("\n", "\n  ")


@dataclass(slots=True)
class _Kind:
    began_at: float
    written: int = 0
    left_out: int = 0


class RepeatLimit:
    """Passes a few warnings of a kind per minute and counts the others.

    Remote peers can cause warnings at any rate and would push everything else out of the log. Warnings are of one
    kind if they come from the same line of code with the same exception class, whatever their text.
    """

    def __init__(self, most: int = 20, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._kinds: dict[tuple[str, str, int, str], _Kind] = {}

    def allows(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        kind = self._kinds.setdefault((record.name, record.pathname, record.lineno, error), _Kind(self._clock()))
        kind.written += 1
        if kind.written <= self._most:
            return True
        kind.left_out += 1
        return False

    def summaries(self, *, at_end: bool = False) -> list[logging.LogRecord]:
        """Records with the number of suppressed warnings, for each kind whose minute is over; at the end for all."""
        now = self._clock()
        over = {key: kind for key, kind in self._kinds.items() if at_end or now - kind.began_at >= self._seconds}
        for key in over:
            del self._kinds[key]
        return [
            logging.LogRecord(
                name, logging.WARNING, path, line, f"… {kind.left_out:,} more like this {error}", None, None
            )
            for (name, path, line, error), kind in over.items()
            if kind.left_out
        ]


class _LogFile(RotatingFileHandler):
    def __init__(self, file: Path) -> None:
        super().__init__(file, maxBytes=2_000_000, backupCount=4, encoding="utf-8")
        self._limit = RepeatLimit()

    def emit(self, record: logging.LogRecord) -> None:
        for summary in self._limit.summaries():
            super().emit(summary)
        if self._limit.allows(record):
            super().emit(record)

    def close(self) -> None:
        for summary in self._limit.summaries(at_end=True):
            super().emit(summary)
        super().close()


def configure(paths: Paths, name: str, redactor: Redactor, level: int = logging.INFO) -> None:
    """Send the log of this process to `logs/<name>.log` (5 files of 2 MB)."""
    handler = _LogFile(paths.logs / f"{name}.log")
    handler.setFormatter(_Redacting(redactor))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
