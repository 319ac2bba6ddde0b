"""The words of entries, in a SQLite file that can be made again at any time. Call its methods in one thread."""

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from app.engine.memory.entries import MemoryEntry

# Of a question, the words that the fewest entries have: common ones only blur the order.
_RAREST_WORDS = 8
_MOST_HITS = 300
# Below it, a turn is often an answer whose words stand in its neighbours.
SHORT_WORDS = 40
_LONGEST_NEIGHBOUR = 400
_WORD = re.compile(r"\w+")
_IN_ONE_STATEMENT = 500

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, conversation_id TEXT NOT NULL, position INTEGER NOT NULL,
    speaker TEXT NOT NULL, role TEXT NOT NULL, at REAL NOT NULL, folder TEXT NOT NULL, words INTEGER NOT NULL,
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS entries_in_order ON entries (conversation_id, position);
CREATE VIRTUAL TABLE IF NOT EXISTS entry_words USING fts5(
    text, content='', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE IF NOT EXISTS window_words USING fts5(
    text, content='', tokenize='porter unicode61 remove_diacritics 2'
);
"""
_ENTRY = "number, id, conversation_id, speaker, role, at, text, folder, position, words"
_BEST = """
    SELECT rowid, -bm25({table}) AS score FROM {table} WHERE {table} MATCH ? ORDER BY bm25({table}) LIMIT ?
"""

Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class IndexedEntry:
    """An entry at its `position` in its conversation; `words` is how many it has."""

    entry: MemoryEntry
    position: int
    words: int


@dataclass(frozen=True, slots=True)
class WordHits:
    """Scores (BM25) by the number of entries: of their own words, and of short entries with their neighbours."""

    own: Mapping[int, float]
    window: Mapping[int, float]


class WordIndex:
    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        self._connection.close()

    def add(self, entries: Iterable[MemoryEntry]) -> None:
        """In order of time within each conversation. Entries that are there already are left as they are."""
        with _Transaction(self._connection):
            for entry in entries:
                self._add(entry)

    def hits(self, words: Sequence[str]) -> WordHits:
        """The best for the rarest of these words."""
        match = " OR ".join(_quoted(word) for word in self._rarest(words))
        if not match:
            return WordHits({}, {})
        return WordHits(*(self._best(table, match) for table in ("entry_words", "window_words")))

    def entries(self, numbers: Iterable[int]) -> list[IndexedEntry]:
        return [one for part in _parts(numbers) for one in self._where(f"number IN ({_marks(part)})", part)]

    def at_places(self, places: Iterable[Place]) -> list[IndexedEntry]:
        """The entries at these positions of conversations, where there are any."""
        wanted = dict[str, list[int]]()
        for conversation_id, position in places:
            wanted.setdefault(conversation_id, []).append(position)
        return [
            one
            for conversation_id, positions in wanted.items()
            for part in _parts(positions)
            for one in self._where(f"conversation_id = ? AND position IN ({_marks(part)})", (conversation_id, *part))
        ]

    def _add(self, entry: MemoryEntry) -> None:
        if self._connection.execute("SELECT 1 FROM entries WHERE id = ?", (entry.id,)).fetchone():
            return
        before = self._where("conversation_id = ? ORDER BY position DESC LIMIT 2", (entry.conversation_id,))
        position = before[0].position + 1 if before else 0
        words = len(_WORD.findall(entry.text))
        self._connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                entry.number,
                entry.id,
                entry.conversation_id,
                position,
                entry.speaker,
                entry.role,
                entry.at.timestamp(),
                entry.folder,
                words,
                entry.text,
            ),
        )
        added = IndexedEntry(entry, position, words)
        self._insert("entry_words", entry.number, _own(entry))
        if before and _is_short(before[0]):
            earlier = before[1] if len(before) > 1 else None
            old, new = _window(earlier, before[0], None), _window(earlier, before[0], added)
            number = before[0].entry.number
            self._connection.execute(
                "INSERT INTO window_words (window_words, rowid, text) VALUES ('delete', ?, ?)", (number, old)
            )
            self._insert("window_words", number, new)
        if _is_short(added):
            self._insert("window_words", entry.number, _window(before[0] if before else None, added, None))

    def _insert(self, table: str, number: int, text: str) -> None:
        self._connection.execute(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", (number, text))

    def _rarest(self, words: Sequence[str]) -> list[str]:
        counts = {word: self._count(word) for word in dict.fromkeys(words)}
        found = [word for word, count in counts.items() if count]
        return sorted(found, key=lambda word: counts[word])[:_RAREST_WORDS]

    def _count(self, word: str) -> int:
        counted = "SELECT count(*) FROM entry_words WHERE entry_words MATCH ?"
        return int(self._connection.execute(counted, (_quoted(word),)).fetchone()[0])

    def _best(self, table: str, match: str) -> dict[int, float]:
        rows = self._connection.execute(_BEST.format(table=table), (match, _MOST_HITS))
        return {int(number): float(score) for number, score in rows}

    def _where(self, condition: str, values: Sequence[str | int]) -> list[IndexedEntry]:
        rows = self._connection.execute(f"SELECT {_ENTRY} FROM entries WHERE {condition}", values)
        return [
            IndexedEntry(
                MemoryEntry(number, key, conversation, speaker, role, datetime.fromtimestamp(at, UTC), text, folder),
                position,
                words,
            )
            for number, key, conversation, speaker, role, at, text, folder, position, words in rows
        ]


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")


def _own(entry: MemoryEntry) -> str:
    return f"{entry.speaker}\n{entry.text}"


def _is_short(one: IndexedEntry) -> bool:
    return one.words < SHORT_WORDS


def _window(before: IndexedEntry | None, one: IndexedEntry, after: IndexedEntry | None) -> str:
    near = [_own(other.entry)[:_LONGEST_NEIGHBOUR] if other is not None else "" for other in (before, after)]
    return "\n".join((near[0], _own(one.entry), near[1]))


def _quoted(word: str) -> str:
    return '"' + word.replace('"', " ") + '"'


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values))


def _parts(numbers: Iterable[int]) -> Iterable[tuple[int, ...]]:
    every = tuple(numbers)
    return (every[start : start + _IN_ONE_STATEMENT] for start in range(0, len(every), _IN_ONE_STATEMENT))
