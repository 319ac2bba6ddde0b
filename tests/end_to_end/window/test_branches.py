"""Behaviours 110 to 112: in the window with a real engine, edit a message, retry a reply, keep a branch."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from errand.client.conversation.rows import BranchEndRow, BranchSwitchRow, ReplyRow, TaskEndRow, UserRow
from errand.window.rows.edit import MessageEditField
from errand.window.rows.task_end import TaskEndView
from tests.support.command_line import Errand
from tests.support.model_replies import speak_to
from tests.support.model_server import ModelServer, Reply
from tests.support.open_window import OpenWindow, open_window


def said(person: OpenWindow) -> list[str]:
    """The texts of people and the agent, and the branch switches between."""
    texts: list[str] = []
    for row in person.rows:
        match row:
            case UserRow(text=text) | ReplyRow(markdown=text):
                texts.append(text)
            case BranchSwitchRow(number=number, count=count):
                texts.append(f"{number}/{count}")
            case _:
                pass
    return texts


async def until_said(person: OpenWindow, *texts: str) -> None:
    await person.until(lambda: said(person) == [*texts] and isinstance(person.rows[-1], TaskEndRow))


def field_of(person: OpenWindow) -> MessageEditField | None:
    """The focused field, if it edits a message."""
    widget = person.window.focusWidget()
    return widget if isinstance(widget, MessageEditField) else None


def end_of(person: OpenWindow, number: int) -> TaskEndView:
    """The visible end rows of tasks, from the top."""
    ends = [block for block in person.front.transcript.findChildren(TaskEndView) if block.isVisible()]
    return sorted(ends, key=TaskEndView.y)[number]


async def test_up_edits_the_last_message_and_the_switch_shows_its_versions(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[Reply(text="A poem."), Reply(text="An ode.")]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            await person.begin("write a poem")
            await until_said(person, "write a poem", "A poem.")
            QTest.keyClick(person.front.composer.field, Qt.Key.Key_Up)
            await person.until(lambda: field_of(person) is not None)
            field = field_of(person)
            assert field is not None and field.toPlainText() == "write a poem"
            field.selectAll()
            QTest.keyClicks(field, "write an ode")
            QTest.keyClick(field, Qt.Key.Key_Return)
            await until_said(person, "write an ode", "2/2", "An ode.")
            assert person.window.focusWidget() is person.front.composer.field
            await person.press("Previous version")
            await until_said(person, "write a poem", "1/2", "A poem.")
            await person.press("Next version")
            await until_said(person, "write an ode", "2/2", "An ode.")
            await person.press("Previous version")
            await until_said(person, "write a poem", "1/2", "A poem.")
        async with open_window(qapp, own_errand.home) as again:
            await until_said(again, "write a poem", "1/2", "A poem.")


async def test_a_reply_that_broke_off_is_retried_as_another_version(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(
        replies=[Reply(text="A long poem", stall_after=2), Reply(text="A poem."), Reply(text="More.")]
    ) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            await person.begin("write a poem")
            await person.until(lambda: any(isinstance(row, ReplyRow) for row in person.rows))
            await person.press("Stop", person.front.composer)
            await person.press("Retry", person.front.transcript)
            await until_said(person, "write a poem", "2/2", "A poem.")
            await person.press("Previous version")
            await person.until(lambda: "1/2" in said(person) and isinstance(person.rows[-1], TaskEndRow))
            assert "A poem." not in said(person)
            person.type("go on")
            person.enter()
            await until_said(person, "write a poem", "1/2", said(person)[2], "go on", "More.")
            await person.press("New branch from here", end_of(person, 0))
            await person.until(lambda: isinstance(person.rows[-1], BranchEndRow))
            assert person.window.focusWidget() is person.front.composer.field
            await person.press("Go back")
            await person.until(lambda: "More." in said(person))
            assert person.window.focusWidget() is person.front.transcript


async def test_esc_cancels_a_message_edit_and_stops_no_task(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[Reply(text="A long poem", stall_after=2)]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            await person.begin("write a poem")
            await person.until(lambda: any(isinstance(row, ReplyRow) for row in person.rows))
            await person.press("Edit message")
            await person.until(lambda: field_of(person) is not None)
            field = field_of(person)
            assert field is not None
            QTest.keyClick(field, Qt.Key.Key_Escape)
            await person.until(lambda: field_of(person) is None)
            assert any(isinstance(row, UserRow) for row in person.rows)
            task = person.front.store.task
            assert task is not None and not task.activity.stopping and task.outcome.ended_at is None
            for _ in range(2):
                QTest.keyClick(person.window.focusWidget(), Qt.Key.Key_Escape)
            await person.until(lambda: isinstance(person.rows[-1], TaskEndRow))
