"""The database as a file: copy, check, replace, and detect lost changes."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import uuid4

from errand.system.regular_file import flush_folder, read_beginning

# Copy 1 MB per step, then pause, so that other users of the disk and other threads get their turn.
_PAGES = 256
_PAUSE_S = 0.002

_NEWEST = "SELECT (SELECT value FROM meta WHERE name = 'epoch'), (SELECT coalesce(max(sequence), 0) FROM events)"
_FORGET_PASSWORDS = """
    DELETE FROM commands WHERE method = 'settings/set' AND (
        result LIKE '%"value":"postgresql%://%:%@%' AND result NOT LIKE '%:***@%'
        OR result LIKE '%"value":"postgresql%password=%' AND result NOT LIKE '%password=***%'
    )
"""
_EMPTY_ACCEPTED = "anew"
_NOTE_PAUSE_S = 0.1


def open_to_read(file: Path) -> sqlite3.Connection:
    """Open read-only, so that even a rejected database stays unchanged. The caller closes it. Raises sqlite3.Error."""
    _check_is_file(file)
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    if not _is_on_read_only_disk(connection):
        return connection
    connection.close()
    return open_untouched(file)


def _check_is_file(file: Path) -> None:
    """SQLite blocks forever on a named pipe."""
    if file.exists() and not file.is_file():
        raise sqlite3.OperationalError(f"unable to open {file}: it is not a file")


def _is_on_read_only_disk(connection: sqlite3.Connection) -> bool:
    """Return True if SQLite cannot create the files beside the database.

    Other errors surface on the first real read.
    """
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        return "unable to open" in str(error)
    return False


def copy_database(source: Path, target: Path, done: Callable[[int, int], None] = lambda left, total: None) -> None:
    """Copy the content of `source` at this moment, despite concurrent writes; readable by its owner only.

    Leaves out stored answers with a password, which versions before this one kept.

    `target` appears once it is complete and flushed to disk. `done` receives the pages left and their total. Raises
    sqlite3.Error or OSError and leaves no file behind then.
    """
    part = target.with_name(target.name + ".part")

    def step(_: int, left: int, total: int) -> None:
        done(left, total)
        time.sleep(_PAUSE_S)

    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
        with closing(open_to_read(source)) as old, closing(sqlite3.connect(part, isolation_level=None)) as new:
            old.isolation_level = None
            old.execute("BEGIN")
            # A first read fixes the snapshot; without it the copy would restart after each change by others.
            old.execute("SELECT count(*) FROM sqlite_master").fetchone()
            old.backup(new, pages=_PAGES, progress=step)
            # One file instead of three, since people move copies around.
            new.execute("PRAGMA journal_mode = DELETE")
            _forget_passwords(new)
        os.replace(part, target)
        flush_folder(target.parent)
    except BaseException:
        for left_behind in (part, *log_files(part)):
            with suppress(OSError):
                left_behind.unlink(missing_ok=True)
        raise


def _forget_passwords(copy: sqlite3.Connection) -> None:
    """Copy as much of a damaged database as can be read."""
    with suppress(sqlite3.DatabaseError):
        if copy.execute("SELECT 1 FROM sqlite_master WHERE name = 'commands'").fetchone():
            copy.execute("PRAGMA secure_delete = ON")
            copy.execute(_FORGET_PASSWORDS)


def log_files(file: Path) -> tuple[Path, Path]:
    """Return the files of SQLite beside a database: the write-ahead log and its index."""
    return file.with_name(file.name + "-wal"), file.with_name(file.name + "-shm")


def move_database(file: Path, target: Path) -> None:
    """Move a database together with its write-ahead log and index."""
    for old, new in zip((file, *log_files(file)), (target, *log_files(target)), strict=True):
        if old.exists():
            os.replace(old, new)


def replacement_path(database: Path) -> Path:
    """Return the path of a complete database that is about to replace this one."""
    return database.with_name(database.name + ".next")


def finish_replacement(database: Path) -> None:
    """Complete a replacement that was interrupted halfway, so that no empty database is created in between."""
    waiting = replacement_path(database)
    if not waiting.exists():
        return
    if database.exists():
        waiting.unlink()  # nothing had been moved yet
        return
    for left in log_files(database):
        if left.exists():
            os.replace(left, left.with_name(left.name + ".replaced"))
    os.replace(waiting, database)
    flush_folder(database.parent)


def revision(file: Path) -> str | None:
    """Return the schema revision that wrote the file; None if it is not a database of Errand. Raises sqlite3.Error."""
    with closing(open_untouched(file)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return str(row[0]) if row else None


@dataclass(frozen=True, slots=True)
class Truncation:
    """The actual size of a truncated file and its full size, in bytes."""

    actual: int
    expected: int


def find_truncation(file: Path) -> Truncation | None:
    """Return None if the file has the size in its header, or if its log may hold the rest. Raises no OSError."""
    with suppress(OSError):
        if log_files(file)[0].exists() and log_files(file)[0].stat().st_size:
            return None
        size, header = file.stat().st_size, read_beginning(file, 100)
        # https://sqlite.org/fileformat2.html: the page size, the page count, and whether the count is current.
        if len(header) < 100 or not header.startswith(b"SQLite format 3") or header[24:28] != header[92:96]:
            return None
        page = int.from_bytes(header[16:18]) if header[16:18] != b"\0\1" else 65_536
        expected_size = page * int.from_bytes(header[28:32])
        return Truncation(size, expected_size) if size < expected_size else None
    return None


def open_untouched(file: Path) -> sqlite3.Connection:
    """Open read-only without creating files beside the database.

    SQLite creates them even for reading, unless `immutable` promises that nobody writes.
    """
    _check_is_file(file)
    alone = "" if log_files(file)[0].exists() else "&immutable=1"
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro{alone}", uri=True, timeout=5)


def find_fault(file: Path) -> str:
    """Return the first fault in pages and indexes, empty if there is none. Takes seconds for a large database."""
    try:
        with closing(open_to_read(file)) as connection:
            (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            return "" if answer == "ok" else str(answer).splitlines()[-1]
    except sqlite3.DatabaseError as error:
        return str(error)


def new_epoch(file: Path) -> None:
    """Clients that followed another database must not mistake these events for a continuation."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (uuid4().hex,))


