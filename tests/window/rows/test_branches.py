"""Branch actions of rows: the switch, inline editing, retry and fork, and the open end."""

from dataclasses import replace

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QMenu

from errand.client.conversation.rows import BranchEndRow, BranchSwitchRow, EditMessageRow, Row
from errand.window.rows.base import RowView
from errand.window.rows.edit import MessageEditField
from tests.support.row_actions import KeptActions
from tests.support.rows import end, node, reply, user
from tests.window.rows.conftest import MakeRowView

FORK = BranchSwitchRow("n0/fork", 2, 3, "n1", "n3", is_user=True, locked=False)


def button(row_view: RowView[Row], name: str) -> QAbstractButton:
    return next(control for control in row_view.findChildren(QAbstractButton) if control.accessibleName() == name)


def names(row_view: RowView[Row]) -> list[str]:
    return [
        control.accessibleName() for control in row_view.findChildren(QAbstractButton) if control.isVisibleTo(row_view)
    ]


def menu_of(row_view: RowView[Row]) -> QMenu:
    QApplication.sendEvent(
        row_view, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(1, 1), row_view.mapToGlobal(QPoint(1, 1)))
    )
    return next(menu for menu in row_view.findChildren(QMenu) if not menu.title())


def test_the_switch_goes_to_the_previous_and_next_version(show: MakeRowView, actions: KeptActions) -> None:
    row_view = show(FORK)
    button(row_view, "Previous version").click()
    button(row_view, "Next version").click()
    assert actions.branches.asked == [("switch", "n1"), ("switch", "n3")]
    assert row_view.accessibleName() == "Version 2 of 3"


def test_at_the_last_version_and_during_a_task_next_is_disabled(show: MakeRowView, actions: KeptActions) -> None:
    row_view = show(replace(FORK, number=3, next_id=None))
    assert button(row_view, "Previous version").isEnabled() and not button(row_view, "Next version").isEnabled()
    actions.branches.why = "The agent is at work."
    row_view.set_row(replace(FORK, locked=True))
    for name in ("Previous version", "Next version"):
        assert not button(row_view, name).isEnabled()
        assert button(row_view, name).toolTip() == "The agent is at work."


def test_the_switch_keeps_the_focus_at_its_last_version(show: MakeRowView) -> None:
    row_view = show(FORK)
    button(row_view, "Next version").setFocus()
    row_view.set_row(replace(FORK, number=3, previous_id="n2", next_id=None))
    assert row_view.window().focusWidget() is button(row_view, "Previous version")


def test_a_message_is_copied_edited_and_forked_by_buttons_and_by_its_menu(
    show: MakeRowView, actions: KeptActions
) -> None:
    row_view = show(user("Write a poem", "n1"))
    for name in ("Copy message", "Edit message", "New branch from here"):
        assert button(row_view, name).focusPolicy() == Qt.FocusPolicy.TabFocus
        button(row_view, name).click()
    for entry in menu_of(row_view).actions():
        entry.trigger()
    assert actions.copied == ["Write a poem", "Write a poem"]
    assert actions.branches.asked == [("edit", "n1"), ("fork", "n1")] * 2


def test_a_reply_is_retried_with_the_same_or_another_model(show: MakeRowView, actions: KeptActions) -> None:
    menu = menu_of(show(reply("A poem.", "n2")))
    others = next(other for other in menu.findChildren(QMenu))
    for entry in (*menu.actions(), *others.actions()):
        entry.trigger()
    assert actions.branches.asked == [
        ("retry", "n2"), ("fork", "n2"), ("retry", "n2 one/model"), ("retry", "n2 another/model"),
    ]  # fmt: skip


def test_during_a_task_the_menu_says_why_its_commands_are_disabled(show: MakeRowView, actions: KeptActions) -> None:
    actions.branches.why = "The agent is at work."
    entries = {entry.text(): entry for entry in menu_of(show(reply("A poem.", "n2"))).actions()}
    assert not entries["Retry"].isEnabled() and not entries["New branch from here"].isEnabled()
    assert entries["Retry"].toolTip() == "The agent is at work."


def test_during_a_task_fork_and_retry_buttons_are_disabled(show: MakeRowView, actions: KeptActions) -> None:
    message = show(user("Write a poem", "n1"))
    ending = show(replace(end("completed"), retry_id="n2", fork_id="n3"))
    button(ending, "Retry").setFocus()
    actions.branches.lock("The agent is at work.")
    for row_view, name in ((message, "New branch from here"), (ending, "New branch from here"), (ending, "Retry")):
        assert not button(row_view, name).isEnabled()
        assert button(row_view, name).toolTip() == "The agent is at work."
    assert button(message, "Edit message").isEnabled()
    assert not ending.isAncestorOf(ending.window().focusWidget())
    actions.branches.lock("")
    assert (
        button(message, "New branch from here").isEnabled()
        and button(message, "New branch from here").toolTip() == "New branch from here"
    )


