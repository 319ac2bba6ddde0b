"""The global shortcut for quick tasks: bound by a portal on a real bus, refused, and without a portal."""

from collections.abc import Generator

import pytest

from app.window.desktop.global_shortcut import GlobalShortcut
from tests.support.desktop_services import ShortcutPortal
from tests.support.window import until


class Told:
    def __init__(self) -> None:
        self.key = GlobalShortcut()
        self.pressed: list[str] = []
        self.bound: list[str] = []
        self.refusals = 0
        self.key.pressed.connect(self.pressed.append)
        self.key.bound.connect(self.bound.append)
        self.key.refused.connect(self._on_refused)

    def _on_refused(self) -> None:
        self.refusals += 1


@pytest.fixture
def told(qapp: object) -> Generator[Told]:
    told = Told()
    yield told
    told.key.close()


async def test_a_key_is_bound_and_its_presses_come_with_what_brings_a_window_to_the_front(
    bus_address: str, told: Told
) -> None:
    portal = await ShortcutPortal.start(bus_address)
    await told.key.bind()
    assert (portal.asked, told.bound, told.refusals) == (["quick"], ["Ctrl+Alt+Space"], 0)
    portal.press("another")
    portal.press("quick")
    await until(lambda: bool(told.pressed))
    assert told.pressed == ["token-of-the-key"]
    await portal.leave()


async def test_a_person_may_refuse_the_key_and_take_it_later(bus_address: str, told: Told) -> None:
    unwilling = await ShortcutPortal.start(bus_address, refuses=True)
    await told.key.bind()
    assert (told.bound, told.refusals) == ([], 1)
    await unwilling.leave()
    portal = await ShortcutPortal.start(bus_address)
    await told.key.bind()
    assert told.bound == ["Ctrl+Alt+Space"]
    await portal.leave()


async def test_a_desktop_without_such_keys_says_so(bus_address: str, told: Told) -> None:
    await told.key.bind()
    assert told.refusals == 1


async def test_no_desktop_at_all_says_so(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at/all")
    await told.key.bind()
    assert told.refusals == 1
