"""The command palette, and where it leads: the pages of the settings, and the export of a conversation."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QListWidget

from errand.window.theme.theme import Theme
from errand.window.views.shared.export_dialog import ExportDialog
from tests.support.window import until
from tests.window.accessibility.full_window import WindowFixture, window_fixture


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[WindowFixture]:
    async with window_fixture(qapp, theme, tmp_path) as fixture:
        fixture.window.activateWindow()
        QApplication.processEvents()
        yield fixture


def choose(fixture: WindowFixture, text: str) -> None:
    fixture.window.commands.trigger("palette")
    field = QApplication.focusWidget()
    assert field is not None
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


@pytest.mark.parametrize(
    ("text", "title"), [("permissions", "Permissions"), ("keys", "Models and keys"), ("import", "Data")]
)
async def test_a_page_of_the_settings_is_found(fixture: WindowFixture, text: str, title: str) -> None:
    choose(fixture, text)
    dialog = fixture.window.dialogs.settings
    chosen = dialog.findChildren(QListWidget)[0].currentItem()
    assert dialog.isVisible() and chosen is not None and chosen.text() == title
    dialog.close()


async def test_the_conversation_in_front_is_exported_whole(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    choose(fixture, "export this")
    await until(lambda: bool(view.findChildren(ExportDialog)))
    dialog = view.findChildren(ExportDialog)[0]
    assert dialog.windowTitle() == "Export conversation"
    dialog.reject()
