"""Targets of keys: digits answer, text goes to the composer from anywhere, Page Up and Page Down scroll."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit

from errand.client.conversation.rows import AskRow
from errand.window.rows.asks.choices import choice_names
from errand.window.rows.disclosure import DisclosureButton
from errand.window.theme.theme import Theme
from errand.window.views.usage.context_popover import ContextPopoverView
from tests.support.window import until
from tests.window.accessibility.full_window import WindowFixture, window_fixture

KEY = Qt.Key


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[WindowFixture]:
    async with window_fixture(qapp, theme, tmp_path) as fixture:
        fixture.window.activateWindow()
        QApplication.processEvents()
        yield fixture


def press(key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    focused = QApplication.focusWidget()
    assert focused is not None
    QTest.keyClick(focused, key, modifier)


async def test_a_digit_chooses_an_answer_and_the_composer_has_the_focus_after_it(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.asking)
    view.asks.go_to_next()
    press(KEY.Key_2)
    await until(lambda: not view.store.commands.waiting)
    assert QApplication.focusWidget() is view.composer.field
    await until(lambda: any("you answered “Green”" in text for text in fixture.line_texts()))


async def test_text_typed_in_a_question_is_an_answer_in_ones_own_words(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.asking)
    view.asks.go_to_next()
    press(KEY.Key_R)
    for key in (KEY.Key_E, KEY.Key_D, KEY.Key_2, KEY.Key_Return):
        press(key)
    await until(lambda: any("you answered “red2”" in text for text in fixture.line_texts()))


async def test_a_digit_denies_an_approval_only_while_its_card_has_the_focus(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    view.composer.field.setFocus()
    press(KEY.Key_2)
    assert (view.composer.text, len(view.store.commands.waiting)) == ("2", 1)
    view.asks.go_to_next()
    press(KEY.Key_2)
    await until(lambda: any("denied by you" in text for text in fixture.line_texts()))


async def test_a_number_and_enter_in_the_composer_press_the_button_of_an_approval(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    view.asks.go_to_next()
    view.composer.field.setFocus()
    names = choice_names(view.store.commands.waiting[0])
    QTest.keyClicks(view.composer.field, str(names.index("Deny") + 1))
    assert view.composer.button.text() == "Deny"
    press(KEY.Key_Return)
    await until(lambda: any("denied by you" in text for text in fixture.line_texts()))
    assert (view.composer.text, QApplication.focusWidget()) == ("", view.composer.field)


async def test_a_number_and_enter_in_the_composer_choose_an_answer(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.asking)
    view.composer.field.setFocus()
    QTest.keyClicks(view.composer.field, "2")
    assert view.composer.button.text() == "Green"
    press(KEY.Key_Return)
    await until(lambda: any("you answered “Green”" in text for text in fixture.line_texts()))


async def test_a_number_of_no_answer_is_a_reply_in_ones_own_words(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.asking)
    QTest.keyClicks(view.composer.field, "7")
    assert view.composer.button.text() == "Reply"
    press(KEY.Key_Return)
    await until(lambda: any("you answered “7”" in text for text in fixture.line_texts()))


async def test_a_number_answers_nothing_that_is_not_visible(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    row = next(index for index in range(view.store.count()) if isinstance(view.store.row(index), AskRow))
    view.transcript.setFixedHeight(1)
    view.transcript.to_start()
    await until(lambda: row not in view.transcript.shown)
    QTest.keyClicks(view.composer.field, "1")
    press(KEY.Key_Return)
    assert (len(view.store.commands.waiting), view.composer.text) == (1, "1")
    await until(lambda: row in view.transcript.shown)


async def test_text_typed_in_the_transcript_or_the_frame_goes_to_the_composer(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    view.transcript.setFocus()
    press(KEY.Key_H)
    assert QApplication.focusWidget() is view.composer.field
    fixture.window.tabs.bar.setFocus()
    press(KEY.Key_I)
    assert view.composer.text == "hi"
    view.transcript.setFocus()
    press(KEY.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert (QApplication.focusWidget(), view.composer.text) == (view.transcript, "hi")


async def test_a_click_that_selects_nothing_goes_to_the_composer(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    view.transcript.setFocus()
    QTest.mouseClick(view.transcript.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(3, 3))
    assert QApplication.focusWidget() is view.composer.field


async def test_page_keys_in_the_composer_scroll_the_transcript(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    fixture.window.resize(700, 420)
    view.transcript.lay_out()
    view.composer.field.setFocus()
    bar = view.transcript.verticalScrollBar()
    assert bar.maximum() > 0
    press(KEY.Key_PageUp)
    assert bar.value() < bar.maximum()
    press(KEY.Key_PageDown)
    assert bar.value() == bar.maximum()
    view.composer.set_text("\n" * 30)
    press(KEY.Key_PageUp)
    assert bar.value() == bar.maximum(), "a long text scrolls itself"


async def test_a_click_on_a_button_or_a_row_leaves_the_focus_and_shows_no_ring(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    view.composer.field.setFocus()
    for control in (*view.transcript.findChildren(DisclosureButton), *view.input_panel.findChildren(QAbstractButton)):
        assert not control.focusPolicy() & Qt.FocusPolicy.ClickFocus, control.accessibleName()
    line = next(line for line in view.transcript.findChildren(DisclosureButton) if line.isVisible())
    QTest.mouseClick(line, Qt.MouseButton.LeftButton)
    assert not line.hasFocus()
    press(KEY.Key_H)
    assert (QApplication.focusWidget(), view.composer.text) == (view.composer.field, "h")


async def test_a_click_on_stop_leaves_the_focus_in_the_composer(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.busy)
    view.composer.field.setFocus()
    stop = next(button for button in view.input_panel.findChildren(QAbstractButton) if button.text().strip() == "Stop")
    QTest.mouseClick(stop, Qt.MouseButton.LeftButton)
    await until(lambda: (task := view.store.task) is not None and task.outcome.ended_at is not None)
    assert QApplication.focusWidget() is view.composer.field


async def test_an_approval_by_the_mouse_or_a_key_gives_the_focus_to_the_composer(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.approving)
    view.transcript.setFocus()
    allow = next(
        candidate for candidate in view.findChildren(QAbstractButton) if candidate.accessibleName() == "Allow once"
    )
    QTest.mouseClick(allow, Qt.MouseButton.LeftButton)
    await until(lambda: not view.store.commands.waiting)
    assert QApplication.focusWidget() is view.composer.field


async def test_going_on_at_a_limit_gives_the_focus_to_the_composer(fixture: WindowFixture) -> None:
    task = await fixture.engine.parts.start("Delete it", approve="all", attended=True, max_turns=1)
    await fixture.engine.parts.watcher.ask(task.id)
    view = await fixture.open(task.conversation_id)
    await until(lambda: bool(view.store.commands.waiting))
    view.asks.go_to_next()
    view.grab()
    (field,) = (field for field in view.findChildren(QLineEdit) if field.accessibleName() == "Amount: more turns")
    field.setFocus()
    field.selectAll()
    press(KEY.Key_3)
    assert view.store.commands.waiting, "a digit in the field is a number, not an answer"
    press(KEY.Key_Return)
    await until(lambda: (current := view.store.task) is not None and current.budget.allowance is not None)
    assert view.store.task is not None and view.store.task.budget.allowance is not None
    assert (view.store.task.budget.allowance.turns, QApplication.focusWidget()) == (4, view.composer.field)
    view.store.commands.stop()
    await fixture.engine.parts.watcher.end(task.id)


async def test_popups_stay_on_the_screen_of_a_window_at_its_edge(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.busy)
    context = ContextPopoverView(fixture.theme, view.input_panel.context)
    fixture.window.resize(700, 300)
    screen = fixture.window.screen().availableGeometry()
    fixture.window.move(screen.right() - 300, screen.top() - 200)
    for show in (
        lambda: context.open_above(view.input_panel.context),
        view.input_panel.task_options.more_button.click,
        lambda: fixture.window.commands.trigger("palette"),
        lambda: fixture.window.commands.trigger("approvals"),
    ):
        show()
        popup = QApplication.activePopupWidget()
        assert popup is not None and screen.contains(popup.geometry()), popup
        popup.close()
