"""The settings dialog on a real engine server, as a user reads and operates it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
)
from pytestqt.qtbot import QtBot

from errand.client.connection import Connection
from errand.window.stores.catalog import ModelStore
from errand.window.stores.stores import make_stores
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.settings.dialog import SettingsDialog
from errand.window.views.shared.actions import ShortcutStore
from errand.window.views.shared.model_picker import ModelPicker
from errand.window.views.shell.actions import ACTIONS
from tests.support.engine_server import EngineServer, engine_server
from tests.support.window import until


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    async with engine_server(tmp_path / "home") as running:
        yield running


class Settings:
    """The dialog as a user reads and operates it."""

    def __init__(self, dialog: SettingsDialog, models: ModelStore) -> None:
        self.dialog, self.models = dialog, models

    def texts(self) -> str:
        labels = [label.text() for label in self.dialog.findChildren(QLabel) if label.isVisible()]
        boxes = [box.toPlainText() for box in self.dialog.findChildren(QPlainTextEdit) if box.isVisible()]
        return "\n".join(labels + boxes)

    async def see(self, text: str) -> None:
        await until(lambda: text in self.texts())

    def fields(self) -> dict[str, QLineEdit]:
        return {field.accessibleName(): field for field in self.dialog.findChildren(QLineEdit) if field.isVisible()}

    def buttons(self) -> dict[str, QAbstractButton]:
        buttons = self.dialog.findChildren(QAbstractButton)
        return {button.accessibleName(): button for button in buttons if button.isVisible()}

    def type(self, name: str, text: str) -> None:
        field = self.fields()[name]
        field.selectAll()
        QTest.keyClicks(field, text)
        QTest.keyClick(field, Qt.Key.Key_Return)

    async def press(self, start: str) -> None:
        """Press the button whose name begins so."""
        await until(lambda: any(name.startswith(start) for name in self.buttons()))
        next(button for name, button in self.buttons().items() if name.startswith(start)).click()

    @property
    def picker(self) -> ModelPicker:
        return next(candidate for candidate in self.dialog.findChildren(ModelPicker) if candidate.isVisible())

    def type_in_picker(self, text: str) -> None:
        (field,) = self.picker.findChildren(QLineEdit)
        QTest.keyClicks(field, text)
        QTest.keyClick(field, Qt.Key.Key_Return)

    def choose(self, name: str, text: str) -> None:
        boxes = self.dialog.findChildren(QComboBox)
        box = next(box for box in boxes if box.accessibleName() == name and box.isVisible())
        box.setCurrentText(text)
        box.activated.emit(box.currentIndex())


@pytest.fixture
async def settings(engine: EngineServer, theme: Theme, qtbot: QtBot, tmp_path: Path) -> AsyncGenerator[Settings]:
    async def connect() -> Connection:
        connection = Connection(engine.endpoint, "window")
        await connection.open()
        return connection

    stores = make_stores(connect)
    session, state = stores.session, WindowStateStore(tmp_path / "window.json")
    models = ModelStore(session, state)
    await session.start()
    dialog = SettingsDialog(stores, models, theme, ShortcutStore(state, ACTIONS))
    dialog.models_changed.connect(models.load)
    qtbot.addWidget(dialog)
    dialog.open_page("general")
    yield Settings(dialog, models)
    await session.close()
