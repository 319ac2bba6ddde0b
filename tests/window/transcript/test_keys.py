"""The transcript by keyboard, wheel and scroll bar."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import AskRow
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from tests.support.rows import APPROVAL, long_conversation, reply, tool, user
from tests.window.transcript.conftest import Page

MakePage = Callable[..., Page]


def _wheel(view: QWidget, pixels: int, notches: int = 0) -> None:
    middle = QPointF(view.rect().center())
    event = QWheelEvent(
        middle,
        view.mapToGlobal(middle),
        QPoint(0, pixels),
        QPoint(0, notches * 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(view, event)


def _tab(*, back: bool = False) -> QKeyEvent:
    modifiers = Qt.KeyboardModifier.ShiftModifier if back else Qt.KeyboardModifier.NoModifier
    return QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Backtab if back else Qt.Key.Key_Tab, modifiers)


def activate(window: QWidget, qtbot: QtBot) -> None:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)


def focused() -> QWidget:
    widget = QApplication.focusWidget()
    assert widget is not None
    return widget


def test_keys_scroll_by_lines_by_pages_and_to_both_ends(page: MakePage, qtbot: QtBot) -> None:
    shown = page(long_conversation(200))
    at_end = shown.view.shown
    QTest.keyClick(shown.view, Qt.Key.Key_PageUp)
    assert shown.view.shown.stop < at_end.stop
    assert not shown.view.is_at_end
    QTest.keyClick(shown.view, Qt.Key.Key_PageDown)
    QTest.keyClick(shown.view, Qt.Key.Key_PageDown)
    assert shown.view.is_at_end
    QTest.keyClick(shown.view, Qt.Key.Key_Home)
    assert shown.view.shown.start == 0
    top = shown.row_views()[0].y()
    QTest.keyClick(shown.view, Qt.Key.Key_Down)
    assert shown.row_views()[0].y() < top
    QTest.keyClick(shown.view, Qt.Key.Key_Up)
    assert shown.row_views()[0].y() == top
    QTest.keyClick(shown.view, Qt.Key.Key_End)
    assert shown.view.shown == at_end


def test_keys_and_the_wheel_over_a_text_scroll_the_transcript(page: MakePage, qtbot: QtBot) -> None:
    shown = page(long_conversation(200))
    text = next(view for view in shown.row_views()[-1].findChildren(TextView) if view.isVisible())
    text.setFocus()
    QTest.keyClick(text, Qt.Key.Key_PageUp)
    assert not shown.view.is_at_end
    shown.view.to_end()
    _wheel(shown.view.viewport(), 40)
    assert not shown.view.is_at_end
    _wheel(shown.view.viewport(), 0, notches=-1)
    assert shown.view.is_at_end


def test_the_scroll_bar_reaches_any_position(page: MakePage) -> None:
    shown = page(long_conversation(1_000))
    bar = shown.view.verticalScrollBar()
    assert bar.value() == bar.maximum()
    bar.setValue(bar.maximum() // 2)
    assert 300 < shown.view.shown.start < 700
    bar.setValue(0)
    assert shown.view.shown.start == 0
    bar.setValue(bar.maximum())
    assert shown.view.is_at_end


def test_smooth_scrolling_ends_at_the_distance_of_the_key(page: MakePage, qtbot: QtBot, theme: Theme) -> None:
    shown = page(long_conversation(200))
    shown.view.to_row(50)
    theme.set_motion(True)
    shown.view.lay_out()
    text = shown.texts()[3]
    before = shown.top_of(text)
    QTest.keyClick(shown.view, Qt.Key.Key_Down)
    assert shown.top_of(text) > before - 38
    qtbot.waitUntil(lambda: shown.top_of(text) == before - 38)


def test_tab_goes_through_the_rows_in_display_order_and_then_leaves(page: MakePage, qtbot: QtBot) -> None:
    shown = page([user("a question"), tool("shell", {"command": "ls"}, "x"), reply("an answer")])
    window = QWidget()
    qtbot.addWidget(window)
    layout = QVBoxLayout(window)
    before, after = QLineEdit(), QLineEdit()
    for widget in (before, shown.view, after):
        layout.addWidget(widget)
    window.resize(800, 700)
    window.show()
    activate(window, qtbot)
    shown.view.lay_out()
    before.setFocus()
    seen: list[str] = []
    for _ in range(8):
        QApplication.sendEvent(focused(), _tab())
        seen.append(type(focused()).__name__)
    assert seen == ["TranscriptView", "TextView", *["HoverButton"] * 3, "DisclosureButton", "TextView", "QLineEdit"]
    assert focused() is after
    QApplication.sendEvent(focused(), _tab(back=True))
    assert focused() is shown.view or shown.view.isAncestorOf(focused())
    shown.view.setParent(None)  # it closes by itself


def test_a_control_focused_by_tab_scrolls_into_view(page: MakePage, qtbot: QtBot) -> None:
    shown = page([tool("shell", {"command": f"echo {number}"}, "x", f"t{number}") for number in range(60)])
    activate(shown.view, qtbot)
    shown.view.to_row(20)
    shown.view.scroll_by(20)
    assert shown.row_views()[0].y() < 0
    shown.view.setFocus()
    QApplication.sendEvent(focused(), _tab())
    line = focused()
    assert isinstance(line, DisclosureButton)
    assert line.text() == "ran echo 20"
    assert line.mapTo(shown.view.viewport(), QPoint(0, 0)).y() >= 0


def test_a_part_of_a_card_that_is_opened_at_the_end_scrolls_into_view(page: MakePage) -> None:
    shown = page([*long_conversation(20), AskRow(key="ask", ask=APPROVAL)])
    card = shown.row_views()[-1]
    buttons = {button.accessibleName(): button for button in card.findChildren(QPushButton)}
    buttons["Always allow…"].click()
    shown.view.lay_out()
    last = buttons["In this conversation"]
    bottom = last.mapTo(shown.view.viewport(), QPoint(0, last.height())).y()
    assert last.isVisible() and 0 < bottom <= shown.view.viewport().height()
