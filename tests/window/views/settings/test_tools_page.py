"""The page with tools and MCP servers, on a real engine server with a real small MCP server."""

import asyncio
import json
import shlex
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QPlainTextEdit, QPushButton
from pytestqt.qtbot import QtBot

from errand.client.connection import Connection
from errand.engine.tools.registry import uses_tool
from errand.protocol.agents import AGENT_CREATE, AgentCreateParams
from errand.protocol.events import PersonalityUpdate
from errand.protocol.servers import McpServer
from errand.window.stores.stores import make_stores
from errand.window.theme.theme import Theme
from errand.window.views.settings.mcp_servers import McpServerRowView
from errand.window.views.settings.tools_page import ToolsPageView
from tests.support.engine_server import EngineServer, engine_server
from tests.support.limits import WAIT_LIMIT_S
from tests.support.mcp_servers import command
from tests.support.oauth_server import oauth_server, visit
from tests.support.window import until


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    async with engine_server(tmp_path / "home") as running:
        yield running


@dataclass(slots=True)
class Browser:
    """Remembers what it was asked to open."""

    is_there: bool = True
    opened: list[str] = field(default_factory=list[str])

    def open(self, url: str) -> bool:
        self.opened.append(url)
        return self.is_there


@pytest.fixture
def browser() -> Browser:
    return Browser()


@pytest.fixture
async def page(engine: EngineServer, theme: Theme, qtbot: QtBot, browser: Browser) -> AsyncGenerator[ToolsPageView]:
    async def connect() -> Connection:
        connection = Connection(engine.endpoint, "window")
        await connection.open()
        return connection

    stores = make_stores(connect)
    await stores.session.start()
    view = ToolsPageView(theme, stores.tools, stores.personalities, stores.session, browser.open)
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
    """Return the visible buttons by name; rows are recreated when something has changed."""
    visible_buttons = [button for button in page.findChildren(QAbstractButton) if button.isVisible()]
    return {button.accessibleName() or button.text(): button for button in visible_buttons}


def named_fields(page: ToolsPageView) -> dict[str, QLineEdit]:
    return {field.accessibleName(): field for field in page.findChildren(QLineEdit)}


async def press(page: ToolsPageView, name: str) -> None:
    await until(lambda: name in buttons(page))
    buttons(page)[name].click()


async def is_checked(page: ToolsPageView, name: str, *, checked: bool) -> None:
    await until(lambda: name in buttons(page) and buttons(page)[name].isChecked() is checked)


async def test_a_server_is_added_started_looked_at_and_removed(page: ToolsPageView) -> None:
    await until(lambda: "No servers yet" in texts(page) and "code" in texts(page))
    await press(page, "Add server…")
    fields = named_fields(page)
    assert "Add server…" not in buttons(page)
    QTest.keyClicks(fields["Server name"], "bad name")
    fields["Server command or address"].setText(shlex.join(command()))
    await press(page, "Add server")
    await until(lambda: "a server's name has" in texts(page))
    fields["Server name"].setText("test")
    await press(page, "Add server")
    await until(lambda: "Starts when a task needs it" in texts(page))
    await press(page, "Start test")
    await until(lambda: "Ready, 1 tool" in texts(page) and "test__echo" in texts(page))
    assert "Add server…" in buttons(page)
    assert "another program · from test · not used recently" in texts(page)
    await press(page, "Log of test")
    await until(lambda: "started as good" in texts(page))
    await press(page, "Remove test")
    await press(page, "Remove test and its keys")
    await until(lambda: "No servers yet" in texts(page))


async def test_a_tool_is_taken_from_a_personality_and_given_back(page: ToolsPageView, engine: EngineServer) -> None:
    async def assistant_has(*, code: bool) -> None:
        async with asyncio.timeout(WAIT_LIMIT_S):
            while True:
                personality = await engine.services.database.personalities.get("assistant")
                assert personality is not None
                if uses_tool(personality.tools, "code") is code and uses_tool(personality.tools, "shell"):
                    return
                await asyncio.sleep(0.01)

    await press(page, "Allow agents to use code")
    await assistant_has(code=False)
    await is_checked(page, "Allow agents to use code", checked=False)
    await press(page, "Allow agents to use code")
    await assistant_has(code=True)


async def test_a_reading_form_is_given_back_also_beside_whole_tools(page: ToolsPageView, engine: EngineServer) -> None:
    services = engine.services
    assistant = await services.database.personalities.get("assistant")
    assert assistant is not None
    mixed = msgspec.structs.replace(assistant, tools=("code:read", "shell"))
    services.log.publish(PersonalityUpdate(personality=mixed))
    await services.log.flush()
    page.load()
    await until(lambda: "reads only" in texts(page))
    await press(page, "Allow agents to use code")
    await until(lambda: "reads only" not in texts(page))
    await press(page, "Allow agents to use code")
    await until(lambda: "reads only" in texts(page))


async def test_what_was_switched_keeps_the_focus(page: ToolsPageView) -> None:
    await until(lambda: "Allow agents to use code" in buttons(page))
    box = buttons(page)["Allow agents to use code"]
    page.activateWindow()
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Space)
    await is_checked(page, "Allow agents to use code", checked=False)
    assert buttons(page)["Allow agents to use code"] is box
    QTest.keyClick(box, Qt.Key.Key_Space)
    await is_checked(page, "Allow agents to use code", checked=True)


async def test_escape_closes_the_form_and_its_button_comes_back(page: ToolsPageView) -> None:
    await press(page, "Add server…")
    assert not buttons(page)["Add server"].isEnabled()
    QTest.keyClick(named_fields(page)["Server name"], Qt.Key.Key_Escape)
    assert "Add server…" in buttons(page)
    assert "Add server" not in buttons(page)
    assert page.isVisible()


