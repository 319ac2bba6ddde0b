"""What is missing of a database as a file: the file itself, or the newest of what was stored in it.

SQLite cannot tell: where the file is gone it makes an empty one, and where the log beside it is gone, or an older copy
stands in its place, it opens what there is. So the engine notes beside the database how far it has come.
"""

import asyncio
import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from app.database_file import beside, open_untouched
from app.regular_file import read_beginning

_NEWEST = "SELECT (SELECT value FROM meta WHERE name = 'epoch'), (SELECT coalesce(max(sequence), 0) FROM events)"
_ANEW = "anew"


@dataclass(frozen=True, slots=True)
class Loss:
    """`text` says what is missing and what is there."""

    what: Literal["file", "changes"]
    text: str


class NewestNote:
    """The note beside a database: its epoch and its newest event. It costs a write without waiting for the disk.

    One write for all events of a turn of the event loop. After a crash or a power cut the note may be older than the
    database. There is none where it cannot be written, or beside no file.
    """

    def __init__(self, database: Path | None, epoch: str) -> None:
        self._epoch = epoch
        self._file: int | None = None
        self._unwritten: int | None = None
        with suppress(OSError):
            if database is not None:
                self._file = os.open(_note(database), os.O_RDWR | os.O_CREAT, 0o600)

    def write(self, sequence: int) -> None:
        """Note the number at the end of this turn of the event loop."""
        if self._unwritten is None and self._file is not None:
            asyncio.get_running_loop().call_soon(self._write)
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
    """None where all is there, as far as that can be told at once, or where there has been nothing yet."""
    note = _read(database)
    if not os.path.lexists(database):
        return _missing_file(database, copies, is_known=bool(note)) if note != [_ANEW] else None
    if len(note) != 2 or _has_log(database) or not database.is_file():
        return None
    there = newest_event(database)
    if there is None or there[0] != note[0] or there[1] >= int(note[1]):
        return None
    log = beside(database)[0].name
    return Loss(
        "changes",
        f"{database} is older than what was stored last: it ends at event {there[1]:,} of {int(note[1]):,}. "
        f"Its log {log} was deleted, or an older copy was put in its place.",
    )


def newest_event(file: Path) -> tuple[str, int] | None:
    """The epoch of a database and its newest event; None where they cannot be read."""
    with suppress(sqlite3.Error), closing(open_untouched(file)) as connection:
        epoch, sequence = connection.execute(_NEWEST).fetchone()
        return str(epoch), int(sequence)
    return None


def copies_of(database: Path, copies: Path) -> list[Path]:
    """The newest first."""
    files = [file for file in copies.glob(f"{database.stem}-*.db") if file.is_file() and not file.is_symlink()]
    return sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)


def date_of(file: Path) -> str:
    return f"{datetime.fromtimestamp(file.stat().st_mtime, UTC).astimezone():%Y-%m-%d %H:%M}"


def begin_anew(database: Path) -> None:
    """A database that is missing is not to be missed: the next start makes an empty one. Raises OSError."""
    for left in beside(database):
        if left.exists():
            os.replace(left, left.with_name(left.name + ".replaced"))
    _note(database).write_text(f"{_ANEW}\n")


def _missing_file(database: Path, copies: Path, *, is_known: bool) -> Loss | None:
    signs: list[str] = []
    if _has_log(database):
        signs.append(f"its log {beside(database)[0].name} is there")
    if made := copies_of(database, copies):
        number = "a copy of it is" if len(made) == 1 else f"{len(made)} copies of it are"
        signs.append(f"{number} in {copies}, the newest of {date_of(made[0])}")
    if is_known:
        signs.append("Errand has worked with it here")
    return Loss("file", f"The database {database} is missing, but {', and '.join(signs)}.") if signs else None


def _has_log(database: Path) -> bool:
    with suppress(OSError):
        return beside(database)[0].stat().st_size > 0
    return False


def _note(database: Path) -> Path:
    return database.with_name(database.name + ".newest")


def _read(database: Path) -> list[str]:
    """The words of the note; none where there is none, or it was cut."""
    with suppress(OSError, UnicodeDecodeError):
        words = read_beginning(_note(database), 200).decode().split()
        return words if words == [_ANEW] or (len(words) == 2 and words[1].isdecimal()) else []
    return []
