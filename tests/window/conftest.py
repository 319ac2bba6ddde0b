"""The window's tests run offscreen; the platform is set before Qt is imported."""

import itertools
import os
from collections.abc import Callable, Generator

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from errand.window.theme.theme import Theme
from errand.window.widgets.input.reaction_time import ReactionTime
from tests.support.limits import WAIT_LIMIT_S


@pytest.fixture(autouse=True)
def _no_window_stays() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """Delete what a test has left open: each widget makes the style sheet of every later test a millisecond slower."""
    yield
    for left in QApplication.topLevelWidgets():
        left.deleteLater()


class PatientQtBot(QtBot):
    """A QtBot with the limit that all waits of the tests have."""

    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = int(WAIT_LIMIT_S * 1000)) -> None:
        super().waitUntil(callback, timeout=timeout)


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    return PatientQtBot(request)


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """A second passes at each look at the clock: who presses a key has seen what is painted."""
    monkeypatch.setattr(ReactionTime, "clock", itertools.count().__next__)


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    """The light theme, applied."""
    QCoreApplication.sendPostedEvents(
        None, QEvent.Type.DeferredDelete
    )  # no event loop deletes the widgets of earlier tests
    theme = Theme()
    theme.set_mode("light")
    theme.apply(qapp)
    return theme
