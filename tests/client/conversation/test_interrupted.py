"""A call without a result in an interrupted task: it is not shown as running, and may need a person."""

import msgspec

from errand.client.conversation.branch import LoadedBranch
from errand.client.conversation.rows import AskRow, ToolCallRow
from errand.protocol.blocks import ToolCallBlock
from errand.protocol.tasks.groups import CallProgress
from errand.protocol.tasks.task import Task, replace_fields
from tests.support import records
from tests.support.rows import UNKNOWN, WHEN

CALL = ToolCallBlock(call_id="call_1", tool="shell", arguments={"command": "make deploy"})


def branch_of(task: Task) -> LoadedBranch:
    """A conversation whose last node is a reply of the task, with one call."""
    reply = msgspec.structs.replace(
        records.node("n1", None), role="assistant", blocks=(CALL,), task_id=task.id, created_at=WHEN
    )
    branch = LoadedBranch()
    branch.show((reply,), False, ())
    branch.tasks.put(task)
    return branch


def the_task(status: str) -> Task:
    return replace_fields(records.task("task_1"), status=status, ended_at=None)


def calls(branch: LoadedBranch) -> list[ToolCallRow]:
    return [row for row in branch.rows("n1") if isinstance(row, ToolCallRow)]


def test_a_call_without_a_result_is_interrupted_until_the_task_resumes() -> None:
    branch = branch_of(the_task("tool_executing"))
    assert [row.state for row in calls(branch)] == ["pending"]
    assert "n1" in branch.tasks.put(the_task("interrupted"))
    assert [row.state for row in calls(branch)] == ["interrupted"]
    assert "n1" in branch.tasks.put(the_task("running"))
    assert [row.state for row in calls(branch)] == ["pending"]


def test_a_call_runs_once_the_task_says_that_it_has_begun_and_is_dropped_if_the_task_ends_before() -> None:
    branch = branch_of(the_task("tool_executing"))
    turn = branch.node("n1").turn
    begun = CallProgress(call_id="call_1", started_at=WHEN)
    at_work = replace_fields(the_task("tool_executing"), step_count=turn, calls=(begun,))
    assert "n1" in branch.tasks.put(at_work)
    assert [(row.state, row.progress) for row in calls(branch)] == [("running", begun)]
    ended = msgspec.structs.replace(begun, ended_at=WHEN)
    branch.tasks.put(replace_fields(at_work, calls=(ended,)))
    assert [(row.state, row.progress) for row in calls(branch)] == [("ended", ended)]
    assert "n1" in branch.tasks.put(replace_fields(at_work, status="cancelled", calls=(), ended_at=WHEN))
    assert [row.state for row in calls(branch)] == ["dropped"]


def test_a_call_of_unknown_outcome_has_its_card_and_says_so() -> None:
    branch = branch_of(the_task("interrupted"))
    assert [*branch.asks.put(UNKNOWN)] == ["n1"]
    call, ask = branch.rows("n1")
    assert isinstance(call, ToolCallRow) and call.state == "unknown"
    assert isinstance(ask, AskRow) and ask.ask == UNKNOWN
