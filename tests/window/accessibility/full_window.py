"""A main window on a real engine with every kind of content: for tests that visit all views."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication, QWidget

from errand.engine.tools.shell.background import BackgroundCommands
from errand.protocol.conversations import CONVERSATION_CHANGE, ConversationChangeParams
from errand.protocol.tasks.methods import TaskRetryParams
from errand.system.paths import Paths
from errand.window.main import build_window
from errand.window.rows.disclosure import DisclosureButton
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.conversation.find_bar import FindBarView
from errand.window.views.shell.main_window import MainWindow
from tests.support.model_replies import results
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.window import until

_POEM = "# A poem\n\nRoses are **red**, [violets](https://example.org) are `blue`.\n\n```python\nprint('sugar')\n```"


@dataclass(frozen=True, slots=True)
class WindowFixture:
    """A full window; `branched` is a conversation with two branches, `busy` one with a running task and a queue.

    `serving` has a command in the background.
    """

    home: Path
    window: MainWindow
    engine: StoreEngine
    theme: Theme
    branched: str
    busy: str
    asking: str
    approving: str
    serving: str
    _widgets: list[QWidget] = field(default_factory=list[QWidget])

    @property
    def front(self) -> ConversationView:
        return self.window.conversations.active

    async def open(self, conversation_id: str) -> ConversationView:
        """Show a conversation and wait until it is loaded and painted."""
        self.window.conversations.open(conversation_id)
        await until(lambda: self.front.store.is_loaded and self.front.store.count() > 0)
        self.front.transcript.lay_out()
        self.window.grab()
        return self.front

    def line_texts(self) -> list[str]:
        """The visible lines of the transcript that expand."""
        return [line.text() for line in self.front.findChildren(DisclosureButton) if line.isVisible()]

    def keep(self, widget: QWidget) -> None:
        """Keep a reference until the next view."""
        self._widgets.append(widget)

    def tidy(self) -> None:
        """Close dialogs and searches over the window, so that the next view is alone."""
        for widget in QApplication.topLevelWidgets():
            if widget is not self.window and widget.isVisible():
                widget.close()
        for widget in self._widgets:
            widget.deleteLater()
        self._widgets.clear()
        self.window.sidebar.search.clear()
        for search in self.window.findChildren(FindBarView):
            search.close_search()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        self.window.activateWindow()


@asynccontextmanager
async def window_fixture(application: QApplication, theme: Theme, home: Path) -> AsyncGenerator[WindowFixture]:
    gate = asyncio.Event()
    server = ModelServer(answer=lambda request: _answer(request, gate))
    theme.set_motion(False)
    async with store_engine(home, server) as engine:
        state = WindowStateStore(home / "window.json")
        state.settings.recent_folders = [str(home)]
        window = build_window(application, engine.stores, Paths(home / "data"), state, theme)
        window.show()
        window.resize(state.settings.width, state.settings.height)  # the screen of these tests is smaller
        try:
            yield await _furnish(home, window, engine, theme)
        finally:
            gate.set()
            state.settings.told_of_background = True
            window.close()
            window.deleteLater()


async def _furnish(home: Path, window: MainWindow, engine: StoreEngine, theme: Theme) -> WindowFixture:
    parts = engine.parts
    poem = await parts.watcher.end((await parts.start("Write a poem")).id)
    reply = next(node for node in parts.watcher.nodes() if node.role == "assistant")
    again = await parts.services.runner.retry(TaskRetryParams(node_id=reply.id))
    await parts.watcher.end(again.id)
    old = await parts.watcher.end((await parts.start("Something long ago")).id)
    busy = await parts.start("Work")
    await parts.say(busy.id, "And mind the tests", "steer")
    await parts.say(busy.id, "Then write it down", "follow_up")
    asking = await parts.start("Ask me", attended=True)
    approving = await parts.start("Delete it", approve="ask")
    for task in (asking, approving):
        await parts.watcher.ask(task.id)
    serving = await parts.watcher.end((await parts.start("Serve")).id)
    commands = parts.services.tools.sessions.find(serving.conversation_id, BackgroundCommands)
    assert commands is not None and commands.commands()[0].ended_at is None, results(parts.watcher.nodes())
    for change in (
        ConversationChangeParams(conversation_id=old.conversation_id, archived=True),
        ConversationChangeParams(conversation_id=poem.conversation_id, pinned=True),
    ):
        await engine.stores.session.call(CONVERSATION_CHANGE, change)
    await until(lambda: len(engine.stores.asks.waiting()) == 2)
    branched, at_work, asks, waits, serves = (task.conversation_id for task in (poem, busy, asking, approving, serving))
    return WindowFixture(home, window, engine, theme, branched, at_work, asks, waits, serves)


def _answer(request: ReceivedRequest, gate: asyncio.Event) -> Reply:
    user_texts = [str(message["content"]) for message in request.messages if message.get("role") == "user"]
    match user_texts[0].partition("\n")[0] if user_texts else "":  # what was added meanwhile comes with it
        case "Work":
            return Reply(text="At work.", gate=gate)
        case "Ask me" | "Delete it" if request.messages[-1].get("role") == "tool":
            return Reply(text="Noted.")  # it does not ask again: a test waits until nothing is asked
        case "Ask me":
            return Reply(calls=(Call("ask_user", {"question": "Which colour?", "choices": ["Blue", "Green"]}),))
        case "Serve" if request.messages[-1].get("role") != "tool":
            return Reply(calls=(Call("shell", {"command": "echo ready; exec sleep 4723", "background": True}),))
        case "Serve":
            return Reply(text="It runs.")
        case "Delete it":
            return Reply(calls=(Call("shell", {"command": "rm -rf build"}),))
        case _:
            return Reply(text=_POEM, thinking="A poem is wanted, a short one.")


def top(kind: type[QWidget]) -> QWidget:
    """The open dialog of that type."""
    return next(widget for widget in QApplication.topLevelWidgets() if isinstance(widget, kind) and widget.isVisible())
