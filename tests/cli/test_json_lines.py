"""Lines that `--json` prints: a task has all its fields in one object, wherever it stands."""

import msgspec
import pytest

from errand.cli.json_lines import flat_task, json_line
from errand.protocol.base import JsonObject
from errand.protocol.comparisons import BranchSide, ConversationCompareResult
from errand.protocol.conversations import ConversationTreeResult
from errand.protocol.events import EventRecord, TaskUpdate
from errand.protocol.methods import Notice
from errand.protocol.usage import Usage
from tests.support.flat_tasks import FLAT_TASK, LATER_FIELDS, TASK

_SIDE = BranchSide(nodes=(), count=0, tasks=(TASK,), usage=Usage())


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (TASK, ()),
        (ConversationTreeResult(nodes=(), agents=(), tasks=(TASK,)), ("tasks", 0)),
        (
            ConversationCompareResult(conversation_id="c1", ancestor_id=None, a=_SIDE, b=_SIDE),
            ("b", "tasks", 0),
        ),
        (Notice("event", EventRecord(sequence=1, epoch="e", event=TaskUpdate(task=TASK))), ("params", "event", "task")),
    ],
)
def test_a_task_is_printed_as_one_object(value: object, path: tuple[str | int, ...]) -> None:
    printed, flat = msgspec.json.decode(json_line(value)), msgspec.json.decode(msgspec.json.encode(flat_task(TASK)))
    for key in path:
        printed = printed[key]
    assert printed == flat


def test_the_object_has_the_fields_of_a_task_before_it_had_groups() -> None:
    before: JsonObject = FLAT_TASK
    assert flat_task(TASK).keys() - LATER_FIELDS.keys() == before.keys()
