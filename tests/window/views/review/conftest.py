"""A conversation with its review, on a real engine, whose task changes files through its real tools."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from errand.window.stores.catalog import ModelStore
from errand.window.stores.welcome import WelcomeStore
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.drop_payload import PastedFiles
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.conversation.services import ViewServices
from errand.window.views.review.review_panel import ReviewPanelView
from tests.engine.checkpoints.parts import Work
from tests.support.model_server import ModelServer, Reply
from tests.support.store_engine import store_engine
from tests.support.window import until

LINES = "".join(f"line {number}\n" for number in range(1, 101))


def with_lines(**lines: str) -> str:
    """`LINES` with some lines replaced: `l3` is the third."""
    edited = LINES.splitlines(keepends=True)
    for name, text in lines.items():
        edited[int(name[1:]) - 1] = f"{text}\n"
    return "".join(edited)


@dataclass(frozen=True, slots=True)
class Review:
    view: ConversationView
    work: Work
    clipboard: list[str]

    @property
    def panel(self) -> ReviewPanelView:
        return self.view.review.panel

    @property
    def names(self) -> list[str]:
        files = self.panel.files
        return [files.item(row).text() for row in range(files.count())]

    @property
    def labels(self) -> list[str]:
        return [label.text() for label in self.panel.findChildren(QLabel) if label.isVisible()]

    async def open(self) -> ReviewPanelView:
        """Open the review; its first diff is there."""
        await until(lambda: bool(self.view.changes.tasks))
        self.view.review.toggle()
        await until(lambda: self.panel.file.diff.hunk is not None)
        return self.panel

    async def choose(self, name: str) -> None:
        """Select a file; its diff is there."""
        self.panel.files.select(name)
        await until(lambda: self.panel.file.diff.hunk is not None)

    def key(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        focused = self.view.focusWidget()
        assert isinstance(focused, QWidget)
        QTest.keyClick(focused, key, modifiers)


@asynccontextmanager
async def review_in(qapp: QApplication, theme: Theme, home: Path) -> AsyncGenerator[Review]:
    async with store_engine(home, ModelServer(answer=lambda _: Reply(text="Done."))) as engine:
        started = await engine.parts.start()
        work = Work(engine.parts, await engine.parts.watcher.end(started.id))
        store, _ = await engine.open(started.conversation_id)
        state = WindowStateStore(home / "window.json")
        models, welcome = ModelStore(engine.stores.session, state), WelcomeStore(engine.stores.session, state)
        pasted = PastedFiles(home / "data" / "attachments" / "pasted")
        view = ConversationView(store, ViewServices(engine.stores, models, welcome, theme, qapp.clipboard(), pasted))
        view.resize(1300, 800)
        view.show()
        view.activateWindow()
        try:
            yield Review(view, work, [])
        finally:
            engine.stores.close(store)
            view.close()
            view.deleteLater()
