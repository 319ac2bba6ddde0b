"""The page with tools and MCP servers, on a real engine server with a real small MCP server."""

import asyncio
import shlex
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.client.connection import Connection
from app.engine.tools.registry import uses_tool
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
    view = ToolsPageView(theme, stores.tools, stores.personalities)
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


async def press(page: ToolsPageView, name: str) -> None:
    await until(lambda: name in buttons(page))
    buttons(page)[name].click()


async def is_checked(page: ToolsPageView, name: str, *, checked: bool) -> None:
    await until(lambda: name in buttons(page) and buttons(page)[name].isChecked() is checked)


async def test_a_server_is_added_started_looked_at_and_removed(page: ToolsPageView) -> None:
    await until(lambda: "No servers yet" in texts(page) and "code" in texts(page))
    await press(page, "Add a server …")
    fields = {field.accessibleName(): field for field in page.findChildren(QLineEdit)}
    QTest.keyClicks(fields["Name of the server"], "bad name")
    fields["Command or address of the server"].setText(shlex.join(command()))
    await press(page, "Add server")
    await until(lambda: "a server's name has" in texts(page))
    fields["Name of the server"].setText("test")
    await press(page, "Add server")
    await until(lambda: "starts when a task needs it" in texts(page))
    await press(page, "Start test")
    await until(lambda: "ready, 1 tool" in texts(page) and "test__echo" in texts(page))
    assert "another program · server test · not used lately" in texts(page)
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