@dataclass(frozen=True, slots=True)
class Loss:
    """`text` describes what is missing and what exists."""

    what: Literal["file", "changes"]
    text: str


class NewestEventNote:
    """A note file beside a database with its epoch and its newest event. Written without waiting for the disk.

    At most ten writes a second. After a crash or a power cut the note may be older than the database. There is no note
    if it cannot be written, or for an in-memory database.
    """

    def __init__(self, database: Path | None, epoch: str) -> None:
        self._epoch = epoch
        self._file: int | None = None
        self._unwritten: int | None = None
        self._next_at = 0.0
        with suppress(OSError):
            if database is not None:
                self._file = os.open(_note(database), os.O_RDWR | os.O_CREAT, 0o600)

    def write(self, sequence: int) -> None:
        """Record the number, in the next iteration of the event loop or a moment after the last one was recorded."""
        if self._unwritten is None and self._file is not None:
            loop = asyncio.get_running_loop()
            at = max(loop.time(), self._next_at)
            self._next_at = at + _NOTE_PAUSE_S
            loop.call_at(at, self._write)
        self._unwritten = sequence

    def close(self) -> None:
        self._write()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self) -> None:
        sequence, self._unwritten = self._unwritten, None
        if sequence is not None and self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file, f"{self._epoch} {sequence:020}\n".encode(), 0)


def find_loss(database: Path, copies: Path) -> Loss | None:
    """Return None if nothing is missing as far as a quick check can tell, or if there has never been a database."""
    note = _read(database)
    if not os.path.lexists(database):
        return _missing_file(database, copies, is_known=bool(note)) if note != [_EMPTY_ACCEPTED] else None
    if len(note) != 2 or _has_log(database) or not database.is_file():
        return None
    newest = newest_event(database)
    if newest is None or newest[0] != note[0] or newest[1] >= int(note[1]):
        return None
    log = log_files(database)[0].name
    return Loss(
        "changes",
        f"{database} is older than what was stored last: it ends at event {newest[1]:,} of {int(note[1]):,}. "
        f"Its log {log} was deleted, or an older copy was put in its place.",
    )


def newest_event(file: Path) -> tuple[str, int] | None:
    """Return the epoch of a database and its newest event; None if they cannot be read."""
    with suppress(sqlite3.Error), closing(open_untouched(file)) as connection:
        epoch, sequence = connection.execute(_NEWEST).fetchone()
        return str(epoch), int(sequence)
    return None


def list_copies(database: Path, copies: Path) -> list[Path]:
    """Return the copies of a database, newest first."""
    files = [file for file in copies.glob(f"{database.stem}-*.db") if file.is_file() and not file.is_symlink()]
    return sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)


def date_text(file: Path) -> str:
    return f"{datetime.fromtimestamp(file.stat().st_mtime, UTC).astimezone():%Y-%m-%d %H:%M}"


def accept_missing_database(database: Path) -> None:
    """Accept that a database is missing: the next start creates an empty one. Raises OSError."""
    for left in log_files(database):
        if left.exists():
            os.replace(left, left.with_name(left.name + ".replaced"))
    _note(database).write_text(f"{_EMPTY_ACCEPTED}\n")


def _missing_file(database: Path, copies: Path, *, is_known: bool) -> Loss | None:
    signs: list[str] = []
    if _has_log(database):
        signs.append(f"its log {log_files(database)[0].name} is there")
    if backups := list_copies(database, copies):
        number = "a copy of it is" if len(backups) == 1 else f"{len(backups)} copies of it are"
        signs.append(f"{number} in {copies}, the newest of {date_text(backups[0])}")
    if is_known:
        signs.append("Errand has worked with it here")
    return Loss("file", f"The database {database} is missing, but {', and '.join(signs)}.") if signs else None


def _has_log(database: Path) -> bool:
    with suppress(OSError):
        return log_files(database)[0].stat().st_size > 0
    return False


def _note(database: Path) -> Path:
    return database.with_name(database.name + ".newest")


def _read(database: Path) -> list[str]:
    """Return the fields of the note; empty if there is none, or if it is truncated."""
    with suppress(OSError, UnicodeDecodeError):
        fields = read_beginning(_note(database), 200).decode().split()
        return fields if fields == [_EMPTY_ACCEPTED] or (len(fields) == 2 and fields[1].isdecimal()) else []
    return []
