"""Waiting for a window: Qt's events and asyncio's take turns until a condition holds."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from app.client.launch import connect
from app.paths import Paths
from app.protocol.tasks import Task
from app.window.main import build_window
from app.window.rows.row import Row
from app.window.stores.catalog import ModelStore
from app.window.stores.stores import Stores, make_stores
from app.window.stores.window_state import WindowStateStore
from app.window.theme.theme import Theme
from app.window.views.composer.drop_payload import PastedFiles
from app.window.views.composer.queue_view import QueuedMessageView
from app.window.views.conversation.conversation_view import ConversationView
from app.window.views.shell.main_window import MainWindow
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.store_engine import StoreEngine, store_engine

_LONGEST_S = 10.0
_PAUSE_S = 0.002


async def until(condition: Callable[[], bool]) -> None:
    """Raises TimeoutError after 10 s."""
    give_up_at = time.monotonic() + _LONGEST_S
    while not condition():
        if time.monotonic() > give_up_at:
            raise TimeoutError("The condition did not come to hold.")
        QCoreApplication.processEvents()
        await asyncio.sleep(_PAUSE_S)


@dataclass(frozen=True, slots=True)
class Desk:
    """The first reply comes when `gate` is set."""

    view: ConversationView
    engine: StoreEngine
    server: ModelServer
    gate: asyncio.Event

    @property
    def waiting(self) -> list[str]:
        """The queue as it is read aloud."""
        return [row.text.removeprefix("Waits for ") for row in self.view.foot.queue.rows]

    @property
    def task(self) -> Task:
        task = self.view.store.task
        assert task is not None
        return task

    def row(self, place: int) -> QueuedMessageView:
        """A line of the queue, which has the keyboard now."""
        row = self.view.foot.queue.rows[place]
        row.setFocus()
        return row

    async def follow_up(self, *texts: str) -> None:
        """Queue texts, one after the other."""
        for text in texts:
            count = len(self.waiting) + 1
            QTest.keyClicks(self.view.composer.field, text)
            QTest.keyClick(self.view.composer.field, Qt.Key.Key_Return, Qt.KeyboardModifier.AltModifier)
            await self.until_waiting(count)

    async def until_waiting(self, count: int) -> None:
        await until(lambda: len(self.waiting) == count)

    async def finish(self) -> list[str]:
        """Let the task end; what people said in the model's last request, in its order."""
        self.gate.set()
        await until(lambda: self.task.ended_at is not None)
        return said(self.server.requests[-1])


def press(place: QWidget, name: str) -> None:
    """Click the button of that name."""
    buttons = {button.accessibleName(): button for button in place.findChildren(QAbstractButton)}
    QTest.mouseClick(buttons[name], Qt.MouseButton.LeftButton)


def said(request: ReceivedRequest) -> list[str]:
    return [str(message["content"]) for message in request.messages if message.get("role") == "user"]


@asynccontextmanager
async def desk(application: QApplication, theme: Theme, home: Path, replies: Sequence[Reply]) -> AsyncGenerator[Desk]:
    """The task has begun; what it does after its first reply is up to `replies`."""
    gate = asyncio.Event()
    server = ModelServer([Reply(text="At work.", gate=gate), *replies])
    async with store_engine(home, server) as engine:
        task = await engine.parts.start("Begin")
        store, _ = await engine.open(task.conversation_id)
        models = ModelStore(engine.stores.session)
        pictures = PastedFiles(home / "data" / "attachments" / "pasted")
        view = ConversationView(store, engine.stores, models, theme, application.clipboard(), pictures)
        view.resize(900, 700)
        view.show()
        try:
            await server.request(0)
            yield Desk(view, engine, server, gate)
        finally:
            gate.set()
            engine.stores.close(store)
            view.close()
            view.deleteLater()


os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

_OPENS_WITHIN_S = 25.0


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """What a person has before them, and what they do with it."""

    window: MainWindow
    stores: Stores
    theme: Theme
    application: QApplication

    @property
    def front(self) -> ConversationView:
        return self.window.desk.front

    @property
    def rows(self) -> list[Row]:
        """The transcript in front."""
        return [self.front.store.row(index) for index in range(self.front.store.count())]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let Qt and asyncio work until something holds."""
        async with asyncio.timeout(_OPENS_WITHIN_S):
            while not holds():
                self.application.processEvents()
                await asyncio.sleep(0.005)

    async def press(self, name: str, place: QWidget | None = None) -> None:
        """Click the button of that name once it can be clicked."""
        within = place or self.window
        await self.until(lambda: _button(within, name) is not None)
        button = _button(within, name)
        assert button is not None
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    async def begin(self, text: str) -> None:
        """Say this once the engine is there."""
        await self.until(lambda: self.stores.session.state == "ready")
        self.type(text)
        self.enter()

    def type(self, text: str) -> None:
        """Into the composer in front."""
        QTest.keyClicks(self.front.composer.field, text)

    def enter(self, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.keyClick(self.front.composer.field, Qt.Key.Key_Return, modifiers)


@asynccontextmanager
async def open_window(application: QApplication, home: Path) -> AsyncGenerator[OpenWindow]:
    """Opened anew on the same home it is the same window after a restart; the engine outlives it."""
    paths = Paths(home)
    paths.prepare()
    theme = Theme()
    theme.apply(application)
    state = WindowStateStore(home / "window.json")
    stores = make_stores(lambda: connect(paths, "errand window"))
    window = build_window(application, stores, paths, state, theme)
    window.show()
    window.desk.restore()
    stores.session.spawn(stores.session.start())
    try:
        yield OpenWindow(window, stores, theme, application)
    finally:
        state.kept.told_of_background = True
        window.close()
        await stores.session.close()
        window.deleteLater()
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete)  # no loop of Qt's runs that would do it
        application.processEvents()


def _button(place: QWidget, name: str) -> QAbstractButton | None:
    for button in place.findChildren(QAbstractButton):
        if button.isVisible() and button.isEnabled() and name in (button.text(), button.accessibleName()):
            return button
    return None


class Eyes:
    """Not on a window of ours until `look_at`."""

    def __init__(self) -> None:
        self._conversation = ""
        self._on_us = False

    def look_at(self, conversation_id: str) -> None:
        self._conversation, self._on_us = conversation_id, True

    def look_away(self) -> None:
        self._conversation, self._on_us = "", False

    def conversation(self) -> str:
        return self._conversation

    def on_us(self) -> bool:
        return self._on_us
