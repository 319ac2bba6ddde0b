"""A task's record as JSON lines (docs/record.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from app.engine.core.errors import InvalidParams
from app.protocol.agents import Personality
from app.protocol.asks import Ask
from app.protocol.base import Timestamp, Wire
from app.protocol.context import PromptPart
from app.protocol.conversations import Node
from app.protocol.tasks import Task

VERSION = 1


class RecordTaskLine(Wire, frozen=True, kw_only=True, tag="task"):
    """The first line: what ran, and what bears on it. `errand_version` is the one that wrote the file.

    `window` is how many tokens the model reads, where that is known, of which it is summarised at a share of
    `summarise_at`. `counted` are the characters and the tokens of the newest request before the task. `kept` are the
    entries that stay word for word.
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
    kept: tuple[str, ...] = ()


class HistoryLine(Wire, frozen=True, kw_only=True, tag="history"):
    """A node of the branch before the task, from the root on."""

    node: Node


class RecordNodeLine(Wire, frozen=True, kw_only=True, tag="node"):
    """A node of the task, in its order: prompts, replies, results of tools, remarks."""

    node: Node


class RequestLine(Wire, frozen=True, kw_only=True, tag="request"):
    """What the model was sent in one call, message by message in words.

    `added` are those after the first `kept` ones of the call before.
    """

    kept: int
    added: tuple[str, ...]


class RecordAskLine(Wire, frozen=True, kw_only=True, tag="ask"):
    """What a person was asked and answered, in its order."""

    ask: Ask


RecordLine: TypeAlias = RecordTaskLine | HistoryLine | RequestLine | RecordNodeLine | RecordAskLine
_DECODER: msgspec.json.Decoder[RecordLine] = msgspec.json.Decoder(RecordLine)


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A whole record."""

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
    """`InvalidParams` that names the line which is none of a record, or a version that is not ours."""
    parts = [_line(number, text) for number, text in enumerate(lines, start=1) if text.strip()]
    heads = [part for part in parts if isinstance(part, RecordTaskLine)]
    if len(heads) != 1 or parts[0] is not heads[0]:
        raise InvalidParams(
            "This is no record of a task: its first line must be the task. Make one with errand record."
        )
    if heads[0].record_version != VERSION:
        raise InvalidParams(f"The record is of form {heads[0].record_version}; this version of Errand reads {VERSION}.")
    return TaskRecord(
        heads[0],
        tuple(part.node for part in parts if isinstance(part, HistoryLine)),
        tuple(part for part in parts if isinstance(part, RequestLine)),
        tuple(part.node for part in parts if isinstance(part, RecordNodeLine)),
        tuple(part.ask for part in parts if isinstance(part, RecordAskLine)),
    )


def _line(number: int, text: str) -> RecordLine:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidParams(f"Line {number} is not one of a record: {error}.") from error
