"""Garbage of a window is collected only in its thread."""

import gc
import threading
import weakref
from collections.abc import Generator

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from errand.window.main import GarbageCollector


class _Knot:
    """Refers to itself: only garbage collection frees it."""

    def __init__(self) -> None:
        self.knot = self


@pytest.fixture
def collector(qapp: QApplication) -> Generator[GarbageCollector]:
    before, owner = gc.get_threshold(), QObject(qapp)
    gc.collect()
    gc.set_threshold(100, 1, 1)
    yield GarbageCollector(owner)
    gc.set_threshold(*before)
    owner.deleteLater()


def test_garbage_is_collected_in_no_other_thread(collector: GarbageCollector) -> None:
    knot = _Knot()
    end = weakref.ref(knot)
    del knot
    thread = threading.Thread(target=lambda: [[number] for number in range(10_000)])
    thread.start()
    thread.join()
    assert end() is not None


def test_garbage_over_the_threshold_is_collected(collector: GarbageCollector) -> None:
    knot = _Knot()
    end = weakref.ref(knot)
    del knot
    live_lists = [[number] for number in range(1_000)]
    collector.collect()
    assert end() is None and len(live_lists) == 1_000


def test_garbage_below_the_threshold_is_not_collected(collector: GarbageCollector) -> None:
    gc.collect()
    knot = _Knot()
    end = weakref.ref(knot)
    del knot
    collector.collect()
    assert end() is not None
