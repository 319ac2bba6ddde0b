"""Logging: one rotating file in the data directory, and keys taken out of every line."""

import logging
import re
from logging.handlers import RotatingFileHandler

from app.paths import Paths

# Shapes of the keys of the providers we know, and bearer headers. Written from their documentation.
_SECRET = re.compile(
    r"(sk-[A-Za-z0-9_\-]{8,}|AIza[A-Za-z0-9_\-]{20,}|gsk_[A-Za-z0-9]{8,}|xai-[A-Za-z0-9]{8,}|(?i:bearer)\s+[^\s\"']{8,})"
)


def redact(text: str) -> str:
    """The text with everything that looks like a key replaced."""
    return _SECRET.sub("[key removed]", text)


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def configure(paths: Paths, name: str, level: int = logging.INFO) -> None:
    """Send the log of this process to `logs/<name>.log` (5 files of 2 MB)."""
    handler = RotatingFileHandler(paths.logs / f"{name}.log", maxBytes=2_000_000, backupCount=4, encoding="utf-8")
    handler.setFormatter(_Redacting("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
