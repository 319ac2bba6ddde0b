"""`python -m tests.benchmarks.retrieval_stdio`: the search of memory over JSON lines, for benchmarks from outside.

`{"op": "reset"}`, `{"op": "index", "turns": [{"id", "session", "speaker", "role", "date", "ts", "text"}]}`, and
`{"op": "search", "query", "k", "date", "ts"}`, which is answered by `{"ids": […]}`, best first; the others by
`{"ok": true}`. What is wrong with a line is answered by `{"error": …}`. Ids are any JSON and come back as they are.
Dates are ISO 8601 or as people write them, with what time they have; a zone is left out, so that a day stays the day
that was written. All but `op` and `text` may be missing or null; without the date of a question, "last Friday" is any
Friday. The model is that of `build/minilm` (`make model`) or of
`ERRAND_MINILM`; without it full text serves alone.
"""

import asyncio
import re
import sys
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import WordIndex
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.passages import embed_entries, vectors_of
from errand.engine.memory.ranking.days import named_days
from errand.engine.memory.ranking.question import read_question
from errand.engine.memory.search import MemorySearch, Semantics
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.protocol.blocks import MemoryRole
from tests.support.minilm import minilm

_ROLES: dict[str, MemoryRole] = {"user": "user", "assistant": "agent", "agent": "agent", "tool": "tool", "task": "task"}
_UNKNOWN = datetime(2000, 1, 1, tzinfo=UTC)
_TIME_OF_DAY = re.compile(r"\b(\d{1,2}):(\d\d)(?::(\d\d))?(?:\.\d+)?\s*([ap])?\.?m?\b", re.IGNORECASE)
_HALF = rb"u[dD][89a-fA-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>" + _HALF + rb")|.)")
_MONTH_FIRST = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")


class Moment(msgspec.Struct):
    date: str | int | float | None = None
    ts: str | int | float | None = None


class Turn(Moment):
    id: msgspec.Raw = msgspec.Raw(b"null")
    text: str | None = None
    session: msgspec.Raw = msgspec.Raw(b"null")
    speaker: str | None = None
    role: str | None = None


class Request(Moment, kw_only=True):
    op: Literal["reset", "index", "search"]
    turns: list[Turn] = []
    query: str = ""
    k: int = 10


class Store:
    """Memory in a folder, without a record. `open_files` closes it."""

    def __init__(self, folder: Path, embedder: Embedder | None, open_files: AsyncExitStack) -> None:
        self._index = IndexThread(folder / "memory.db")
        self._semantics: Semantics | None = None
        open_files.push_async_callback(self._index.close)
        if embedder is not None:
            kind = embedder.kind or ENGLISH
            vectors = EmbeddedVectors(folder / "vectors", kind.dimensions, vectors_of(kind))
            open_files.push_async_callback(vectors.close)
            self._semantics = Semantics(embedder, vectors)
        self._search = MemorySearch(self._index, self._semantics)

    async def add(self, entries: list[MemoryEntry]) -> None:
        await self._index.run(lambda index: index.add(entries))
        if self._semantics is not None and entries:
            points = await embed_entries(entries, self._semantics.embedder, background=True)
            await self._semantics.vectors.upsert(points)

    async def find(self, query: str, limit: int, asked_at: datetime | None) -> list[msgspec.Raw]:
        """The ids of the best entries, best first. Equal texts stand once; what room is left has their other ids."""
        today = asked_at.date() if asked_at is not None else None
        recalled = await self._search.find(read_question(query, today), limit, CancelSignal())
        ids = [candidate.entry.entry.id for candidate in recalled.candidates]
        if len(ids) < limit:
            texts = list(dict.fromkeys(text for candidate in recalled.candidates for text in candidate.all_texts))
            copies = await self._index.run(lambda index: [_ids_of(text, index) for text in texts])
            ids = list(dict.fromkeys((*ids, *(key for keys in copies for key in keys))))[:limit]
        return [msgspec.Raw(key.encode()) for key in ids]


