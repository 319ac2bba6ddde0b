"""Keys and clicks that were meant for something else decide nothing: text being written, a card that just appeared."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QPlainTextEdit, QWidget

from errand.client.conversation.rows import UserRow
from errand.protocol.events import AskUpdate
from errand.window.rows.edit import MessageEditField
from errand.window.stores.conversation.commands import WorkspaceQuestion
from errand.window.theme.theme import Theme
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.conversation.dialogs import WorkspaceDialog
from errand.window.widgets.input.reaction_time import ReactionTime
from tests.support.window import until
from tests.window.accessibility.full_window import WindowFixture, window_fixture

CONTROL = Qt.KeyboardModifier.ControlModifier
NO_MODIFIER = Qt.KeyboardModifier.NoModifier
KEY = Qt.Key


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def read(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(ReactionTime, "clock", clock.read)
    return clock


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[WindowFixture]:
    async with window_fixture(qapp, theme, tmp_path) as fixture:
        fixture.window.activateWindow()
        QApplication.processEvents()
        yield fixture


def press(key: Qt.Key, modifiers: Qt.KeyboardModifier = NO_MODIFIER) -> None:
    focused = QApplication.focusWidget()
    assert focused is not None
    QTest.keyClick(focused, key, modifiers)
    QApplication.processEvents()


def button(within: QWidget, name: str) -> QAbstractButton:
    buttons = within.findChildren(QAbstractButton)
    return next(
        candidate
        for candidate in buttons
        if name in (candidate.accessibleName(), candidate.text()) and candidate.isVisible()
    )


def outcomes(fixture: WindowFixture) -> list[tuple[bool | None, str]]:
    """Return what was decided about the approvals, with the reasons."""
    events = fixture.engine.parts.watcher.events
    asks = [event.ask for event in events if isinstance(event, AskUpdate) and event.ask.status == "answered"]
    return [(ask.allowed, ask.answer or "") for ask in asks]


def is_waiting(view: ConversationView) -> bool:
    return len(view.store.commands.waiting) == 1


@pytest.mark.parametrize("key", [KEY.Key_Return, KEY.Key_Enter])
async def test_control_enter_sends_what_is_in_the_message_field_and_approves_nothing(
    fixture: WindowFixture, key: Qt.Key
) -> None:
    view = await fixture.open(fixture.approving)
    view.composer.field.setFocus()
    QTest.keyClicks(view.composer.field, "No! Keep it")
    press(key, CONTROL)
    await until(
        lambda: any("No! Keep it" in text for text in fixture.line_texts()) or view.input_panel.queue.isVisible()
    )
    assert (view.composer.text, is_waiting(view)) == ("", True)


async def test_control_enter_in_an_empty_message_field_or_on_the_card_allows_once(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    view.composer.field.setFocus()
    press(KEY.Key_Return, CONTROL)
    await until(lambda: outcomes(fixture)[:1] == [(True, "")])


async def test_control_enter_elsewhere_goes_to_the_card_and_there_it_allows(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    view.transcript.setFocus()
    press(KEY.Key_Return, CONTROL)
    assert is_waiting(view)
    assert QApplication.focusWidget() is button(view, "Allow once")
    press(KEY.Key_Return, CONTROL)
    await until(lambda: outcomes(fixture)[:1] == [(True, "")])


async def test_control_enter_in_a_search_with_text_approves_nothing(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    fixture.window.sidebar.search.setFocus()
    QTest.keyClicks(fixture.window.sidebar.search, "build")
    await until(fixture.window.sidebar.results.isVisible)
    press(KEY.Key_Return, CONTROL)
    assert (is_waiting(view), QApplication.focusWidget()) == (True, fixture.window.sidebar.search)


async def test_control_enter_in_the_field_for_a_reason_denies_with_it(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    view.asks.go_to_next()
    button(view, "Deny with reason…").click()
    field = QApplication.focusWidget()
    assert isinstance(field, QLineEdit)
    QTest.keyClicks(field, "No! Keep it")
    press(KEY.Key_Return, CONTROL)
    await until(lambda: outcomes(fixture) == [(False, "No! Keep it")])


async def test_control_enter_saves_an_edited_message(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    view.store.branches.edit_last()
    (field,) = (field for field in view.findChildren(QPlainTextEdit) if isinstance(field, MessageEditField))
    field.setFocus()
    QTest.keyClicks(field, " again")
    press(KEY.Key_Return, CONTROL)

    def texts() -> list[str]:
        rows = (view.store.row(index) for index in range(view.store.count()))
        return [row.text for row in rows if isinstance(row, UserRow)]

    await until(lambda: texts() == ["Write a poem again"])


async def test_a_key_that_is_held_decides_nothing(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    view.asks.go_to_next()
    view.grab()
    for key, modifiers in ((KEY.Key_Return, NO_MODIFIER), (KEY.Key_Return, CONTROL), (KEY.Key_1, NO_MODIFIER)):
        held = QKeyEvent(QEvent.Type.KeyPress, key, modifiers, "", autorep=True)
        QApplication.sendEvent(button(view, "Allow once"), held)
    assert is_waiting(view)
    assert not any(
        action.autoRepeat() for action in fixture.window.actions() if action.objectName() in ("allow_once", "stop")
    )


async def test_a_card_takes_keys_and_clicks_once_a_person_had_time_to_see_it(
    fixture: WindowFixture, clock: Clock
) -> None:
    view = await fixture.open(fixture.approving)
    view.asks.go_to_next()
    view.grab()
    clock.now += 0.399
    allow = button(view, "Allow once")
    assert allow.isEnabled() and QApplication.focusWidget() is allow, "Tab and screen readers reach it at once"
    for key, modifiers in ((KEY.Key_Return, CONTROL), (KEY.Key_Return, NO_MODIFIER), (KEY.Key_1, NO_MODIFIER)):
        press(key, modifiers)
    press(KEY.Key_Space)
    QTest.mouseClick(allow, Qt.MouseButton.LeftButton)
    allow.click()
    QTest.mouseClick(button(view, "Deny"), Qt.MouseButton.LeftButton)
    view.composer.field.setFocus()
    press(KEY.Key_Return, CONTROL)
    assert is_waiting(view)
    clock.now += 0.002
    press(KEY.Key_Return, CONTROL)
    await until(lambda: outcomes(fixture)[:1] == [(True, "")])


async def test_the_time_of_a_card_begins_again_when_it_was_out_of_sight(fixture: WindowFixture, clock: Clock) -> None:
    view = await fixture.open(fixture.approving)
    clock.now += 10
    await fixture.open(fixture.branched)
    await fixture.open(fixture.approving)
    view.composer.field.setFocus()
    press(KEY.Key_Return, CONTROL)
    assert is_waiting(view)
    clock.now += 1
    press(KEY.Key_Return, CONTROL)
    await until(lambda: outcomes(fixture)[:1] == [(True, "")])


async def test_a_number_that_was_typed_before_the_card_appeared_is_a_message(
    fixture: WindowFixture, clock: Clock
) -> None:
    view = await fixture.open(fixture.approving)
    clock.now += 0.2
    QTest.keyClicks(view.composer.field, "1")
    clock.now += 10
    assert view.composer.button.text() == "Steer"
    press(KEY.Key_Return)
    assert (view.composer.text, is_waiting(view)) == ("", True)
    QTest.keyClicks(view.composer.field, "1")
    assert view.composer.button.text() == "Allow once"


async def test_the_inbox_decides_nothing_before_the_ask_was_seen(fixture: WindowFixture, clock: Clock) -> None:
    fixture.window.resize(1280, 1000)
    row = next(row for row in fixture.window.sidebar.inbox.rows if "rm -rf build" in row.text)
    row.setFocus(Qt.FocusReason.TabFocusReason)
    fixture.window.grab()
    assert row.detail is not None
    press(KEY.Key_A)
    press(KEY.Key_Return, CONTROL)
    button(row.detail, "Allow once").click()
    assert len(fixture.engine.stores.asks.waiting()) == 2
    await until(lambda: row.detail is not None and row.detail.fits)
    clock.now += 0.5
    press(KEY.Key_A)
    await until(lambda: len(fixture.engine.stores.asks.waiting()) == 1)


async def test_a_question_that_pops_up_while_a_person_types_is_not_answered_by_their_enter(
    fixture: WindowFixture, clock: Clock
) -> None:
    chosen: list[str | None] = []
    question = WorkspaceDialog(WorkspaceQuestion("/elsewhere", "/own", chosen.append), fixture.window)
    question.open()
    await until(question.isActiveWindow)
    question.grab()
    press(KEY.Key_Return)
    press(KEY.Key_Space)
    QTest.mouseClick(button(question, "Use this folder"), Qt.MouseButton.LeftButton)
    assert (chosen, question.isVisible()) == ([], True)
    clock.now += 0.5
    QTest.mouseClick(button(question, "Use this folder"), Qt.MouseButton.LeftButton)
    assert chosen == ["/elsewhere"]
