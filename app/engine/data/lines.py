"""The export format: one JSON object a line. Described for people in docs/export.md."""

from typing import Annotated, TypeAlias

import msgspec

from app.engine.storage.executions import Finished, Started
from app.engine.storage.turn_rows import TurnRow
from app.protocol.agents import Agent
from app.protocol.asks import Ask
from app.protocol.conversations import Conversation, Node
from app.protocol.struct import Moment
from app.protocol.tasks import Task

VERSION = 1


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. A newer version may have more fields: only what it is must be plain to older ones."""

    errand_export: int
    exported_at: Moment
    home: str = ""


class ExportLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all others. No record of the wire: it may hold what storage has."""


class ConversationLine(ExportLine, frozen=True, kw_only=True, tag="conversation"):
    """What follows belongs to it, up to the next one or the end."""

    record: Conversation


class AgentLine(ExportLine, frozen=True, kw_only=True, tag="agent"):
    record: Agent


class TaskLine(ExportLine, frozen=True, kw_only=True, tag="task"):
    record: Task


class TurnLine(ExportLine, frozen=True, kw_only=True, tag="turn"):
    record: TurnRow


class StartedLine(ExportLine, frozen=True, kw_only=True, tag="started"):
    record: Started


class FinishedLine(ExportLine, frozen=True, kw_only=True, tag="finished"):
    record: Finished


class AskLine(ExportLine, frozen=True, kw_only=True, tag="ask"):
    record: Ask


class NodeLine(ExportLine, frozen=True, kw_only=True, tag="node"):
    record: Node


class PictureLine(ExportLine, frozen=True, kw_only=True, tag="picture"):
    """`path` is what the nodes call it; `data` is base64 in the file."""

    path: str
    name: str
    data: Annotated[bytes, msgspec.Meta(max_length=20 * 1024 * 1024)]


class EndLine(ExportLine, frozen=True, kw_only=True, tag="end"):
    """The last line: a file without it was cut off."""

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
