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
    transcript = page(long_conversation(200))
    at_end = transcript.view.shown
    QTest.keyClick(transcript.view, Qt.Key.Key_PageUp)
    assert transcript.view.shown.stop < at_end.stop
    assert not transcript.view.is_at_end
    QTest.keyClick(transcript.view, Qt.Key.Key_PageDown)
    QTest.keyClick(transcript.view, Qt.Key.Key_PageDown)
    assert transcript.view.is_at_end
    QTest.keyClick(transcript.view, Qt.Key.Key_Home)
    assert transcript.view.shown.start == 0
    top = transcript.row_views()[0].y()
    QTest.keyClick(transcript.view, Qt.Key.Key_Down)
    assert transcript.row_views()[0].y() < top
    QTest.keyClick(transcript.view, Qt.Key.Key_Up)
    assert transcript.row_views()[0].y() == top
    QTest.keyClick(transcript.view, Qt.Key.Key_End)
    assert transcript.view.shown == at_end


def test_keys_and_the_wheel_over_a_text_scroll_the_transcript(page: MakePage, qtbot: QtBot) -> None:
    transcript = page(long_conversation(200))
    text = next(view for view in transcript.row_views()[-1].findChildren(TextView) if view.isVisible())
    text.setFocus()
    QTest.keyClick(text, Qt.Key.Key_PageUp)
    assert not transcript.view.is_at_end
    transcript.view.to_end()
    _wheel(transcript.view.viewport(), 40)
    assert not transcript.view.is_at_end
    _wheel(transcript.view.viewport(), 0, notches=-1)
    assert transcript.view.is_at_end


def test_the_scroll_bar_reaches_any_position(page: MakePage) -> None:
    transcript = page(long_conversation(1_000))
    bar = transcript.view.verticalScrollBar()
    assert bar.value() == bar.maximum()
    bar.setValue(bar.maximum() // 2)
    assert 300 < transcript.view.shown.start < 700
    bar.setValue(0)
    assert transcript.view.shown.start == 0
    bar.setValue(bar.maximum())
    assert transcript.view.is_at_end


def test_smooth_scrolling_ends_at_the_distance_of_the_key(page: MakePage, qtbot: QtBot, theme: Theme) -> None:
    transcript = page(long_conversation(200))
    transcript.view.to_row(50)
    theme.set_motion(True)
    transcript.view.lay_out()
    text = transcript.texts()[3]
    before = transcript.top_of(text)
    QTest.keyClick(transcript.view, Qt.Key.Key_Down)
    assert transcript.top_of(text) > before - 38
    qtbot.waitUntil(lambda: transcript.top_of(text) == before - 38)


def test_tab_goes_through_the_rows_in_display_order_and_then_leaves(page: MakePage, qtbot: QtBot) -> None:
    transcript = page([user("a question"), tool("shell", {"command": "ls"}, "x"), reply("an answer")])
    window = QWidget()
    qtbot.addWidget(window)
    layout = QVBoxLayout(window)
    before, after = QLineEdit(), QLineEdit()
    for widget in (before, transcript.view, after):
        layout.addWidget(widget)
    window.resize(800, 700)
    window.show()
    activate(window, qtbot)
    transcript.view.lay_out()
    before.setFocus()
    seen: list[str] = []
    for _ in range(8):
        QApplication.sendEvent(focused(), _tab())
        seen.append(type(focused()).__name__)
    assert seen == ["TranscriptView", "TextView", *["HoverButton"] * 3, "DisclosureButton", "TextView", "QLineEdit"]
    assert focused() is after
    QApplication.sendEvent(focused(), _tab(back=True))
    assert focused() is transcript.view or transcript.view.isAncestorOf(focused())
    transcript.view.setParent(None)  # it closes by itself


def test_a_control_focused_by_tab_scrolls_into_view(page: MakePage, qtbot: QtBot) -> None:
    transcript = page([tool("shell", {"command": f"echo {number}"}, "x", f"t{number}") for number in range(60)])
    activate(transcript.view, qtbot)
    transcript.view.to_row(20)
    transcript.view.scroll_by(20)
    assert transcript.row_views()[0].y() < 0
    transcript.view.setFocus()
    QApplication.sendEvent(focused(), _tab())
    line = focused()
    assert isinstance(line, DisclosureButton)
    assert line.text() == "ran echo 20"
    assert line.mapTo(transcript.view.viewport(), QPoint(0, 0)).y() >= 0


def test_a_part_of_a_card_that_is_opened_at_the_end_scrolls_into_view(page: MakePage) -> None:
    transcript = page([*long_conversation(20), AskRow(key="ask", ask=APPROVAL)])
    card = transcript.row_views()[-1]
    buttons = {button.accessibleName(): button for button in card.findChildren(QPushButton)}
    buttons["Always allow…"].click()
    transcript.view.lay_out()
    last = buttons["In this conversation"]
    bottom = last.mapTo(transcript.view.viewport(), QPoint(0, last.height())).y()
    assert last.isVisible() and 0 < bottom <= transcript.view.viewport().height()
