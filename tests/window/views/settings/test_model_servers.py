"""Custom model servers in the settings, by mouse and keyboard, with a real engine and real servers."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from errand.client.connection import Connection
from errand.window.stores.catalog import ModelStore
from errand.window.stores.stores import make_stores
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.approval_mode import ApprovalModeView
from errand.window.views.composer.task_options_bar import TaskOptionsView
from errand.window.views.settings.dialog import SettingsDialog
from errand.window.views.shared.actions import ShortcutStore
from errand.window.views.shared.picker import PickerDialog
from tests.support.engine_server import EngineServer, engine_server
from tests.support.provider_servers import own_server
from tests.support.window import until

KEY = "k-of-the-test-1234567890"


class Page:
    """The models page as a user reads and operates it."""

    def __init__(self, dialog: SettingsDialog, models: ModelStore, engine: EngineServer) -> None:
        self.dialog = dialog
        self.models = models
        self.engine = engine

    @property
    def text(self) -> str:
        return "\n".join(label.text() for label in self.dialog.findChildren(QLabel) if label.isVisible())

    def field(self, name: str) -> QLineEdit:
        return next(f for f in self.dialog.findChildren(QLineEdit) if f.isVisible() and f.accessibleName() == name)

    def button(self, name: str) -> QAbstractButton:
        buttons = self.dialog.findChildren(QAbstractButton)
        return next(b for b in buttons if b.isVisible() and b.accessibleName() == name)

    def has(self, name: str) -> bool:
        return any(b.isVisible() and b.accessibleName() == name for b in self.dialog.findChildren(QAbstractButton))

    async def press(self, name: str) -> None:
        await until(lambda: self.has(name))
        self.button(name).click()

    async def see(self, text: str) -> None:
        await until(lambda: text in self.text)

    def fill(self, **values: str) -> None:
        for name, value in values.items():
            field = self.field(f"{name.capitalize()} of the server")
            field.selectAll()
            QTest.keyClicks(field, value)


@pytest.fixture
async def page(theme: Theme, qtbot: QtBot, tmp_path: Path) -> AsyncGenerator[Page]:
    async with engine_server(tmp_path / "home") as engine:

        async def connect() -> Connection:
            connection = Connection(engine.endpoint, "window")
            await connection.open()
            return connection

        stores = make_stores(connect)
        models = ModelStore(stores.session)
        await stores.session.start()
        dialog = SettingsDialog(stores, theme, ShortcutStore(WindowStateStore(tmp_path / "window.json")))
        qtbot.addWidget(dialog)
        dialog.open_page("providers")
        yield Page(dialog, models, engine)
        await stores.session.close()


async def test_a_server_is_added_tested_and_saved_and_its_models_are_there_at_once(
    page: Page, theme: Theme, qtbot: QtBot
) -> None:
    async with own_server(key=KEY) as server:
        await page.press("Add a server …")
        assert not page.button("Save").isEnabled() and not page.button("Test this server").isEnabled()
        page.fill(name="Lab", address=f"{server.url}/")
        await page.press("Test this server")
        await page.see("It requires a key.")
        page.fill(key=KEY)
        await page.press("Test this server")
        await page.see("It answers and offers 2 models: qwen3, text-embedding-9")
        assert page.field("Address of the server").text() == f"{server.url}/v1"
        assert page.engine.services.settings.values.model_servers == ()
        QTest.keyClick(page.field("Key of the server"), Qt.Key.Key_Return)
        await page.see("Saved. It answers and offers 2 models.")
        assert page.has("Edit Lab") and page.has("Test Lab") and not page.has("Save")
    page.models.reload()
    await until(lambda: page.models.ready[:2] == ("lab/qwen3", "lab/text-embedding-9"))
    choices = TaskOptionsView(theme, ApprovalModeView(theme))
    qtbot.addWidget(choices)
    choices.set_defaults(
        TaskOptionDefaults(("openai/gpt-5.4", *page.models.ready[:2]), "openai/gpt-5.4", servers=page.models.servers)
    )
    for wanted in ("lab qwen3", "gpt", "lab qwen3"):
        choices.pick_model()
        picker = next(w for w in QApplication.topLevelWidgets() if isinstance(w, PickerDialog) and w.isVisible())
        (field,) = picker.findChildren(QLineEdit)
        QTest.keyClicks(field, wanted)
        assert len(picker.shown) == 1
        QTest.keyClick(field, Qt.Key.Key_Return)
    assert choices.options.model == "lab/qwen3", "it is picked again after another one"
    assert choices.options.api_base is None


async def test_a_server_is_renamed_keeps_its_key_and_loses_it_when_asked(page: Page) -> None:
    async with own_server(key=KEY) as server:
        await page.press("Add a server …")
        page.fill(name="Lab", address=server.url, key=KEY)
        await page.press("Save")
        await page.press("Edit Lab")
        assert page.field("Name of the server").text() == "Lab"
        assert page.field("Key of the server").text() == "", "a key is never shown"
        page.fill(name="Renamed")
        await page.press("Save")
        await until(lambda: page.has("Edit Renamed"))
        await page.see("It answers and offers 2 models.")
        await page.press("Edit Renamed")
        await page.press("Remove key")
        await page.press("Save")
        await page.see("It requires a key.")
    stored = await page.engine.services.keys.get("lab", ())
    assert stored is None


async def test_a_server_is_removed_after_a_confirmation(page: Page) -> None:
    async with own_server() as server:
        await page.press("Add a server …")
        page.fill(name="Lab", address=server.url)
        await page.press("Save")
        await page.press("Remove Lab")
        await page.see("Remove Lab? Conversations with its models stay.")
        assert page.dialog.focusWidget() is page.button("Keep it")
        await page.press("Keep it")
        assert page.has("Remove Lab") and not page.has("Remove it")
        await page.press("Remove Lab")
        await page.press("Remove it")
        await page.see("Lab was removed")
        await until(lambda: not page.has("Remove Lab"))


async def test_refused_values_stay_in_the_form_and_esc_cancels_it(page: Page) -> None:
    async with own_server() as server:
        await page.press("Add a server …")
        page.fill(name="Lab", address="ftp://nowhere")
        await page.press("Save")
        await page.see("is not an address")
        page.fill(address=server.url, key="two words")
        await page.press("Save")
        await page.see("spaces or characters that no key has")
        assert page.field("Name of the server").text() == "Lab"
        QTest.keyClick(page.field("Name of the server"), Qt.Key.Key_Escape)
        assert not page.has("Save") and page.dialog.isVisible()
        assert page.engine.services.settings.values.model_servers == ()
        assert page.dialog.focusWidget() is page.button("Add a server …")


async def test_an_unreachable_server_is_reported_in_its_row(page: Page) -> None:
    await page.press("Add a server …")
    page.fill(name="Away", address="http://127.0.0.1:9")
    await page.press("Save")
    await page.see("Saved. Nothing answers at 127.0.0.1:9.")
    assert not page.has("Test Away") and page.has("Edit Away")
