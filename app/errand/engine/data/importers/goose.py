"""goose sessions: `goose session export --format json`, or the `.jsonl` file of older versions."""

from collections.abc import Iterator

import msgspec

from errand.engine.data.importers.anthropic_content import ContentPiece, call_arguments, text_of
from errand.engine.data.importers.conversation import Chain, ForeignConversation, moment
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.json_documents import Documents
from errand.protocol.base import JsonValue
from errand.protocol.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock


class _CallValue(msgspec.Struct):
    name: str = "tool"
    arguments: JsonValue = None


class _Call(msgspec.Struct):
    value: _CallValue | None = None
    error: str | None = None


class _Result(msgspec.Struct):
    value: JsonValue = None
    error: str | None = None


class _Piece(msgspec.Struct, rename="camel"):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    tool_call: _Call | None = None
    tool_result: _Result | None = None


class _Record(msgspec.Struct):
    """A message, the head of a message file, or a whole session, depending on its fields."""

    role: str | None = None
    created: float | str | None = None
    content: list[_Piece] = []
    id: str | None = None
    name: str | None = None
    description: str | None = None
    working_dir: str | None = None
    created_at: str | None = None
    conversation: list[msgspec.Raw] | None = None


def read(documents: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    session = _Session(context)
    for data in documents:
        session.add_line(data)
    yield session.conversation


class _Session:
    def __init__(self, context: ImportContext) -> None:
        self.conversation = ForeignConversation("")
        self._context = context
        self._chain = Chain(self.conversation, "message")
        self._tools: dict[str, str] = {}

    def add_line(self, data: bytes | msgspec.Raw) -> None:
        record = self._context.record(data, _Record, "messages")
        if record is None:
            return
        if record.role is not None:
            self._add_message(record)
            return
        conversation = self.conversation
        conversation.source_id = record.id or conversation.source_id
        conversation.title = record.name or record.description or ""
        conversation.folder = record.working_dir or ""
        conversation.created_at = moment(record.created_at)
        for message in record.conversation or ():
            self.add_line(message)

    def _add_message(self, message: _Record) -> None:
        at = moment(message.created)
        self._chain.end_reply()
        for piece in message.content:
            if piece.type == "toolResponse":
                self._chain.result(self._result(piece), at)
        blocks = tuple(block for piece in message.content for block in self._blocks(piece))
        if message.role == "user":
            self._chain.user(blocks, at)
        else:
            self._chain.agent(blocks, at, "")

    def _blocks(self, piece: _Piece) -> Iterator[Block]:
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
        wanted = call.value or _CallValue()
        self._tools[call_id] = wanted.name
        return ToolCallBlock(
            call_id=call_id, tool=wanted.name, arguments=call_arguments(wanted.arguments), invalid=call.error
        )

    def _result(self, piece: _Piece) -> ToolResultBlock:
        result = piece.tool_result or _Result()
        content = result.value.get("content") if isinstance(result.value, dict) else result.value
        text, images = text_of(ContentPiece(content=content), self._context)
        failed = result.error is not None or (isinstance(result.value, dict) and result.value.get("isError") is True)
        call_id = piece.id or ""
        tool = self._tools.get(call_id, "tool")
        return ToolResultBlock(call_id=call_id, tool=tool, text=result.error or text, is_error=failed, images=images)
