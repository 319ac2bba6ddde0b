"""Reads an export line by line: one conversation at a time in memory. Synchronous: meant for a thread."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, assert_never

import msgspec

from app.engine.data.json_limits import LARGEST_RECORD, check_record, too_large
from app.engine.data.lines import (
    VERSION,
    AgentLine,
    AskLine,
    ConversationLine,
    EndLine,
    FinishedLine,
    Header,
    Line,
    NodeLine,
    PictureLine,
    StartedLine,
    TaskLine,
    TurnLine,
)
from app.engine.data.stored_picture import keep
from app.engine.errors import InvalidParams
from app.engine.storage.transfer import Bundle

# What is in memory at a time; a picture of 10 MB is 14 MB as base64.
_LARGEST_CONVERSATION = 512 * 1024 * 1024
_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


@dataclass(slots=True)
class Arrival:
    """`pictures` maps the paths that the nodes name to the copies made here; `line` is where it begins in the file."""

    bundle: Bundle
    line: int
    pictures: dict[str, str] = field(default_factory=dict[str, str])


class ExportReader:
    """`header` is read by `open`; then `next` gives one conversation after the other, None at the end."""

    def __init__(self, file: IO[bytes], attachments: Path) -> None:
        self._file = file
        self._attachments = attachments
        self._number = 0
        self._size = 0  # of the present conversation
        self._ahead: Line | None = None
        self.home = self._header().home

    def next(self) -> Arrival | None:
        """`InvalidParams` names the line that cannot be read; what follows it cannot be either."""
        line = self._ahead if self._ahead is not None else self._line()
        self._ahead = None
        if isinstance(line, EndLine):
            return None
        if not isinstance(line, ConversationLine):
            raise InvalidParams(f"line {self._number}: a conversation should begin here")
        arrival, self._size = Arrival(Bundle(line.record), self._number), 0
        while not isinstance(line := self._line(), ConversationLine | EndLine):
            self._add(arrival, line)
        self._ahead = line
        return arrival

    def _header(self) -> Header:
        try:
            header = msgspec.json.decode(self._text(), type=Header)
        except (msgspec.DecodeError, UnicodeDecodeError, InvalidParams) as error:
            raise InvalidParams("it is not a file that Errand exported") from error
        if header.errand_export != VERSION:
            raise InvalidParams(
                f"its format is {header.errand_export}, and this version of Errand reads {VERSION}. Update Errand first"
            )
        return header

    def _line(self) -> Line:
        text = self._text()
        if not text:
            raise InvalidParams(f"line {self._number}: the file ends here, in the middle")
        try:
            return _DECODER.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidParams(f"line {self._number}: {error}") from error

    def _text(self) -> bytes:
        self._number += 1
        text = self._file.readline(LARGEST_RECORD + 1)
        if len(text) > LARGEST_RECORD:
            raise too_large(f"line {self._number}")
        check_record(text, f"line {self._number}")
        self._size += len(text)
        if self._size > _LARGEST_CONVERSATION:
            raise InvalidParams(f"line {self._number}: a conversation of more than 512 MB")
        if text and not text.endswith(b"\n"):
            raise InvalidParams(f"line {self._number}: the file ends here, in the middle")
        return text

    def _add(self, arrival: Arrival, line: Line) -> None:
        bundle = arrival.bundle
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
                arrival.pictures[line.path] = str(self._kept(line))
            case ConversationLine() | EndLine():
                raise AssertionError("these end a conversation")
            case _:
                assert_never(line)

    def _kept(self, picture: PictureLine) -> Path:
        name = Path(picture.name).name
        if name != picture.name or name in ("", "..") or "\0" in name:
            raise InvalidParams(f"line {self._number}: {picture.name!r} is no name for a picture")
        return keep(self._attachments, name, picture.data)
