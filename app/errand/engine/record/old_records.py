"""Reads nodes and tasks of the version before, which stated in prose what a replay has to know."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.agent.tasks.manual_summary import PROMPT
from errand.protocol.blocks import Block, EngineMessageKind, NoticeBlock, TextBlock, ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.notices import (
    ContextNearlyFull,
    ContextTruncated,
    EndNotSaved,
    EngineEnded,
    LimitReached,
    LimitShare,
    LimitsNear,
    NoSummary,
    NoticeData,
    Remark,
    RepeatedCall,
    ReplyCut,
    TaskCompleted,
    TaskEndNotice,
    TaskFailed,
    TaskStopped,
    TaskStuck,
    UnknownPrice,
)
from errand.protocol.tasks.groups import LimitKind
from errand.protocol.tasks.task import Task, replace_fields

_ENGINE_MESSAGES: tuple[EngineMessageKind, ...] = ("nudge", "cut", "as_chat", "resume")
_SKIPPED = "Skipped due to queued user message."
_N = r"([\d,.]+)"
_LEFTOVERS = re.compile(r" (?:Ended|Not read any more): .*", re.DOTALL)
_STOPPED = re.compile(r"Stopped by (.*)\.", re.DOTALL)
_STUCK = re.compile(r"It tried (\d+) times in a row to make a call that cannot be made: (.*)", re.DOTALL)
_LIMITS: tuple[tuple[LimitKind, re.Pattern[str]], ...] = (
    ("turns", re.compile(rf"It has used its {_N} turns\.")),
    ("minutes", re.compile(rf"It has worked for {_N} minutes\.")),
    ("money", re.compile(rf"It has spent its \${_N}\.")),
    ("tokens", re.compile(rf"It has used its {_N} tokens\.")),
    ("day_money", re.compile(rf"All tasks together have spent the \${_N} of today\.")),
    ("day_tokens", re.compile(rf"All tasks together have used the {_N} tokens of today\.")),
)
_ONE_TURN = "It has used its one turn."
_USED = re.compile(r"Used: (.*); at the limit it will (ask you|stop)\.")
_SHARES: tuple[tuple[LimitKind, re.Pattern[str]], ...] = (
    ("turns", re.compile(rf"{_N} of {_N} turns")),
    ("minutes", re.compile(rf"{_N} of {_N} minutes")),
    ("money", re.compile(rf"\${_N} of \${_N}")),
    ("tokens", re.compile(rf"{_N} of {_N} tokens")),
    ("day_money", re.compile(rf"\${_N} of the \${_N} of today")),
    ("day_tokens", re.compile(rf"{_N} of the {_N} tokens of today")),
)
_REPEATED = re.compile(r"The same call was made three times in a row: (.*)", re.DOTALL)
_NEARLY_FULL = re.compile(r"About (\d+) % of what the model can read is used; .*")
_TRUNCATED = re.compile(
    r"(?:The oldest (?:(entry)|(\d+) entries))?(?: and )?(the middle of the newest result)? (?:is|are) "
    r"left out of what the model reads, because it is full\.",
    re.IGNORECASE,
)
_NO_SUMMARY = re.compile(r"The older part could not be summarised: (.*)", re.DOTALL)
_CUT = re.compile(r"The reply was cut because it (.*?)\. What came before that is kept, .*", re.DOTALL)
_PRICE = re.compile(r"The price of (.*) is not known, so the budget cannot be kept: .*")
_MADE_NONE = "No summary was made: "
_FAILED = "The task failed: "
_NOT_SAVED = "The end of the task could not be saved. "


def current_task(task: Task, nodes: Sequence[Node]) -> Task:
    """Return the task with `summarises`, which was cleared once the summary was made."""
    begins_with_message = bool(nodes) and nodes[0].role == "user"
    is_summary = task.request.prompt == PROMPT and not begins_with_message
    return replace_fields(task, summarises=task.request.summarises or is_summary)


def current_node(node: Node) -> Node:
    """Return the node with data in each notice, and with the kinds of engine messages and results.

    What a notice says of ended processes and unread messages is dropped.
    """
    blocks = tuple(_current_block(block, node) for block in node.blocks)
    return node if blocks == node.blocks else msgspec.structs.replace(node, blocks=blocks)


def _current_block(block: Block, node: Node) -> Block:
    match block:
        case NoticeBlock(data=None):
            return NoticeBlock(kind=block.kind, data=_data(block))
        case TextBlock(engine_message=None) if node.role == "user" and not node.is_from_person:
            kind = next((kind for kind in _ENGINE_MESSAGES if block.text == prompt_text(kind)), None)
            return msgspec.structs.replace(block, engine_message=kind)
        case ToolResultBlock(marks=()) if block.text == _SKIPPED:
            return msgspec.structs.replace(block, marks=("skipped",))
        case ToolResultBlock(marks=()) if block.text.endswith(prompt_text("repeated")):
            return msgspec.structs.replace(block, marks=("repeated",))
        case _:
            return block


def _data(notice: NoticeBlock) -> NoticeData:
    match notice.kind:
        case "stopped" | "limit" | "error" | "interrupted":
            return _end(notice.kind, _LEFTOVERS.sub("", notice.text))
        case "info" if notice.text.startswith("The task is over."):
            return TaskCompleted()
        case _:
            return next(_notices_in(notice.text), None) or Remark(text=notice.text)


def _end(kind: str, text: str) -> TaskEndNotice | Remark:
    if kind == "interrupted":
        return EngineEnded(resumes="by itself" in text)
    if kind == "stopped":
        stopped = _STOPPED.fullmatch(text)
        return TaskStopped(by=stopped[1] if stopped else "")
    if kind == "limit":
        if (stuck := _STUCK.fullmatch(text)) is not None:
            return TaskStuck(count=int(stuck[1]), call=stuck[2])
        return _limit(text)
    if text.startswith(_FAILED):
        return TaskFailed(text=text.removeprefix(_FAILED), cause="internal")
    if text.startswith(_NOT_SAVED):
        return EndNotSaved(text=text.removeprefix(_NOT_SAVED))
    if text.startswith(_MADE_NONE):
        return TaskFailed(text=text.removeprefix(_MADE_NONE), cause="summary")
    return TaskFailed(text=text, cause="reply")


def _limit(text: str) -> LimitReached | Remark:
    for limit, pattern in _LIMITS:
        if (match := pattern.fullmatch(text)) is not None:
            return LimitReached(limit=limit, value=_number(match[1]))
    return LimitReached(limit="turns", value=1) if text == _ONE_TURN else Remark(text=text)


def _notices_in(text: str) -> Iterator[NoticeData]:
    if (match := _USED.fullmatch(text)) is not None:
        shares = tuple(share for part in match[1].split(" and ") for share in _share(part))
        yield LimitsNear(shares=shares, asks=match[2] == "ask you")
    if (match := _REPEATED.fullmatch(text)) is not None:
        yield RepeatedCall(count=3, call=match[1])
    if (match := _NEARLY_FULL.fullmatch(text)) is not None:
        yield ContextNearlyFull(share=int(match[1]) / 100)
    if (match := _TRUNCATED.fullmatch(text)) is not None:
        entries = 1 if match[1] else int(match[2] or 0)
        yield ContextTruncated(entries=entries, shortens_result=match[3] is not None)
    if (match := _NO_SUMMARY.fullmatch(text)) is not None:
        yield NoSummary(reason=match[1])
    if (match := _CUT.fullmatch(text)) is not None:
        yield ReplyCut(reason=match[1])
    if (match := _PRICE.fullmatch(text)) is not None:
        yield UnknownPrice(model=match[1])


def _share(part: str) -> Iterator[LimitShare]:
    for limit, pattern in _SHARES:
        if (match := pattern.fullmatch(part)) is not None:
            yield LimitShare(limit=limit, used=_number(match[1]), value=_number(match[2]))


def _number(text: str) -> float:
    return float(text.replace(",", ""))
