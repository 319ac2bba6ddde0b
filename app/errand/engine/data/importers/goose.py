"""goose sessions: `goose session export --format json`, or the `.jsonl` file of versions before 1.10.

The same messages are in the program's database, see goose_database.py. Looked at: goose 1.52.0. A message of the user
with `metadata.turnContext` tells the model the time and the folder. A compaction makes all earlier messages invisible
to the agent and adds two that only the agent sees: the summary, as the user's, and what to do with it, as the agent's.
A failed request and a stopped reply leave no trace but the missing reply.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TypeAlias

import msgspec

from errand.engine.data.importers.anthropic_content import ContentPiece, call_arguments, text_of
from errand.engine.data.importers.conversation import (
    Chain,
    ForeignConversation,
    ForeignLink,
    moment,
    sub_agent_result,
)
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.json_documents import Documents
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock

PROGRAM = "goose"
_SUB_AGENT_HEAD = re.compile(r"\ASubagent ID: \S+\n+")
_COMPACT_COMMANDS = ("/compact", "/summarize")
_COMPACTED = "Compaction complete"

# Finds a session by its id.
FindSession: TypeAlias = Callable[[str], ForeignLink | None]


class _CallValue(msgspec.Struct):
    name: str = "tool"
    arguments: JsonValue = None


class _Call(msgspec.Struct):
    value: _CallValue | None = None
    error: str | None = None


class _Result(msgspec.Struct):
    value: JsonValue = None
    error: str | None = None


class Piece(msgspec.Struct, rename="camel"):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    tool_call: _Call | None = None
    tool_result: _Result | None = None


class _Inference(msgspec.Struct, rename="camel"):
    requested_model: str | None = None


class Metadata(msgspec.Struct, rename="camel"):
    user_visible: bool = True
    agent_visible: bool = True
    turn_context: bool = False
    inference: _Inference | None = None


class Message(msgspec.Struct):
    role: str | None = None
    created: float | str | None = None
    content: list[Piece] = []
    metadata: Metadata = msgspec.field(default_factory=Metadata)


class _Record(Message):
    """A message, the head of a message file, or a whole session, depending on its fields."""

    id: str | None = None
    name: str | None = None
    description: str | None = None
    working_dir: str | None = None
    session_type: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    conversation: list[msgspec.Raw] | None = None


def read(documents: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    session = Session(context)
    for data in documents:
        _add_line(session, data, context)
    yield session.conversation


def _add_line(session: "Session", data: bytes | msgspec.Raw, context: ImportContext) -> None:
    record = context.record(data, _Record, "messages")
    if record is None:
        return
    if record.role is not None:
        session.add_message(record)
        return
    session.begin(
        source_id=record.id or session.conversation.source_id,
        title=record.name or record.description or "",
        folder=record.working_dir or "",
        created_at=moment(record.created_at),
        updated_at=moment(record.updated_at),
        is_called=record.session_type == "sub_agent",
        caller=None,
    )
    for message in record.conversation or ():
        _add_line(session, message, context)


class Session:
    """Builds the conversation of a session from its messages, in their order."""

    def __init__(self, context: ImportContext, find: FindSession = lambda session_id: None) -> None:
        self.conversation = ForeignConversation("")
        self._context = context
        self._find = find
        self._is_called = False
        self._chain = Chain(self.conversation, "message")
        self._tools: dict[str, str] = {}

    def begin(
        self,
        *,
        source_id: str,
        title: str,
        folder: str,
        created_at: datetime | None,
        updated_at: datetime | None,
        is_called: bool,
        caller: ForeignLink | None,
    ) -> None:
        """Begin the session. `is_called`: an agent wrote its first message."""
        conversation = self.conversation
        conversation.source_id, conversation.title, conversation.folder = source_id, title, folder
        conversation.created_at, conversation.updated_at, conversation.caller = created_at, updated_at, caller
        self._is_called = is_called

    def add_message(self, message: Message) -> None:
        at, metadata = moment(message.created), message.metadata
        self._chain.end_reply()
        if metadata.turn_context or _is_compaction(message):
            return
        if not metadata.user_visible:
            if message.role == "user" and metadata.agent_visible:
                self._chain.summary("\n\n".join(piece.text or "" for piece in message.content), at)
            return
        for piece in message.content:
            if piece.type == "toolResponse":
                self._chain.result(self._result(piece), at)
        blocks = tuple(block for piece in message.content for block in self._blocks(piece))
        if message.role == "user":
            self._chain.user(self._task(blocks), at, is_task=self._is_called)
        else:
            self._chain.agent(blocks, at, (metadata.inference or _Inference()).requested_model or "")

    def _task(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Return the blocks; texts that another agent wrote say so."""
        if not self._is_called:
            return blocks
        return tuple(
            TextBlock(text=_SUB_AGENT_HEAD.sub("", block.text), task_from=PROGRAM)
            if isinstance(block, TextBlock)
            else block
            for block in blocks
        )

    def _blocks(self, piece: Piece) -> Iterator[Block]:
        match piece.type:
            case "text":
                if piece.text and piece.text.strip():
                    yield TextBlock(text=piece.text)
            case "thinking":
                if piece.thinking and piece.thinking.strip():
                    yield ThinkingBlock(text=piece.thinking, signature=piece.signature or "")
            case "image" if piece.data:
                yield from self._context.picture(piece.data)
            case "toolRequest" | "frontendToolRequest" if piece.tool_call is not None:
                yield self._call(piece.id or "", piece.tool_call)
            case "redactedThinking":
                self._context.skip("encrypted thoughts")
            case "toolResponse" | "systemNotification" | "toolConfirmationRequest" | "actionRequired":
                pass  # results become separate nodes; the others are remarks of the program
            case other:
                self._context.skip(f"contents of the kind “{other[:40]}”")

    def _call(self, call_id: str, call: _Call) -> ToolCallBlock:
        value = call.value or _CallValue()
        self._tools[call_id] = value.name
        return ToolCallBlock(
            call_id=call_id, tool=value.name, arguments=call_arguments(value.arguments), invalid=call.error
        )

    def _result(self, piece: Piece) -> ToolResultBlock:
        result = piece.tool_result or _Result()
        value = result.value if isinstance(result.value, dict) else {}
        content = value.get("content") if isinstance(result.value, dict) else result.value
        text, images = text_of(ContentPiece(content=content), self._context)
        call_id = piece.id or ""
        block = ToolResultBlock(
            call_id=call_id,
            tool=self._tools.get(call_id, "tool"),
            text=result.error or text,
            is_error=result.error is not None or value.get("isError") is True,
            images=images,
            details=_details(value),
        )
        match value.get("_meta"):
            case {"subagent_session_id": str(called_id)} if (called := self._find(called_id)) is not None:
                return sub_agent_result(block, PROGRAM, called)
            case _:
                return block


def _details(value: JsonObject) -> JsonObject | None:
    match value.get("structuredContent"):
        case {"exit_code": int(exit_code)}:
            return {"exit_code": exit_code}
        case _:
            return None


def _is_compaction(message: Message) -> bool:
    """Return the command that asked for a compaction, or goose's word that it is done: the summary says as much."""
    if message.metadata.agent_visible or len(message.content) != 1:
        return False
    text = (message.content[0].text or "").strip()
    return text in _COMPACT_COMMANDS if message.role == "user" else text == _COMPACTED
