"""Database errors as text for users, and the health condition of each."""

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from errand.engine.core.errors import CannotSave, StorageError
from errand.engine.storage.sql.async_engine import AsyncEngine
from errand.protocol.engine import Condition, Trouble

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
    """Return the kind of trouble; None if the change itself is at fault, so that retrying does not help."""
    message = str(why)
    return next((kind for sign, kind in _KIND_BY_MESSAGE.items() if sign in message), None)


# SQLSTATE of a server, or its first two characters.
_KIND_BY_STATE: Mapping[str, Trouble] = {
    "08": "unreachable",
    "57P": "unreachable",  # it is shutting down, or starting up
    "28": "unreachable",  # it refuses us, after a change of its settings
    "3D": "unreachable",
    "53300": "unreachable",  # too many connections
    "53100": "disk_full",
    "58030": "disk_error",
    "XX001": "disk_error",
    "XX002": "disk_error",
    "25006": "read_only",
}


def trouble_of(error: SQLAlchemyError | OSError) -> Trouble | None:
    """Return the same for an error of a statement or connection; an `OSError` comes from a server's socket."""
    if isinstance(error, OSError):
        return "unreachable"
    if not isinstance(error, DBAPIError):
        return None
    state = _state(error)
    for length in (5, 3, 2):
        if state[:length] in _KIND_BY_STATE:
            return _KIND_BY_STATE[state[:length]]
    return "unreachable" if error.connection_invalidated else condition_kind(error.orig)


def refuses_value(error: SQLAlchemyError | OSError) -> bool:
    """Return True if a server, or its driver, cannot take a parameter's value."""
    return isinstance(error, DBAPIError) and _state(error).startswith("22")


def _state(error: DBAPIError) -> str:
    """Return the SQLSTATE of a server's error, "" for SQLite."""
    return str(getattr(error.orig, "sqlstate", None) or "")


def condition(kind: Trouble, database: str) -> Condition:
    text, advice = _texts(kind, database)
    return Condition(kind=kind, text=text, advice=advice, since=datetime.now(UTC), holds=kind != "no_descriptors")


def _texts(kind: Trouble, database: str) -> tuple[str, str]:
    match kind:
        case "disk_full":
            room = f"Make at least {_megabytes(_FREE_BYTES)} free on it{_free_space_text(database)}."
            return f"The disk is full: nothing can be saved in {database}.", f"{room} {_RETRIES}"
        case "read_only":
            advice = f"Make it writable again: the file, its folder and the disk, or the server. {_RETRIES}"
            return f"The database {database} may not be written.", advice
        case "locked":
            advice = f"Close what has it open: another Errand, a database browser, a backup, a file sync. {_RETRIES}"
            return f"Another program holds the database {database}.", advice
        case "disk_error":
            advice = f"Look whether the disk is full, over its quota, unplugged or failing. {_RETRIES}"
            return f"The disk refuses to write to {database}.", advice
        case "damaged":
            advice = "Nothing more is written to it. End Errand, then run: errand doctor --repair"
            return f"The database {database} is damaged.", advice
        case "unreachable":
            advice = f"Start it, or look at the network between here and there. {_RETRIES}"
            return f"The server of the database {database} does not answer.", advice
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


def error_text(error: SQLAlchemyError | OSError) -> str:
    """Return the driver's words, or the kind of error if there are none, as for a timeout."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return str(cause) or type(cause).__name__


def save_error(why: object, kind: Trouble | None = None) -> StorageError:
    """`CannotSave` if the disk, the file, a lock or the server is the cause; otherwise `StorageError`."""
    text = f"Not saved: {why}. Everything saved before is kept."
    kind = kind or condition_kind(why)
    return StorageError(text) if kind is None else CannotSave(text, kind)


def save_error_of(error: SQLAlchemyError | OSError) -> StorageError:
    return save_error(error_text(error), trouble_of(error))


def name_of(engine: AsyncEngine) -> str:
    """Return the file, or the database and the host of a server."""
    url = engine.url
    hosts = url.host or url.query.get("host") or "localhost"
    host = (hosts if isinstance(hosts, str) else ", ".join(hosts)).rpartition("@")[2]  # a password may have an `@`
    return url.database or "" if url.get_backend_name() == "sqlite" else f"{url.database} on {host}"
