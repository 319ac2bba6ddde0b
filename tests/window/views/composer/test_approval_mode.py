"""The approval mode in the composer: chosen with the mouse and with Shift+Tab, shown, and followed by the task."""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from errand.engine.sandbox.detection import is_sandboxed
from errand.protocol.tasks.groups import ApproveMode
from errand.window.stores.task_options import TaskOptions
from errand.window.theme.theme import Theme
from errand.window.views.composer.approval_mode import ApprovalModeDialog, ApprovalModeView, choices, next_mode
from tests.support.model_replies import DONE, shell
from tests.support.window import ViewFixture, press, until, view_fixture


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> ApprovalModeView:
    """A view in which a choice applies at once, as in a new conversation."""
    view = ApprovalModeView(theme)
    view.show_mode("ask", has_sandbox=False)
    view.chosen.connect(partial(view.show_mode, has_sandbox=False))
    qtbot.addWidget(view)
    view.resize(900, 40)
    view.show()
    return view


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[ViewFixture]:
    async with view_fixture(qapp, theme, tmp_path, [shell("touch made"), DONE], mode="task") as fixture:
        yield fixture


def panel(view: ApprovalModeView) -> ApprovalModeDialog:
    QTest.mouseClick(view.mode_button, Qt.MouseButton.LeftButton)
    return next(dialog for dialog in view.findChildren(ApprovalModeDialog) if dialog.isVisible())


def cycle(fixture: ViewFixture) -> None:
    QTest.keyClick(fixture.view.composer.field, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)


def shown(view: ApprovalModeView) -> tuple[str, str]:
    return view.mode_button.accessibleName(), str(view.mode_button.property("tone") or "")


async def becomes(fixture: ViewFixture, mode: ApproveMode) -> None:
    choices = fixture.view.input_panel.task_options
    await until(lambda: choices.options.approve == mode and fixture.task.options.approve == mode)


def test_the_panel_has_four_modes_each_with_its_sentence(view: ApprovalModeView) -> None:
    dialog = panel(view)
    buttons = [button for button in dialog.findChildren(QPushButton) if button.isVisible()]
    assert [button.accessibleName() for button in buttons] == [
        "Ask first, selected",
        "Accept edits",
        "Plan",
        "Allow everything, no sandbox",
    ]
    assert all(button.accessibleDescription().endswith(".") for button in buttons)
    assert dialog.focusWidget() is buttons[0]
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Down)
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Return)
    assert shown(view) == ("Approval mode: Accept edits", "")
    assert not dialog.isVisible()


def test_plan_mode_is_marked_and_one_click_leaves_it(view: ApprovalModeView) -> None:
    assert not view.leave_plan_button.isVisible()
    press(panel(view), "Plan")
    assert shown(view) == ("Approval mode: Plan", "link")
    press(view, "Exit plan mode")
    assert shown(view) == ("Approval mode: Ask first", "")
    assert not view.leave_plan_button.isVisible()


def test_allowing_everything_is_confirmed_once_and_then_shown_in_amber(view: ApprovalModeView) -> None:
    dialog = panel(view)
    press(dialog, "Allow everything, no sandbox")
    assert shown(view) == ("Approval mode: Ask first", "")
    press(dialog, "Keep asking")
    assert shown(view) == ("Approval mode: Ask first", "") and dialog.isVisible()
    press(dialog, "Allow everything, no sandbox")
    press(dialog, "Allow everything")
    assert shown(view) == ("Approval mode: Allow everything, no sandbox", "waiting")


def test_with_a_sandbox_the_label_promises_it(view: ApprovalModeView) -> None:
    view.show_mode("ask", has_sandbox=True)
    dialog = panel(view)
    press(dialog, "Allow everything")
    press(dialog, "Allow everything")
    view.show_mode("all", has_sandbox=True)
    assert shown(view) == ("Approval mode: Allow everything", "waiting")
    assert "sandbox" in view.mode_button.accessibleDescription()


def test_cycling_never_reaches_a_mode_that_allows_everything() -> None:
    modes: tuple[ApproveMode, ...] = ("ask", "edits", "auto", "plan", "never", "all")
    bounded = [next_mode(mode, has_sandbox=True) for mode in modes]
    assert bounded == ["edits", "auto", "plan", "ask", "ask", "ask"]
    assert [next_mode(mode, has_sandbox=False) for mode in modes] == ["edits", "plan", "ask", "ask", "ask", "ask"]


def test_the_mode_of_the_sandbox_is_offered_where_there_is_one(view: ApprovalModeView) -> None:
    view.show_mode("edits", has_sandbox=True)
    press(panel(view), "Auto in the sandbox")
    view.show_mode("auto", has_sandbox=True)
    assert shown(view) == ("Approval mode: Auto in the sandbox", "")
    view.show_mode("auto", has_sandbox=False)
    assert shown(view) == ("Approval mode: Auto, no sandbox", "")
    assert "Auto, no sandbox" not in [button.accessibleName() for button in panel(view).findChildren(QPushButton)]


def test_an_existing_conversation_keeps_its_own_mode() -> None:
    chosen = TaskOptions(approve="edits")
    assert (chosen.start("go", None).approve, chosen.start("go", "c1").approve) == ("edits", None)


async def test_shift_tab_while_writing_changes_the_mode_of_the_running_task(fixture: ViewFixture) -> None:
    fixture.view.composer.field.setFocus()
    modes = choices(has_sandbox=is_sandboxed("auto"))
    for mode in (*modes[:-1], "ask"):
        cycle(fixture)
        await becomes(fixture, mode)


async def test_shift_tab_goes_back_for_a_person_who_came_with_tab_and_types_nothing(fixture: ViewFixture) -> None:
    field = fixture.view.composer.field
    field.setFocus(Qt.FocusReason.TabFocusReason)
    cycle(fixture)
    assert not field.hasFocus()
    field.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClicks(field, "x")
    cycle(fixture)
    assert field.hasFocus()
    await becomes(fixture, "ask")


async def test_a_chosen_mode_settles_what_waits_and_a_stricter_one_denies_it(fixture: ViewFixture) -> None:
    fixture.view.composer.field.setFocus()
    cycle(fixture)
    await becomes(fixture, "ask")
    fixture.gate.set()
    store = fixture.view.store
    await until(lambda: bool(store.commands.waiting))
    press(panel(fixture.view.input_panel.approval_mode), "Plan")
    await until(lambda: fixture.task.outcome.ended_at is not None)
    assert fixture.task.progress.refused_calls == 1
    assert not (fixture.engine.parts.workspace / "made").exists()
