"""A task's record as JSON lines (docs/record.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.record.old_records import current_node, current_task
from errand.engine.storage.records.flat_tasks import grouped_task
from errand.protocol.agents import Personality
from errand.protocol.asks import Ask
from errand.protocol.base import JsonObject, Timestamp, Wire
from errand.protocol.context import PromptPart
from errand.protocol.conversations import Node
from errand.protocol.tasks.task import Task

# Nodes and tasks of version 1 state some facts in prose. A new record of an old task has such nodes too. The task has
# groups since version 3.
VERSION = 3
_OLDEST = 1


class RecordTaskLine(Wire, frozen=True, kw_only=True, tag="task"):
    """The first line: the task and the settings that affect it. `errand_version` is the version that wrote the file.

    `window` is the model's context window in tokens, if known; summaries start at its share `summarise_at`.
    `counted` are the characters and the tokens of the newest request before the task. `kept_ids` are the entries that
    stay word for word.
    """

    record_version: int
    errand_version: str
    recorded_at: Timestamp
    task: Task
    personality: Personality
    max_minutes: float
    max_tokens: int = 0
    prompt: tuple[PromptPart, ...] = ()
    window: int | None = None
    summarise_at: float = 0.0
    counted: tuple[int, int] = (0, 0)
    kept_ids: tuple[str, ...] = msgspec.field(default=(), name="kept")


class HistoryLine(Wire, frozen=True, kw_only=True, tag="history"):
    """A node of the branch before the task, starting at the root."""

    node: Node


class RecordNodeLine(Wire, frozen=True, kw_only=True, tag="node"):
    """A node of the task, in order: prompts, replies, tool results, remarks."""

    node: Node


class RequestLine(Wire, frozen=True, kw_only=True, tag="request"):
    """The input of one model call as text, message by message.

    `added` are the messages after the first `kept_count` ones of the previous call.
    """

    kept_count: int = msgspec.field(name="kept")
    added: tuple[str, ...]


class RecordAskLine(Wire, frozen=True, kw_only=True, tag="ask"):
    """A question to a person and its answer, in order."""

    ask: Ask


RecordLine: TypeAlias = RecordTaskLine | HistoryLine | RequestLine | RecordNodeLine | RecordAskLine
_DECODER: msgspec.json.Decoder[RecordLine] = msgspec.json.Decoder(RecordLine)


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A complete record."""

    head: RecordTaskLine
    history: tuple[Node, ...]
    requests: tuple[RequestLine, ...]
    nodes: tuple[Node, ...]
    asks: tuple[Ask, ...]

    def lines(self) -> tuple[str, ...]:
        parts: tuple[RecordLine, ...] = (
            self.head,
            *(HistoryLine(node=node) for node in self.history),
            *self.requests,
            *(RecordNodeLine(node=node) for node in self.nodes),
            *(RecordAskLine(ask=ask) for ask in self.asks),
        )
        return tuple(msgspec.json.encode(part).decode() for part in parts)


def read(lines: Sequence[str]) -> TaskRecord:
    """Raises `InvalidParams` for an invalid line, with its number, or for an unsupported version."""
    parts = [_line(number, text) for number, text in enumerate(lines, start=1) if text.strip()]
    heads = [part for part in parts if isinstance(part, RecordTaskLine)]
    if len(heads) != 1 or parts[0] is not heads[0]:
        raise InvalidParams(
            "This is no record of a task: its first line must be the task. Make one with errand record."
        )
    if not _OLDEST <= heads[0].record_version <= VERSION:
        raise InvalidParams(
            f"The record is of form {heads[0].record_version}; this version of Errand reads {_OLDEST} to {VERSION}."
        )
    nodes = tuple(current_node(part.node) for part in parts if isinstance(part, RecordNodeLine))
    return TaskRecord(
        msgspec.structs.replace(heads[0], task=current_task(heads[0].task, nodes)),
        tuple(part.node for part in parts if isinstance(part, HistoryLine)),
        tuple(part for part in parts if isinstance(part, RequestLine)),
        nodes,
        tuple(part.ask for part in parts if isinstance(part, RecordAskLine)),
    )


def _line(number: int, text: str) -> RecordLine:
    try:
        return _DECODER.decode(_with_groups(text) if '"recordVersion"' in text else text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidParams(f"Line {number} is not one of a record: {error}.") from error


def _with_groups(text: str) -> bytes:
    line = msgspec.json.decode(text, type=JsonObject)
    if isinstance(task := line.get("task"), dict):
        line["task"] = grouped_task(task)
    return msgspec.json.encode(line)
