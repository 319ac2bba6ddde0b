"""The words of entries, in a SQLite file that can be made again at any time. Call its methods in one thread."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.ranking.days import Period, stated_days
from errand.engine.memory.ranking.traits import traits_of
from errand.engine.memory.vectors.base import VectorFilter
from errand.engine.memory.words.same_text import text_number
from errand.engine.memory.words.spelling import TOKENIZER, count_words, indexed_text, with_endings
from errand.engine.memory.words.vocabulary import Vocabulary
from errand.protocol.blocks import MemoryRole

# A shorter turn is often an answer whose subject is in the turns around it.
SHORT_WORDS = 40
_MAX_NEIGHBOUR_LENGTH = 400
_IN_ONE_STATEMENT = 500
_LOOSE = "loose"
REMOVED_NOTE = "removed"
# A file of another version is thrown away and made again.
_VERSION = 7

_OPEN = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;"
_SCHEMA = f"""
BEGIN;
CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, conversation_id TEXT NOT NULL,
    position INTEGER NOT NULL, speaker TEXT NOT NULL, role TEXT NOT NULL, at REAL NOT NULL, folder TEXT NOT NULL,
    words INTEGER NOT NULL, text TEXT NOT NULL, traits TEXT NOT NULL, text_number INTEGER NOT NULL,
    task_id TEXT NOT NULL,
    vector TEXT NOT NULL DEFAULT 'wanted'
);
CREATE TABLE stated_days (
    number INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (number, first, last)
) WITHOUT ROWID;
CREATE TABLE futile_tasks (task_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE INDEX stated_days_by_time ON stated_days (first);
CREATE UNIQUE INDEX entries_in_order ON entries (conversation_id, position);
CREATE INDEX entries_by_time ON entries (at);
CREATE INDEX entries_by_text ON entries (text_number, number);
CREATE INDEX entries_by_vector ON entries (vector, number);
CREATE VIRTUAL TABLE entry_words USING fts5(
    text, content='', tokenize='{TOKENIZER}'
);
CREATE VIRTUAL TABLE window_words USING fts5(
    text, content='', tokenize='{TOKENIZER}'
);
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO state VALUES ('identity', hex(randomblob(16)));
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_ENTRY = "number, id, conversation_id, speaker, role, at, text, folder, position, words, text_number"
_INDEXED = f"{_ENTRY}, vector = 'made'"
_HEAD = (
    "conversation_id, position, number, role, at, speaker, words, text_number, "
    "role IN ('agent', 'tool') AND task_id IN futile_tasks"
)
_AT = """
    WITH wanted (c, p) AS (VALUES {places}) SELECT {columns} FROM wanted JOIN entries ON conversation_id = c
    AND position = p{also}
"""

V = TypeVar("V")

Place: TypeAlias = tuple[str, int]
# `wanted`: to be made; `failed`: the model made none that can be used; `pruned`: removed, and not made again.
VectorState: TypeAlias = Literal["wanted", "made", "failed", "pruned"]


class IndexOutdated(Exception):
    """The file is of another version of the index."""


@dataclass(frozen=True, slots=True)
class IndexedEntry:
    """An entry at its `position` in its conversation. Entries with equal texts have the same `text_number`."""

    entry: MemoryEntry
    position: int
    word_count: int
    text_number: int = 0
    has_vector: bool = False

    @property
    def location(self) -> Place:
        return self.entry.conversation_id, self.position


class EntryHead(NamedTuple):
    """An entry without its text, in the order of conversations; `at` is in seconds since 1970.

    `is_futile`: an agent or a tool said it in a task that came to nothing.
    """

    conversation_id: str
    position: int
    number: int
    role: MemoryRole
    at: float
    speaker: str
    word_count: int
    text_number: int = 0
    is_futile: bool = False


class WordIndex:
    """Raises `sqlite3.Error`, and `IndexOutdated` when a file of another version is opened."""

    def __init__(self, file: Path) -> None:
        self.connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        try:
            version = self._number_from("PRAGMA user_version")
            if version not in (0, _VERSION):
                raise IndexOutdated
            self.connection.executescript(_OPEN if version else f"{_OPEN}{_SCHEMA}")
            self.vocabulary = Vocabulary(self.connection)
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        self.vocabulary.close()
        self.connection.close()

    def add(self, entries: Iterable[MemoryEntry]) -> None:
        """Add entries, which come in order of time within each conversation. Existing ones stay as they are."""
        new = {entry.id: entry for entry in entries}
        by_conversation: dict[str, list[MemoryEntry]] = {}
        writer = _Writer(self)
        with Transaction(self.connection):
            known_ids = self.stored_ids(new)
            for entry in new.values():
                if entry.id not in known_ids:
                    by_conversation.setdefault(entry.conversation_id, []).append(entry)
            for conversation_id, its in by_conversation.items():
                writer.append(conversation_id, its)

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove entries, and their words from the windows of their neighbours."""
        writer = _Writer(self)
        for part in _parts(numbers):
            with Transaction(self.connection):
                writer.remove(self.entries(part))
                self.set_state(_LOOSE, "1")
                self.note_removed()

    def note_removed(self) -> None:
        """Note, in the transaction that removes or prunes entries, that their vectors are to be removed too.

        The note differs each time, so that it is withdrawn (`withdraw_removed`) only if nothing came meanwhile.
        """
        self.set_state(REMOVED_NOTE, str(int(self.state(REMOVED_NOTE) or 0) + 1))

    def compact_if_loose(self) -> None:
        """Overwrite what removed entries left in the file. Takes seconds for 100,000 entries."""
        if not self.state(_LOOSE):
            return
        for table in ("entry_words", "window_words"):
            self.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.set_state(_LOOSE, "")

    def entries(
        self, numbers: Iterable[int], condition: str = "", values: Sequence[str | float] = ()
    ) -> list[IndexedEntry]:
        """Return the entries with these numbers for which the condition holds too."""
        also = f" AND {condition}" if condition else ""
        return [
            entry
            for part in _parts(numbers)
            for entry in self.select(f"number IN ({_marks(part)}){also}", (*part, *values))
        ]

    def heads(self, numbers: Iterable[int]) -> list[EntryHead]:
        rows_by_part = (
            self.connection.execute(f"SELECT {_HEAD} FROM entries WHERE number IN ({_marks(part)})", part)
            for part in _parts(numbers)
        )
        return [head for rows in rows_by_part for head in map(EntryHead._make, rows)]

    def traits(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the encoded traits of these entries by their numbers."""
        rows_by_part = (
            self.connection.execute(f"SELECT number, traits FROM entries WHERE number IN ({_marks(part)})", part)
            for part in _parts(numbers)
        )
        return {number: traits for rows in rows_by_part for number, traits in rows}

    def stated_days(self, numbers: Iterable[int]) -> dict[int, list[Period]]:
        """Return the days that these entries tell of, by their numbers."""
        stated: dict[int, list[Period]] = {}
        for part in _parts(numbers):
            query = f"SELECT number, first, last FROM stated_days WHERE number IN ({_marks(part)})"
            for number, first, last in self.connection.execute(query, part):
                stated.setdefault(number, []).append(Period(date.fromordinal(first), date.fromordinal(last)))
        return stated

    def heads_of_days(self, days: Period, where: VectorFilter | None, limit: int) -> list[EntryHead]:
        """Return entries that tell of these days, and such as were written on them, at most `limit` of each."""
        condition, values = sql_condition(where)
        also = f" AND {condition}" if condition else ""
        first, last = days.first.toordinal(), days.last.toordinal()
        stated = "number IN (SELECT number FROM stated_days WHERE first BETWEEN ? AND ? AND last <= ?)"
        midnights = (datetime.combine(day, time()).astimezone().timestamp() for day in (days.first, _after(days.last)))
        chosen = ((stated, (first, last, last)), ("at >= ? AND at < ?", tuple(midnights)))
        queries = (
            (f"SELECT {_HEAD} FROM entries WHERE {moment}{also} ORDER BY number DESC LIMIT ?", limits)
            for moment, limits in chosen
        )
        return [
            EntryHead(*row)
            for query, limits in queries
            for row in self.connection.execute(query, (*limits, *values, limit))
        ]

    def neighbour_heads(self, heads: Iterable[EntryHead], where: VectorFilter | None = None) -> list[EntryHead]:
        """Return the turns before and after each that the filter lets through."""
        neighbours = {(head.conversation_id, head.position + step) for head in heads for step in (-1, 1)}
        return [head for rows in self._at(neighbours, _HEAD, where) for head in map(EntryHead._make, rows)]

    def entries_at(self, locations: Iterable[Place]) -> list[IndexedEntry]:
        """Return the entries at these positions of conversations, where there are any."""
        return [_indexed(row) for rows in self._at(locations, _INDEXED) for row in rows]

    def select(self, condition: str, values: Sequence[str | int | float]) -> list[IndexedEntry]:
        """Return the entries for which an SQL condition holds; it may end with an order and a limit."""
        rows = self.connection.execute(f"SELECT {_INDEXED} FROM entries WHERE {condition}", values)
        return list(map(_indexed, rows))

    def texts(self, numbers: Iterable[int]) -> list[tuple[int, str]]:
        """Return the texts of entries with their numbers."""
        return [
            (number, text)
            for part in _parts(numbers)
            for number, text in self.connection.execute(
                f"SELECT number, text FROM entries WHERE number IN ({_marks(part)})", part
            )
        ]

    def last_number(self) -> int:
        """Return the highest number of an entry, which is about how many there are; 0 without any."""
        return int(self._number_from("SELECT coalesce(max(number), 0) FROM entries"))

    def folders(self) -> tuple[str, ...]:
        """Return the folders of all entries."""
        return tuple(row[0] for row in self.connection.execute("SELECT DISTINCT folder FROM entries"))

    def count_texts(self, texts: Collection[int], where: VectorFilter | None = None) -> dict[int, int]:
        """Return how many entries that the filter lets through have each of these texts, by their numbers."""
        condition, values = sql_condition(where)
        also = f" AND {condition}" if condition else ""
        return {
            text: count
            for part in _parts(texts)
            for text, count in self.connection.execute(
                f"SELECT text_number, count(*) FROM entries WHERE text_number IN ({_marks(part)}){also} "
                "GROUP BY text_number",
                (*part, *values),
            )
        }

    def next_number(self) -> int:
        """Return a number that no entry ever had."""
        return int(self._number_from("SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'entries'"))

    def identity(self) -> str:
        """Return the identity of this file: a new file has another, and gives the same numbers to other entries."""
        return self.state("identity")

    def state(self, name: str) -> str:
        """Return the value that was stored under a name; empty if there is none."""
        row = self.connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def set_state(self, name: str, value: str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))

    def stored_ids(self, ids: Collection[str]) -> frozenset[str]:
        """Return the ids that have an entry."""
        rows_by_part = (
            self.connection.execute(f"SELECT id FROM entries WHERE id IN ({_marks(part)})", part)
            for part in _parts(ids)
        )
        return frozenset(row[0] for rows in rows_by_part for row in rows)

    def _at(self, locations: Iterable[Place], columns: str, where: VectorFilter | None = None) -> list[sqlite3.Cursor]:
        condition, values = sql_condition(where)
        also = f" AND {condition}" if condition else ""
        return [
            self.connection.execute(
                _AT.format(places=", ".join(["(?, ?)"] * len(part)), columns=columns, also=also),
                [*(value for location in part for value in location), *values],
            )
            for part in _parts(locations)
        ]

    def _number_from(self, query: str) -> int:
        return int(self.connection.execute(query).fetchone()[0])


