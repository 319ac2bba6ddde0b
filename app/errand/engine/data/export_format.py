"""The export format (docs/export.md) and its reader."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, TypeAlias, assert_never

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.core.input_limits import MAX_RECORD_BYTES, check_record, too_large
from errand.engine.data.pictures import store_picture
from errand.engine.storage.records.executions import ExecutionEnd, ExecutionStart
from errand.engine.storage.records.flat_tasks import grouped_task
from errand.engine.storage.records.transfer import Bundle
from errand.engine.storage.records.turns import TurnRow
from errand.protocol.agents import Agent
from errand.protocol.asks import Ask
from errand.protocol.base import JsonObject, Timestamp
from errand.protocol.conversations import Conversation, Node
from errand.protocol.tasks.task import Task

# 2: notices, marks of results and remarks of prompts as data. 3: tasks with groups. Older versions are read too.
VERSION = 3
_FIRST_WITH_GROUPS = 3

# Reading lets go of the interpreter so often and so briefly that the event loop starves, unless it really pauses.
_LINES_AT_ONCE = 50
_PAUSE_S = 0.0001

# The maximum in memory at a time; a picture of 10 MB is 14 MB as base64.
_MAX_CONVERSATION_BYTES = 512 * 1024 * 1024


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. A newer version may add fields; older readers need only the format number."""

    errand_export: int
    exported_at: Timestamp
    home: str = ""


class ExportLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all other lines. Not a wire struct, so that it may contain storage records."""


class ConversationLine(ExportLine, frozen=True, kw_only=True, tag="conversation"):
    """The following lines belong to it, up to the next conversation or the end."""

    record: Conversation


class AgentLine(ExportLine, frozen=True, kw_only=True, tag="agent"):
    record: Agent


class TaskLine(ExportLine, frozen=True, kw_only=True, tag="task"):
    record: Task


class TurnLine(ExportLine, frozen=True, kw_only=True, tag="turn"):
    record: TurnRow


class StartedLine(ExportLine, frozen=True, kw_only=True, tag="started"):
    record: ExecutionStart


class FinishedLine(ExportLine, frozen=True, kw_only=True, tag="finished"):
    record: ExecutionEnd


class AskLine(ExportLine, frozen=True, kw_only=True, tag="ask"):
    record: Ask


class NodeLine(ExportLine, frozen=True, kw_only=True, tag="node"):
    record: Node


class PictureLine(ExportLine, frozen=True, kw_only=True, tag="picture"):
    """`path` is the path in the nodes; `data` is base64 in the file."""

    path: str
    name: str
    data: Annotated[bytes, msgspec.Meta(max_length=20 * 1024 * 1024)]


class EndLine(ExportLine, frozen=True, kw_only=True, tag="end"):
    """The last line: a file without it is truncated."""

    conversations: int
    nodes: int


Line: TypeAlias = (
    ConversationLine
    | AgentLine
    | TaskLine
    | TurnLine
    | StartedLine
    | FinishedLine
    | AskLine
    | NodeLine
    | PictureLine
    | EndLine
)


_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def _decoded_flat(text: bytes) -> Line:
    """Decode a line of a file whose tasks have no groups."""
    line = msgspec.json.decode(text, type=JsonObject)
    if line.get("type") == "task" and isinstance(task := line.get("record"), dict):
        line["record"] = grouped_task(task)
        text = msgspec.json.encode(line)
    return _DECODER.decode(text)


@dataclass(slots=True)
class ImportedConversation:
    """`pictures` maps the paths in the nodes to local copies; `line` is its first line in the file."""

    bundle: Bundle
    line: int
    pictures: dict[str, str] = field(default_factory=dict[str, str])


class ExportReader:
    """Reads the header on construction; then `next` returns one conversation at a time, None at the end."""

    def __init__(self, file: IO[bytes], attachments: Path) -> None:
        self._file = file
        self._attachments = attachments
        self._number = 0
        self._size = 0  # of the current conversation
        self._next_line: Line | None = None
        header = self._header()
        self.home = header.home
        self._has_flat_tasks = header.errand_export < _FIRST_WITH_GROUPS

    def next(self) -> ImportedConversation | None:
        """Yield the records. Raises `InvalidParams` with the number of an unreadable line, where reading ends."""
        line = self._next_line if self._next_line is not None else self._line()
        self._next_line = None
        if isinstance(line, EndLine):
            return None
        if not isinstance(line, ConversationLine):
            raise InvalidParams(f"line {self._number}: a conversation should begin here")
        imported, self._size = ImportedConversation(Bundle(line.record), self._number), 0
        while not isinstance(line := self._line(), ConversationLine | EndLine):
            self._add(imported, line)
            if self._number % _LINES_AT_ONCE == 0:
                time.sleep(_PAUSE_S)
        self._next_line = line
        return imported

    def _header(self) -> Header:
        try:
            header = msgspec.json.decode(self._text(), type=Header)
        except (msgspec.DecodeError, UnicodeDecodeError, InvalidParams) as error:
            raise InvalidParams("it is not a file that Errand exported") from error
        if not 1 <= header.errand_export <= VERSION:
            raise InvalidParams(
                f"its format is {header.errand_export}, and this version of Errand reads {VERSION}. Update Errand first"
            )
        return header

    def _line(self) -> Line:
        text = self._text()
        if not text:
            raise InvalidParams(f"line {self._number}: the file ends here, in the middle")
        try:
            return _decoded_flat(text) if self._has_flat_tasks else _DECODER.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidParams(f"line {self._number}: {error}") from error

    def _text(self) -> bytes:
        self._number += 1
        text = self._file.readline(MAX_RECORD_BYTES + 1)
        if len(text) > MAX_RECORD_BYTES:
            raise too_large(f"line {self._number}")
        check_record(text, f"line {self._number}")
        self._size += len(text)
        if self._size > _MAX_CONVERSATION_BYTES:
            raise InvalidParams(f"line {self._number}: a conversation of more than 512 MB")
        if text and not text.endswith(b"\n"):
            raise InvalidParams(f"line {self._number}: the file ends here, in the middle")
        return text

    def _add(self, imported: ImportedConversation, line: Line) -> None:
        bundle = imported.bundle
        match line:
            case AgentLine(record=record):
                bundle.agents.append(record)
            case TaskLine(record=record):
                bundle.tasks.append(record)
            case TurnLine(record=record):
                bundle.turns.append(record)
            case StartedLine(record=record) | FinishedLine(record=record):
                bundle.executions.append(record)
            case AskLine(record=record):
                bundle.asks.append(record)
            case NodeLine(record=record):
                bundle.nodes.append(record)
            case PictureLine():
                imported.pictures[line.path] = str(self._store_picture(line))
            case ConversationLine() | EndLine():
                raise AssertionError("these end a conversation")
            case _:
                assert_never(line)

    def _store_picture(self, picture: PictureLine) -> Path:
        name = Path(picture.name).name
        if name != picture.name or name in ("", "..") or "\0" in name:
            raise InvalidParams(f"line {self._number}: {picture.name!r} is not a valid picture name")
        return store_picture(self._attachments, name, picture.data)
