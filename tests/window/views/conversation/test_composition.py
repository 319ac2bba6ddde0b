"""Text that an input method composes (Korean, Japanese, Chinese): no key is a command until it is complete."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QPlainTextEdit, QWidget

from errand.client.conversation.rows import UserRow
from errand.protocol.events import AskUpdate
from errand.window.rows.edit import MessageEditField
from errand.window.theme.theme import Theme
from errand.window.views.conversation.conversation_view import ConversationView
from tests.support.window import until
from tests.window.accessibility.full_window import WindowFixture, window_fixture

_KEYS = (
    *((key, Qt.KeyboardModifier.NoModifier) for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape)),
    *((key, Qt.KeyboardModifier.NoModifier) for key in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Tab)),
    *((key, Qt.KeyboardModifier.ControlModifier) for key in (Qt.Key.Key_Return, Qt.Key.Key_Up, Qt.Key.Key_W)),
    *((key, Qt.KeyboardModifier.ControlModifier) for key in (Qt.Key.Key_T, Qt.Key.Key_Period, Qt.Key.Key_K)),
    (Qt.Key.Key_Return, Qt.KeyboardModifier.AltModifier),
    (Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier),
)


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[WindowFixture]:
    async with window_fixture(qapp, theme, tmp_path) as fixture:
        fixture.window.activateWindow()
        QApplication.processEvents()
        yield fixture


def compose(field: QWidget, text: str) -> None:
    QApplication.sendEvent(field, QInputMethodEvent(text, []))


def commit(field: QWidget, text: str) -> None:
    event = QInputMethodEvent("", [])
    event.setCommitString(text)
    QApplication.sendEvent(field, event)


def text_of(field: QWidget) -> str:
    assert isinstance(field, QLineEdit | QPlainTextEdit)
    return field.text() if isinstance(field, QLineEdit) else field.toPlainText()


def composer(fixture: WindowFixture) -> QWidget:
    fixture.front.composer.setFocus()
    return fixture.front.composer.field


def search_of_the_sidebar(fixture: WindowFixture) -> QWidget:
    fixture.window.sidebar.search.setFocus()
    return fixture.window.sidebar.search


def find_bar(fixture: WindowFixture) -> QWidget:
    fixture.front.search.open()
    return focused()


def edited_message(fixture: WindowFixture) -> QWidget:
    fixture.front.store.branches.edit_last()
    field = next(field for field in fixture.front.findChildren(QPlainTextEdit) if isinstance(field, MessageEditField))
    field.setFocus()
    return field


def focused() -> QWidget:
    widget = QApplication.focusWidget()
    assert widget is not None
    return widget


def user_texts(view: ConversationView) -> list[str]:
    rows = (view.store.row(index) for index in range(view.store.count()))
    return [row.text for row in rows if isinstance(row, UserRow)]


@pytest.mark.parametrize("open_field", [composer, search_of_the_sidebar, find_bar, edited_message])
async def test_no_key_is_a_command_while_a_syllable_is_composed(
    fixture: WindowFixture, open_field: Callable[[WindowFixture], QWidget]
) -> None:
    view = await fixture.open(fixture.branched)
    field, before = open_field(fixture), (fixture.window.tabs.active_id, user_texts(view))
    text = text_of(field)
    compose(field, "한")
    for key, modifiers in _KEYS:
        QTest.keyClick(field, key, modifiers)
        assert (QApplication.focusWidget(), text_of(field)) == (field, text), (key, modifiers)
        assert (fixture.window.tabs.active_id, user_texts(view)) == before, (key, modifiers)
    is_search = open_field in (search_of_the_sidebar, find_bar)
    commit(field, "" if is_search else "한")
    assert text_of(field) == (text if is_search else f"{text}한")


async def test_keys_decide_nothing_on_a_card_while_its_field_composes(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    view.asks.go_to_next()
    buttons = view.findChildren(QAbstractButton)
    next(button for button in buttons if button.accessibleName() == "Deny with reason…" and button.isVisible()).click()
    field = focused()
    compose(field, "안")
    for key, modifiers in _KEYS:
        QTest.keyClick(field, key, modifiers)
    assert len(view.store.commands.waiting) == 1
    commit(field, "안")
    QTest.keyClick(field, Qt.Key.Key_Return)
    events = fixture.engine.parts.watcher.events
    await until(lambda: any(isinstance(event, AskUpdate) and event.ask.answer == "안" for event in events))


async def test_an_empty_message_field_that_composes_approves_nothing(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    view.composer.setFocus()
    compose(view.composer.field, "아")
    QTest.keyClick(view.composer.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    fixture.window.commands.trigger("allow_once")
    assert len(view.store.commands.waiting) == 1


async def test_the_send_button_sends_what_is_composed_too(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    QTest.keyClicks(view.composer.field, "abc ")
    compose(view.composer.field, "한")
    QTest.mouseClick(view.composer.button, Qt.MouseButton.LeftButton)
    await until(lambda: "abc 한" in user_texts(view))
    assert view.composer.text == ""


async def test_the_placeholder_makes_room_for_what_is_composed(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    field = view.composer.field
    placeholder = field.placeholderText()
    compose(field, "にほん")
    assert (field.placeholderText(), view.composer.button.isEnabled()) == ("", True)
    compose(field, "")
    assert (field.placeholderText(), view.composer.button.isEnabled()) == (placeholder, False)
