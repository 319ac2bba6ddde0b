"""The row at the end of a task."""

import msgspec
import pytest
from PySide6.QtWidgets import QPushButton

from errand.protocol.tasks import Task
from errand.window.rows.row import TaskEndRow
from errand.window.widgets.labels import ElidedLabel
from errand.window.widgets.status_dot import dot_state
from tests.support.protocol_events import ended
from tests.window.rows.conftest import MakeRowView, part


def unfinished(**changes: object) -> Task:
    return msgspec.structs.replace(ended(summary="I thought about it."), **changes)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (unfinished(completion="undeclared"), "Ended without confirming that it's done"),
        (
            unfinished(completion="refused", refused_calls=1),
            "Ended: nothing it tried was allowed",
        ),
    ],
)
def test_an_unfinished_end_is_shown_as_such_and_offers_a_retry(show: MakeRowView, task: Task, words: str) -> None:
    row_view = show(TaskEndRow("end", task, retry_id="node_1"))
    assert row_view.accessibleName() == words
    assert part(row_view, QPushButton, "Retry").isVisible()
    assert dot_state(task) == "unfinished"


def test_refused_calls_are_counted_beside_a_successful_end(show: MakeRowView) -> None:
    row_view = show(TaskEndRow("end", unfinished(completion="replied", refused_calls=2, acting_calls=1)))
    assert row_view.accessibleName() == "Task complete"
    assert any("2 calls not allowed" in label.accessibleName() for label in row_view.findChildren(ElidedLabel))
