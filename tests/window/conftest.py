"""The window's tests run without a screen; the platform is chosen before Qt is imported."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtWidgets import QApplication

from app.window.theme.theme import Theme


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    """The light theme, applied."""
    theme = Theme()
    theme.apply(qapp)
    theme.set_mode("light")
    return theme