class _Writer:
    """Writes entries with their words, in a transaction of its caller."""

    def __init__(self, index: WordIndex) -> None:
        self._index = index
        self._connection = index.connection

    def append(self, conversation_id: str, entries: Sequence[MemoryEntry]) -> None:
        """Append entries together, so that each window is written once, when its neighbours exist."""
        before = self._index.select("conversation_id = ? ORDER BY position DESC LIMIT 1", (conversation_id,))
        self._drop_windows(before)
        start = before[0].position + 1 if before else 0
        added = [
            IndexedEntry(entry, position, count_words(entry.text), text_number(entry))
            for position, entry in enumerate(entries, start)
        ]
        self._connection.executemany(
            f"INSERT INTO entries ({_ENTRY}, traits, task_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            map(_row, added),
        )
        self._connection.executemany(
            "INSERT INTO stated_days VALUES (?, ?, ?)", (row for entry in entries for row in _stated_days(entry))
        )
        self._connection.executemany(
            "INSERT INTO entry_words (rowid, text) VALUES (?, ?)",
            ((entry.number, with_endings(_own(entry))) for entry in entries),
        )
        self._insert_windows((*before, *added))

    def remove(self, removed: Sequence[IndexedEntry]) -> None:
        removed_locations = {indexed.location for indexed in removed}
        around = {
            (conversation_id, at + step) for conversation_id, at in removed_locations for step in (-1, 1)
        } - removed_locations
        neighbours = self._index.entries_at(around)
        self._drop_windows((*neighbours, *removed))
        for indexed in removed:
            self._delete("entry_words", indexed.entry.number, with_endings(_own(indexed.entry)))
        self._connection.execute(
            f"DELETE FROM entries WHERE number IN ({_marks(removed)})", [indexed.entry.number for indexed in removed]
        )
        self._connection.execute(
            f"DELETE FROM stated_days WHERE number IN ({_marks(removed)})",
            [indexed.entry.number for indexed in removed],
        )
        self._insert_windows(neighbours)

    def _insert_windows(self, entries: Sequence[IndexedEntry]) -> None:
        self._connection.executemany(
            "INSERT INTO window_words (rowid, text) VALUES (?, ?)",
            ((indexed.entry.number, window) for indexed, window in self._windows(entries)),
        )

    def _drop_windows(self, entries: Sequence[IndexedEntry]) -> None:
        """Remove windows, before anything changes: this FTS5 has no content, so it needs the text to remove."""
        for indexed, window in self._windows(entries):
            self._delete("window_words", indexed.entry.number, window)

    def _windows(self, entries: Sequence[IndexedEntry]) -> list[tuple[IndexedEntry, str]]:
        """Return the text of each short entry with its neighbours."""
        short = [indexed for indexed in entries if indexed.word_count < SHORT_WORDS]
        texts = {indexed.location: _beginning(indexed) for indexed in entries}
        neighbour_locations = {
            (indexed.entry.conversation_id, indexed.position + step) for indexed in short for step in (-1, 1)
        }
        for indexed in self._index.entries_at(neighbour_locations.difference(texts)):
            texts[indexed.location] = _beginning(indexed)
        windows: list[tuple[IndexedEntry, str]] = []
        for indexed in short:
            conversation_id, at = indexed.location
            before, after = texts.get((conversation_id, at - 1), ""), texts.get((conversation_id, at + 1), "")
            windows.append((indexed, "\n".join((before, indexed_text(_own(indexed.entry)), after))))
        return windows

    def _delete(self, table: str, number: int, text: str) -> None:
        self._connection.execute(f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", (number, text))


class Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
        elif self._connection.in_transaction:  # a full disk has ended it already
            self._connection.execute("ROLLBACK")


def sql_condition(where: VectorFilter | None) -> tuple[str, list[str | float]]:
    """Return the filter as an SQL condition on entries, and its values. Empty without a condition."""
    if where is None:
        return "", []
    conditions: list[str] = []
    values: list[str | float] = []
    for column, allowed in (
        ("conversation_id", where.conversations),
        ("folder", where.folders),
        ("role", where.kinds),
    ):
        if allowed:
            conditions.append(f"{column} IN ({_marks(allowed)})")
            values += allowed
    for column, excluded in (("conversation_id", where.not_conversations), ("folder", where.not_folders)):
        if excluded:
            conditions.append(f"{column} NOT IN ({_marks(excluded)})")
            values += excluded
    for sign, moment in ((">=", where.after), ("<", where.before)):
        if moment is not None:
            conditions.append(f"at {sign} ?")
            values.append(moment)
    return " AND ".join(conditions), values


def _indexed(row: tuple[int, str, str, str, MemoryRole, float, str, str, int, int, int, int]) -> IndexedEntry:
    number, key, conversation, speaker, role, at, text, folder, position, word_count, text_key, has_vector = row
    entry = MemoryEntry(number, key, conversation, speaker, role, datetime.fromtimestamp(at, UTC), text, folder)
    return IndexedEntry(entry, position, word_count, text_key, bool(has_vector))


def _row(indexed: IndexedEntry) -> tuple[int, str, str, str, MemoryRole, float, str, str, int, int, int, str, str]:
    """Return the values of `_ENTRY`, the traits, and the task."""
    entry = indexed.entry
    key = entry.number, entry.id, entry.conversation_id, entry.speaker, entry.role
    details = entry.folder, indexed.position, indexed.word_count, indexed.text_number
    return *key, entry.at.timestamp(), entry.text, *details, traits_of(entry.text).encode(), entry.task_id


def _stated_days(entry: MemoryEntry) -> Iterator[tuple[int, int, int]]:
    """Yield the rows of the days that an entry tells of, as days since the year 1."""
    for period in stated_days(entry.text, entry.at.astimezone().date()):
        yield entry.number, period.first.toordinal(), period.last.toordinal()


def _own(entry: MemoryEntry) -> str:
    return f"{entry.speaker}\n{entry.text}"


def _beginning(indexed: IndexedEntry) -> str:
    """Return the text that an entry has in the windows of its neighbours."""
    return indexed_text(_own(indexed.entry)[:_MAX_NEIGHBOUR_LENGTH])


def _after(day: date) -> date:
    return min(day, date.max - timedelta(days=1)) + timedelta(days=1)


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _parts(values: Iterable[V]) -> Iterable[tuple[V, ...]]:
    every = tuple(values)
    return (every[start : start + _IN_ONE_STATEMENT] for start in range(0, len(every), _IN_ONE_STATEMENT))
