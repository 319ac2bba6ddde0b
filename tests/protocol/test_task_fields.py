"""The fields of a task and of its groups."""

from msgspec.structs import fields

from errand.protocol.tasks.task import GROUP_OF_FIELD, Task, replace_fields
from errand.protocol.usage import Usage
from tests.support.records import task


def test_no_two_groups_have_a_field_of_the_same_name() -> None:
    own = {field.name for field in fields(Task)}
    names = [field.name for group in set(GROUP_OF_FIELD.values()) for field in fields(getattr(task(), group))]
    assert sorted(names) == sorted(GROUP_OF_FIELD)
    assert own.isdisjoint(names)


def test_replaced_fields_are_found_in_their_groups_and_the_other_groups_stay() -> None:
    before = task()
    after = replace_fields(before, agent_id="a2", status="thinking", detail="planning", usage=Usage(input_tokens=1))
    assert (after.agent_id, after.activity.status, after.activity.detail) == ("a2", "thinking", "planning")
    assert after.progress.usage == Usage(input_tokens=1)
    changed = {field.name for field in fields(Task) if getattr(after, field.name) is not getattr(before, field.name)}
    assert changed == {"agent_id", "activity", "progress"}
