"""A short `make crash`; run the long one by hand and before a release."""

from pathlib import Path

from tests.crash.run import crash


async def test_engines_that_are_killed_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    counts = await crash(6, seed=4, folder=tmp_path)
    assert (counts.engines, counts.tasks > 0) == (6, True)
