"""The page with tools and MCP servers, on a real engine server with a real small MCP server."""

import asyncio
import json
import shlex
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.client.connection import Connection
from app.engine.tools.registry import uses_tool
from app.protocol.agents import AGENT_CREATE, AgentCreateParams
from app.window.stores.stores import make_stores
from app.window.theme.theme import Theme
from app.window.views.settings.tools_page import ToolsPageView
from tests.support.engine_server import EngineServer, engine_server
from tests.support.mcp_servers import command
from tests.support.window import until


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    async with engine_server(tmp_path / "home") as running:
        yield running


@pytest.fixture
async def page(engine: EngineServer, theme: Theme, qtbot: QtBot) -> AsyncGenerator[ToolsPageView]:
    async def connect() -> Connection:
        connection = Connection(engine.endpoint, "window")
        await connection.open()
        return connection

    stores = make_stores(connect)
    await stores.session.start()
    view = ToolsPageView(theme, stores.tools, stores.personalities, stores.session)
    qtbot.addWidget(view)
    view.resize(700, 700)
    view.show()
    view.load()
    yield view
    await stores.session.close()


def texts(page: ToolsPageView) -> str:
    labels = [label.text() for label in page.findChildren(QLabel) if label.isVisible()]
    boxes = [box.toPlainText() for box in page.findChildren(QPlainTextEdit) if box.isVisible()]
    return "\n".join(labels + boxes)


def buttons(page: ToolsPageView) -> dict[str, QAbstractButton]:
    """Those that are visible, by their names; rows are made anew when something has changed."""
    found = [one for one in page.findChildren(QAbstractButton) if one.isVisible()]
    return {one.accessibleName() or one.text(): one for one in found}


def named_fields(page: ToolsPageView) -> dict[str, QLineEdit]:
    return {field.accessibleName(): field for field in page.findChildren(QLineEdit)}


async def press(page: ToolsPageView, name: str) -> None:
    await until(lambda: name in buttons(page))
    buttons(page)[name].click()


async def is_checked(page: ToolsPageView, name: str, *, checked: bool) -> None:
    await until(lambda: name in buttons(page) and buttons(page)[name].isChecked() is checked)


async def test_a_server_is_added_started_looked_at_and_removed(page: ToolsPageView) -> None:
    await until(lambda: "No servers yet" in texts(page) and "code" in texts(page))
    await press(page, "Add a server …")
    fields = named_fields(page)
    assert "Add a server …" not in buttons(page)
    QTest.keyClicks(fields["Name of the server"], "bad name")
    fields["Command or address of the server"].setText(shlex.join(command()))
    await press(page, "Add server")
    await until(lambda: "a server's name has" in texts(page))
    fields["Name of the server"].setText("test")
    await press(page, "Add server")
    await until(lambda: "Starts when a task needs it" in texts(page))
    await press(page, "Start test")
    await until(lambda: "Ready, 1 tool" in texts(page) and "test__echo" in texts(page))
    assert "Add a server …" in buttons(page)
    assert "another program · from the server test · not used lately" in texts(page)
    await press(page, "Log of test")
    await until(lambda: "started as good" in texts(page))
    await press(page, "Remove test")
    await press(page, "Yes, remove test with its keys")
    await until(lambda: "No servers yet" in texts(page))


async def test_a_tool_is_taken_from_a_personality_and_given_back(page: ToolsPageView, engine: EngineServer) -> None:
    async def assistant_has(*, code: bool) -> None:
        async with asyncio.timeout(10):
            while True:
                personality = await engine.services.database.personalities.get("assistant")
                assert personality is not None
                if uses_tool(personality.tools, "code") is code and uses_tool(personality.tools, "shell"):
                    return
                await asyncio.sleep(0.01)

    await press(page, "The agent has code")
    await assistant_has(code=False)
    await is_checked(page, "The agent has code", checked=False)
    await press(page, "The agent has code")
    await assistant_has(code=True)


async def test_what_was_switched_keeps_the_focus(page: ToolsPageView) -> None:
    await until(lambda: "The agent has code" in buttons(page))
    box = buttons(page)["The agent has code"]
    page.activateWindow()
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Space)
    await is_checked(page, "The agent has code", checked=False)
    assert buttons(page)["The agent has code"] is box
    QTest.keyClick(box, Qt.Key.Key_Space)
    await is_checked(page, "The agent has code", checked=True)


async def test_escape_closes_the_form_and_its_button_comes_back(page: ToolsPageView) -> None:
    await press(page, "Add a server …")
    assert not buttons(page)["Add server"].isEnabled()
    QTest.keyClick(named_fields(page)["Name of the server"], Qt.Key.Key_Escape)
    assert "Add a server …" in buttons(page)
    assert "Add server" not in buttons(page)
    assert page.isVisible()


async def test_tools_are_searched_by_their_words(page: ToolsPageView) -> None:
    await until(lambda: "The agent has shell" in buttons(page))
    search = named_fields(page)["Search tools"]
    search.setText("FILES .gitignore")
    await until(lambda: [name for name in buttons(page) if name.startswith("The agent")] == ["The agent has code"])
    search.setText("no tool says this")
    assert "No tool has these words." in texts(page)


async def test_a_server_of_a_folder_is_trusted_after_all_that_it_starts_was_shown(
    page: ToolsPageView, engine: EngineServer, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    server = {"command": command()[0], "args": list(command()[1:]), "env": {"LEVEL": "high"}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"db": server}}))
    client = Connection(engine.endpoint, "test")
    await client.open()
    await client.call(AGENT_CREATE, AgentCreateParams(workspace=str(folder)))
    await client.close()
    page.load()
    choice = next(box for box in page.findChildren(QComboBox) if "folder" in box.accessibleName())
    await until(lambda: choice.count() == 2)
    QTest.keyClick(choice, Qt.Key.Key_Down)
    await until(lambda: "Not used before you trust it." in texts(page))
    assert f"Command: {shlex.join(command())}\nVariable: LEVEL=high\nFolder: {folder}" in texts(page)
    assert "Start db" not in buttons(page)
    await press(page, "Trust db")
    await press(page, "Yes, trust db")
    await press(page, "Start db")
    await until(lambda: "Ready, 1 tool" in texts(page))
    await press(page, "Do not trust db")
    await until(lambda: "Not used: you do not trust it." in texts(page))
