"""The contents of files, stored once each under the hash of their bytes, and notes of changes about to be made.

They are in a small database of their own, so that both are on disk after one flush.
"""

import errno
import hashlib
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Mapping, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from errand.engine.checkpoints import baseline_rows
from errand.system.regular_file import make_folder

T = TypeVar("T")

# Smaller ones are not worth compressing.
_COMPRESSED_FROM = 512
_PLAIN, _COMPRESSED = b"p", b"z"
_LEVEL = 1
# Contents are stored before the change that names them: young ones stay.
_YOUNG_S = 3600
# How old the time of a content may be when it is used again.
_RENEWED_S = 600
# All of them together; beyond this the oldest are deleted.
MAX_STORED_BYTES = 2_000_000_000
# What tools and commands change is no larger.
MAX_FILE_BYTES = 20_000_000
# Deleted in one transaction: others wait for it.
_PIECE = 200
# Given back to the file system at once.
_PAGES = 2_000

_TABLES = """
CREATE TABLE IF NOT EXISTS contents (id TEXT PRIMARY KEY, at REAL NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS notes (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
"""


class ContentStore:
    """The file `contents.db` in `folder`, made when it is first written to. Methods may be called in any thread."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "contents.db"
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def put(
        self,
        *contents: bytes,
        notes: Mapping[str, bytes] | None = None,
        done: Iterable[str] = (),
        also: Callable[[sqlite3.Connection], None] | None = None,
    ) -> tuple[str, ...]:
        """Store contents and notes, drop the notes `done`, and return the ids of the contents. Raises OSError.

        All are on disk together when this returns, with what `also` writes.
        """
        ids, now = tuple(map(id_of, contents)), time.time()
        last_uses = (
            self.use(lambda connection: {content_id: _last_use(connection, content_id) for content_id in ids})
            if ids
            else {}
        )
        new = [
            (content_id, now, _packed(content))
            for content_id, content in dict(zip(ids, contents, strict=True)).items()
            if last_uses[content_id] is None
        ]
        # Young again, so that a pruning leaves them.
        old = [(now, content_id) for content_id, at in last_uses.items() if at is not None and at < now - _RENEWED_S]
        rows, gone = tuple((notes or {}).items()), [(note,) for note in done]

        def write(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                # Another thread may have stored the same meanwhile.
                connection.executemany("INSERT OR IGNORE INTO contents VALUES (?, ?, ?)", new)
                connection.executemany("UPDATE contents SET at = ? WHERE id = ?", old)
                connection.executemany("INSERT OR REPLACE INTO notes VALUES (?, ?)", rows)
                connection.executemany("DELETE FROM notes WHERE id = ?", gone)
                if also is not None:
                    also(connection)

        if new or old or rows or gone or also is not None:
            self.use(write)
        return ids

    def get(self, content_id: str) -> bytes | None:
        """Return the bytes; None if they are not kept any more, or were damaged."""
        try:
            stored = self._find("SELECT data FROM contents WHERE id = ?", content_id)
            content = None if stored is None else _unpacked(stored)
        except (OSError, zlib.error):
            return None
        return content if content is not None and id_of(content) == content_id else None

    def has(self, content_id: str) -> bool:
        with suppress(OSError):
            return self._find("SELECT x'' FROM contents WHERE id = ?", content_id) is not None
        return False

    def notes(self) -> dict[str, bytes]:
        """Return all notes, in the order of their names. Raises OSError."""
        if not self.is_there:
            return {}
        return self.use(
            lambda connection: {
                str(row[0]): bytes(row[1]) for row in connection.execute("SELECT id, body FROM notes ORDER BY id")
            }
        )

    def begin_command(self, command_id: str, body: bytes) -> None:
        """Note that a command runs in a folder with a baseline. Raises OSError.

        This outlives the engine, but not a power cut: what the command replaces is on disk before it.
        """
        self._without_flush("INSERT OR REPLACE INTO running_commands VALUES (?, ?)", (command_id, body))

    def end_command(self, command_id: str) -> None:
        self._without_flush("DELETE FROM running_commands WHERE id = ?", (command_id,))

    def running_commands(self) -> dict[str, bytes]:
        """Return the bodies of all commands that were begun and did not end. Raises OSError."""
        if not self.is_there:
            return {}
        return self.use(
            lambda connection: {
                str(row[0]): bytes(row[1]) for row in connection.execute("SELECT id, body FROM running_commands")
            }
        )

    def drop_notes(self, ids: Iterable[str]) -> None:
        """Delete notes. Raises OSError."""
        self._in_pieces("DELETE FROM notes WHERE id = ?", ids)

    def delete(self, content_ids: Iterable[str]) -> None:
        """Delete contents, so that nothing of them is left in the file. Raises OSError."""
        self._in_pieces("DELETE FROM contents WHERE id = ?", content_ids)
        if self.is_there:
            while self.use(_shrink):
                pass

    def prune(self, used: Set[str], most_bytes: int = MAX_STORED_BYTES) -> None:
        """Delete the contents that no recent change uses, then the oldest until the rest is small enough.

        Those of baselines stay.
        Raises OSError.
        """
        of_baselines = self.contents_of_baselines()
        young = time.time() - _YOUNG_S
        gone: list[str] = []
        unused: list[tuple[int, str]] = []
        for content_id, at, size in self.use(_sizes) if self.is_there else ():
            if content_id not in used and content_id not in of_baselines and at < young:
                gone.append(content_id)
            else:
                unused.append((size, content_id))
        excess = sum(size for size, _ in unused) - most_bytes
        for size, content_id in unused:
            if excess <= 0:
                break
            if content_id in of_baselines:
                continue
            gone.append(content_id)
            excess -= size
        if gone:
            self.delete(gone)

    def contents_of_baselines(self) -> frozenset[str]:
        """Return the ids of contents that baselines name. Raises OSError."""
        return self.use(baseline_rows.contents_of_baselines) if self.is_there else frozenset()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @property
    def is_there(self) -> bool:
        return self._connection is not None or self._file.exists()

    def _find(self, query: str, content_id: str) -> bytes | None:
        if not self.is_there:
            return None

        def find(connection: sqlite3.Connection) -> bytes | None:
            row = connection.execute(query, (content_id,)).fetchone()
            return None if row is None else bytes(row[0])

        return self.use(find)

    def _in_pieces(self, statement: str, ids: Iterable[str]) -> None:
        rows = [(content_id,) for content_id in ids] if self.is_there else []
        for first in range(0, len(rows), _PIECE):
            piece = rows[first : first + _PIECE]

            def delete(connection: sqlite3.Connection, piece: list[tuple[str]] = piece) -> None:
                with _transaction(connection):
                    connection.executemany(statement, piece)

            self.use(delete)

    def _without_flush(self, statement: str, values: tuple[str | bytes, ...]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("PRAGMA synchronous = NORMAL")
            try:
                connection.execute(statement, values)
            finally:
                connection.execute("PRAGMA synchronous = FULL")

        self.use(write)

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call `work` with the connection, while no other thread uses it. Raises OSError."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = _opened(self._file)
                return work(self._connection)
            except sqlite3.Error as error:
                advice = "" if isinstance(error, sqlite3.OperationalError) else f"; if it stays so, delete {self._file}"
                raise OSError(errno.EIO, f"what it had before cannot be kept ({error}){advice}") from error


def id_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=20).hexdigest()


def _opened(file: Path) -> sqlite3.Connection:
    make_folder(file.parent)
    os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    # The lock of the store makes one thread at a time use it.
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    try:
        for pragma in ("auto_vacuum = INCREMENTAL", "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.executescript(_TABLES + baseline_rows.TABLES)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _last_use(connection: sqlite3.Connection, content_id: str) -> float | None:
    row = connection.execute("SELECT at FROM contents WHERE id = ?", (content_id,)).fetchone()
    return None if row is None else float(row[0])


def _sizes(connection: sqlite3.Connection) -> list[tuple[str, float, int]]:
    """Return the id, time and size of all contents, the oldest first."""
    rows = connection.execute("SELECT id, at, length(data) FROM contents ORDER BY at")
    return [(str(row[0]), float(row[1]), int(row[2])) for row in rows]


def _shrink(connection: sqlite3.Connection) -> bool:
    """Give free pages back; False if none were left."""
    free = int(connection.execute("PRAGMA freelist_count").fetchone()[0])
    connection.executescript(f"PRAGMA incremental_vacuum({_PAGES})")  # `execute` would give back a single page
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return free > _PAGES


def _packed(content: bytes) -> bytes:
    if len(content) >= _COMPRESSED_FROM:
        packed = zlib.compress(content, _LEVEL)
        if len(packed) < len(content):
            return _COMPRESSED + packed
    return _PLAIN + content


def _unpacked(stored: bytes) -> bytes:
    return stored[1:] if stored[:1] == _PLAIN else zlib.decompress(stored[1:], bufsize=len(stored) * 4)
