"""The row at the end of a task."""

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from errand.client.conversation.rows import Row, TaskEndRow
from errand.client.number_format import task_totals
from errand.protocol.tasks.groups import TaskMode
from errand.protocol.tasks.task import Task, replace_fields
from errand.window import CLIENT_NAME
from errand.window.rows.base import RowView
from errand.window.rows.message_actions import HoverText
from errand.window.rows.text_view import TextView
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.labels import ElidedLabel
from errand.window.widgets.status_dot import dot_state
from tests.support.protocol_events import ended
from tests.support.row_actions import KeptActions
from tests.window.rows.conftest import MakeRowView, part


def unfinished(**changes: object) -> Task:
    return replace_fields(ended(summary="I thought about it."), **changes)


@pytest.mark.parametrize(
    ("task", "outcome"),
    [
        (unfinished(completion="undeclared"), "Ended without confirming that it's done"),
        (unfinished(completion="no_answer"), "Ended: the last reply is not an answer"),
        (
            unfinished(completion="refused", refused_calls=1),
            "Ended: nothing it tried was allowed",
        ),
        (unfinished(completion="no_work"), "Ended: no tool was used, so nothing was done"),
    ],
)
def test_an_unfinished_end_is_shown_as_such_and_offers_a_retry(show: MakeRowView, task: Task, outcome: str) -> None:
    row_view = show(TaskEndRow("end", task, retry_id="node_1"))
    assert row_view.accessibleName() == outcome
    assert part(row_view, QPushButton, "Retry").isVisible()
    assert dot_state(task) == "unfinished"


def visible_labels(row_view: RowView[Row]) -> list[str]:
    labels = (
        label for label in row_view.findChildren(QLabel) if label.isVisible() and not isinstance(label, HoverText)
    )
    return [label.text() for label in labels if label.text()]


@pytest.mark.parametrize(("mode", "labels"), [("auto", ["Answered, no tool used"]), ("chat", [])])
def test_an_answer_without_a_tool_has_no_tick_and_says_so_unless_it_is_a_chat(
    show: MakeRowView, mode: TaskMode, labels: list[str]
) -> None:
    answered = replace_fields(ended(), completion="answered", mode=mode)
    row_view = show(TaskEndRow("end", answered, reply="I wrote a.txt."))
    assert visible_labels(row_view) == labels
    assert dot_state(answered) == "ended"


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"last_call_failed": True}, "Ended after a failed call"),
        ({"last_call_failed": True, "changed_nothing": True}, "Ended after a failed call"),
        ({"changed_nothing": True}, "Answered, nothing changed"),
        (
            {"changed_nothing": True, "untouched": ("a.txt",)},
            "Answered, nothing changed · Named, but in no call: a.txt",
        ),
        ({"untouched": ("a.txt", "b\u202e.txt")}, "Ended · Named, but in no call: a.txt, b\\u202e.txt"),
    ],
)
def test_what_speaks_against_a_success_takes_the_tick_away(
    show: MakeRowView, changes: dict[str, object], label: str
) -> None:
    task = replace_fields(ended(), completion="declared", **changes)
    assert visible_labels(show(TaskEndRow("end", task, reply="Done."))) == [label]
    assert dot_state(task) == "ended"


@pytest.mark.parametrize(("untouched", "labels"), [((), []), (("a.txt",), ["Named, but in no call: a.txt"])])
def test_a_chat_that_changed_nothing_says_only_what_no_call_touched(
    show: MakeRowView, untouched: tuple[str, ...], labels: list[str]
) -> None:
    task = replace_fields(ended(), completion="replied", mode="chat", changed_nothing=True, untouched=untouched)
    assert visible_labels(show(TaskEndRow("end", task, reply="It has two lines."))) == labels
    assert dot_state(task) == "ended"


def test_an_answer_without_a_tool_that_only_the_end_tells_is_a_neutral_card(show: MakeRowView) -> None:
    row_view = show(TaskEndRow("end", unfinished(completion="answered"), retry_id="node_1"))
    assert row_view.accessibleName() == "Answered, no tool used"
    assert visible_labels(row_view) == ["Answered, no tool used", " · ".join(task_totals(unfinished()))]


def test_a_failure_of_the_model_leads_to_the_settings_of_models(show: MakeRowView, actions: KeptActions) -> None:
    failed = ended(reason="error", error="OpenAI refused the key (401).")
    row_view = show(TaskEndRow("end", failed, retry_id="node_1", is_model_failure=True))
    part(row_view, QPushButton, "Models and keys…").click()
    assert actions.settings_opened == 1
    row_view = show(TaskEndRow("end", failed, retry_id="node_1"))
    button_names = [button.accessibleName() for button in row_view.findChildren(QPushButton) if button.isVisible()]
    assert button_names == ["Retry"]


def test_refused_calls_are_counted_beside_a_successful_end(show: MakeRowView) -> None:
    row_view = show(TaskEndRow("end", unfinished(completion="replied", refused_calls=2, acting_calls=1)))
    assert row_view.accessibleName() == "Task complete"
    assert any("2 calls not allowed" in label.accessibleName() for label in row_view.findChildren(ElidedLabel))


def test_in_a_narrow_column_the_title_is_whole_and_the_review_an_icon(show: MakeRowView, actions: KeptActions) -> None:
    actions.changes.files = 12
    row_view = show(TaskEndRow("end", ended(summary="All is done."), retry_id="node_1"))
    assert part(row_view, QPushButton, "Review 12 files").isVisible()
    row_view.resize(230, row_view.height())
    title = next(label for label in row_view.findChildren(QLabel) if label.text() == "Task complete")
    assert title.width() >= title.sizeHint().width()
    part(row_view, IconButton, "Review 12 files").click()
    assert actions.changes.reviewed == [("task_1", "")]


@pytest.mark.parametrize(
    ("stopped_by", "remarks"),
    [("errand stop", "By errand stop. Stopped sleep 60 (pid 7)."), (CLIENT_NAME, "Stopped sleep 60 (pid 7).")],
)
def test_a_stop_names_the_client_that_asked_for_it_unless_it_was_this_window(
    show: MakeRowView, stopped_by: str, remarks: str
) -> None:
    stopped = ended(reason="manual_stop")
    row_view = show(TaskEndRow("end", stopped, stopped_by=stopped_by, remarks=("Stopped sleep 60 (pid 7).",)))
    assert part(row_view, TextView, "What was terminated").toPlainText() == remarks
