"""A private session bus for each test, and the stores of a window without an engine."""

from collections.abc import AsyncGenerator

import pytest

from errand.client.connection import Connection
from errand.client.errors import LaunchError
from errand.window.stores.stores import Stores, make_stores
from tests.support.desktop_services import NotificationServer, session_bus


@pytest.fixture
async def bus_address(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[str]:
    async with session_bus() as address:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        yield address


@pytest.fixture
async def server(bus_address: str) -> AsyncGenerator[NotificationServer]:
    server = await NotificationServer.start(bus_address)
    yield server
    await server.leave()


@pytest.fixture
async def stores() -> AsyncGenerator[Stores]:
    stores = make_stores(_no_engine)
    yield stores
    await stores.session.close()


async def _no_engine() -> Connection:
    raise LaunchError("The engine did not start.")
