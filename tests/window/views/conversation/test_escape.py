"""Esc closes the topmost open part; only a second Esc within a second stops a running task."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QMenu, QWidget

from errand.client.conversation.rows import ThinkingRow
from errand.protocol.settings import Model
from errand.window.rows.asks.approval import ApprovalCard
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.edit import MessageEditField
from errand.window.stores.conversation.agents import NewAgent
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.theme.theme import Theme
from errand.window.views.composer.task_options_dialog import TaskOptionsDialog
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.conversation.find_bar import FindBarView
from errand.window.views.shared.model_picker import ModelPicker
from errand.window.views.usage.context_popover import ContextPopoverView
from tests.support.window import press, until, view_fixture
from tests.window.accessibility.full_window import WindowFixture, top, window_fixture

AGAIN = "Press Esc again to stop"
ESCAPE = Qt.Key.Key_Escape


@dataclass(frozen=True, slots=True)
class Overlay:
    """`open` shows something over the running conversation and returns what Esc must close."""

    name: str
    open: Callable[[WindowFixture], QWidget]


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[WindowFixture]:
    """A main window with an active conversation whose task runs."""
    async with window_fixture(qapp, theme, tmp_path) as fixture:
        view = await fixture.open(fixture.busy)
        fixture.window.activateWindow()
        QApplication.processEvents()
        view.composer.field.setFocus()
        yield fixture


def escape(dialog: QWidget | None = None) -> None:
    """Press Esc where the focus is: in a popup, a new dialog, or the window."""
    above = QApplication.activePopupWidget() or dialog
    focused = (above.focusWidget() or above) if above is not None else QApplication.focusWidget()
    assert focused is not None
    QTest.keyClick(focused, ESCAPE)


def is_stopping(view: ConversationView) -> bool:
    task = view.store.task
    assert task is not None
    return task.activity.stopping or task.outcome.ended_at is not None


def reminds(view: ConversationView) -> bool:
    return view.input_panel.status.text.startswith(AGAIN)


def _action(name: str) -> Callable[[WindowFixture], QWidget]:
    def opened(fixture: WindowFixture) -> QWidget:
        before = set(QApplication.topLevelWidgets())
        fixture.window.commands.trigger(name)
        return next(w for w in QApplication.topLevelWidgets() if w not in before and w.isVisible())

    return opened


def _choices(fixture: WindowFixture) -> QWidget:
    fixture.front.input_panel.task_options.more_button.click()
    return top(TaskOptionsDialog)


def _models(fixture: WindowFixture) -> QWidget:
    choices = fixture.front.input_panel.task_options
    choices.set_defaults(TaskOptionDefaults((Model(id="one/model", provider="one"),), "one/model"))
    choices.pick_model()
    return top(ModelPicker)


def _context(fixture: WindowFixture) -> QWidget:
    bar = fixture.front.input_panel.context
    popover = ContextPopoverView(fixture.theme, bar)
    popover.open_above(bar)
    return popover


def _menu(fixture: WindowFixture) -> QWidget:
    menu = QMenu(fixture.front.input_panel.agents)
    menu.addAction("Turns…")
    menu.popup(fixture.window.mapToGlobal(QPoint(200, 200)))
    return menu


def _find(fixture: WindowFixture) -> QWidget:
    fixture.front.search.open()
    return fixture.front.findChildren(FindBarView)[0]


def _find_from_elsewhere(fixture: WindowFixture) -> QWidget:
    bar = _find(fixture)
    fixture.front.composer.field.setFocus()
    return bar


OVERLAYS = (
    Overlay("the choices of the next task", _choices),
    Overlay("the list of models", _models),
    Overlay("the parts of the context", _context),
    Overlay("a menu", _menu),
    Overlay("the search in the conversation", _find),
    Overlay("the search, with the keyboard elsewhere", _find_from_elsewhere),
    Overlay("the palette", _action("palette")),
    Overlay("all tabs", _action("all_tabs")),
    Overlay("the settings", _action("settings")),
    Overlay("usage", _action("usage")),
    Overlay("the sheet of shortcuts", _action("shortcuts")),
    Overlay("one more agent", _action("add_agent")),
)


@pytest.mark.parametrize("is_apart", [False, True])
async def test_esc_closes_what_is_open_and_stops_no_task(fixture: WindowFixture, is_apart: bool) -> None:
    """Esc does so in the main window, and in the window of a conversation of its own."""
    findings: list[str] = []
    view = fixture.front
    if is_apart:
        fixture.window.commands.trigger("own_window")
        fixture.front.composer.field.setFocus()
        QApplication.processEvents()
        assert (view.window() is not fixture.window, fixture.front) == (True, view)
    for overlay in OVERLAYS:
        view.composer.field.setFocus()
        opened = overlay.open(fixture)
        assert opened.isVisible(), overlay.name
        escape(opened if opened.isWindow() else None)
        if opened.isVisible():
            findings.append(f"{overlay.name} stays open")
            opened.close()
        if is_stopping(view) or reminds(view):
            findings.append(f"{overlay.name}: Esc went to the task")
        view.window().activateWindow()
        QApplication.processEvents()
    assert findings == []
    view.composer.field.setFocus()
    escape()
    assert reminds(view), "nothing is open any more"
    escape()
    await until(lambda: is_stopping(view))


async def test_esc_in_the_frame_of_a_conversation_window_goes_to_the_composer(fixture: WindowFixture) -> None:
    view = fixture.front
    fixture.window.commands.trigger("own_window")
    view.window().activateWindow()
    QApplication.processEvents()
    view.transcript.setFocus()
    QTest.keyClick(view.window(), ESCAPE)
    assert view.composer.field.hasFocus() and not reminds(view)
    view.transcript.setFocus()
    QTest.keyClick(view.window(), Qt.Key.Key_H)
    assert (view.composer.field.hasFocus(), view.composer.text) == (True, "h")


async def test_esc_in_the_composer_closes_an_editor_of_the_queue_and_keeps_the_task(fixture: WindowFixture) -> None:
    view = fixture.front
    row = view.input_panel.queue.rows[0]
    row.edit()
    view.composer.field.setFocus()
    escape()
    assert not row.is_editing and view.composer.field.hasFocus()
    assert not reminds(view) and not is_stopping(view)


async def test_esc_in_the_composer_ends_the_edit_of_a_message_and_keeps_what_was_typed(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    view.store.branches.edit_last()
    await until(lambda: bool(view.findChildren(MessageEditField)))
    (field,) = view.findChildren(MessageEditField)
    field.setPlainText("Write a longer poem")
    view.composer.field.setFocus()
    escape()
    assert not view.store.branch.is_edited
    view.store.branches.edit_last()
    await until(lambda: view.store.branch.is_edited)
    view.transcript.lay_out()
    (field,) = (candidate for candidate in view.findChildren(MessageEditField) if candidate.isVisible())
    assert field.toPlainText() == "Write a longer poem"


async def test_esc_closes_the_opened_rows_one_by_one_the_last_one_first(fixture: WindowFixture) -> None:
    again = await fixture.engine.parts.start("And one more", conversation_id=fixture.branched)
    await fixture.engine.parts.watcher.end(again.id)
    view = await fixture.open(fixture.branched)
    await until(lambda: sum(isinstance(view.store.row(at), ThinkingRow) for at in range(view.store.count())) == 2)
    view.transcript.lay_out()
    lines = [line for line in view.findChildren(DisclosureButton) if line.isVisible()]
    assert len(lines) == 2
    for line in (lines[1], lines[0]):
        QTest.mouseClick(line, Qt.MouseButton.LeftButton)
    view.composer.field.setFocus()
    escape()
    assert [line.isChecked() for line in lines[:2]] == [False, True]
    lines[1].setFocus()
    escape()
    assert [line.isChecked() for line in lines[:2]] == [False, False]
    assert view.transcript.open_keys == {}


async def test_esc_in_the_composer_closes_an_open_part_of_an_approval_and_answers_nothing(
    fixture: WindowFixture,
) -> None:
    view = await fixture.open(fixture.approving)
    press(view, "Deny with reason…")
    (card,) = view.findChildren(ApprovalCard)
    assert any(field.isVisible() for field in card.findChildren(QLineEdit))
    view.composer.field.setFocus()
    escape()
    assert not any(field.isVisible() for field in card.findChildren(QLineEdit))
    assert view.composer.field.hasFocus() and view.store.commands.waiting
    assert not reminds(view) and not is_stopping(view)


async def test_esc_closes_one_thing_at_a_time(fixture: WindowFixture) -> None:
    view = fixture.front
    dialog = _choices(fixture)
    (box,) = (box for box in dialog.findChildren(QComboBox) if box.accessibleName() == "Mode")
    box.showPopup()
    assert box.view().isVisible()
    escape()
    assert (box.view().isVisible(), dialog.isVisible()) == (False, True)
    escape()
    assert not dialog.isVisible()
    fixture.window.activateWindow()
    QApplication.processEvents()
    view.store.agents.add(fixture.busy, NewAgent("coder", color="teal"))
    await until(lambda: view.input_panel.completions.mentions is not None)
    mentions = view.input_panel.completions.mentions
    assert mentions is not None
    view.composer.field.setFocus()
    QTest.keyClicks(view.composer.field, "@")
    assert mentions.isVisible()
    escape()
    assert not mentions.isVisible()
    view.transcript.setFocus()
    QTest.keyClick(view.transcript, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert view.transcript.selection.span() is not None
    escape()
    assert view.transcript.selection.span() is None
    assert not reminds(view) and not is_stopping(view)


async def test_a_task_is_stopped_by_a_second_esc_soon_after_the_first_one(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with view_fixture(qapp, theme, tmp_path, ()) as fixture:
        view = fixture.view
        QTest.keyClick(view.composer.field, ESCAPE)
        assert reminds(view), "the first one says so"
        await until(lambda: not reminds(view))
        QTest.keyClick(view.composer.field, ESCAPE)
        assert reminds(view) and not is_stopping(view), "the second one came late"
        held = QKeyEvent(QEvent.Type.KeyPress, ESCAPE, Qt.KeyboardModifier.NoModifier, "", True)
        QApplication.sendEvent(view.composer.field, held)
        assert not is_stopping(view), "a key that is held is pressed once"
        QTest.keyClick(view.composer.field, ESCAPE)
        await until(lambda: is_stopping(view))
        assert not reminds(view)


async def test_the_stop_button_needs_no_confirmation(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with view_fixture(qapp, theme, tmp_path, ()) as fixture:
        press(fixture.view.composer, "Stop")
        await until(lambda: is_stopping(fixture.view))