def _ids_of(text_number: int, index: WordIndex) -> list[str]:
    """The ids of the entries with this text, the newest first."""
    return [row.entry.id for row in index.select("text_number = ? ORDER BY number DESC", (text_number,))]


class Retrieval:
    """One store at a time, in a folder of its own."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._open = AsyncExitStack()
        self._current: Store | None = None
        self._count = 0

    async def answer(self, request: Request) -> object:
        match request.op:
            case "reset":
                await self.reset()
            case "index":
                await self._store().add([self._entry(turn) for turn in request.turns])
            case "search":
                return {"ids": await self._store().find(request.query, request.k, _moment(request))}
        return {"ok": True}

    async def reset(self) -> None:
        await self._open.aclose()
        self._current, self._count = None, 0

    def _store(self) -> Store:
        if self._current is None:
            folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="errand-retrieval-"))
            self._current = Store(Path(folder), self._embedder, self._open)
        return self._current

    def _entry(self, turn: Turn) -> MemoryEntry:
        self._count += 1
        role = _ROLES.get((turn.role or turn.speaker or "").lower(), "user")
        at = _moment(turn) or _UNKNOWN
        key, session = bytes(turn.id).decode(), bytes(turn.session).decode()
        return MemoryEntry(self._count, key, session, turn.speaker or turn.role or role, role, at, turn.text or "")


def _moment(stamped: Moment) -> datetime | None:
    """Return the time stamp, or else the date, as local time; None if there is none that can be read."""
    for value in (stamped.ts, stamped.date):
        try:
            moment = datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else _parsed(value or "")
            if moment is not None:
                return moment.replace(tzinfo=None).astimezone()
        except (ValueError, OverflowError, OSError):
            continue
    return None


def _parsed(text: str) -> datetime | None:
    """Read ISO 8601, or else the first day of a known year in a text, and the time of day in it."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        days = named_days(_MONTH_FIRST.sub(_iso, text).lower(), None).periods
    day = next((period.first for period in days if period.has_year), None)
    if day is None:
        return None
    clock = _TIME_OF_DAY.search(text)
    if clock is None:
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    hour = int(clock[1]) % 12 + 12 * (clock[4].lower() == "p") if clock[4] else int(clock[1])
    return datetime(day.year, day.month, day.day, hour, int(clock[2]), int(clock[3] or 0), tzinfo=UTC)


def _iso(match: re.Match[str]) -> str:
    """Return 5/30/2023 as a date of ISO 8601, and 30/5/2023 too."""
    first, second = int(match[1]), int(match[2])
    month, day = (second, first) if first > 12 else (first, second)
    return f"{match[3]}-{month:02}-{day:02}"


async def main() -> None:
    model = minilm()
    embedder = Embedder(lambda: model) if model is not None else None
    if embedder is None:
        sys.stderr.write("There is no model: make model. Full text serves alone.\n")
    retrieval = Retrieval(embedder)
    try:
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            sys.stdout.buffer.write(await _answered(retrieval, line) + b"\n")
            sys.stdout.buffer.flush()
    finally:
        await retrieval.reset()
        if embedder is not None:
            await embedder.close()


async def _answered(retrieval: Retrieval, line: bytes) -> bytes:
    try:
        request = msgspec.json.decode(_ESCAPE.sub(_whole_sign, line), type=Request, strict=False)
    except msgspec.DecodeError as error:
        return msgspec.json.encode({"error": str(error)})
    return msgspec.json.encode(await retrieval.answer(request))


def _whole_sign(escape: re.Match[bytes]) -> bytes:
    """Replace half of a surrogate pair, which other programs write; a pair and other escapes are left as they are."""
    return rb"\ufffd" if escape["half"] else escape[0]


if __name__ == "__main__":
    asyncio.run(main())
