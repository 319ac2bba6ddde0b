"""Waits for a window: runs the event loops of Qt and asyncio alternately until a condition holds."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from errand.protocol.tasks.groups import ApproveMode, TaskMode
from errand.protocol.tasks.task import Task
from errand.window.stores.catalog import ModelStore
from errand.window.stores.welcome import WelcomeStore
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.drop_payload import PastedFiles
from errand.window.views.composer.queue_view import QueuedMessageView
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.conversation.services import ViewServices
from tests.support.limits import WAIT_LIMIT_S, seldom
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.store_engine import StoreEngine, store_engine

_PAUSE_S = 0.005


async def until(condition: Callable[[], bool]) -> None:
    """Run until a condition holds. Raises TimeoutError after WAIT_LIMIT_S."""
    give_up_at, holds = time.monotonic() + WAIT_LIMIT_S, seldom(condition)
    while not holds():
        if time.monotonic() > give_up_at:
            raise TimeoutError("The condition did not come to hold.")
        QCoreApplication.processEvents()
        await asyncio.sleep(_PAUSE_S)


@dataclass(frozen=True, slots=True)
class ViewFixture:
    """A conversation view with a running task, whose model waits: the first reply comes when `gate` is set."""

    view: ConversationView
    engine: StoreEngine
    server: ModelServer
    gate: asyncio.Event

    @property
    def waiting(self) -> list[str]:
        """The queue as a screen reader reads it."""
        return [row.text.removeprefix("Waits for ") for row in self.view.input_panel.queue.rows]

    @property
    def task(self) -> Task:
        task = self.view.store.task
        assert task is not None
        return task

    def row(self, index: int) -> QueuedMessageView:
        """A line of the queue, which gets the focus."""
        row = self.view.input_panel.queue.rows[index]
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
        """Let the task end; returns the user messages in the model's last request, in order."""
        self.gate.set()
        await until(lambda: self.task.outcome.ended_at is not None)
        return user_texts(self.server.requests[-1])


def press(parent: QWidget, name: str) -> None:
    """Click the button with that name."""
    buttons = {button.accessibleName(): button for button in parent.findChildren(QAbstractButton)}
    QTest.mouseClick(buttons[name], Qt.MouseButton.LeftButton)


def user_texts(request: ReceivedRequest) -> list[str]:
    return [str(message["content"]) for message in request.messages if message.get("role") == "user"]


@asynccontextmanager
async def view_fixture(
    application: QApplication,
    theme: Theme,
    home: Path,
    replies: Sequence[Reply],
    mode: TaskMode = "auto",
    approve: ApproveMode = "ask",
) -> AsyncGenerator[ViewFixture]:
    """A window with a started task; `replies` follow its first reply."""
    gate = asyncio.Event()
    server = ModelServer([Reply(text="At work.", gate=gate), *replies])
    async with store_engine(home, server) as engine:
        task = await engine.parts.start("Begin", mode=mode, approve=approve)
        store, _ = await engine.open(task.conversation_id)
        state = WindowStateStore(home / "window.json")
        models, welcome = ModelStore(engine.stores.session, state), WelcomeStore(engine.stores.session, state)
        pictures = PastedFiles(home / "data" / "attachments" / "pasted")
        view = ConversationView(
            store, ViewServices(engine.stores, models, welcome, theme, application.clipboard(), pictures)
        )
        view.resize(900, 700)
        view.show()
        try:
            await server.request(0)
            yield ViewFixture(view, engine, server, gate)
        finally:
            gate.set()
            engine.stores.close(store)
            view.close()
            view.deleteLater()


class Eyes:
    """The user's attention: on no window of ours until `look_at`."""

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
