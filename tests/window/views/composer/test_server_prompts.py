"""Prompts of MCP servers in the composer, with a real small server."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton

from errand.protocol.servers import MCP_SAVE, McpSaveParams
from errand.window.theme.theme import Theme
from errand.window.views.composer.server_prompts import PromptArgumentsDialog, ServerPromptListView
from tests.support.mcp_servers import command
from tests.support.window import Desk, desk, until


def prompts_of(place: Desk) -> ServerPromptListView:
    prompts = place.view.input_panel.prompts
    assert prompts is not None
    return prompts


def offered(place: Desk) -> list[str]:
    found = prompts_of(place).list
    return [found.item(row).text() for row in range(found.count())] if prompts_of(place).isVisible() else []


async def test_a_prompt_is_chosen_filled_in_and_put_into_the_composer(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with desk(qapp, theme, tmp_path, []) as place:
        await place.engine.stores.session.call(MCP_SAVE, McpSaveParams(name="test", command=command()))
        field = place.view.composer.field
        place.view.activateWindow()
        field.setFocus()
        QTest.keyClicks(field, "/")
        await until(lambda: offered(place) == ["Start test to see more prompts"])
        QTest.keyClick(field, Qt.Key.Key_Return)
        await until(lambda: offered(place) == ["/test/ask"])
        QTest.keyClicks(field, "x")
        assert offered(place) == []
        QTest.keyClick(field, Qt.Key.Key_Backspace)
        QTest.keyClicks(field, "as")
        assert offered(place) == ["/test/ask"]
        QTest.keyClick(field, Qt.Key.Key_Return)
        (dialog,) = place.view.findChildren(PromptArgumentsDialog)
        buttons = {button.text(): button for button in dialog.findChildren(QPushButton)}
        assert not buttons["Insert"].isEnabled(), "the server needs a city"
        (city,) = dialog.findChildren(QLineEdit)
        assert city.accessibleName() == "city"
        city.setText("Rome")
        QTest.keyClick(city, Qt.Key.Key_Return)
        await until(lambda: field.toPlainText() == "How is Rome?")
        assert not place.view.findChildren(PromptArgumentsDialog) or not dialog.isVisible()


async def test_a_path_is_sent_as_it_is_typed_and_escape_closes_the_list(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with desk(qapp, theme, tmp_path, []) as place:
        await place.engine.stores.session.call(MCP_SAVE, McpSaveParams(name="test", command=command()))
        field = place.view.composer.field
        place.view.activateWindow()
        field.setFocus()
        QTest.keyClicks(field, "/")
        await until(lambda: offered(place) != [])
        QTest.keyClick(field, Qt.Key.Key_Escape)
        assert offered(place) == []
        QTest.keyClicks(field, "etc/hosts is what?")
        assert offered(place) == [] and field.toPlainText() == "/etc/hosts is what?"
        QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.AltModifier)
        await until(lambda: field.toPlainText() == "")


async def test_a_server_that_does_not_start_is_said_and_nothing_is_chosen(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with desk(qapp, theme, tmp_path, []) as place:
        await place.engine.stores.session.call(MCP_SAVE, McpSaveParams(name="bad", command=command("dies")))
        field = place.view.composer.field
        place.view.activateWindow()
        field.setFocus()
        QTest.keyClicks(field, "/")
        await until(lambda: offered(place) != [])
        QTest.keyClick(field, Qt.Key.Key_Tab)
        await until(lambda: any("bad is not available" in line for line in offered(place)))
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert field.toPlainText() == "/"
