"""A connection makes whole tasks of the changes that the engine sends."""

from errand.client.known_tasks import KnownTasks
from errand.protocol.events import Event, EventRecord, LogRecord, TaskUpdate
from errand.protocol.tasks.change import TaskChange, change_of
from errand.protocol.tasks.methods import TaskListResult, TaskResult
from errand.protocol.tasks.task import Task, replace_fields
from tests.support.records import NOW, task


def _logged(event: Event | TaskChange) -> LogRecord:
    return LogRecord(sequence=1, epoch="e", event=event)


def _shown(state: Task) -> EventRecord:
    return EventRecord(sequence=1, epoch="e", event=TaskUpdate(task=state))


def test_changes_are_applied_to_the_task_that_was_sent() -> None:
    known_tasks, sent_task = KnownTasks(), task()
    assert known_tasks.whole(_logged(TaskUpdate(task=sent_task))) == _shown(sent_task)
    planning = replace_fields(sent_task, detail="planning")
    assert known_tasks.whole(_logged(change_of(planning, frozenset({"activity"})))) == _shown(planning)
    ended = replace_fields(planning, ended_at=NOW, status="completed")
    assert known_tasks.whole(_logged(change_of(ended, frozenset({"activity", "outcome"})))) == _shown(ended)


def test_a_change_of_a_task_that_is_not_known_is_passed_over() -> None:
    assert KnownTasks().whole(_logged(change_of(task(), frozenset({"activity"})))) is None


def test_a_task_of_an_answer_is_known_from_there_unless_events_said_more() -> None:
    known_tasks = KnownTasks()
    known_tasks.learn(TaskResult(task=task()))
    planning = replace_fields(task(), detail="planning")
    assert known_tasks.whole(_logged(change_of(planning, frozenset({"activity"})))) == _shown(planning)
    known_tasks.learn(TaskResult(task=task()))
    second = replace_fields(planning, step_count=1)
    assert known_tasks.whole(_logged(change_of(second, frozenset({"progress"})))) == _shown(second)


def test_tasks_of_a_list_are_known_from_there_but_for_those_that_ended() -> None:
    known_tasks, ended_task = KnownTasks(), replace_fields(task("t2"), status="completed", ended_at=NOW)
    known_tasks.learn(TaskListResult(tasks=(task(), ended_task)))
    planning = replace_fields(task(), detail="planning")
    assert known_tasks.whole(_logged(change_of(planning, frozenset({"activity"})))) == _shown(planning)
    assert known_tasks.whole(_logged(change_of(ended_task, frozenset({"activity"})))) is None
