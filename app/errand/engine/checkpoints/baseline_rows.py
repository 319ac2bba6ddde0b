"""The table of baselines: what each file of a workspace held when it was last looked at. It is in `contents.db`.

Paths are bytes relative to their folder. Rows are written together with the contents that they name.
"""

import sqlite3
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import fsdecode, fsencode, stat_result
from stat import S_IMODE, S_ISDIR

# A content that git has: its blob follows.
GIT = "git:"
_IDENTITY = struct.Struct("<5Q")
_MASK = 2**64 - 1
# Of an identity: the device and the inode.
_INODE_BYTES = 16
# Parameters of one query, of which SQLite may allow 999.
_PIECE_INODES = 500

TABLES = """
CREATE TABLE IF NOT EXISTS baselines (id INTEGER PRIMARY KEY, folder BLOB NOT NULL UNIQUE, used_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS baseline_files (
  baseline INTEGER NOT NULL, path BLOB NOT NULL, identity BLOB NOT NULL, size INTEGER NOT NULL, content TEXT NOT NULL,
  mode INTEGER, PRIMARY KEY (baseline, path)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS running_commands (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file or folder. `identity` differs after any change, and is empty if it cannot be trusted.

    `content` is the id of a content, a blob of git, `FOLDER` or `UNKEPT`.
    """

    path: str
    identity: bytes
    size: int
    content: str
    mode: int | None = None


def identity_of(status: stat_result) -> bytes:
    """Return what changes when a file does; of a folder only its device, inode and permissions."""
    if S_ISDIR(status.st_mode):
        return _IDENTITY.pack(status.st_dev & _MASK, status.st_ino & _MASK, S_IMODE(status.st_mode), 0, 0)
    return _IDENTITY.pack(
        status.st_dev & _MASK,
        status.st_ino & _MASK,
        status.st_size,
        status.st_mtime_ns & _MASK,
        status.st_ctime_ns & _MASK,
    )


class BaselineRows:
    """The rows of one folder. Each method is called with the connection of the store."""

    def __init__(self, connection: sqlite3.Connection, folder: str) -> None:
        connection.execute(
            "INSERT INTO baselines (folder, used_at) VALUES (?, ?) "
            "ON CONFLICT (folder) DO UPDATE SET used_at = excluded.used_at",
            (fsencode(folder), time.time()),
        )
        (self._id,) = connection.execute("SELECT id FROM baselines WHERE folder = ?", (fsencode(folder),)).fetchone()

    def exists(self, connection: sqlite3.Connection) -> bool:
        return connection.execute("SELECT 1 FROM baselines WHERE id = ?", (self._id,)).fetchone() is not None

    def all(self, connection: sqlite3.Connection) -> list[FileRow]:
        return self._rows(connection, "", ())

    def get(self, connection: sqlite3.Connection, paths: Iterable[str]) -> dict[str, FileRow]:
        return {row.path: row for path in paths for row in self._rows(connection, " AND path = ?", (fsencode(path),))}

    def below(self, connection: sqlite3.Connection, folder: str) -> list[FileRow]:
        """Return the rows below a folder, without its own."""
        start = fsencode(folder) + b"/"
        return self._rows(connection, " AND path > ? AND path < ?", (start, start[:-1] + b"0"))

    def of_inodes(self, connection: sqlite3.Connection, identities: Iterable[bytes]) -> list[FileRow]:
        """Return the rows of all names of these files. Each piece of them reads the whole table once."""
        inodes = sorted({identity[:_INODE_BYTES] for identity in identities})
        rows: list[FileRow] = []
        for first in range(0, len(inodes), _PIECE_INODES):
            piece = tuple(inodes[first : first + _PIECE_INODES])
            marks = ", ".join("?" * len(piece))
            rows += self._rows(connection, f" AND substr(identity, 1, {_INODE_BYTES}) IN ({marks})", piece)
        return rows

    def put(self, connection: sqlite3.Connection, rows: Iterable[FileRow], gone: Iterable[str]) -> None:
        connection.executemany(
            "INSERT OR REPLACE INTO baseline_files VALUES (?, ?, ?, ?, ?, ?)",
            ((self._id, fsencode(row.path), row.identity, row.size, row.content, row.mode) for row in rows),
        )
        connection.executemany(
            "DELETE FROM baseline_files WHERE baseline = ? AND path = ?", ((self._id, fsencode(path)) for path in gone)
        )

    def clear(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM baseline_files WHERE baseline = ?", (self._id,))
        connection.execute("DELETE FROM baselines WHERE id = ?", (self._id,))

    def _rows(self, connection: sqlite3.Connection, condition: str, values: tuple[bytes, ...]) -> list[FileRow]:
        query = f"SELECT path, identity, size, content, mode FROM baseline_files WHERE baseline = ?{condition}"
        return list(_decoded(connection.execute(query, (self._id, *values))))


def has_baseline(connection: sqlite3.Connection, folder: str) -> bool:
    return connection.execute("SELECT 1 FROM baselines WHERE folder = ?", (fsencode(folder),)).fetchone() is not None


def drop_baselines(connection: sqlite3.Connection, keep: Iterable[str]) -> None:
    """Delete the baselines of all folders but these."""
    folders_to_keep = {fsencode(folder) for folder in keep}
    rows = connection.execute("SELECT id, folder FROM baselines").fetchall()
    gone = [(row[0],) for row in rows if bytes(row[1]) not in folders_to_keep]
    connection.executemany("DELETE FROM baselines WHERE id = ?", gone)
    connection.executemany("DELETE FROM baseline_files WHERE baseline = ?", gone)


def contents_of_baselines(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the ids of contents that baselines name."""
    return frozenset(str(row[0]) for row in connection.execute("SELECT DISTINCT content FROM baseline_files"))


def _decoded(rows: Iterable[tuple[bytes, bytes, int, str, int | None]]) -> Iterator[FileRow]:
    return (
        FileRow(fsdecode(path), bytes(identity), size, content, mode) for path, identity, size, content, mode in rows
    )
