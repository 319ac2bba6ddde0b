"""Behaviours 121 to 123: Esc everywhere in the window, and find in a conversation with branches."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QWidget

from errand.client.conversation.rows import AskRow, ReplyRow, TaskEndRow
from errand.window.rows.asks.ask import AskView
from errand.window.views.branches.tree_panel import TreePanelView
from errand.window.views.conversation.find_bar import FindBarView
from tests.support.command_line import Errand
from tests.support.model_replies import speak_to
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.open_window import OpenWindow, open_window


def key(person: OpenWindow, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    """Press the key in the focused widget."""
    QTest.keyClick(person.window.focusWidget() or person.window, key, modifiers)


def escape(person: OpenWindow, widget: QWidget) -> None:
    widget.setFocus()
    key(person, Qt.Key.Key_Escape)


def stops(person: OpenWindow) -> bool:
    task = person.front.store.task
    return task is not None and (task.activity.stopping or task.outcome.ended_at is not None)


async def test_esc_closes_the_nearest_part_and_stops_the_task_only_in_the_conversation(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[Reply(text="A long answer", stall_after=2)]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            await person.begin("write a book")
            await person.until(lambda: any(isinstance(row, ReplyRow) for row in person.rows))
            sidebar, composer = person.window.sidebar, person.front.composer
            QTest.keyClicks(sidebar.search, "book")
            escape(person, sidebar.search)
            assert (sidebar.search.text(), person.window.focusWidget()) == ("", sidebar.search)
            for widget in (sidebar.search, sidebar.list, person.window.tabs.bar):
                escape(person, widget)
                assert person.window.focusWidget() is composer.field
            person.window.commands.trigger("tree")
            (panel,) = person.front.findChildren(TreePanelView)
            escape(person, panel)
            assert (panel.isVisible(), person.window.focusWidget()) == (True, composer.field)
            person.window.commands.trigger("find")
            (bar,) = person.front.findChildren(FindBarView)
            escape(person, person.front.transcript)
            assert not bar.isVisible() and not stops(person)
            escape(person, person.front.transcript)
            escape(person, person.front.transcript)
            await person.until(lambda: stops(person))


async def test_esc_closes_the_field_for_a_denial_reason_and_then_stops_the_task(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[Reply(calls=(Call("shell", {"command": "touch later"}),))]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            await person.begin("touch it")
            await person.until(lambda: any(isinstance(row, AskRow) for row in person.rows))
            await person.press("Deny with reason…")
            (card,) = person.front.findChildren(AskView)
            (field,) = (field for field in card.findChildren(QLineEdit) if field.isVisible())
            assert person.window.focusWidget() is field
            QTest.keyClicks(field, "not now")
            key(person, Qt.Key.Key_Escape)
            button = person.window.focusWidget()
            assert isinstance(button, QPushButton) and button.accessibleName() == "Deny with reason…"
            assert not field.isVisible() and not stops(person)
            key(person, Qt.Key.Key_Escape)
            key(person, Qt.Key.Key_Escape)
            await person.until(lambda: stops(person))


async def test_find_steps_through_its_hits_and_switches_to_another_branch(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[Reply(text="A walrus, and a walrus."), Reply(text="A seal.")]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:

            def replies() -> list[str]:
                done = person.rows and isinstance(person.rows[-1], TaskEndRow)
                return [row.markdown for row in person.rows if isinstance(row, ReplyRow)] if done else []

            await person.begin("name an animal")
            await person.until(lambda: replies() == ["A walrus, and a walrus."])
            person.window.commands.trigger("find")
            (bar,) = person.front.findChildren(FindBarView)
            QTest.keyClicks(bar.field, "walrus")
            key(person, Qt.Key.Key_Return)
            await person.until(lambda: bar.count.text() == "1 of 2")
            key(person, Qt.Key.Key_F3)
            assert bar.count.text() == "2 of 2"
            key(person, Qt.Key.Key_F3, Qt.KeyboardModifier.ShiftModifier)
            assert bar.count.text() == "1 of 2"
            await person.press("Retry")
            await person.until(lambda: replies() == ["A seal."])
            bar.field.clear()
            QTest.keyClicks(bar.field, "walrus")
            bar.field.setFocus()
            key(person, Qt.Key.Key_Return)
            await person.press("Show 1 in another branch", bar)
            await person.until(lambda: replies() == ["A walrus, and a walrus."])
            await person.until(lambda: bar.count.text() == "1 of 2")
