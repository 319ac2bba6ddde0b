"""The queue above the input, on a real engine: shown, edited, moved, sent now and removed."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from errand.window.theme.theme import Theme
from tests.support.model_server import Reply
from tests.support.window import Desk, desk, press, until

_ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture
async def person(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[Desk]:
    async with desk(qapp, theme, tmp_path, [Reply(text=f"Reply {number}.") for number in range(8)]) as opened:
        yield opened


async def test_queued_messages_are_shown_above_the_input_until_the_agent_reads_them(person: Desk) -> None:
    assert person.view.input_panel.queue.isHidden()
    await person.follow_up("then rest")
    person.view.store.commands.send("mind the hidden ones")
    await person.until_waiting(2)
    assert person.waiting == ["Queued for next turn: mind the hidden ones", "Queued for later: then rest"]
    assert person.view.input_panel.queue.isVisible()
    assert await person.finish() == ["Begin", "mind the hidden ones", "then rest"]
    assert (person.waiting, person.view.input_panel.queue.isVisible()) == ([], False)


async def test_a_queued_message_is_edited_moved_sent_and_removed_by_mouse(person: Desk) -> None:
    await person.follow_up("one", "two", "three", "four")
    press(person.row(0), "Remove")
    await person.until_waiting(3)
    press(person.row(1), "Move up")
    await until(lambda: person.waiting[0] == "Queued for later: three")
    press(person.row(2), "Send now")
    await until(lambda: person.waiting[0] == "Queued for next turn: four")
    press(person.row(2), "Edit")
    QTest.keyClicks(person.row(2).field, "2")
    press(person.view.input_panel.queue.rows[2], "Save")
    await until(lambda: person.waiting[2] == "Queued for later: 2")
    assert await person.finish() == ["Begin", "four", "three", "2"]


async def test_a_queued_message_is_edited_moved_sent_and_removed_by_keyboard(person: Desk) -> None:
    await person.follow_up("one", "two", "three")
    QTest.keyClick(person.row(0), Qt.Key.Key_Down, _ALT)
    await until(lambda: person.waiting[1] == "Queued for later: one")
    QTest.keyClick(person.row(0), Qt.Key.Key_Return)
    QTest.keyClicks(person.view.input_panel.queue.rows[0].field, "2")
    QTest.keyClick(person.view.input_panel.queue.rows[0].field, Qt.Key.Key_Return)
    await until(lambda: person.waiting[0] == "Queued for later: 2")
    QTest.keyClick(person.row(1), Qt.Key.Key_Delete)
    await person.until_waiting(2)
    assert person.view.focusWidget() is person.view.input_panel.queue.rows[1]
    QTest.keyClick(person.view.input_panel.queue.rows[1], Qt.Key.Key_Down)
    assert person.view.focusWidget() is person.view.composer.field
    assert await person.finish() == ["Begin", "2", "three"]


async def test_esc_cancels_the_edit_of_a_queued_message_and_stops_no_task(person: Desk) -> None:
    await person.follow_up("one")
    row = person.row(0)
    row.edit()
    QTest.keyClicks(row.field, "other")
    QTest.keyClick(row.field, Qt.Key.Key_Escape)
    assert (row.is_editing, person.waiting, person.task.stopping) == (False, ["Queued for later: one"], False)


async def test_an_edit_of_a_message_already_read_returns_to_the_input_with_the_reason(
    person: Desk,
) -> None:
    why: list[str] = []
    person.view.store.failed.connect(why.append)
    await person.follow_up("one")
    person.row(0).edit()
    QTest.keyClicks(person.view.input_panel.queue.rows[0].field, "another")
    await person.finish()
    await until(lambda: bool(why))
    assert person.view.composer.text == "another"
    assert "already read this message" in why[0]


async def test_a_file_dropped_into_a_queued_message_is_inserted_as_its_path(person: Desk, tmp_path: Path) -> None:
    await person.follow_up("one")
    row = person.row(0)
    row.edit()
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path))])
    row.field.insertFromMimeData(mime)
    assert row.changed_text == str(tmp_path)


async def test_more_than_four_queued_lines_scroll(person: Desk) -> None:
    heights: list[int] = []
    for number in range(6):
        await person.follow_up(f"text {number}")
        heights.append(person.view.input_panel.queue.height())
    line = heights[0]
    assert heights == [line, 2 * line, 3 * line, 4 * line, 4 * line, 4 * line]


async def test_a_stop_returns_the_queued_messages_to_the_message_field(person: Desk, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("a line")
    await person.follow_up("then rest")
    person.view.composer.attachments.add([str(notes)])
    await person.follow_up("and read this")
    person.view.store.commands.send("mind the hidden ones")
    await person.until_waiting(3)
    QTest.keyClicks(person.view.composer.field, "half a thought")
    person.view.store.commands.stop()
    await until(lambda: person.task.ended_at is not None)
    assert person.view.composer.text == "mind the hidden ones\nthen rest\nand read this\nhalf a thought"
    assert [Path(path).name for path in person.view.composer.attachments.paths] == ["notes.txt"]


async def test_messages_that_the_next_task_reads_stay_with_it(person: Desk) -> None:
    await person.follow_up("then rest")
    assert await person.finish() == ["Begin", "then rest"]
    assert person.view.composer.text == ""