async def test_tools_are_searched_by_their_words(page: ToolsPageView) -> None:
    await until(lambda: "Allow agents to use shell" in buttons(page))
    search = named_fields(page)["Search tools"]
    search.setText("FILES .gitignore")
    await until(
        lambda: [name for name in buttons(page) if name.startswith("Allow agents")] == ["Allow agents to use code"]
    )
    search.setText("no tool says this")
    assert "No results" in texts(page)


async def test_a_server_of_a_folder_is_trusted_after_all_that_it_starts_was_shown(
    page: ToolsPageView, engine: EngineServer, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    hidden = "good\u202e\u200b\nFolder: /elsewhere"
    server = {"command": command()[0], "args": [*command()[1:], hidden], "env": {"LEVEL": "high"}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"db": server}}))
    client = Connection(engine.endpoint, "test")
    await client.open()
    await client.call(AGENT_CREATE, AgentCreateParams(workspace=str(folder)))
    await client.close()
    page.load()
    choice = next(box for box in page.findChildren(QComboBox) if "folder" in box.accessibleName())
    await until(lambda: choice.count() == 2)
    QTest.keyClick(choice, Qt.Key.Key_Down)
    await until(lambda: "Not used until you trust it." in texts(page))
    spelled = r"$'good\u202e\u200b\nFolder: /elsewhere'"
    started = f"Command: {shlex.join(command())} {spelled}\nVariable: LEVEL=high\nFolder: {folder}"
    assert started in texts(page)
    assert "Start db" not in buttons(page)
    await press(page, "Trust db")
    await press(page, "Confirm trust in db")
    await press(page, "Start db")
    await until(lambda: "Ready, 1 tool" in texts(page))
    await press(page, "Don't trust db")
    await until(lambda: "Not used because you don't trust it." in texts(page))


async def add_address(page: ToolsPageView, url: str, **more: str) -> None:
    await press(page, "Add server…")
    fields = named_fields(page)
    fields["Server name"].setText("guarded")
    fields["Server command or address"].setText(url)
    fields["Sign-in client ID"].setText(more.get("client", ""))
    fields["Sign-in port"].setText(more.get("port", ""))
    await press(page, "Add server")


async def test_a_person_signs_in_at_a_server_and_out_again(page: ToolsPageView, browser: Browser) -> None:
    async with oauth_server() as oauth:
        await add_address(page, oauth.mcp)
        await press(page, "Start guarded")
        await press(page, "Sign in: guarded")
        await until(lambda: "Waiting for you to sign in" in texts(page))
        assert browser.opened[0] in texts(page)
        assert "Start guarded" not in buttons(page)
        await press(page, "Open again: guarded")
        await until(lambda: len(browser.opened) == 2)
        assert browser.opened[0] == browser.opened[1]
        await visit(browser.opened[0])
        await until(lambda: "Ready, 1 tool, signed in" in texts(page))
        assert "Sign in: guarded" not in buttons(page) and browser.opened[0] not in texts(page)
        await press(page, "Sign out of guarded")
        await until(lambda: "Starts when a task needs it" in texts(page))
        assert "Sign out of guarded" not in buttons(page)


async def test_a_sign_in_is_cancelled_and_a_missing_browser_is_said(page: ToolsPageView, browser: Browser) -> None:
    browser.is_there = False
    async with oauth_server() as oauth:
        await add_address(page, oauth.mcp)
        await press(page, "Start guarded")
        await press(page, "Sign in: guarded")
        await until(lambda: "Can't open a browser" in texts(page))
        await press(page, "Cancel sign-in at guarded")
        await until(lambda: "Not signed in. The sign-in was cancelled." in texts(page))
        assert "Sign in: guarded" in buttons(page)


async def test_a_client_that_the_person_registered_is_entered_with_its_port(
    page: ToolsPageView, engine: EngineServer
) -> None:
    await press(page, "Add server…")
    fields = named_fields(page)
    fields["Server command or address"].setText("uvx something")
    assert not fields["Sign-in port"].isVisible()
    await press(page, "Cancel")
    await add_address(page, "https://example.org/mcp", client="my-client", port="many")
    assert "The port must be a number" in texts(page)
    fields["Sign-in port"].setText("8765")
    await press(page, "Add server")
    await until(lambda: "Starts when a task needs it" in texts(page))
    (stored,) = engine.services.settings.values.mcp_servers
    assert (stored.client_id, stored.callback_port) == ("my-client", 8765)


def test_a_client_secret_is_sent_to_another_authorization_server_after_a_question(theme: Theme, qtbot: QtBot) -> None:
    address = "https://a.example/mcp"
    server = McpServer(id="web", name="web", started="", fingerprint="", state="needs_login", url=address)
    row, allowed, begun = McpServerRowView(theme, server), list[str](), list[bool]()
    qtbot.addWidget(row)
    row.show()
    row.issuer_allowed.connect(allowed.append)
    row.login_requested.connect(lambda: begun.append(True))
    named = {button.accessibleName(): button for button in row.findChildren(QPushButton)}
    named["Sign in: web"].click()
    row.show_server(msgspec.structs.replace(server, new_issuer="https://b.example"))
    named["Sign in: web"].click()
    confirm = named["Send the client secret of web"]
    assert (begun, allowed, confirm.isVisible()) == ([True], [], True)
    assert any("https://b.example" in label.text() for label in row.findChildren(QLabel))
    confirm.click()
    assert allowed == ["https://b.example"] and not confirm.isVisible()
