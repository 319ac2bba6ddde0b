"""A person before one conversation: its real view on a real engine, whose task waits until they let it go on."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from app.protocol.tasks import Task
from app.window.models import ModelStore
from app.window.pasted import PastedFiles
from app.window.theme.theme import Theme
from app.window.views.conversation_view import ConversationView
from app.window.views.queue_row import QueueRow
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.until import until


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

    def row(self, place: int) -> QueueRow:
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
