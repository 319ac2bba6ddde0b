"""The review of changed files: before any change, unified, side by side, and with a message."""

from PySide6.QtWidgets import QWidget

from errand.window.views.review.review_panel import ReviewPanelView
from tests.engine.checkpoints.parts import Work
from tests.support.window import until
from tests.window.accessibility.full_window import WindowFixture

_LINES = "".join(f"line {number}\n" for number in range(40))


async def empty(fixture: WindowFixture) -> QWidget:
    view = await fixture.open(fixture.branched)
    view.review.open()
    return fixture.window


async def unified(fixture: WindowFixture) -> QWidget:
    panel = await _with_changes(fixture)
    panel.set_side_by_side(False)
    return fixture.window


async def side_by_side(fixture: WindowFixture) -> QWidget:
    panel = await _with_changes(fixture)
    panel.set_side_by_side(True)
    panel.banner.show_message("The patch was copied.", "done")
    return fixture.window


async def _with_changes(fixture: WindowFixture) -> ReviewPanelView:
    """Two files in two steps, and one change undone, so that every control is there."""
    view = await fixture.open(fixture.branched)
    view.review.open()
    task = view.store.task
    assert task is not None
    work = Work(fixture.engine.parts, task)
    if not view.changes.tasks:
        work.put("review.txt", _LINES)
        await work.write(1, "review.txt", _LINES.replace("line 3\n", "first\n").replace("line 30\n", "second\n"))
        await work.write(2, "other.txt", "other\n")
        await work.undo("review.txt", hunk=(await work.diff("review.txt"))[0].hunks[0].id)
    panel = view.review.panel
    await until(lambda: panel.file.diff.hunk is not None and panel.files.count() == 2)
    return panel
