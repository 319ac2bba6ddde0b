"""The queue above the input, on a real engine: shown, edited, moved, sent now and removed."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from errand.window.theme.theme import Theme
from tests.support.model_server import Reply
from tests.support.window import ViewFixture, press, until, view_fixture

_ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[ViewFixture]:
    async with view_fixture(qapp, theme, tmp_path, [Reply(text=f"Reply {number}.") for number in range(8)]) as fixture:
        yield fixture


async def test_queued_messages_are_shown_above_the_input_until_the_agent_reads_them(fixture: ViewFixture) -> None:
    assert fixture.view.input_panel.queue.isHidden()
    await fixture.follow_up("then rest")
    fixture.view.store.commands.send("mind the hidden ones")
    await fixture.until_waiting(2)
    assert fixture.waiting == ["Queued for next turn: mind the hidden ones", "Queued for later: then rest"]
    assert fixture.view.input_panel.queue.isVisible()
    assert await fixture.finish() == ["Begin", "mind the hidden ones", "then rest"]
    assert (fixture.waiting, fixture.view.input_panel.queue.isVisible()) == ([], False)


async def test_a_queued_message_is_edited_moved_sent_and_removed_by_mouse(fixture: ViewFixture) -> None:
    await fixture.follow_up("one", "two", "three", "four")
    press(fixture.row(0), "Remove")
    await fixture.until_waiting(3)
    press(fixture.row(1), "Move up")
    await until(lambda: fixture.waiting[0] == "Queued for later: three")
    press(fixture.row(2), "Send now")
    await until(lambda: fixture.waiting[0] == "Queued for next turn: four")
    press(fixture.row(2), "Edit")
    QTest.keyClicks(fixture.row(2).field, "2")
    press(fixture.view.input_panel.queue.rows[2], "Save")
    await until(lambda: fixture.waiting[2] == "Queued for later: 2")
    assert await fixture.finish() == ["Begin", "four", "three", "2"]


async def test_a_queued_message_is_edited_moved_sent_and_removed_by_keyboard(fixture: ViewFixture) -> None:
    await fixture.follow_up("one", "two", "three")
    QTest.keyClick(fixture.row(0), Qt.Key.Key_Down, _ALT)
    await until(lambda: fixture.waiting[1] == "Queued for later: one")
    QTest.keyClick(fixture.row(0), Qt.Key.Key_Return)
    QTest.keyClicks(fixture.view.input_panel.queue.rows[0].field, "2")
    QTest.keyClick(fixture.view.input_panel.queue.rows[0].field, Qt.Key.Key_Return)
    await until(lambda: fixture.waiting[0] == "Queued for later: 2")
    QTest.keyClick(fixture.row(1), Qt.Key.Key_Delete)
    await fixture.until_waiting(2)
    assert fixture.view.focusWidget() is fixture.view.input_panel.queue.rows[1]
    QTest.keyClick(fixture.view.input_panel.queue.rows[1], Qt.Key.Key_Down)
    assert fixture.view.focusWidget() is fixture.view.composer.field
    assert await fixture.finish() == ["Begin", "2", "three"]


async def test_esc_cancels_the_edit_of_a_queued_message_and_stops_no_task(fixture: ViewFixture) -> None:
    await fixture.follow_up("one")
    row = fixture.row(0)
    row.edit()
    QTest.keyClicks(row.field, "other")
    QTest.keyClick(row.field, Qt.Key.Key_Escape)
    assert (row.is_editing, fixture.waiting, fixture.task.activity.stopping) == (
        False,
        ["Queued for later: one"],
        False,
    )


async def test_an_edit_of_a_message_already_read_returns_to_the_input_with_the_reason(
    fixture: ViewFixture,
) -> None:
    why: list[str] = []
    fixture.view.store.failed.connect(why.append)
    await fixture.follow_up("one")
    fixture.row(0).edit()
    QTest.keyClicks(fixture.view.input_panel.queue.rows[0].field, "another")
    await fixture.finish()
    await until(lambda: bool(why))
    assert fixture.view.composer.text == "another"
    assert "already read this message" in why[0]


async def test_a_file_dropped_into_a_queued_message_is_inserted_as_its_path(
    fixture: ViewFixture, tmp_path: Path
) -> None:
    await fixture.follow_up("one")
    row = fixture.row(0)
    row.edit()
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path))])
    row.field.insertFromMimeData(mime)
    assert row.changed_text == str(tmp_path)


async def test_more_than_four_queued_lines_scroll(fixture: ViewFixture) -> None:
    heights: list[int] = []
    for number in range(6):
        await fixture.follow_up(f"text {number}")
        heights.append(fixture.view.input_panel.queue.height())
    line = heights[0]
    assert heights == [line, 2 * line, 3 * line, 4 * line, 4 * line, 4 * line]


async def test_a_stop_returns_the_queued_messages_to_the_message_field(fixture: ViewFixture, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("a line")
    await fixture.follow_up("then rest")
    fixture.view.composer.attachments.add([str(notes)])
    await fixture.follow_up("and read this")
    fixture.view.store.commands.send("mind the hidden ones")
    await fixture.until_waiting(3)
    QTest.keyClicks(fixture.view.composer.field, "half a thought")
    fixture.view.store.commands.stop()
    await until(lambda: fixture.task.outcome.ended_at is not None)
    assert fixture.view.composer.text == "mind the hidden ones\nthen rest\nand read this\nhalf a thought"
    assert [Path(path).name for path in fixture.view.composer.attachments.paths] == ["notes.txt"]


async def test_messages_that_the_next_task_reads_stay_with_it(fixture: ViewFixture) -> None:
    await fixture.follow_up("then rest")
    assert await fixture.finish() == ["Begin", "then rest"]
    assert fixture.view.composer.text == ""
