"""The review panel beside a conversation on a real engine."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from errand.window.theme.theme import Theme
from tests.support.window import press, until
from tests.window.views.review.conftest import LINES, review_in, with_lines


async def test_keys_go_from_change_to_change_across_files(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        for name in ("a", "b"):
            review.work.put(name, LINES)
            await review.work.write(1, name, with_lines(l3=f"{name} first", l60=f"{name} second"))
        panel = await review.open()
        seen = [(panel.files.currentRow(), panel.file.diff.position)]
        for key in (Qt.Key.Key_J, Qt.Key.Key_F7, Qt.Key.Key_J, Qt.Key.Key_J, Qt.Key.Key_K, Qt.Key.Key_K):
            row, before = panel.files.currentRow(), panel.file.diff.position
            review.key(key)
            if (panel.files.currentRow(), panel.file.diff.position) == (row, before):
                await until(lambda: panel.file.diff.hunk is not None)  # the last change of all: it stays there
            await until(lambda: panel.file.diff.hunk is not None)
            seen.append((panel.files.currentRow(), panel.file.diff.position))
        assert seen == [(0, (1, 2)), (0, (2, 2)), (1, (1, 2)), (1, (2, 2)), (1, (2, 2)), (1, (1, 2)), (0, (2, 2))]
        review.view.composer.setFocus()
        review.key(Qt.Key.Key_F7, Qt.KeyboardModifier.ShiftModifier)
        assert panel.file.diff.position == (1, 2), "F7 works while a message is written"
        review.key(Qt.Key.Key_J)
        assert (panel.file.diff.position, review.view.composer.text) == ((1, 2), "j")


async def test_the_bar_of_a_change_says_whether_the_diff_has_the_keyboard(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        review.work.put("a", LINES)
        await review.work.write(1, "a", with_lines(l3="third"))
        panel = await review.open()
        edit = panel.file.diff.main

        def bar() -> str:
            return edit.grab().toImage().pixelColor(1, 20).name()

        edit.setFocus()
        await until(lambda: bar() == theme.tokens.focus)
        panel.files.setFocus()
        await until(lambda: bar() == theme.tokens.edge)


async def test_a_file_that_was_renamed_and_changed_shows_what_differs(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        review.work.put("a.txt", LINES)
        await review.work.shell(1, "mv a.txt b.txt && sed -i 's/^line 3$/third/' b.txt")
        await until(lambda: bool(review.view.changes.tasks))
        review.view.review.toggle()
        await until(lambda: len(review.names) == 2)
        await review.choose("b.txt")
        panel = review.panel
        await until(lambda: "Renamed from a.txt. To undo that, undo both files." in review.labels)
        text = panel.file.diff.unified.toPlainText()
        assert "-line 3" in text and "+third" in text and text.count("+") == 1
        panel.file.diff.setFocus()
        review.key(Qt.Key.Key_Delete)
        assert review.work.read("b.txt").count("third") == 1, "a part of it cannot be undone alone"
        panel.files.select("a.txt")
        await until(lambda: "Renamed to b.txt, which shows its changes." in review.labels)
        await review.work.undo()
        assert review.work.read("a.txt") == LINES


async def test_what_is_read_stays_in_sight_while_the_task_works_on(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        review.work.put("b", LINES)
        changed = {f"l{number}": f"new {number}" for number in range(20, 100, 9)}
        await review.work.write(1, "b", with_lines(**changed))
        panel = await review.open()
        for is_side_by_side in (False, True):
            panel.set_side_by_side(is_side_by_side)
            assert panel.file.diff.go_to_hunk(5)
            edit = panel.file.diff.main
            top, line = edit.firstVisibleBlock().text(), panel.file.diff.line
            assert (panel.file.diff.position, edit.firstVisibleBlock().blockNumber() > 10) == ((6, 9), True)
            await review.work.write(2, "a", "a\n")
            await review.work.write(2, "b", with_lines(**changed, l3="above"))
            await until(lambda: panel.file.diff.position == (7, 10))
            assert (edit.firstVisibleBlock().text(), panel.file.diff.line) == (top, line)
            assert (panel.files.currentRow(), review.names) == (0, ["b", "a"])
            await review.work.write(3, "b", with_lines(**changed))
            await until(lambda: panel.file.diff.position == (6, 9))


async def test_a_change_is_undone_by_a_key_and_redone(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        review.work.put("a", LINES)
        await review.work.write(1, "a", with_lines(l3="first", l60="second"))
        panel = await review.open()
        panel.file.diff.setFocus()
        review.key(Qt.Key.Key_J)
        review.key(Qt.Key.Key_Delete)
        await until(lambda: review.work.read("a") == with_lines(l3="first"))
        await until(lambda: "1 change undone" in panel.files.item(0).toolTip())
        await until(lambda: panel.file.diff.position == (1, 1))
        press(panel, "Redo change")
        await until(lambda: review.work.read("a") == with_lines(l3="first", l60="second"))


async def test_ctrl_z_takes_back_what_was_undone_here_and_ctrl_shift_z_repeats_it(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    control, shift = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
    async with review_in(qapp, theme, tmp_path) as review:
        review.work.put("a", LINES)
        both, first = with_lines(l3="first", l60="second"), with_lines(l3="first")
        await review.work.write(1, "a", both)
        panel = await review.open()
        panel.file.diff.setFocus()
        review.key(Qt.Key.Key_Z, control)
        await until(lambda: panel.banner.accessibleName().startswith("Nothing to take back."))
        review.key(Qt.Key.Key_J)
        review.key(Qt.Key.Key_Delete)
        await until(lambda: panel.file.diff.position == (1, 1))
        assert not panel.banner.isVisible()
        press(panel, "Undo file")
        await until(lambda: review.work.read("a") == LINES)
        for keys, expected in ((control, first), (control, both), (control | shift, first), (control, both)):
            review.key(Qt.Key.Key_Z, keys)
            await until(lambda expected=expected: review.work.read("a") == expected)
        await until(lambda: panel.file.diff.position[1] == 2)
        review.key(Qt.Key.Key_Z, control)
        await until(panel.banner.isVisible)
        assert review.work.read("a") == both


async def test_a_conflict_is_explained_and_the_list_says_it_too(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        review.work.put("a", LINES)
        await review.work.write(1, "a", with_lines(l3="first"))
        panel = await review.open()
        mine = with_lines(l3="mine")
        review.work.put("a", mine)
        panel.file.diff.setFocus()
        review.key(Qt.Key.Key_Delete)
        await until(panel.banner.isVisible)
        assert panel.banner.accessibleName().startswith("a was changed since by somebody else, in the same lines.")
        assert review.work.read("a") == mine
        await until(lambda: "changed since" in panel.files.item(0).toolTip())
        press(panel, "Overwrite")
        await until(lambda: review.work.read("a") == LINES)
        await until(lambda: not panel.banner.isVisible())


async def test_keys_do_not_overwrite_again_what_was_overwritten_once(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    control, shift = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
    async with review_in(qapp, theme, tmp_path) as review:
        review.work.put("a", LINES)
        await review.work.write(1, "a", with_lines(l3="first"))
        panel = await review.open()
        review.work.put("a", with_lines(l3="first", l50="mine"))
        press(panel, "Undo file")
        await until(panel.banner.isVisible)
        press(panel, "Overwrite")
        await until(lambda: review.work.read("a") == LINES)
        panel.file.diff.setFocus()
        review.key(Qt.Key.Key_Z, control)
        await until(lambda: review.work.read("a") != LINES)
        later = review.work.read("a").replace("line 70\n", "later\n")
        review.work.put("a", later)
        review.key(Qt.Key.Key_Z, control | shift)
        await until(panel.banner.isVisible)
        assert review.work.read("a") == later


async def test_a_file_that_is_gone_is_said_and_restored_by_a_press(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        review.work.put("a", LINES)
        await review.work.write(1, "a", with_lines(l3="first", l60="second"))
        panel = await review.open()
        (review.work.folder / "a").unlink()
        panel.file.diff.setFocus()
        review.key(Qt.Key.Key_Delete)
        await until(panel.banner.isVisible)
        assert panel.banner.accessibleName().startswith("a is gone: somebody else deleted or moved it.")
        press(panel, "Restore file")
        await until(lambda: (review.work.folder / "a").exists())
        assert review.work.read("a") == with_lines(l60="second")
        await until(lambda: not panel.banner.isVisible())


async def test_esc_closes_it_and_the_composer_has_the_focus(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        await review.work.write(1, "a", "a\n")
        panel = await review.open()
        panel.set_maximized(True)
        assert not review.view.composer.isVisible()
        review.key(Qt.Key.Key_Escape)
        assert not panel.isVisible()
        assert review.view.focusWidget() is review.view.composer.field
        review.view.tree.toggle()
        review.view.review.toggle()
        assert (panel.isVisible(), review.view.tree.is_open) == (True, False)
        review.view.review.toggle()
        assert not panel.isVisible()


async def test_before_any_change_it_says_what_it_is_for(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        review.view.review.toggle()
        assert "No changed files" in review.labels
        await review.work.write(1, "a", "a\n")
        await until(lambda: review.names == ["a"])
        assert "No changed files" not in review.labels


async def test_the_whole_is_copied_as_a_patch_and_says_what_is_not_in_it(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        review.work.put("a", "one\n")
        review.work.put("b", b"\0")
        await review.work.write(1, "a", "two\n")
        panel = await review.open()
        press(panel, "Copy all as patch")
        await until(lambda: panel.banner.accessibleName() == "The patch was copied.")
        patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"
        assert qapp.clipboard().text() == patch
        await review.work.shell(2, "printf 'x\\0' > b")
        await until(lambda: len(review.names) == 2)
        press(panel, "Copy all as patch")
        await until(lambda: "not text, or too large: b." in panel.banner.accessibleName())
        assert qapp.clipboard().text() == patch


async def test_odd_names_stand_in_one_line_and_binary_files_say_so(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        await review.work.write(1, "odd \u202e\n<b>name</b>.txt", "x\n")
        await review.work.shell(2, "printf 'x\\0' > picture")
        panel = await review.open()
        assert "\n" not in review.names[0] and "\u202e" not in review.names[0]
        panel.files.select("picture")
        await until(lambda: any("binary" in label for label in review.labels))


async def test_ten_thousand_changed_lines_are_shown_and_stepped_through(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with review_in(qapp, theme, tmp_path) as review:
        old = [f"line {number}\n" for number in range(30_000)]
        review.work.put("a", "".join(old))
        new = [f"new {number}\n" if number % 30 < 10 else line for number, line in enumerate(old)]
        await review.work.do(1, action="write", path="a", content="".join(new))
        panel = await review.open()
        assert panel.file.diff.position == (1, 1000)
        panel.set_side_by_side(True)
        assert panel.file.diff.go_to_hunk(999)
        assert panel.file.diff.line == 29_971
        QTest.keyClick(panel.file.diff.main, Qt.Key.Key_K)
        assert panel.file.diff.position == (999, 1000)
