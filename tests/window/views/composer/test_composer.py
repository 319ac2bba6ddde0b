"""The composer: its button and its keys."""

import pytest
from PySide6.QtCore import QMimeData, Qt, SignalInstance
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from errand.window.theme.theme import Theme
from errand.window.views.composer.composer import ComposerMode, ComposerState, ComposerView
from errand.window.views.composer.drop_payload import drop_payload
from errand.window.views.composer.input_panel import PromptHistory
from errand.window.views.composer.prompt_edit import PromptEditView

_ALT = Qt.KeyboardModifier.AltModifier
_SHIFT = Qt.KeyboardModifier.ShiftModifier

SAID = ["newest", "older", "oldest"]


def texts(signal: SignalInstance) -> list[str]:
    """Collects the values of a composer's signal."""
    heard: list[str] = []

    def hear(text: str) -> None:
        heard.append(text)

    signal.connect(hear)
    return heard


@pytest.fixture
def composer(qtbot: QtBot, theme: Theme) -> ComposerView:
    view = ComposerView(theme, QWidget())
    qtbot.addWidget(view)
    view.resize(600, 200)
    view.show()
    return view


@pytest.mark.parametrize(
    ("situation", "text", "mode", "can_press"),
    [
        (ComposerState(), "", "send", False),
        (ComposerState(), "do it", "send", True),
        (ComposerState(active=True), "", "stop", True),
        (ComposerState(active=True), "other way", "steer", True),
        (ComposerState(active=True, stopping=True), "", "stopping", False),
        (ComposerState(active=True, question="Which?"), "", "reply", False),
        (ComposerState(active=True, question="Which?"), "that", "reply", True),
        (ComposerState(connected=False), "do it", "send", False),
    ],
)
def test_the_button_changes_with_the_state_of_the_task(
    composer: ComposerView, situation: ComposerState, text: str, mode: ComposerMode, can_press: bool
) -> None:
    composer.show_state(situation)
    composer.set_text(text)
    assert (composer.mode, composer.button.isEnabled()) == (mode, can_press)
    assert composer.button.accessibleName().removesuffix("…") == mode.capitalize()


def test_enter_sends_shift_enter_breaks_the_line_and_alt_enter_queues(composer: ComposerView) -> None:
    sent, queued = texts(composer.submitted), texts(composer.queued)
    QTest.keyClicks(composer.field, "one")
    QTest.keyClick(composer.field, Qt.Key.Key_Return, _SHIFT)
    QTest.keyClicks(composer.field, "two")
    QTest.keyClick(composer.field, Qt.Key.Key_Return)
    QTest.keyClicks(composer.field, "later")
    QTest.keyClick(composer.field, Qt.Key.Key_Return, _ALT)
    assert (sent, queued, composer.text) == (["one\ntwo"], ["later"], "")


def test_while_disconnected_nothing_is_sent_and_the_text_stays(composer: ComposerView) -> None:
    sent = texts(composer.submitted)
    composer.show_state(ComposerState(connected=False))
    QTest.keyClicks(composer.field, "do it")
    QTest.keyClick(composer.field, Qt.Key.Key_Return)
    assert (sent, composer.text) == ([], "do it")


def test_blanks_alone_are_not_sent(composer: ComposerView) -> None:
    sent = texts(composer.submitted)
    QTest.keyClicks(composer.field, "   ")
    QTest.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == []


def test_the_field_grows_with_its_text_up_to_twelve_lines(composer: ComposerView) -> None:
    heights: list[int] = []
    for lines in (1, 2, 12, 13, 500):
        composer.set_text("\n".join(["line"] * lines))
        heights.append(composer.field.height())
    one_line, two_lines, twelve_lines, thirteen_lines, many_lines = heights
    assert one_line < two_lines < twelve_lines == thirteen_lines == many_lines
    assert twelve_lines == pytest.approx(one_line + 11 * (two_lines - one_line), abs=11)


def test_it_tells_once_that_a_person_writes_and_nothing_of_a_restored_text(composer: ComposerView) -> None:
    emitted: list[None] = []
    composer.writing.connect(lambda: emitted.append(None))
    composer.set_text("an unsent text of before")
    assert emitted == []
    QTest.keyClicks(composer.field, " and more")
    assert len(emitted) == 1


def test_an_open_question_is_the_placeholder(composer: ComposerView) -> None:
    composer.show_state(ComposerState(active=True, question="Which one?"))
    assert composer.field.placeholderText() == "Which one?"


def test_up_edits_the_last_message_only_in_an_empty_field(composer: ComposerView) -> None:
    asked: list[None] = []
    composer.edit_last_requested.connect(lambda: asked.append(None))
    QTest.keyClick(composer.field, Qt.Key.Key_Up)
    QTest.keyClicks(composer.field, "x")
    QTest.keyClick(composer.field, Qt.Key.Key_Up)
    assert len(asked) == 1


def test_a_very_long_line_is_attached_and_a_megabyte_of_short_lines_is_not(
    composer: ComposerView,
) -> None:
    attached: list[str] = []

    def take(mime: QMimeData) -> None:
        attached.append(drop_payload(mime).text)

    composer.content_dropped.connect(take)
    mime = QMimeData()
    mime.setText("x" * 60_000)
    composer.field.insertFromMimeData(mime)
    assert (composer.text, attached) == ("", ["x" * 60_000])
    mime.setText("a line of words\n" * 65_000)
    composer.field.insertFromMimeData(mime)
    assert len(composer.text) == 16 * 65_000 and len(attached) == 1


def test_the_caret_stops_blinking_when_idle_and_blinks_again_at_a_key(composer: ComposerView, qtbot: QtBot) -> None:
    field = composer.findChild(PromptEditView)
    assert isinstance(field, PromptEditView)
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    before = QApplication.cursorFlashTime()
    field.stop_blinking()
    assert QApplication.cursorFlashTime() == 0
    QTest.keyClick(field, Qt.Key.Key_A)
    assert QApplication.cursorFlashTime() == before
    field.stop_blinking()
    field.clearFocus()
    assert QApplication.cursorFlashTime() == before


def test_the_history_goes_to_the_oldest_message_and_back_to_the_unsent_text() -> None:
    history = PromptHistory()
    steps = ["half a thought"]
    for by in (-1, -1, -1, -1, 1, 1, 1, 1):
        steps.append(history.step(by, SAID, steps[-1]) or steps[-1])
    assert steps[1:] == ["newest", "older", "oldest", "oldest", "older", "newest", "half a thought", "half a thought"]


def test_an_edited_history_entry_becomes_the_unsent_text() -> None:
    history = PromptHistory()
    history.step(-1, SAID, "")
    assert history.step(-1, SAID, "newest, but other") == "newest"
    assert history.step(1, SAID, "newest") == "newest, but other"


def test_without_messages_the_history_is_empty() -> None:
    assert PromptHistory().step(-1, [], "a word") is None
