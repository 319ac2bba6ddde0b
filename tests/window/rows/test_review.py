"""The buttons and links of a transcript that lead to the review of changed files."""

from PySide6.QtWidgets import QAbstractButton

from errand.client.conversation.rows import Row
from errand.window.rows.base import RowView
from errand.window.widgets.buttons import IconButton
from tests.support.row_actions import KeptActions
from tests.support.rows import end, tool
from tests.window.rows.conftest import MakeRowView, part

_DIFF = "--- src/a.py\n+++ src/a.py\n@@ -1 +1 @@\n-old\n+new\n"


def names(row_view: RowView[Row]) -> list[str]:
    return [control.accessibleName() for control in row_view.findChildren(QAbstractButton) if not control.isHidden()]


def test_the_end_of_a_task_leads_to_the_files_that_it_changed(show: MakeRowView, actions: KeptActions) -> None:
    row_view = show(end("completed", summary="All done."))
    assert not any(name.startswith("Review ") and name.endswith(" files") for name in names(row_view))
    resized: list[bool] = []
    row_view.resized.connect(lambda: resized.append(True))
    actions.changes.files = 3
    actions.changes.changed.emit()
    part(row_view, QAbstractButton, "Review 3 files").click()
    assert (actions.changes.reviewed, resized) == ([("end", "")], [True])


def test_a_quiet_end_has_the_review_among_its_actions(show: MakeRowView, actions: KeptActions) -> None:
    actions.changes.files = 1
    row_view = show(end("completed"))
    (button,) = (
        candidate
        for candidate in row_view.findChildren(IconButton)
        if candidate.accessibleName() == "Review changed files"
    )
    assert not button.isHidden()
    button.click()
    assert actions.changes.reviewed == [("end", "")]


def test_the_diff_of_a_call_leads_to_its_file_in_the_review(show: MakeRowView, actions: KeptActions) -> None:
    actions.changes.files = 1
    row = tool("code", {"action": "patch", "path": "src/a.py"}, "ok", details={"diff": _DIFF, "added": 1, "removed": 1})
    row_view = show(row)
    row_view.set_open(True)
    row_view.set_row(row)
    part(row_view, IconButton, "Open in the review").click()
    assert actions.changes.reviewed == [(row.node.task_id or "", "src/a.py")]
    actions.changes.files = 0
    actions.changes.changed.emit()
    assert "Open in the review" not in names(row_view)
