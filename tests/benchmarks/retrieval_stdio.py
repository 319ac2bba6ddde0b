"""`python -m tests.benchmarks.retrieval_stdio`: the search of memory over JSON lines, for benchmarks from outside.

`{"op": "reset"}`, `{"op": "index", "turns": [{"id", "session", "speaker", "role", "date", "ts", "text"}]}`, and
`{"op": "search", "query", "k"}`, which is answered by `{"ids": […]}`, best first; the others by `{"ok": true}`. What is
wrong with a line is answered by `{"error": …}`. The model is that of `build/minilm` (`make model`) or of
`ERRAND_MINILM`; without it full text serves alone.
"""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import DIMENSIONS, Embedder
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.passages import VECTORS_OF, embed_entries
from errand.engine.memory.ranking.question import read_question
from errand.engine.memory.search import MemorySearch, Semantics
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.protocol.blocks import MemoryRole
from tests.support.minilm import minilm

_ROLES: dict[str, MemoryRole] = {"user": "user", "assistant": "agent", "agent": "agent", "tool": "tool", "task": "task"}
_DATE_FORMATS = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%d %B, %Y", "%d %B %Y")
_UNKNOWN = datetime(2000, 1, 1, tzinfo=UTC)


class Turn(msgspec.Struct):
    id: str
    text: str
    session: str = ""
    speaker: str = ""
    role: str = ""
    date: str | None = None
    ts: int | float | str | None = None


class Request(msgspec.Struct):
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
            vectors = EmbeddedVectors(folder / "vectors", DIMENSIONS, VECTORS_OF)
            open_files.push_async_callback(vectors.close)
            self._semantics = Semantics(embedder, vectors)
        self._search = MemorySearch(self._index, self._semantics)

    async def add(self, entries: list[MemoryEntry]) -> None:
        await self._index.run(lambda index: index.add(entries))
        if self._semantics is not None and entries:
            points = await embed_entries(entries, self._semantics.embedder, background=True)
            await self._semantics.vectors.upsert(points)

    async def find(self, query: str, limit: int) -> list[str]:
        """The ids of the best entries, best first."""
        recalled = await self._search.find(read_question(query), limit, CancelSignal())
        return [candidate.entry.entry.id for candidate in recalled.candidates]


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
                return {"ids": await self._store().find(request.query, request.k)}
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
        role = _ROLES.get(turn.role.lower(), "user")
        return MemoryEntry(self._count, turn.id, turn.session, turn.speaker or role, role, _moment(turn), turn.text)


def _moment(turn: Turn) -> datetime:
    """Return the time stamp (seconds, or ISO 8601), or else the date as public sets write it."""
    if isinstance(turn.ts, int | float):
        return datetime.fromtimestamp(turn.ts, UTC)
    moments = (_parsed(text, form) for text in (turn.ts, turn.date) if text for form in ("", *_DATE_FORMATS))
    return next((moment for moment in moments if moment is not None), _UNKNOWN)


def _parsed(text: str, form: str) -> datetime | None:
    """Without a form, as ISO 8601; without a zone, in UTC."""
    try:
        moment = datetime.strptime(text, form).replace(tzinfo=UTC) if form else datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


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
        request = msgspec.json.decode(line, type=Request, strict=False)
    except msgspec.DecodeError as error:
        return msgspec.json.encode({"error": str(error)})
    return msgspec.json.encode(await retrieval.answer(request))


if __name__ == "__main__":
    asyncio.run(main())
