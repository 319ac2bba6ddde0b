"""Behaviours 75 to 77: separate conversation windows and the palette, with a real engine."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from errand.client.conversation.rows import ReplyRow
from errand.window.views.settings.dialog import SettingsDialog
from errand.window.views.shared.picker import PickerDialog
from tests.support.command_line import Errand
from tests.support.model_replies import speak_to
from tests.support.model_server import ModelServer, Reply
from tests.support.open_window import OpenWindow, open_window


def palette(person: OpenWindow, text: str) -> PickerDialog:
    person.window.commands.trigger("palette")
    picker = next(dialog for dialog in person.window.findChildren(PickerDialog) if dialog.isVisible())
    field = picker.findChild(QLineEdit)
    assert isinstance(field, QLineEdit)
    QTest.keyClicks(field, text)
    return picker


def dialogs(person: OpenWindow) -> list[SettingsDialog]:
    return [dialog for dialog in person.window.findChildren(SettingsDialog) if dialog.isVisible()]


def focused(dialog: SettingsDialog) -> str:
    fields = dialog.findChildren(QLineEdit)
    return next((field.accessibleName() for field in fields if field.hasFocus()), "")


async def test_a_task_is_stopped_by_keys_in_its_own_window_which_is_restored_after_a_restart(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[Reply(text="A long answer", stall_after=2)]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as first:
            await first.begin("write a book")
            await first.until(lambda: any(isinstance(row, ReplyRow) for row in first.rows))
            first.window.commands.trigger("own_window")
            (own,) = first.window.conversations.windows
            assert "working — Errand" in own.windowTitle()
            assert first.window.tabs.open_ids == ()
            QTest.keyClick(own, Qt.Key.Key_Period, Qt.KeyboardModifier.ControlModifier)
            await first.until(lambda: "stopped — Errand" in own.windowTitle())
        async with open_window(qapp, own_errand.home) as second:
            (own,) = second.window.conversations.windows
            await second.until(lambda: any(isinstance(row, ReplyRow) for row in second.rows))
            second.window.commands.trigger("own_window")
            assert second.window.tabs.open_ids == (own.page.conversation_id,)


async def test_going_to_an_ask_activates_the_conversations_own_window(person: OpenWindow) -> None:
    await person.press("Play the tour")
    await person.until(lambda: len(person.stores.asks.waiting()) == 2)
    person.window.commands.trigger("next_ask")
    asked = person.window.conversations.active_id
    person.window.commands.trigger("own_window")
    (own,) = person.window.conversations.windows
    person.window.commands.trigger("next_ask")
    assert person.window.conversations.active_window is None
    person.window.commands.trigger("next_ask")
    assert person.window.conversations.active_window is own
    assert person.window.conversations.active_id == asked


async def test_the_palette_finds_settings_and_focuses_the_field(person: OpenWindow) -> None:
    await person.until(lambda: person.stores.session.state == "ready")
    picker = palette(person, "turns")
    await person.until(lambda: bool(picker.shown))
    title = picker.shown[0]
    field = picker.findChild(QLineEdit)
    assert isinstance(field, QLineEdit)
    QTest.keyClick(field, Qt.Key.Key_Return)
    await person.until(lambda: [focused(dialog) for dialog in dialogs(person)] == [title])
