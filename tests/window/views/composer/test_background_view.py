"""The list of background commands above the input, on a real engine."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.protocol.background import BACKGROUND_LIST, BackgroundListParams
from app.window.theme.theme import Theme
from app.window.views.composer.background_view import BackgroundOutputDialog, BackgroundView
from tests.support.model_server import Call, Reply
from tests.support.processes import running
from tests.support.window import Desk, desk, press, until


@pytest.fixture
async def person(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[Desk]:
    calls = (
        Call("shell", {"command": "echo listening on 3000; exec sleep 4721", "background": True}),
        Call("shell", {"command": "exec sleep 4722", "background": True}, id="two", index=1),
    )
    replies = [Reply(text="Two servers.", calls=calls), Reply(text="They run.")]
    async with desk(qapp, theme, tmp_path, replies, mode="chat", approve="all") as opened:
        yield opened


def shown(person: Desk) -> BackgroundView:
    return person.view.input_panel.background


async def started(person: Desk) -> BackgroundView:
    view = shown(person)
    assert view.isHidden()
    person.gate.set()
    await until(lambda: person.task.ended_at is not None)
    person.view.store.requests.send("go")
    await until(lambda: len(view.rows) == 2)
    return view


async def test_they_are_counted_listed_and_stopped_by_mouse_and_keyboard(person: Desk) -> None:
    view = await started(person)
    assert view.isVisible() and view.header.accessibleName() == "2 background commands"
    assert not view.rows[0].isVisible()
    QTest.keyClick(view.header, Qt.Key.Key_Return)
    assert view.rows[0].isVisible()
    name = view.rows[0].accessibleName()
    assert name.startswith("Background command 1: echo listening on 3000; exec sleep 4721, running for")
    press(view.rows[0], "Stop")
    await until(lambda: len(view.rows) == 1)
    assert not running("4721")
    view.rows[0].setFocus()
    QTest.keyClick(view.rows[0], Qt.Key.Key_Delete)
    await until(view.isHidden)
    assert not running("4722")


async def test_the_output_opens_in_a_window(person: Desk) -> None:
    view = await started(person)
    view.header.setChecked(True)
    QTest.keyClick(view.rows[0], Qt.Key.Key_Return)
    dialog = view.window().findChild(BackgroundOutputDialog)
    assert isinstance(dialog, BackgroundOutputDialog)
    await until(lambda: dialog.text.toPlainText().strip() == "listening on 3000")
    dialog.close()


async def test_they_are_there_after_the_conversation_was_loaded_again(person: Desk) -> None:
    view = await started(person)
    found = await person.engine.stores.session.call(BACKGROUND_LIST, BackgroundListParams())
    assert [one.command for one in found.commands] == ["echo listening on 3000; exec sleep 4721", "exec sleep 4722"]
    person.view.store.background.put(())
    assert view.isHidden()
    person.view.store.load()
    await until(lambda: len(view.rows) == 2)
