"""Shared by the window tests: no keys except those of a test, and a window with a separate engine.

The windows of `test_x_display.py` are processes that start their engines themselves."""

import itertools
import os
from collections.abc import AsyncGenerator

import pytest
from PySide6.QtWidgets import QApplication

from errand.window.widgets.input.reaction_time import ReactionTime
from tests.support.command_line import Errand
from tests.support.open_window import OpenWindow, open_window


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes at each look at the clock: who presses a key has seen what is painted."""
    monkeypatch.setattr(ReactionTime, "clock", itertools.count().__next__)


@pytest.fixture
async def person(qapp: QApplication, own_errand: Errand) -> AsyncGenerator[OpenWindow]:
    async with open_window(qapp, own_errand.home) as opened:
        yield opened
