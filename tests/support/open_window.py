"""The real main window offscreen, on a temporary data directory with a real engine process.

The benchmarks measure the memory of a process that imports this module: keep test doubles and pytest out of it.
"""

import asyncio
import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from errand.client.conversation.rows import Row
from errand.client.launch import connect
from errand.system.paths import Paths
from errand.window import CLIENT_NAME
from errand.window.main import build_window
from errand.window.stores.stores import Stores, make_stores
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.shell.main_window import MainWindow
from tests.support.limits import WAIT_LIMIT_S, seldom


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window and the actions of its user."""

    window: MainWindow
    stores: Stores
    theme: Theme
    application: QApplication

    @property
    def front(self) -> ConversationView:
        return self.window.conversations.active

    @property
    def rows(self) -> list[Row]:
        """The transcript of the active conversation."""
        return [self.front.store.row(index) for index in range(self.front.store.count())]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Run Qt and asyncio until a condition holds."""
        looks = seldom(holds)
        async with asyncio.timeout(WAIT_LIMIT_S):
            while not looks():
                self.application.processEvents()
                await asyncio.sleep(0.005)

    async def press(self, name: str, parent: QWidget | None = None) -> None:
        """Click the button with that name once it is enabled."""
        within = parent or self.window
        await self.until(lambda: _button(within, name) is not None)
        button = _button(within, name)
        assert button is not None
        button.window().grab()
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    async def begin(self, text: str) -> None:
        """Send this message once the engine is ready."""
        await self.until(lambda: self.stores.session.state == "ready")
        self.type(text)
        self.enter()

    def type(self, text: str) -> None:
        """Type into the active composer."""
        QTest.keyClicks(self.front.composer.field, text)

    def enter(self, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.keyClick(self.front.composer.field, Qt.Key.Key_Return, modifiers)


@asynccontextmanager
async def open_window(application: QApplication, home: Path) -> AsyncGenerator[OpenWindow]:
    """A window. Opened again on the same home it behaves like one after a restart; the engine outlives it."""
    paths = Paths(home)
    paths.prepare()
    theme = Theme()
    theme.apply(application)
    state = WindowStateStore(home / "window.json")
    stores = make_stores(lambda: connect(paths, CLIENT_NAME))
    window = build_window(application, stores, paths, state, theme)
    window.show()
    window.resize(state.settings.width, state.settings.height)  # the screen of these tests is smaller
    window.conversations.restore()
    stores.session.spawn(stores.session.start())
    try:
        yield OpenWindow(window, stores, theme, application)
    finally:
        state.settings.told_of_background = True
        window.close()
        await stores.session.close()
        window.deleteLater()
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete)  # no Qt event loop runs that would do it
        application.processEvents()


def _button(within: QWidget, name: str) -> QAbstractButton | None:
    for button in within.findChildren(QAbstractButton):
        if button.isVisible() and button.isEnabled() and name in (button.text(), button.accessibleName()):
            return button
    return None
