"""The status table of a task: every pair of statuses, allowed or refused."""

from datetime import UTC, datetime
from itertools import product
from typing import get_args

import pytest

from errand.engine.agent.run.task_state import END_STATUSES, TRANSITIONS, ended_task, is_working, with_status
from errand.engine.core.errors import IllegalMove
from errand.protocol.tasks.groups import TaskActivity, TaskRequest, TaskStatus
from errand.protocol.tasks.task import Task, replace_fields

STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)

# Written out by hand from the design's section 4 and seed 002's diagram.
ALLOWED = {
    "running": "thinking waiting_user paused completed cancelled error interrupted",
    "thinking": "running tool_executing waiting_user paused completed cancelled error interrupted",
    "tool_executing": "running thinking waiting_user paused completed cancelled error interrupted",
    "waiting_user": "running thinking tool_executing completed cancelled error interrupted",
    "paused": "running thinking tool_executing cancelled error interrupted",
    "interrupted": "running cancelled error",
    "completed": "",
    "cancelled": "",
    "error": "",
}


def a_task(status: TaskStatus) -> Task:
    return Task(
        id="t",
        conversation_id="c",
        agent_id="a",
        started_at=datetime.now(UTC),
        request=TaskRequest(prompt="go", model="m", workspace="/"),
        activity=TaskActivity(status=status),
    )


@pytest.mark.parametrize(("before", "after"), [pair for pair in product(STATUSES, STATUSES) if pair[0] != pair[1]])
def test_status_transitions_follow_the_table(before: TaskStatus, after: TaskStatus) -> None:
    if after in ALLOWED[before].split():
        assert with_status(a_task(before), after).activity.status == after
    else:
        with pytest.raises(IllegalMove):
            with_status(a_task(before), after)


@pytest.mark.parametrize("status", STATUSES)
def test_working_task_may_keep_its_status_and_ended_task_cannot_end_again(status: TaskStatus) -> None:
    if status in END_STATUSES:
        with pytest.raises(IllegalMove):
            with_status(a_task(status), status)
    else:
        assert with_status(a_task(status), status).activity.status == status


def test_every_status_is_working_or_ended_or_interrupted() -> None:
    assert set(TRANSITIONS) == set(STATUSES)
    for status in STATUSES:
        task = a_task(status)
        assert [is_working(task), status in END_STATUSES, status == "interrupted"].count(True) == 1


def test_end_clears_fields_of_working_tasks() -> None:
    working = replace_fields(
        a_task("tool_executing"), stopping=True, current_tool="shell", ask_id="x", detail="stopping"
    )
    task = ended_task(working, "cancelled", "manual_stop")
    assert (task.activity.stopping, task.activity.current_tool, task.activity.ask_id, task.activity.detail) == (
        False,
        None,
        None,
        "",
    )
    assert (task.activity.status, task.outcome.stop_reason) == ("cancelled", "manual_stop")
    assert task.outcome.ended_at is not None
