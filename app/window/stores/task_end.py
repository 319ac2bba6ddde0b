"""How a task ended, in one badge: what its last nodes say of the end is folded into it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from app.protocol.blocks import NoticeBlock, TextBlock
from app.protocol.conversations import Node
from app.protocol.tasks import Task
from app.window.rows import EndRow

_CUT = "The last reply was cut short; what had come is kept."
_STOPPED = "Stopped "
_CLOSING = ("stopped", "limit", "error", "info")


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """`folded` are the nodes whose remarks the badge says already; `last_id` is the one that it stands below."""

    row: EndRow
    last_id: str
    folded: Collection[str]


def task_end(task: Task, nodes: Sequence[Node], *, is_whole: bool) -> TaskEnd | None:
    """Of an ended task and those of its nodes that are loaded; `is_whole` says that none is above them.

    None where the branch leaves the task before its end: that stands in another branch.
    """
    closing = nodes[-1] if any(notice.kind in _CLOSING for notice in _notices(nodes[-1])) else None
    if closing is None and not _is_last(task, nodes[-1]):
        return None
    replies = [node for node in nodes if node.role == "assistant"]
    last = replies[-1] if replies else None
    broken = last if last is not None and last.status in ("cut", "failed") else None
    if broken is not None and broken not in nodes[-2:]:
        broken = None  # the task went on after it
    anew = broken or (replies[0] if replies and is_whole else None)
    row = EndRow(
        f"{task.id}/end",
        _without_echo(task, last),
        remarks=tuple(remark for remark in (_of_closing(closing, task), _of_reply(broken, task)) if remark),
        retry_id=anew.id if anew is not None else None,
    )
    return TaskEnd(row, nodes[-1].id, {node.id for node in (closing, broken) if node is not None})


def _is_last(task: Task, node: Node) -> bool:
    """All other ends than a good one have a remark of the engine."""
    return task.stop_reason in ("completed", None) and node.role != "user" and node.turn >= task.step_count


def _notices(node: Node) -> list[NoticeBlock]:
    return [block for block in node.blocks if isinstance(block, NoticeBlock)]


def _without_echo(task: Task, last: Node | None) -> Task:
    """A task without a summary of its own has its last words as summary: they stand right above."""
    said = "".join(block.text for block in last.blocks if isinstance(block, TextBlock)) if last is not None else ""
    return msgspec.structs.replace(task, summary="") if said and said == task.summary else task


def _of_reply(broken: Node | None, task: Task) -> str:
    if broken is None:
        return ""
    if broken.status == "cut":
        return _CUT
    return broken.error or "" if broken.error != task.error else ""


def _of_closing(closing: Node | None, task: Task) -> str:
    """Who stopped it, what was ended with it and what was not read; the error itself is the badge's own text."""
    text = " ".join(notice.text for notice in _notices(closing)) if closing is not None else ""
    if task.error:
        text = text.removeprefix(task.error).strip()
    if task.stop_reason == "manual_stop" and text.startswith(_STOPPED):
        text = text.removeprefix(_STOPPED)
        return text[:1].upper() + text[1:]
    return text
