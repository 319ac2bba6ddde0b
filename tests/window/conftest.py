"""The window's tests run offscreen; the platform is set before Qt is imported."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from errand.window.theme.theme import Theme


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    """The light theme, applied."""
    QCoreApplication.sendPostedEvents(
        None, QEvent.Type.DeferredDelete
    )  # no event loop deletes the widgets of earlier tests
    theme = Theme()
    theme.apply(qapp)
    theme.set_mode("light")
    return theme
