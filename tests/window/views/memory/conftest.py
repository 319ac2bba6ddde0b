"""The pages of memory on a real engine server."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from errand.client.connection import Connection
from errand.window.stores.stores import Stores, make_stores
from tests.support.engine_server import EngineServer, engine_server
from tests.support.window import until


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    async with engine_server(tmp_path / "home") as running:
        yield running


@pytest.fixture
async def stores(engine: EngineServer) -> AsyncGenerator[Stores]:
    async def connect() -> Connection:
        connection = Connection(engine.endpoint, "window")
        await connection.open()
        return connection

    connected = make_stores(connect)
    await connected.session.start()
    yield connected
    await connected.session.close()


def visible(parent: QWidget) -> dict[str, QAbstractButton]:
    """The visible buttons by their names."""
    buttons = [button for button in parent.findChildren(QAbstractButton) if button.isVisible() and button.isEnabled()]
    return {button.accessibleName() or button.text(): button for button in buttons}


async def press(parent: QWidget, name: str) -> None:
    """Click the button with that name once it is there."""
    await until(lambda: name in visible(parent))
    visible(parent)[name].click()


def has(parent: QWidget, text: str) -> bool:
    """A visible label has this text, among others."""
    return any(text in label.text() for label in parent.findChildren(QLabel) if label.isVisible())
