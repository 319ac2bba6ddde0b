"""The review panel in the real window, with a real engine and files that a task changed before."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from errand.client.texts.changes import REDO_PREVIEW
from errand.window.views.review.review_panel import ReviewPanelView
from tests.engine.checkpoints.parts import work_in
from tests.support.command_line import Errand
from tests.support.open_window import OpenWindow, open_window

_CONTROL_SHIFT = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
LINES = "".join(f"line {number}\n" for number in range(1, 31))


async def changed(home: Path) -> tuple[str, Path]:
    """A conversation whose task changed two files in two steps, and its folder."""
    async with work_in(home) as work:
        work.put("a.txt", LINES)
        await work.write(1, "a.txt", LINES.replace("line 3\n", "first\n").replace("line 20\n", "second\n"))
        await work.write(2, "new/b.txt", "b\n")
        return work.task.conversation_id, work.folder


async def open_review(person: OpenWindow, conversation_id: str, button: str = "2 files changed") -> ReviewPanelView:
    await person.until(lambda: person.stores.session.state == "ready")
    person.window.conversations.open(conversation_id)
    await person.until(lambda: bool(person.front.changes.tasks))
    await person.press(button)
    panel = person.front.review.panel
    await person.until(lambda: panel.file.diff.hunk is not None)
    return panel


async def test_a_person_undoes_a_change_a_file_and_a_step_and_redoes_all(qapp: QApplication, tmp_path: Path) -> None:
    conversation_id, folder = await changed(tmp_path)
    errand = Errand(tmp_path / "data", tmp_path)
    try:
        async with open_window(qapp, tmp_path / "data") as person:
            panel = await open_review(person, conversation_id)
            assert panel.file.diff.position[1] == 2
            QTest.keyClick(panel.files, Qt.Key.Key_J)
            assert panel.file.diff.position == (2, 2)
            await person.press("Undo change", panel)
            await person.until(lambda: "second" not in (folder / "a.txt").read_text())
            await person.press("Redo change", panel)
            await person.until(lambda: "second" in (folder / "a.txt").read_text())
            await person.press("Undo file", panel)
            await person.until(lambda: (folder / "a.txt").read_text() == LINES)
            panel.head.step_choice.setCurrentIndex(2)
            await person.press("Undo step", panel)
            await person.until(lambda: not (folder / "new").exists())
            panel.head.step_choice.setCurrentIndex(0)
            await person.press("Redo all", panel)
            await person.until(lambda: (folder / "new/b.txt").exists())
            assert "second" in (folder / "a.txt").read_text()
    finally:
        await errand.close()


async def test_a_conflict_is_shown_and_the_other_version_is_overwritten_on_demand(
    qapp: QApplication, tmp_path: Path
) -> None:
    conversation_id, folder = await changed(tmp_path)
    errand = Errand(tmp_path / "data", tmp_path)
    try:
        async with open_window(qapp, tmp_path / "data") as person:
            panel = await open_review(person, conversation_id)
            (folder / "a.txt").write_text("mine\n")
            await person.press("Undo all", panel)
            await person.until(panel.banner.isVisible)
            assert panel.banner.accessibleName().startswith("a.txt was changed since by somebody else.")
            assert (folder / "a.txt").read_text() == "mine\n"
            await person.press("Overwrite", panel)
            await person.until(lambda: (folder / "a.txt").read_text() == LINES and not panel.banner.isVisible())
    finally:
        await errand.close()


async def test_changes_by_commands_are_marked_and_an_undone_file_shows_what_a_redo_brings(
    qapp: QApplication, tmp_path: Path
) -> None:
    async with work_in(tmp_path) as work:
        work.put("a.txt", LINES)
        work.put("large", bytes(20_000_001))
        await work.write(1, "b.txt", "b\n")
        await work.shell(2, "sed -i 's/line 3$/third/' a.txt && rm large")
        conversation_id, folder = work.task.conversation_id, work.folder
    errand = Errand(tmp_path / "data", tmp_path)
    try:
        async with open_window(qapp, tmp_path / "data") as person:
            panel = await open_review(person, conversation_id, "3 files changed")
            assert spoken(panel) == [
                "b.txt, 1 line added, 0 lines removed, new",
                "a.txt, 1 line added, 1 line removed, by a command",
                "large, 0 lines added, 0 lines removed, cannot be undone · by a command",
            ]
            panel.files.select("a.txt")
            await person.press("Undo file", panel)
            await person.until(lambda: (folder / "a.txt").read_text() == LINES)
            await person.until(lambda: REDO_PREVIEW in shown_texts(panel))
            assert "+third" in panel.file.diff.unified.toPlainText()
            await person.press("Redo file", panel)
            await person.until(lambda: REDO_PREVIEW not in shown_texts(panel))
            assert "third" in (folder / "a.txt").read_text()
    finally:
        await errand.close()


def spoken(panel: ReviewPanelView) -> list[str]:
    """The files as a screen reader says them."""
    role = Qt.ItemDataRole.AccessibleTextRole
    return [str(panel.files.item(row).data(role)) for row in range(panel.files.count())]


def shown_texts(panel: ReviewPanelView) -> list[str]:
    return [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]


async def test_the_review_opens_by_its_keys_and_the_panes_lead_to_it(qapp: QApplication, tmp_path: Path) -> None:
    conversation_id, _ = await changed(tmp_path)
    errand = Errand(tmp_path / "data", tmp_path)
    try:
        async with open_window(qapp, tmp_path / "data") as person:
            await person.until(lambda: person.stores.session.state == "ready")
            person.window.conversations.open(conversation_id)
            person.window.activateWindow()
            QTest.keyClick(person.window, Qt.Key.Key_R, _CONTROL_SHIFT)
            panel = person.front.review.panel
            assert panel.isVisible()
            await person.until(lambda: panel.file.diff.hunk is not None)
            seen: list[QWidget | None] = []
            while panel.files not in seen and len(seen) < 10:
                person.window.commands.trigger("next_pane")
                seen.append(person.window.focusWidget())
            assert panel.files in seen
            QTest.keyClick(panel.files, Qt.Key.Key_R, _CONTROL_SHIFT)
            assert not panel.isVisible()
            person.front.changes.review(person.front.changes.tasks[0].task_id, "new/b.txt")
            await person.until(lambda: panel.isVisible() and panel.files.currentRow() == 1)
    finally:
        await errand.close()


async def test_the_line_above_the_message_field_counts_what_is_still_changed(
    qapp: QApplication, tmp_path: Path
) -> None:
    conversation_id, folder = await changed(tmp_path)
    errand = Errand(tmp_path / "data", tmp_path)
    try:
        async with open_window(qapp, tmp_path / "data") as person:
            panel = await open_review(person, conversation_id)
            await person.press("Undo all", panel)
            await person.until(lambda: (folder / "a.txt").read_text() == LINES)
            await person.press("Changes of 2 files undone")
            await person.press("Changes of 2 files undone")
            await person.press("Redo all", person.front.review.panel)
            await person.press("2 files changed")
    finally:
        await errand.close()
