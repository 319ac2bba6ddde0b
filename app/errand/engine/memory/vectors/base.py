"""What a store of vectors can do: its interface, its types and its errors."""

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from errand.engine.core.errors import EngineError
from errand.engine.tools.context import Vector

MAX_HITS = 1_000
# Of one entry.
MAX_PARTS = 16
_MAX_NUMBER = 2**63 // MAX_PARTS - 1


class VectorsError(EngineError):
    """Base class. The index is derived data: after any of these, full text serves alone."""


class VectorsDamaged(VectorsError):
    """The index cannot be read: `clear` it and build it again."""


class VectorsMismatch(VectorsError):
    """The index was made with another embedding model or dimension: `clear` it and build it again."""


class VectorsInUse(VectorsError):
    """Another process has the index open."""


class VectorUnusable(VectorsError):
    """The model made a vector that has no direction: zero, or of numbers that are none."""


class VectorsUntrusted(VectorsError):
    """The error for data that is not ours: it is never opened and never cleared.

    A folder that is a link, belongs to another user or that others may write to; a collection of another program.
    """


class VectorsUnavailable(VectorsError):
    """The index does not answer now; it may later. The text says why: the package, the disk, the server."""


@dataclass(frozen=True, slots=True)
class VectorPoint:
    """`number` is the key of the entry (0 to 2⁵⁹ - 1), `at` its time in seconds since 1970.

    A long entry has several points, of which `part` is the number, from 0 up and below `MAX_PARTS`.
    """

    number: int
    vector: Vector
    conversation_id: str
    folder: str
    kind: str
    at: float
    part: int = 0


@dataclass(frozen=True, slots=True)
class VectorHit:
    """An entry; `score` is the cosine of its nearest `part`, -1 to 1."""

    number: int
    score: float
    part: int = 0


@dataclass(frozen=True, slots=True)
class VectorFilter:
    """All conditions must hold; an empty one always does. `after` is included, `before` is not; both in seconds."""

    conversations: tuple[str, ...] = ()
    not_conversations: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    after: float | None = None
    before: float | None = None
    not_folders: tuple[str, ...] = ()


class VectorStore(Protocol):
    """A store of vectors of one embedding model, opened by the first call.

    Every call raises a `VectorsError`. What `upsert` and the deletions return from survives a killed process. Calls
    may be made at the same time, and cancelled: a cancelled change may have been made or not.
    """

    async def upsert(self, points: Sequence[VectorPoint]) -> None:
        """Store the points, in place of all that are there with the same numbers."""
        ...

    async def search(self, vector: Vector, limit: int, where: VectorFilter | None = None) -> tuple[VectorHit, ...]:
        """Return the nearest entries by cosine, best first; at most `limit`, and never more than `MAX_HITS`."""
        ...

    async def delete(self, numbers: Collection[int]) -> None:
        """Delete all points with these numbers; unknown ones are passed over."""
        ...

    async def numbers(self) -> frozenset[int]:
        """Return the numbers of all entries, by which an indexer finds missing and orphaned vectors."""
        ...

    async def count(self) -> int:
        """Return how many points there are."""
        ...

    async def optimise(self) -> None:
        """Make searches fast after many new points. Searches of the embedded index wait until it is done."""
        ...

    async def has_remains(self) -> bool:
        """Return True if this machine's disk still has vectors of deleted points or of another model.

        The index is not opened for it.
        """
        ...

    async def purge(self) -> None:
        """Remove the vectors of deleted points from the disk, where they are only marked before.

        Searches of the embedded index wait until it is done.
        """
        ...

    async def use(self, dimensions: int, model: str) -> None:
        """Keep vectors of another model from now on. A store that has others is a mismatch until it is cleared."""
        ...

    async def clear(self) -> None:
        """Throw everything away, a damaged index and one of another model too, and start with an empty one."""
        ...

    async def close(self) -> None:
        """Close the index; later calls raise `VectorsUnavailable`."""
        ...


def check_point(point: VectorPoint, dimensions: int) -> None:
    """Check a point. Raises as `check_vector` does, and ValueError for a number, part or time out of range."""
    check_vector(point.vector, dimensions)
    is_in_range = 0 <= point.number <= _MAX_NUMBER and 0 <= point.part < MAX_PARTS
    if not is_in_range or not math.isfinite(point.at):
        raise ValueError(f"part {point.part} of point {point.number} at {point.at} is out of range")


def check_vector(vector: Vector, dimensions: int) -> None:
    """Check a vector. Raises `VectorsMismatch` for another length, and `VectorUnusable`."""
    if len(vector) != dimensions:
        raise VectorsMismatch(
            f"The index holds vectors of {dimensions} numbers, and the model made one of {len(vector)}. "
            "Rebuild the index."
        )
    if not has_direction(vector):
        raise VectorUnusable("The embedding model made a vector without a direction. Download the model again.")


def has_direction(vector: Vector) -> bool:
    length = math.hypot(*vector)
    return math.isfinite(length) and length > 0.0


def id_of(point: VectorPoint) -> int:
    """Return the id of the point in a store."""
    return point.number * MAX_PARTS + point.part


def ids_of(numbers: Iterable[int]) -> Iterable[int]:
    """Return the ids of all points that entries with these numbers may have."""
    return (number * MAX_PARTS + part for number in numbers for part in range(MAX_PARTS))


def numbers_of(ids: Iterable[int]) -> Iterable[int]:
    return (point_id // MAX_PARTS for point_id in ids)


def surplus_ids(points: Sequence[VectorPoint]) -> list[int]:
    """Return the ids of points that the entries of these points may have had before."""
    current_ids = set(map(id_of, points))
    return [point_id for point_id in ids_of({point.number for point in points}) if point_id not in current_ids]


async def nearest_entries(
    limit: int, nearest: Callable[[int], Awaitable[Sequence[tuple[int, float]]]]
) -> tuple[VectorHit, ...]:
    """Return the best point of each entry, from `nearest`, which finds so many points with their cosines, best first.

    Where many points belong to the same entries, it is called again for more.
    """
    max_entries = amount = max(1, min(limit, MAX_HITS))
    max_points = max_entries * MAX_PARTS
    while True:
        points = await nearest(amount)
        best: dict[int, VectorHit] = {}
        for point_id, score in points:
            number, part = divmod(point_id, MAX_PARTS)
            best.setdefault(number, VectorHit(number, score, part))
        if len(best) >= max_entries or len(points) < amount or amount == max_points:
            return tuple(best.values())[:max_entries]
        amount = min(max_points, 2 * amount * max_entries // len(best))


def conditions(where: VectorFilter | None) -> dict[str, list[dict[str, object]]]:
    """Return the filter as Qdrant's JSON, which both implementations use. Empty without a condition."""
    if where is None:
        return {}
    must = [_any_of(key, values) for key, values in _allowed_values(where) if values]
    times = {name: value for name, value in (("gte", where.after), ("lt", where.before)) if value is not None}
    if times:
        must.append({"key": "at", "range": times})
    clauses: dict[str, list[dict[str, object]]] = {}
    if must:
        clauses["must"] = must
    excluded = (("conversation", where.not_conversations), ("folder", where.not_folders))
    must_not = [_any_of(key, values) for key, values in excluded if values]
    if must_not:
        clauses["must_not"] = must_not
    return clauses


def _allowed_values(where: VectorFilter) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (("conversation", where.conversations), ("folder", where.folders), ("kind", where.kinds))


def _any_of(key: str, values: tuple[str, ...]) -> dict[str, object]:
    return {"key": key, "match": {"any": list(values)}}
