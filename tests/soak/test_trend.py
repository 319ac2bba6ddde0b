"""The judge of the soak test: made series that must pass, and ones that must fail."""

import math
from collections.abc import Callable
from random import Random

import pytest

from tests.soak.sample import Sample, verdict, windows
from tests.soak.trend import slope, trends

_RUN_S = 1_800.0
_EACH_S = 5.0
_MB = 1_000_000

Course = Callable[[float], float]


def run(
    memory: Course = lambda at_s: 80.0,
    stall: Course = lambda at_s: 4.0,
    answer: Course = lambda at_s: 3.0,
    lives: int = 1,
    run_s: float = _RUN_S,
) -> list[Sample]:
    """The samples of a run; the courses give MB and ms at a time of the run, with noise of 1 % and 20 %."""
    chance = Random(1)
    samples: list[Sample] = []
    for number in range(int(run_s / _EACH_S)):
        at_s = number * _EACH_S
        samples.append(
            Sample(
                at_s=at_s,
                pid=int(at_s / (run_s / lives)),
                memory=int(memory(at_s) * chance.gauss(1.0, 0.01) * _MB),
                descriptors=50,
                threads=12,
                stored=number * 17_000,
                file=number,
                tasks=number,
                stall_p99=stall(at_s) * chance.uniform(0.8, 1.2),
                stall_max=50.0 * chance.uniform(0.8, 1.2),
                answer_ms=answer(at_s) * chance.uniform(0.8, 1.2),
            )
        )
    return samples


def grown(samples: list[Sample], run_s: float = _RUN_S) -> list[str]:
    """The names of the values that grow too much or are too large."""
    return [trend.bound.name for trend in trends(samples, run_s) if not trend.holds]


def flat(at_s: float) -> float:
    return 80.0


def with_spikes(at_s: float) -> float:
    """Each tenth sample is far off, later ones farther."""
    return 80.0 + (at_s / 20 if at_s % 50 == 0 else 0.0)


def saw_tooth(at_s: float) -> float:
    """A cache that fills and is emptied each minute."""
    return 80.0 + 10 * (at_s % 60) / 60


def warms_up(at_s: float) -> float:
    """Return the memory at a time of the run; it grows from 57 to 80 MB in the first three minutes."""
    return 80.0 - 23 * max(0.0, 1 - at_s / 180)


def settles(at_s: float) -> float:
    """Growth that comes to an end: 2 MB in all after the start."""
    return 80.0 - 4 * math.exp(-at_s / 300)


@pytest.mark.parametrize("memory", [flat, with_spikes, saw_tooth, warms_up, settles])
@pytest.mark.parametrize("lives", [1, 4])
def test_memory_that_stays_passes(memory: Course, lives: int) -> None:
    assert grown(run(memory=memory, lives=lives)) == []


def leaks(at_s: float) -> float:
    """Half a megabyte a minute."""
    return 80.0 + at_s / 120


def leaks_with_tooth(at_s: float) -> float:
    return saw_tooth(at_s) + at_s / 120


def leaks_until_the_restart(at_s: float) -> float:
    """A megabyte a minute; each of four engines begins anew."""
    return 80.0 + (at_s % (_RUN_S / 4)) / 60


@pytest.mark.parametrize(
    ("memory", "lives"), [(leaks, 1), (leaks, 4), (leaks_with_tooth, 1), (leaks_until_the_restart, 4)]
)
def test_memory_that_leaks_fails(memory: Course, lives: int) -> None:
    assert grown(run(memory=memory, lives=lives)) == ["memory"]


def test_one_step_up_that_stays_is_seen_by_the_windows() -> None:
    samples = run(memory=lambda at_s: 80.0 if at_s < 1_000 else 100.0)
    assert [text.partition(":")[0] for text in verdict(windows(samples, _RUN_S))] == ["memory (MB)"]


def test_stalls_and_answers_that_grow_fail_and_such_that_stay_pass() -> None:
    assert grown(run(stall=lambda at_s: 3 + at_s / 200)) == ["stall p99"]
    assert grown(run(answer=lambda at_s: 3 + at_s / 200)) == ["answer to a client"]
    assert grown(run(stall=lambda at_s: 4.0 if at_s % 300 else 40.0)) == []


def test_stalls_that_are_long_from_the_beginning_fail() -> None:
    assert grown(run(stall=lambda at_s: 30.0)) == ["stall p99"]


def test_a_longer_run_allows_no_more_growth() -> None:
    slow = run(memory=lambda at_s: 80 + at_s / 600, run_s=2 * 3_600)
    assert grown(slow[: len(slow) // 4], _RUN_S) == []
    assert grown(slow, 2 * 3_600) == ["memory"]


def test_the_slope_is_the_median_of_pairs_within_a_series() -> None:
    assert slope([[(0, 0), (1, 2), (2, 4)]]) == 2
    assert slope([[(0, 10), (1, 11)], [(2, 0), (3, 1)]]) == 1
    assert slope([[(0, 1)], []]) == 0
    assert slope([[(number, 3.0 * number) for number in range(2_000)]]) == 3
