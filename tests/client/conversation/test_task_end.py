"""The closing notice in the row of a task's end."""

import msgspec
import pytest

from errand.client.conversation.node_rows import task_end
from errand.protocol.blocks import NoticeBlock
from errand.protocol.notices import (
    EndedProcess,
    EndNotSaved,
    LimitReached,
    TaskFailed,
    TaskStopped,
    TaskStuck,
)
from errand.protocol.tasks.groups import TaskStopReason
from errand.protocol.tasks.task import Task, replace_fields
from tests.support.records import NOW, node, task

SLEEP = (EndedProcess(pid=7, started=1.0, name="sleep 60"),)


def ended(reason: TaskStopReason, error: str | None = None) -> Task:
    return replace_fields(task(ended_at=NOW), stop_reason=reason, error=error)


@pytest.mark.parametrize(
    ("task", "notice", "remarks"),
    [
        (
            ended("manual_stop"),
            NoticeBlock(kind="stopped", data=TaskStopped(by="the window", ended=SLEEP, unread=("and this",))),
            ("Stopped sleep 60 (pid 7). Not delivered: “and this”.",),
        ),
        (
            ended("token_limit"),
            NoticeBlock(kind="limit", data=LimitReached(limit="tokens", value=300)),
            ("The limit of 300 tokens is reached.",),
        ),
        (
            ended("iteration_limit"),
            NoticeBlock(kind="limit", data=TaskStuck(count=10, call="code {}")),
            ("The agent made the same call 10 times with the same result: code {}",),
        ),
        (ended("error", "no key"), NoticeBlock(kind="error", data=TaskFailed(text="no key", cause="reply")), ()),
        (
            ended("error", "no key"),
            NoticeBlock(kind="error", data=TaskFailed(text="no key", cause="reply", ended=SLEEP)),
            ("Stopped sleep 60 (pid 7).",),
        ),
        (
            ended("error", "a bug"),
            NoticeBlock(kind="error", data=TaskFailed(text="a bug", cause="internal")),
            ("The task failed: a bug",),
        ),
        (
            ended("error", "The disk is full."),
            NoticeBlock(kind="error", data=EndNotSaved(text="The disk is full.")),
            ("The end of the task could not be saved. The disk is full.",),
        ),
        (ended("manual_stop"), NoticeBlock(kind="stopped", data=TaskStopped(by="errand stop")), ()),
        (ended("error", "no key"), NoticeBlock(kind="error", text="no key"), ()),
        (
            ended("error", "no key"),
            NoticeBlock(kind="error", text="no key Ended: sleep 60 (pid 7)."),
            ("Ended: sleep 60 (pid 7).",),
        ),
        (
            ended("manual_stop"),
            NoticeBlock(kind="stopped", text="Stopped by the window. Ended: sleep 60 (pid 7)."),
            ("Stopped by the window. Ended: sleep 60 (pid 7).",),
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, NoticeBlock) else None,
)
def test_the_end_has_who_stopped_it_and_leftovers_but_no_error_twice(
    task: Task, notice: NoticeBlock, remarks: tuple[str, ...]
) -> None:
    closing = msgspec.structs.replace(node("n2"), role="system", author="engine", blocks=(notice,))
    folded = task_end(task, (node("n1"), closing), is_whole=True)
    assert folded is not None and folded.row.remarks == remarks
    assert folded.row.stopped_by == (notice.data.by if isinstance(notice.data, TaskStopped) else "")
