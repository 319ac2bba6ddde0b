"""Custom model servers in the settings, by mouse and keyboard, with a real engine and real servers."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
)
from pytestqt.qtbot import QtBot

from errand.client.connection import Connection
from errand.protocol.settings import Model
from errand.window.stores.catalog import ModelStore
from errand.window.stores.stores import make_stores
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.approval_mode import ApprovalModeView
from errand.window.views.composer.memory_switch import MemorySwitchView
from errand.window.views.composer.task_options_bar import TaskOptionsView
from errand.window.views.settings.dialog import SettingsDialog
from errand.window.views.shared.actions import ShortcutStore
from errand.window.views.shared.model_picker import ModelPicker
from errand.window.views.shell.actions import ACTIONS
from tests.support.engine_server import EngineServer, engine_server
from tests.support.provider_servers import AnthropicServer, own_server
from tests.support.window import until

KEY = "k-of-the-test-1234567890"
MODEL_FIELDS = ("Model ID", "Display name", "Context size in tokens", "Input price", "Output price")
NAMES = {"name": "Provider name", "address": "Base URL", "key": "API key"}


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

    @property
    def fields(self) -> set[str]:
        return {field.accessibleName() for field in self.dialog.findChildren(QLineEdit) if field.isVisible()}

    @property
    def model_list(self) -> QListWidget:
        lists = (
            list_widget
            for list_widget in self.dialog.findChildren(QListWidget)
            if list_widget.accessibleName().startswith("Models of")
        )
        return next(list_widget for list_widget in lists if list_widget.isVisible())

    @property
    def rows(self) -> list[str]:
        lists = (
            list_widget
            for list_widget in self.dialog.findChildren(QListWidget)
            if list_widget.accessibleName().startswith("Models of")
        )
        return [
            list_widget.item(row).text()
            for list_widget in lists
            if list_widget.isVisible()
            for row in range(list_widget.count())
        ]

    def row(self, name: str) -> QListWidgetItem:
        return next(item for item in map(self.model_list.item, range(self.model_list.count())) if item.text() == name)

    def choose(self, kind: str) -> None:
        """Choose a kind in the form."""
        (box,) = (
            candidate
            for candidate in self.dialog.findChildren(QComboBox)
            if candidate.accessibleName() == "Provider type"
        )
        box.setCurrentText(kind)
        box.activated.emit(box.currentIndex())

    async def see(self, text: str) -> None:
        await until(lambda: text in self.text)

    def fill(self, **values: str) -> None:
        for name, value in values.items():
            field = self.field(NAMES[name])
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
        models = ModelStore(stores.session, WindowStateStore(tmp_path / "window.json"))
        await stores.session.start()
        dialog = SettingsDialog(
            stores, models, theme, ShortcutStore(WindowStateStore(tmp_path / "window.json"), ACTIONS)
        )
        dialog.models_changed.connect(models.load)
        qtbot.addWidget(dialog)
        dialog.open_page("providers")
        yield Page(dialog, models, engine)
        await stores.session.close()


async def test_a_server_is_added_tested_and_saved_and_its_models_are_there_at_once(
    page: Page, theme: Theme, qtbot: QtBot
) -> None:
    async with own_server(key=KEY) as server:
        await page.press("Add provider…")
        assert not page.button("Save").isEnabled() and not page.button("Test this provider").isEnabled()
        page.fill(name="Lab", address=f"{server.url}/")
        await page.press("Test this provider")
        await page.see("The server requires a key.")
        page.fill(key=KEY)
        await page.press("Test this provider")
        await page.see("The server offers 2 models: qwen3, text-embedding-9")
        assert "qwen3 answered in" in page.text
        assert page.field("Base URL").text() == f"{server.url}/v1"
        assert page.engine.services.settings.values.model_servers == ()
        QTest.keyClick(page.field("API key"), Qt.Key.Key_Return)
        await page.see("Saved. The server offers 2 models.")
        assert page.has("Edit Lab") and page.has("Test Lab") and not page.has("Save")
    await until(lambda: page.models.ready[:2] == ("lab/qwen3", "lab/text-embedding-9"))
    choices = TaskOptionsView(theme, ApprovalModeView(theme), MemorySwitchView(theme))
    qtbot.addWidget(choices)
    another = Model(id="openai/gpt-5.4", provider="openai")
    offered = (another, *page.models.offered[:2])
    choices.set_defaults(TaskOptionDefaults(offered, another.id, providers=page.models.providers))
    for query in ("lab qwen3", "gpt", "lab qwen3"):
        choices.pick_model()
        picker = next(w for w in QApplication.topLevelWidgets() if isinstance(w, ModelPicker) and w.isVisible())
        (field,) = picker.findChildren(QLineEdit)
        QTest.keyClicks(field, query)
        assert len(picker.shown) == 1, picker.shown
        QTest.keyClick(field, Qt.Key.Key_Return)
    assert choices.options.model == "lab/qwen3", "it is picked again after another one"
    assert choices.options.api_base is None


async def test_a_server_is_renamed_keeps_its_key_and_loses_it_when_asked(page: Page) -> None:
    async with own_server(key=KEY) as server:
        await page.press("Add provider…")
        page.fill(name="Lab", address=server.url, key=KEY)
        await page.press("Save")
        await page.press("Edit Lab")
        assert page.field("Provider name").text() == "Lab"
        assert page.field("API key").text() == "", "a key is never shown"
        page.fill(name="Renamed")
        await page.press("Save")
        await until(lambda: page.has("Edit Renamed"))
        await page.see("The server offers 2 models.")
        await page.press("Edit Renamed")
        await page.press("Remove key")
        await page.press("Save")
        await page.see("The server requires a key.")
    stored = await page.engine.services.keys.get("lab", ())
    assert stored is None


async def test_a_server_is_removed_after_a_confirmation(page: Page) -> None:
    async with own_server() as server:
        await page.press("Add provider…")
        page.fill(name="Lab", address=server.url)
        await page.press("Save")
        await page.press("Remove Lab")
        await page.see("Remove Lab? Conversations with its models stay.")
        assert page.dialog.focusWidget() is page.button("Cancel")
        await page.press("Cancel")
        assert page.has("Remove Lab") and not page.has("Remove")
        await page.press("Remove Lab")
        await page.press("Remove")
        await page.see("Lab was removed")
        await until(lambda: not page.has("Remove Lab"))


async def test_refused_values_stay_in_the_form_and_esc_cancels_it(page: Page) -> None:
    async with own_server() as server:
        await page.press("Add provider…")
        page.fill(name="Lab", address="ftp://nowhere")
        await page.press("Save")
        await page.see("is not an address")
        page.fill(address=server.url, key="two words")
        await page.press("Save")
        await page.see("spaces or characters that no key has")
        assert page.field("Provider name").text() == "Lab"
        QTest.keyClick(page.field("Provider name"), Qt.Key.Key_Escape)
        assert not page.has("Save") and page.dialog.isVisible()
        assert page.engine.services.settings.values.model_servers == ()
        assert page.dialog.focusWidget() is page.button("Add provider…")


async def test_an_unreachable_server_is_reported_in_its_row(page: Page) -> None:
    await page.press("Add provider…")
    page.fill(name="Away", address="http://127.0.0.1:9")
    await page.press("Save")
    await page.see("Saved. Nothing answers at 127.0.0.1:9.")
    assert not page.has("Test Away") and page.has("Edit Away")


async def test_unticked_models_are_not_offered(page: Page) -> None:
    async with own_server() as server:
        await page.press("Add provider…")
        page.fill(name="Lab", address=server.url)
        await page.press("Save")
        await page.press("Models Lab")
    await page.see("2 of 2 selected")
    page.row("text-embedding-9").setCheckState(Qt.CheckState.Unchecked)
    await page.see("1 of 2 selected")
    await until(lambda: page.models.ready[:2] == ("lab/qwen3",))
    await page.press("Select none")
    await until(lambda: page.models.ready == ())
    await page.press("Select all")
    await until(lambda: page.engine.services.settings.values.chosen_models == {})


async def test_a_model_of_ones_own_is_added_in_a_form_changed_and_removed(page: Page) -> None:
    async with own_server(models=()) as server:
        await page.press("Add provider…")
        page.fill(name="Lab", address=server.url)
        await page.press("Save")
        await page.press("Models Lab")
    await page.see("This provider doesn't list its models.")
    await page.press("Add model…")
    assert not page.button("Save model").isEnabled()
    values = ("secret 1", "Secret", "128k", "0.5", "x")
    for name, value in zip(MODEL_FIELDS, values, strict=True):
        QTest.keyClicks(page.field(name), value)
    assert (page.field("Output price").property("state"), page.button("Save model").isEnabled()) == ("wrong", False)
    page.field("Output price").setText("1")
    await page.press("Save model")
    await page.see("An id has no spaces")
    page.field("Model ID").setText("secret-1")
    await page.press("Save model")
    await until(lambda: page.rows == ["Secret   ·   128K   ·   $0.50 / $1   ·   tools   ·   added by you"])
    await until(lambda: page.models.ready == ("lab/secret-1",))
    page.model_list.setCurrentRow(0)
    await page.press("Edit selected model")
    page.field("Model ID").setText("secret-2")
    await page.press("Save model")
    await until(lambda: page.models.ready == ("lab/secret-2",))
    page.model_list.setCurrentRow(0)
    await page.press("Remove selected model")
    await until(lambda: page.models.ready == ())


async def test_the_form_has_the_fields_of_its_kind(page: Page) -> None:
    await page.see("No provider set up yet.")
    await page.press("Add provider…")
    assert not page.has("Add provider…"), "the form is open"
    page.choose("Google Gemini")
    assert page.fields == {"Provider name", "API key"}
    assert not page.button("Save").isEnabled(), "it needs a key"
    page.choose("Errand on another computer")
    assert page.fields == {"Base URL", "API key"}
    page.choose("Anthropic-compatible")
    async with AnthropicServer() as server:
        page.fill(name="Claude at work", address=server.url, key=KEY)
        await page.press("Test this provider")
        await page.see("claude-test answered in")
        await page.press("Save")
        await page.see("Saved. The server offers one model.")
    await until(lambda: page.models.ready == ("claude-at-work/claude-test",))
    assert "Anthropic-compatible" in page.text
