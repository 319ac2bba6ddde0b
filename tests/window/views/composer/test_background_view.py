"""The list of background commands above the input, on a real engine."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit

from errand.protocol.background import BACKGROUND_LIST, BackgroundListParams
from errand.window.theme.theme import Theme
from errand.window.views.composer.background_output import BackgroundOutputDialog
from errand.window.views.composer.background_view import BackgroundView
from tests.support.model_server import Call, Reply
from tests.support.processes import running
from tests.support.window import ViewFixture, press, until, view_fixture


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[ViewFixture]:
    calls = (
        Call("shell", {"command": "echo listening on 3000; exec sleep 4751", "background": True}),
        Call("shell", {"command": "exec sleep 4752", "background": True}, id="two", index=1),
    )
    replies = [Reply(text="Two servers.", calls=calls), Reply(text="They run.")]
    async with view_fixture(qapp, theme, tmp_path, replies, mode="chat", approve="all") as fixture:
        yield fixture


def shown(fixture: ViewFixture) -> BackgroundView:
    return fixture.view.input_panel.background


async def started(fixture: ViewFixture) -> BackgroundView:
    view = shown(fixture)
    assert view.isHidden()
    fixture.gate.set()
    await until(lambda: fixture.task.outcome.ended_at is not None)
    fixture.view.store.commands.send("go")
    await until(lambda: len(view.rows) == 2)
    return view


async def test_they_are_counted_listed_and_stopped_by_mouse_and_keyboard(fixture: ViewFixture) -> None:
    view = await started(fixture)
    assert view.isVisible() and view.header.accessibleName() == "2 background commands"
    assert not view.rows[0].isVisible()
    QTest.keyClick(view.header, Qt.Key.Key_Return)
    assert view.rows[0].isVisible()
    name = view.rows[0].accessibleName()
    assert name.startswith("Background command 1: echo listening on 3000; exec sleep 4751, running since")
    press(view.rows[0], "Stop")
    await until(lambda: len(view.rows) == 1)
    assert not running("4751")
    view.rows[0].setFocus()
    QTest.keyClick(view.rows[0], Qt.Key.Key_Delete)
    await until(view.isHidden)
    assert not running("4752")


async def test_the_output_opens_in_a_window(fixture: ViewFixture) -> None:
    view = await started(fixture)
    view.header.setChecked(True)
    QTest.keyClick(view.rows[0], Qt.Key.Key_Return)
    dialog = view.window().findChild(BackgroundOutputDialog)
    assert isinstance(dialog, BackgroundOutputDialog)
    await until(lambda: dialog.text.toPlainText().strip() == "listening on 3000")
    assert not dialog.field.isVisible(), "it has no terminal"
    view.rows[0].open_output()
    assert view.window().findChildren(BackgroundOutputDialog) == [dialog]
    dialog.stop_button.click()
    await until(lambda: not dialog.stop_button.isVisible())
    assert any(label.text().startswith("stopped after") for label in dialog.findChildren(QLabel))
    dialog.close()


async def test_they_are_there_after_the_conversation_was_loaded_again(fixture: ViewFixture) -> None:
    view = await started(fixture)
    listing = await fixture.engine.stores.session.call(BACKGROUND_LIST, BackgroundListParams())
    assert [command.command for command in listing.commands] == [
        "echo listening on 3000; exec sleep 4751",
        "exec sleep 4752",
    ]
    fixture.view.store.background.put(())
    assert view.isHidden()
    fixture.view.store.load()
    await until(lambda: len(view.rows) == 2)


async def test_a_line_is_typed_into_the_terminal_of_a_command(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    asks = "read -p 'Your name? ' name; echo hello $name; read -s -p 'Password: ' word; echo; echo $word | rev; sleep 9"
    calls = (Call("shell", {"command": asks, "background": True, "pty": True}),)
    replies = [Reply(text="A prompt.", calls=calls), Reply(text="It runs.")]
    async with view_fixture(qapp, theme, tmp_path, replies, mode="chat", approve="all") as fixture:
        fixture.gate.set()
        await until(lambda: fixture.task.outcome.ended_at is not None)
        fixture.view.store.commands.send("go")
        view = shown(fixture)
        await until(lambda: len(view.rows) == 1 and "1 waiting for input" in view.header.accessibleName())
        view.rows[0].open_output()
        dialog = view.window().findChild(BackgroundOutputDialog)
        assert isinstance(dialog, BackgroundOutputDialog)
        assert dialog.field.echoMode() == QLineEdit.EchoMode.Normal
        QTest.keyClicks(dialog.field, "Ann")
        QTest.keyClick(dialog.field, Qt.Key.Key_Return)
        await until(lambda: "hello Ann" in dialog.text.toPlainText())
        assert dialog.field.text() == ""
        await until(lambda: dialog.field.echoMode() == QLineEdit.EchoMode.Password)
        QTest.keyClicks(dialog.field, "drow")
        press(dialog, "Send")
        await until(lambda: "word" in dialog.text.toPlainText())
        press(dialog, "Send Ctrl+C to interrupt the program")
        await until(lambda: not dialog.field.isVisible())
        dialog.close()
