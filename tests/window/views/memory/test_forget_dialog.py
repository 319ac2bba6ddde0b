"""Forgetting a message from its conversation, on a real engine."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import UserRow
from errand.protocol.conversations import Node
from errand.window.stores.memory.entries import ForgetStore
from errand.window.theme.theme import Theme
from errand.window.views.memory.forget_dialog import ForgetDialog
from tests.support.model_server import ModelServer, Reply
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.window import until
from tests.window.views.memory.conftest import has, press, visible


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[StoreEngine]:
    async with store_engine(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as running:
        yield running


async def said(engine: StoreEngine) -> Node:
    """The message of a finished task."""
    task = await engine.parts.start("The safe is behind the mirror", mode="chat")
    await engine.parts.watcher.end(task.id)
    return next(node for node in engine.parts.watcher.nodes() if node.role == "user")


async def test_a_message_is_forgotten_after_a_question_and_its_row_says_so(
    engine: StoreEngine, theme: Theme, qtbot: QtBot
) -> None:
    message = await said(engine)
    _, mirror = await engine.open(message.conversation_id)
    holder = QWidget()
    qtbot.addWidget(holder)
    store = ForgetStore(engine.stores.session, holder)
    dialog = ForgetDialog(store, theme, message.id, holder)
    dialog.open()
    await until(lambda: has(dialog, "This permanently removes 1 text"))
    assert dialog.focusWidget() is visible(dialog)["Cancel"]
    await press(dialog, "Forget permanently")
    await until(lambda: has(dialog, "Forgotten: 1 text"))
    assert has(dialog, "Not removed: files in workspaces")
    await until(lambda: isinstance(mirror.rows[0], UserRow) and "mirror" not in mirror.rows[0].text)
    await press(dialog, "Close")


async def test_kept_it_changes_nothing(engine: StoreEngine, theme: Theme, qtbot: QtBot) -> None:
    message = await said(engine)
    _, mirror = await engine.open(message.conversation_id)
    holder = QWidget()
    qtbot.addWidget(holder)
    dialog = ForgetDialog(ForgetStore(engine.stores.session, holder), theme, message.id, holder)
    dialog.open()
    await press(dialog, "Cancel")
    assert not dialog.isVisible()
    first = mirror.rows[0]
    assert isinstance(first, UserRow) and first.text == "The safe is behind the mirror"


async def test_an_unknown_message_is_refused_in_words(engine: StoreEngine, theme: Theme, qtbot: QtBot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    dialog = ForgetDialog(ForgetStore(engine.stores.session, holder), theme, "node_none", holder)
    dialog.open()
    await until(lambda: "Close" in visible(dialog))
    assert has(dialog, "node_none") and "Forget permanently" not in visible(dialog)
    dialog.reject()
