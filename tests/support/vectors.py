"""Clustered pseudo-random vectors, as those of texts are, and exact search among them."""

import math
import random
from array import array
from collections.abc import Iterator
from operator import mul

from errand.engine.memory.vectors.base import VectorPoint
from errand.engine.tools.context import Vector

DIMENSIONS = 384
_CLUSTERS = 200
_POOL = 200_000
_SPREAD = 0.7
_START = 1_700_000_000.0
KINDS = ("user", "agent", "tool")


class Clusters:
    """The same vectors for the same seed. A slice of a pool of noise is added to one of 200 centres: 30 µs for each."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._noise = array("f", (self._random.gauss(0.0, 1.0) for _ in range(_POOL)))

    def vector(self) -> Vector:
        start = self._random.randrange(_POOL - DIMENSIONS)
        centre = self._random.randrange(_CLUSTERS) * DIMENSIONS
        noise, middle = self._noise[start : start + DIMENSIONS], self._noise[centre : centre + DIMENSIONS]
        return tuple(a + _SPREAD * b for a, b in zip(middle, noise, strict=True))

    def points(self, count: int, first: int = 0) -> Iterator[VectorPoint]:
        for number in range(first, first + count):
            yield point(number, self.vector())


def point(number: int, vector: Vector) -> VectorPoint:
    """Conversations of 100 points each, seven folders, three kinds, and one second from point to point."""
    return VectorPoint(number, vector, f"c{number // 100}", f"/work/{number % 7}", KINDS[number % 3], _START + number)


def cosine(vector: Vector, other: Vector) -> float:
    return sum(map(mul, vector, other)) / (math.hypot(*vector) * math.hypot(*other))


def nearest(vector: Vector, points: list[VectorPoint], limit: int) -> list[int]:
    """The numbers of the nearest points, best first, by comparing all."""
    ranked = sorted(points, key=lambda point: cosine(vector, point.vector), reverse=True)
    return [point.number for point in ranked[:limit]]
