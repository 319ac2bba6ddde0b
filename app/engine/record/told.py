"""A record in plain lines, so that two of them can be compared: what changes from run to run by itself is left out."""

import difflib
from collections.abc import Iterable
from typing import assert_never

import msgspec

from app.engine.record.lines import TaskRecord
from app.protocol.asks import Ask
from app.protocol.blocks import (
    Block,
    FileBlock,
    ImageBlock,
    NoticeBlock,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from app.protocol.conversations import Node

# These name who stopped it and the processes that were ended.
_NAMES_OTHERS = frozenset({"stopped", "interrupted", "resumed"})


def compare(recorded: TaskRecord, today: TaskRecord) -> list[str]:
    """A unified difference, empty where the loop does today what it did then."""
    return list(difflib.unified_diff(told(recorded), told(today), "recorded", "today", n=2, lineterm=""))


def told(record: TaskRecord) -> list[str]:
    """Turn by turn: what the model was sent, what it said, what came of its calls; then the asks and the end."""
    requests = iter(record.requests)
    lines: list[str] = []
    for node in record.nodes:
        if node.role == "assistant" and (request := next(requests, None)) is not None:
            lines += [f"request: {request.kept} messages as before, and", *_indented(request.added)]
        lines += [f"{node.role} {node.status}", *_indented(_block(block) for block in node.blocks)]
        lines += _indented([node.error] if node.error else [])
    for request in requests:
        lines += [f"request without a reply: {request.kept} messages as before, and", *_indented(request.added)]
    lines += [_ask(ask) for ask in record.asks]
    task = record.head.task
    return [*lines, f"end: {task.status} ({task.stop_reason or 'no reason'}) after {task.step_count} turns"]


def replies(record: TaskRecord) -> list[Node]:
    return [node for node in record.nodes if node.role == "assistant"]


def _indented(texts: Iterable[str]) -> list[str]:
    return [f"    {line}" for text in texts for line in text.splitlines()]


def _ask(ask: Ask) -> str:
    given = {True: "allowed", False: "denied", None: ask.answer or ""}[ask.allowed]
    return f"ask {ask.kind}: {ask.text} → {ask.status} {given}"


def _block(block: Block) -> str:
    match block:
        case TextBlock(text=text):
            return text
        case ThinkingBlock(text=text):
            return f"thinks: {text}"
        case ImageBlock(name=name) | FileBlock(name=name):
            return f"attached: {name}"
        case ToolCallBlock(call_id=call_id, tool=tool, arguments=arguments, invalid=invalid):
            given = invalid if invalid is not None else msgspec.json.encode(arguments, order="sorted").decode()
            return f"calls {tool} {call_id}: {given}"
        case ToolResultBlock(call_id=call_id, tool=tool, text=text, is_error=is_error):
            return f"{'error' if is_error else 'result'} of {tool} {call_id}: {text}"
        case SummaryBlock(text=text):
            return f"summary: {text}"
        case NoticeBlock(kind=kind, text=text):
            return f"remark {kind}" if kind in _NAMES_OTHERS else f"remark {kind}: {text}"
        case _:
            assert_never(block)
