"""The window's tests run offscreen; the platform is set before Qt is imported."""

import os
from collections.abc import Generator

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from errand.window.theme.theme import Theme


@pytest.fixture(autouse=True)
def _no_window_stays() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """Delete what a test has left open: each widget makes the style sheet of every later test a millisecond slower."""
    yield
    for left in QApplication.topLevelWidgets():
        left.deleteLater()


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
