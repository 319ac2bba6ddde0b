"""Judges whether a value grows while the soak test runs: a robust trend over all samples, with a tolerance."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

from tests.soak.sample import WARM_UP, Sample

# Pairs that the trend is computed of at most: of more samples, only each second, third … counts.
_MAX_PAIRS = 200_000


@dataclass(frozen=True, slots=True)
class Bound:
    """The growth allowed in a whole run: `share` of the median, or `slack` if that is more; `most` limits the value.

    `unit` is that of `slack` and `most`.
    """

    name: str
    unit: str
    of: Callable[[Sample], float]
    share: float
    slack: float
    most: float = float("inf")


BOUNDS = (
    Bound("memory", "MB", lambda sample: sample.memory / 1e6, share=0.08, slack=0.0),
    Bound("stall p99", "ms", lambda sample: sample.stall_p99, share=0.5, slack=3.0, most=20.0),
    Bound("stall max", "ms", lambda sample: sample.stall_max, share=0.5, slack=20.0, most=150.0),
    Bound("answer to a client", "ms", lambda sample: sample.answer_ms, share=0.5, slack=5.0, most=50.0),
)


@dataclass(frozen=True, slots=True)
class Trend:
    """The median of a value, and what its trend adds to it over `span_s`, the measured time of all engines."""

    bound: Bound
    middle: float
    growth: float
    span_s: float

    @property
    def allowed(self) -> float:
        return max(self.bound.share * self.middle, self.bound.slack)

    @property
    def holds(self) -> bool:
        return self.growth <= self.allowed and self.middle <= self.bound.most

    @property
    def text(self) -> str:
        name, unit = self.bound.name, self.bound.unit
        limit = f" (at most {self.bound.most:g})" if self.bound.most != float("inf") else ""
        return (
            f"{name}: median {self.middle:.1f} {unit}{limit}, trend {self.growth:+.1f} {unit} "
            f"in {self.span_s / 60:.1f} minutes (at most {self.allowed:+.1f})"
        )


def trends(samples: Sequence[Sample], whole_s: float, bounds: Sequence[Bound] = BOUNDS) -> list[Trend]:
    """The trends of a run of `whole_s`; of each engine without its first time, in which caches fill."""
    lives = list(_steady_lives(samples, whole_s))
    span_s = sum(life[-1].at_s - life[0].at_s for life in lives)
    if not lives:
        return []
    return [_trend(bound, lives, span_s) for bound in bounds]


def _steady_lives(samples: Sequence[Sample], whole_s: float) -> Iterator[list[Sample]]:
    for _, life in groupby(samples, key=lambda sample: sample.pid):
        steady = list(life)
        steady = [sample for sample in steady if sample.at_s - steady[0].at_s >= whole_s * WARM_UP]
        if len(steady) > 1:
            yield steady


def _trend(bound: Bound, lives: Sequence[Sequence[Sample]], span_s: float) -> Trend:
    values = [bound.of(sample) for life in lives for sample in life]
    series = [[(sample.at_s, bound.of(sample)) for sample in life] for life in lives]
    return Trend(bound, statistics.median(values), slope(series) * span_s, span_s)


def slope(series: Sequence[Sequence[tuple[float, float]]]) -> float:
    """The median of the slopes between all pairs of points of the same series (Theil 1950, Sen 1968).

    Pairs across series do not count: a restart that gives memory back hides no growth.
    """
    pairs = sum(len(points) * (len(points) - 1) // 2 for points in series)
    step = 1
    while pairs / step**2 > _MAX_PAIRS:
        step += 1
    slopes = [
        (late - early) / (until - since)
        for points in series
        for (since, early), (until, late) in combinations(points[::step], 2)
        if until > since
    ]
    return statistics.median(slopes) if slopes else 0.0
