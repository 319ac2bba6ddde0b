"""The global shortcut for quick tasks: bound by a portal on a real bus, refused, and without a portal."""

from collections.abc import Generator

import pytest

from errand.window.desktop.global_shortcut import GlobalShortcut
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
def recorder(qapp: object) -> Generator[Told]:
    signals = Told()
    yield signals
    signals.key.close()


async def test_a_shortcut_is_bound_and_each_press_carries_an_activation_token(bus_address: str, recorder: Told) -> None:
    portal = await ShortcutPortal.start(bus_address)
    await recorder.key.bind()
    assert (portal.asked, recorder.bound, recorder.refusals) == (["quick"], ["Ctrl+Alt+Space"], 0)
    portal.press("another")
    portal.press("quick")
    await until(lambda: bool(recorder.pressed))
    assert recorder.pressed == ["token-of-the-key"]
    await portal.leave()


async def test_the_shortcut_can_be_refused_and_accepted_later(bus_address: str, recorder: Told) -> None:
    unwilling = await ShortcutPortal.start(bus_address, refuses=True)
    await recorder.key.bind()
    assert (recorder.bound, recorder.refusals) == ([], 1)
    await unwilling.leave()
    portal = await ShortcutPortal.start(bus_address)
    await recorder.key.bind()
    assert recorder.bound == ["Ctrl+Alt+Space"]
    await portal.leave()


async def test_a_desktop_without_global_shortcuts_is_reported(bus_address: str, recorder: Told) -> None:
    await recorder.key.bind()
    assert recorder.refusals == 1


async def test_a_missing_session_bus_is_reported(recorder: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at/all")
    await recorder.key.bind()
    assert recorder.refusals == 1
