"""The vectors of an entry: one of a short entry, one for each passage of a long one."""

import re
from collections.abc import Sequence
from itertools import pairwise

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ModelKind
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.vectors.base import MAX_PARTS, VectorPoint
from errand.engine.tools.context import Vector

# About 100 words (decision 55): the model reads 150 to 200, and a vector of many says little of each.
_LENGTH = 600
# A little more is not worth a second vector.
_MAX_UNDIVIDED_LENGTH = 850
_ENDS = tuple(map(re.compile, (r"\n\s*", r"(?<=[.!?])\s+", r"\s+")))


def vectors_of(kind: ModelKind) -> str:
    """Return what names the vectors of a model. A store of vectors that were made otherwise is thrown away."""
    return f"{kind.name}, passages of {_LENGTH} characters"


async def embed_entries(
    entries: Sequence[MemoryEntry], embedder: Embedder, kind: ModelKind | None = None, *, background: bool = False
) -> list[VectorPoint]:
    """Return the points of these entries, by the best model or one of this kind. Raises `ToolError`."""
    texts = [(entry, part, text) for entry in entries for part, text in enumerate(embedded_texts(entry))]
    vectors = await embedder.embed(tuple(text for _, _, text in texts), CancelSignal(), background, kind)
    return [point_of(entry, vector, part) for (entry, part, _), vector in zip(texts, vectors, strict=True)]


def point_of(entry: MemoryEntry, vector: Vector, part: int = 0) -> VectorPoint:
    at = entry.at.timestamp()
    return VectorPoint(entry.number, vector, entry.conversation_id, entry.folder, entry.role, at, part)


def embedded_texts(entry: MemoryEntry) -> list[str]:
    """Return the texts of an entry's vectors, with speaker and day: questions name these, and texts rarely do."""
    head = f"{entry.speaker} ({entry.at:%A, %d %B %Y}): "
    return [head + passage for passage in passages(entry.text)]


def count_passages(text: str) -> int:
    """Return the number of passages. In a very long text they are longer than the model reads."""
    return 1 if len(text) <= _MAX_UNDIVIDED_LENGTH else min(MAX_PARTS, round(len(text) / _LENGTH))


def passages(text: str) -> list[str]:
    """Return the parts of a text, of similar lengths, that end with a line or a sentence if one ends near."""
    starts = _starts(text)
    return [text[start:end] for start, end in pairwise((*starts, len(text)))]


def start_of(text: str, part: int) -> int:
    """Return where a passage begins; the last one for a part that does not exist."""
    return _starts(text)[: part + 1][-1]


def _starts(text: str) -> list[int]:
    starts = [0]
    for left in range(count_passages(text), 1, -1):
        length = (len(text) - starts[-1]) // left
        starts.append(_end_near(text, starts[-1] + length, length // 3))
    return starts


def _end_near(text: str, target: int, reach: int) -> int:
    for end in _ENDS:
        ends = [match.end() for match in end.finditer(text, target - reach, target + reach)]
        if ends:
            return min(ends, key=lambda end_position: abs(end_position - target))
    return target
