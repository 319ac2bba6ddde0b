"""A search by words in an index of its own."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.ranking.question import read_question
from errand.engine.memory.search import MemorySearch, Semantics
from errand.engine.memory.vectors.base import VectorFilter
from errand.protocol.blocks import MemoryRole

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Memory:
    """Entries with the numbers from 1, an hour apart, each in a conversation of its own unless one is named."""

    def __init__(self, index: IndexThread, semantics: Semantics | None = None) -> None:
        self.index = index
        self.search = MemorySearch(index, semantics)
        self.entries: list[MemoryEntry] = []

    async def add(self, *texts: str, session: str = "", speaker: str = "User", role: MemoryRole = "user") -> None:
        first = len(self.entries) + 1
        new = [
            MemoryEntry(
                number, f"n{number}", session or f"c{number}", speaker, role, START + timedelta(hours=number), text
            )
            for number, text in enumerate(texts, first)
        ]
        self.entries += new
        await self.index.run(lambda index: index.add(new))

    async def find(self, question: str, limit: int = 10, where: VectorFilter | None = None) -> list[str]:
        """Return the texts of what was found, best first."""
        outcome = await self.search.find(read_question(question), limit, CancelSignal(), where)
        return [candidate.entry.entry.text for candidate in outcome.candidates]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    index = IndexThread(tmp_path / "memory.db")
    yield Memory(index)
    await index.close()
