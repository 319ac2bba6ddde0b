"""Ids are unique whatever the clock does."""

import time

import pytest

from errand.engine.core.ids import new_id


def test_ids_stay_unique_when_the_clock_stands_still_or_jumps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([1_800_000_000.0] * 1000 + [1_700_000_000.0] * 1000 + [1_800_000_000.0] * 1000)
    monkeypatch.setattr(time, "time", lambda: next(moments))
    assert len({new_id("task") for _ in range(3000)}) == 3000