def test_a_message_is_edited_inline_and_the_draft_survives(show: MakeRowView, actions: KeptActions) -> None:
    row = EditMessageRow("n1/edit", node("n1", "Write a poem", "user"), "Write a poem")
    row_view = show(row)
    row_view.take_focus()
    (field,) = row_view.findChildren(MessageEditField)
    QTest.keyClicks(field, " now")
    assert actions.branches.drafts == {"n1": "Write a poem now"}
    row_view.set_row(EditMessageRow("n9/edit", node("n9", "Another", "user"), "Another"))
    assert field.toPlainText() == "Another"
    row_view.set_row(row)
    assert field.toPlainText() == "Write a poem now"
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(field, "or later")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert actions.branches.asked == [("resend", "n1: Write a poem now\nor later")]


def test_esc_cancels_the_edit_of_a_message_and_stops_no_task(show: MakeRowView, actions: KeptActions) -> None:
    row_view = show(EditMessageRow("n1/edit", node("n1", "Write a poem", "user"), "Write a poem"))
    (field,) = row_view.findChildren(MessageEditField)
    QTest.keyClicks(field, " now")
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert actions.branches.asked == [("end_edit", "")]
    assert actions.branches.drafts == {"n1": "Write a poem"}


def test_an_empty_message_cannot_be_sent(show: MakeRowView, actions: KeptActions) -> None:
    row_view = show(EditMessageRow("n1/edit", node("n1", "Write", "user"), "Write"))
    (field,) = row_view.findChildren(MessageEditField)
    field.setPlainText("  ")
    assert not button(row_view, "Send").isEnabled()
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert actions.branches.asked == []


def test_a_field_grows_with_its_text(show: MakeRowView) -> None:
    row_view = show(EditMessageRow("n1/edit", node("n1", "Write", "user"), "Write"))
    before = row_view.height_for(600)
    (field,) = row_view.findChildren(MessageEditField)
    field.setPlainText("\n".join("Write" for _ in range(10)))
    assert row_view.height_for(600) > before + 9 * field.fontMetrics().height()
    field.setPlainText("\n".join("Write" for _ in range(1000)))
    assert row_view.height_for(600) < before + 20 * field.fontMetrics().height()


def test_a_failed_task_has_a_labelled_retry_button_and_a_done_one_an_icon(
    show: MakeRowView, actions: KeptActions
) -> None:
    row_view = show(replace(end("error", error="No answer."), retry_id="n2", fork_id="n3"))
    assert names(row_view) == ["New branch from here", "Retry"]
    button(row_view, "Retry").click()
    row_view.set_row(replace(end("completed", summary="Done."), retry_id="n1"))
    assert names(row_view) == ["Retry"]
    button(row_view, "Retry").click()
    assert actions.branches.asked == [("retry", "n2"), ("retry", "n1")]


def test_the_end_of_a_branch_that_continues_elsewhere_offers_its_continuations(
    show: MakeRowView, actions: KeptActions
) -> None:
    row_view = show(BranchEndRow("n1/open", ("n2", "n3")))
    assert names(row_view) == ["Branch 1", "Branch 2", "Compare"]
    button(row_view, "Branch 2").click()
    button(row_view, "Compare").click()
    row_view.set_row(BranchEndRow("n1/open", ("n2",)))
    assert names(row_view) == ["Go back"]
    row_view.set_row(BranchEndRow("n1/open", tuple(f"n{number}" for number in range(40))))
    assert names(row_view) == [*(f"Branch {number}" for number in range(35, 41)), "Compare"]
    assert actions.branches.asked == [("switch", "n3"), ("compare", "n2 n3")]


def test_an_edited_message_can_be_sent_as_soon_as_the_task_ends(show: MakeRowView, actions: KeptActions) -> None:
    actions.branches.why = "The agent is at work."
    row = EditMessageRow("n1/edit", node("n1", "Write", "user"), "Write", locked=True)
    row_view = show(row)
    (field,) = row_view.findChildren(MessageEditField)
    QTest.keyClicks(field, " now")
    assert not button(row_view, "Send").isEnabled() and button(row_view, "Send").toolTip() == "The agent is at work."
    actions.branches.why = ""
    field.moveCursor(field.textCursor().MoveOperation.Start)
    row_view.set_row(replace(row, locked=False))
    assert button(row_view, "Send").isEnabled()
    assert (field.toPlainText(), field.textCursor().position()) == ("Write now", 0)
