"""Compares two records as plain lines, without values that always differ between runs."""

import difflib
from collections.abc import Iterable, Iterator
from typing import assert_never

import msgspec

from errand.engine.record.format import TaskRecord
from errand.protocol.asks import Ask
from errand.protocol.blocks import (
    Block,
    EnvironmentBlock,
    FileBlock,
    ImageBlock,
    NoticeBlock,
    NoticeKind,
    RecallBlock,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.conversations import Node
from errand.protocol.notices import (
    ContextTruncated,
    LimitReached,
    LimitsNear,
    TaskFailed,
    TaskStopped,
    TaskStuck,
)
from errand.protocol.tasks.groups import LimitKind, TaskStopReason
from errand.protocol.tasks.task import Task
from errand.text.notice_text import data_text, notice_text

# Notices about engine restarts, leftovers of a task, and other agents in its conversation.
_NOT_COMPARED: frozenset[NoticeKind] = frozenset({"interrupted", "resumed", "info"})
# A replay has no elapsed time, and no other tasks that use up the daily limit.
_TIME_LIMITS: frozenset[LimitKind] = frozenset({"minutes", "day_money", "day_tokens"})
_TIME_LIMIT_REASONS: frozenset[TaskStopReason] = frozenset({"time_limit", "day_limit"})


def compare(recorded: TaskRecord, today: TaskRecord) -> list[str]:
    """Return a unified diff, empty if the loop behaves as recorded."""
    timed = is_timed(recorded.head.task)
    then, now = plain_lines(recorded, timed=timed), plain_lines(today, timed=timed)
    return list(difflib.unified_diff(then, now, "recorded", "today", n=2, lineterm=""))


def is_timed(task: Task) -> bool:
    """Return True if a time limit or daily limit ended it."""
    return task.outcome.stop_reason in _TIME_LIMIT_REASONS


def plain_lines(record: TaskRecord, *, timed: bool) -> list[str]:
    """Turn by turn: the model's input, its reply, the results of its calls; then the asks and the end.

    Requests are rebuilt from the nodes, so they are unknown once the oldest messages were dropped from them.
    """
    requests = iter(record.requests)
    is_known, lines = True, list[str]()
    for node in record.nodes:
        if node.role == "assistant" and (request := next(requests, None)) is not None and is_known:
            lines += [f"request: {request.kept_count} messages as before, and", *_indented(request.added)]
        lines += _node(node, timed)
        is_known = is_known and not any(map(_is_truncation, node.blocks))
    for request in requests:
        lines += [f"request without a reply: {request.kept_count} messages as before, and", *_indented(request.added)]
    lines += [_ask(ask) for ask in record.asks if _is_compared(ask)]
    return [*lines, _end(record.head.task, timed)]


def _is_truncation(block: Block) -> bool:
    return isinstance(block, NoticeBlock) and isinstance(block.data, ContextTruncated)


def replies(record: TaskRecord) -> list[Node]:
    return [node for node in record.nodes if node.role == "assistant"]


def _node(node: Node, timed: bool) -> Iterator[str]:
    blocks = [line for block in node.blocks if (line := _block(block, timed)) is not None]
    if not blocks and node.role == "system":
        return
    yield f"{node.role} {node.status}"
    yield from _indented(blocks)
    yield from _indented([node.error] if node.error else [])


def _indented(texts: Iterable[str]) -> list[str]:
    return [f"    {line}" for text in texts for line in text.splitlines()]


def _ask(ask: Ask) -> str:
    outcome = {True: "allowed", False: "denied", None: ask.answer or ""}[ask.allowed]
    return f"ask {ask.kind}: {ask.text} → {ask.status} {outcome}"


def _is_compared(ask: Ask) -> bool:
    """Return False for asks of a restarted engine, about time limits, and about servers."""
    is_timed = ask.limit is not None and ask.limit.kind in _TIME_LIMITS
    return ask.kind != "unknown" and not is_timed and not is_about_server(ask)


def is_about_server(ask: Ask) -> bool:
    """Return True for an ask whether an MCP server of the workspace may start, which is about no call."""
    return ask.approval is not None and not ask.approval.call_id


def _end(task: Task, timed: bool) -> str:
    if timed:
        return f"end: {task.activity.status}"
    turns = "1 turn" if task.progress.step_count == 1 else f"{task.progress.step_count} turns"
    return f"end: {task.activity.status} ({task.outcome.stop_reason or 'no reason'}) after {turns}"


def _block(block: Block, timed: bool) -> str | None:
    match block:
        case TextBlock(text=text):
            return text
        case ThinkingBlock(text=text):
            return f"thinks: {text}"
        case ImageBlock(name=name) | FileBlock(name=name):
            return f"attached: {name}"
        case ToolCallBlock(call_id=call_id, tool=tool, arguments=arguments, invalid=invalid):
            arguments_text = invalid if invalid is not None else msgspec.json.encode(arguments, order="sorted").decode()
            return f"calls {tool} {call_id}: {arguments_text}"
        case ToolResultBlock(call_id=call_id, tool=tool, text=text, is_error=is_error):
            return f"{'error' if is_error else 'result'} of {tool} {call_id}: {text}"
        case SummaryBlock(text=text):
            return f"summary: {text}"
        case RecallBlock(entries=entries):
            return f"recalled: {', '.join(entry.node_id for entry in entries)}"
        case EnvironmentBlock(text=text):
            return f"works in: {text}"
        case NoticeBlock():
            return _notice(block, timed)
        case _:
            assert_never(block)


def _notice(notice: NoticeBlock, timed: bool) -> str | None:
    if notice.kind in _NOT_COMPARED or (timed and notice.kind in ("stopped", "limit")):
        return None
    match notice.data:
        case TaskStopped():  # by another person than in the record
            return "remark stopped"
        case LimitsNear(shares=shares, asks=asks):
            left = tuple(share for share in shares if share.limit not in _TIME_LIMITS)
            return f"remark warning: {data_text(LimitsNear(shares=left, asks=asks))}" if left else None
        case LimitReached() | TaskStuck() | TaskFailed() as end:
            return f"remark {notice.kind}: {data_text(msgspec.structs.replace(end, ended=(), unread=()))}"
        case _:
            return f"remark {notice.kind}: {notice_text(notice)}"
