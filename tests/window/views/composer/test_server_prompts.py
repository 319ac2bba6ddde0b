"""Prompts of MCP servers in the composer, with a real small server."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton

from errand.protocol.servers import MCP_SAVE, McpSaveParams
from errand.window.theme.theme import Theme
from errand.window.views.composer.server_prompts import PromptArgumentsDialog, ServerPromptListView
from tests.support.mcp_servers import command
from tests.support.window import ViewFixture, until, view_fixture


def prompts_of(fixture: ViewFixture) -> ServerPromptListView:
    prompts = fixture.view.input_panel.completions.prompts
    assert prompts is not None
    return prompts


def offered(fixture: ViewFixture) -> list[str]:
    prompt_list = prompts_of(fixture).list
    return (
        [prompt_list.item(row).text() for row in range(prompt_list.count())] if prompts_of(fixture).isVisible() else []
    )


async def test_a_prompt_is_chosen_filled_in_and_put_into_the_composer(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with view_fixture(qapp, theme, tmp_path, []) as fixture:
        await fixture.engine.stores.session.call(MCP_SAVE, McpSaveParams(name="test", command=command()))
        field = fixture.view.composer.field
        fixture.view.activateWindow()
        field.setFocus()
        QTest.keyClicks(field, "/")
        await until(lambda: offered(fixture) == ["Start test to see more prompts"])
        QTest.keyClick(field, Qt.Key.Key_Return)
        await until(lambda: offered(fixture) == ["/test/ask"])
        QTest.keyClicks(field, "x")
        assert offered(fixture) == []
        QTest.keyClick(field, Qt.Key.Key_Backspace)
        QTest.keyClicks(field, "as")
        assert offered(fixture) == ["/test/ask"]
        QTest.keyClick(field, Qt.Key.Key_Return)
        (dialog,) = fixture.view.findChildren(PromptArgumentsDialog)
        buttons = {button.text(): button for button in dialog.findChildren(QPushButton)}
        assert not buttons["Insert"].isEnabled(), "the server needs a city"
        (city,) = dialog.findChildren(QLineEdit)
        assert city.accessibleName() == "city"
        city.setText("Rome")
        QTest.keyClick(city, Qt.Key.Key_Return)
        await until(lambda: field.toPlainText() == "How is Rome?")
        assert not fixture.view.findChildren(PromptArgumentsDialog) or not dialog.isVisible()


async def test_a_path_is_sent_as_it_is_typed_and_escape_closes_the_list(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with view_fixture(qapp, theme, tmp_path, []) as fixture:
        await fixture.engine.stores.session.call(MCP_SAVE, McpSaveParams(name="test", command=command()))
        field = fixture.view.composer.field
        fixture.view.activateWindow()
        field.setFocus()
        QTest.keyClicks(field, "/")
        await until(lambda: offered(fixture) != [])
        QTest.keyClick(field, Qt.Key.Key_Escape)
        assert offered(fixture) == []
        QTest.keyClicks(field, "etc/hosts is what?")
        assert offered(fixture) == [] and field.toPlainText() == "/etc/hosts is what?"
        QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.AltModifier)
        await until(lambda: field.toPlainText() == "")


async def test_a_server_that_does_not_start_is_said_and_nothing_is_chosen(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with view_fixture(qapp, theme, tmp_path, []) as fixture:
        await fixture.engine.stores.session.call(MCP_SAVE, McpSaveParams(name="bad", command=command("dies")))
        field = fixture.view.composer.field
        fixture.view.activateWindow()
        field.setFocus()
        QTest.keyClicks(field, "/")
        await until(lambda: offered(fixture) != [])
        QTest.keyClick(field, Qt.Key.Key_Tab)
        await until(lambda: any("bad is not available" in line for line in offered(fixture)))
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert field.toPlainText() == "/"
