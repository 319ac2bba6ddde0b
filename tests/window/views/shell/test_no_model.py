"""Without a model, a message is kept and the way to set one up is shown."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from errand.system.paths import Paths
from errand.window.main import build_window
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.settings.local_models_page import LocalModelsPageView
from errand.window.views.settings.providers.form import ProviderFormCard
from errand.window.views.shell.main_window import MainWindow
from tests.support.model_server import ModelServer
from tests.support.store_engine import store_engine
from tests.support.window import press, until

_View = TypeVar("_View", bound=QWidget)


@pytest.fixture
async def window(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[MainWindow]:
    async with store_engine(tmp_path, ModelServer()) as engine:
        window = build_window(
            qapp, engine.stores, Paths(tmp_path / "data"), WindowStateStore(tmp_path / "window.json"), theme
        )
        window.show()
        yield window
        window.close()
        window.deleteLater()


async def test_without_a_model_the_message_stays_and_a_notice_leads_to_the_form_of_a_provider(
    window: MainWindow,
) -> None:
    view = window.conversations.active
    window.dialogs.settings_closed.emit()  # searches for models again
    await until(lambda: view.welcome.set_up.isVisible() and view.composer.mode == "send")
    QTest.keyClicks(view.composer.field, "Count the files")
    QTest.keyClick(view.composer.field, Qt.Key.Key_Return)
    assert view.notices.shown == "no_model"
    assert view.composer.text == "Count the files"
    press(view.notices, "Set up a model")
    await until(lambda: _form().isVisible())
    view.tour_requested.emit()
    assert view.notices.shown is None
    _close_others(window)


def _form() -> ProviderFormCard:
    return next(iter(_all(ProviderFormCard)))


def _all(kind: type[_View]) -> list[_View]:
    return [view for widget in QApplication.topLevelWidgets() for view in widget.findChildren(kind)]


def _close_others(window: MainWindow) -> None:
    for dialog in QApplication.topLevelWidgets():
        if dialog is not window:
            dialog.close()


async def test_the_notice_leads_to_the_models_that_run_here(window: MainWindow) -> None:
    view = window.conversations.active
    window.dialogs.settings_closed.emit()  # searches for models again
    await until(lambda: view.welcome.set_up.isVisible() and view.composer.mode == "send")
    QTest.keyClicks(view.composer.field, "Count the files")
    QTest.keyClick(view.composer.field, Qt.Key.Key_Return)
    press(view.notices, "Run one here")
    await until(lambda: any(page.isVisible() for page in _all(LocalModelsPageView)))
    _close_others(window)


async def test_the_tour_with_a_model_needs_one(window: MainWindow) -> None:
    failures: list[str] = []
    window.tour.failed.connect(failures.append)
    window.commands.trigger("tour_for_real")
    await until(lambda: failures == ["No model is set up yet."])
