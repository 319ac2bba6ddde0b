"""Values as the lines that `--json` prints: in wire format, but that a task has all its fields in one object."""

from typing import cast

import msgspec

from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.comparisons import BranchSide, ConversationCompareResult
from errand.protocol.conversations import ConversationTreeResult
from errand.protocol.events import EventRecord, TaskUpdate
from errand.protocol.methods import Notice
from errand.protocol.tasks.task import GROUP_OF_FIELD, Task

_GROUPS = tuple(dict.fromkeys(GROUP_OF_FIELD.values()))


def json_line(value: object) -> str:
    """Return the line of a value."""
    return msgspec.json.encode(_with_flat_tasks(value)).decode()


def flat_task(task: Task) -> JsonObject:
    """Return the fields of a task and of its groups in one object; `detail` of `activity` is `activity` here."""
    fields: JsonObject = msgspec.to_builtins(task)
    for group in _GROUPS:
        fields |= cast("JsonObject", fields.pop(group))
    fields["activity"] = fields.pop("detail")
    return fields


def _with_flat_tasks(value: object) -> object:
    match value:
        case Task():
            return flat_task(value)
        case ConversationTreeResult() | BranchSide():
            return _replaced(value, "tasks", [flat_task(task) for task in value.tasks])
        case ConversationCompareResult():
            fields: JsonObject = msgspec.to_builtins(value)
            return fields | {"a": _with_flat_tasks(value.a), "b": _with_flat_tasks(value.b)}
        case Notice(params=EventRecord(event=TaskUpdate(task=task)) as record):
            event = _replaced(record.event, "task", flat_task(task))
            return _replaced(value, "params", _replaced(record, "event", event))
        case _:
            return value


def _replaced(struct: msgspec.Struct, name: str, value: JsonValue) -> JsonObject:
    fields: JsonObject = msgspec.to_builtins(struct)
    return fields | {name: value}
