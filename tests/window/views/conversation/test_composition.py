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
from tests.window.accessibility.full_window import Office, office

_KEYS = (
    *((key, Qt.KeyboardModifier.NoModifier) for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape)),
    *((key, Qt.KeyboardModifier.NoModifier) for key in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Tab)),
    *((key, Qt.KeyboardModifier.ControlModifier) for key in (Qt.Key.Key_Return, Qt.Key.Key_Up, Qt.Key.Key_W)),
    *((key, Qt.KeyboardModifier.ControlModifier) for key in (Qt.Key.Key_T, Qt.Key.Key_Period, Qt.Key.Key_K)),
    (Qt.Key.Key_Return, Qt.KeyboardModifier.AltModifier),
    (Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier),
)


@pytest.fixture
async def opened(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[Office]:
    async with office(qapp, theme, tmp_path) as found:
        found.window.activateWindow()
        QApplication.processEvents()
        yield found


def compose(field: QWidget, text: str) -> None:
    QApplication.sendEvent(field, QInputMethodEvent(text, []))


def commit(field: QWidget, text: str) -> None:
    event = QInputMethodEvent("", [])
    event.setCommitString(text)
    QApplication.sendEvent(field, event)


def text_of(field: QWidget) -> str:
    assert isinstance(field, QLineEdit | QPlainTextEdit)
    return field.text() if isinstance(field, QLineEdit) else field.toPlainText()


def composer(opened: Office) -> QWidget:
    opened.front.composer.setFocus()
    return opened.front.composer.field


def search_of_the_sidebar(opened: Office) -> QWidget:
    opened.window.sidebar.search.setFocus()
    return opened.window.sidebar.search


def find_bar(opened: Office) -> QWidget:
    opened.front.find_bar.open()
    return focused()


def edited_message(opened: Office) -> QWidget:
    opened.front.store.branches.edit_last()
    field = next(field for field in opened.front.findChildren(QPlainTextEdit) if isinstance(field, MessageEditField))
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
    opened: Office, open_field: Callable[[Office], QWidget]
) -> None:
    view = await opened.open(opened.told)
    field, before = open_field(opened), (opened.window.tabs.active_id, user_texts(view))
    text = text_of(field)
    compose(field, "한")
    for key, modifiers in _KEYS:
        QTest.keyClick(field, key, modifiers)
        assert (QApplication.focusWidget(), text_of(field)) == (field, text), (key, modifiers)
        assert (opened.window.tabs.active_id, user_texts(view)) == before, (key, modifiers)
    is_search = open_field in (search_of_the_sidebar, find_bar)
    commit(field, "" if is_search else "한")
    assert text_of(field) == (text if is_search else f"{text}한")


async def test_keys_decide_nothing_on_a_card_while_its_field_composes(opened: Office) -> None:
    view = await opened.open(opened.approving)
    view.go_to_ask()
    buttons = view.findChildren(QAbstractButton)
    next(button for button in buttons if button.accessibleName() == "Deny with reason…" and button.isVisible()).click()
    field = focused()
    compose(field, "안")
    for key, modifiers in _KEYS:
        QTest.keyClick(field, key, modifiers)
    assert len(view.store.commands.waiting) == 1
    commit(field, "안")
    QTest.keyClick(field, Qt.Key.Key_Return)
    events = opened.engine.parts.watcher.events
    await until(lambda: any(isinstance(event, AskUpdate) and event.ask.answer == "안" for event in events))


async def test_an_empty_message_field_that_composes_approves_nothing(opened: Office) -> None:
    view = await opened.open(opened.approving)
    view.composer.setFocus()
    compose(view.composer.field, "아")
    QTest.keyClick(view.composer.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    opened.window.commands.trigger("allow_once")
    assert len(view.store.commands.waiting) == 1


async def test_the_send_button_sends_what_is_composed_too(opened: Office) -> None:
    view = await opened.open(opened.told)
    QTest.keyClicks(view.composer.field, "abc ")
    compose(view.composer.field, "한")
    QTest.mouseClick(view.composer.button, Qt.MouseButton.LeftButton)
    await until(lambda: "abc 한" in user_texts(view))
    assert view.composer.text == ""


async def test_the_placeholder_makes_room_for_what_is_composed(opened: Office) -> None:
    view = await opened.open(opened.told)
    field = view.composer.field
    placeholder = field.placeholderText()
    compose(field, "にほん")
    assert (field.placeholderText(), view.composer.button.isEnabled()) == ("", True)
    compose(field, "")
    assert (field.placeholderText(), view.composer.button.isEnabled()) == (placeholder, False)
