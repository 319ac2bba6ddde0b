"""Database errors as text for users, and the health condition of each."""

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.engine.core.errors import CannotSave, StorageError
from app.protocol.engine import Condition, Trouble

# SQLite's error messages (sqlite3ErrStr), which have never changed.
_KIND_BY_MESSAGE: Mapping[str, Trouble] = {
    "database or disk is full": "disk_full",
    "attempt to write a readonly database": "read_only",
    "unable to open database file": "read_only",
    "database is locked": "locked",
    "disk I/O error": "disk_error",
    "database disk image is malformed": "damaged",
    "file is not a database": "damaged",
}
_RETRIES = "Errand tries again every second, and its tasks go on by themselves then."
_FREE_BYTES = 100_000_000


def condition_kind(why: object) -> Trouble | None:
    """The kind of trouble; None if the change itself is at fault, so that retrying does not help."""
    words = str(why)
    return next((kind for sign, kind in _KIND_BY_MESSAGE.items() if sign in words), None)


def condition(kind: Trouble, database: str) -> Condition:
    text, advice = _texts(kind, database)
    return Condition(kind=kind, text=text, advice=advice, since=datetime.now(UTC), holds=kind != "no_descriptors")


def _texts(kind: Trouble, database: str) -> tuple[str, str]:
    match kind:
        case "disk_full":
            room = f"Make at least {_megabytes(_FREE_BYTES)} free on it{_free_space_text(database)}."
            return f"The disk is full: nothing can be saved in {database}.", f"{room} {_RETRIES}"
        case "read_only":
            advice = f"Make the file, its folder and the disk writable again. {_RETRIES}"
            return f"The database {database} may not be written.", advice
        case "locked":
            advice = f"Close what has it open: a database browser, a backup, a file sync. {_RETRIES}"
            return f"Another program holds the database {database}.", advice
        case "disk_error":
            advice = f"Look whether the disk is full, over its quota, unplugged or failing. {_RETRIES}"
            return f"The disk refuses to write to {database}.", advice
        case "damaged":
            advice = "Nothing more is written to it. End Errand, then run: errand doctor --repair"
            return f"The database {database} is damaged.", advice
        case "no_descriptors":
            advice = "Close windows of Errand or end tasks; raise the limit with `ulimit -n` before Errand starts."
            return "The engine may not open any more files or connections.", advice


def _free_space_text(database: str) -> str:
    try:
        return f", {_megabytes(shutil.disk_usage(database).free)} are free now"
    except OSError:
        return ""


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB"


def error_text(error: SQLAlchemyError) -> str:
    return str(error.orig if isinstance(error, DBAPIError) else error)


def save_error(why: object) -> StorageError:
    """`CannotSave` if the disk, the file or a lock is the cause; otherwise `StorageError`."""
    text = f"Not saved: {why}. Everything saved before is kept."
    return StorageError(text) if condition_kind(why) is None else CannotSave(text)
