"""pi sessions: `~/.pi/agent/sessions/**/*.jsonl`, one entry per line; a tree since the second version.

Looked at: pi 0.73.1. A reply tells how it ended in `stopReason`, and for `error` and `aborted` in `errorMessage`. A
`compaction` replaces for the model what stands before `firstKeptEntryId`. What a person ran with `!` is a
`bashExecution`. A file that a person named stands in their message as an empty tag.
"""

import re
from collections.abc import Iterator

import msgspec

from errand.engine.data.importers.anthropic_content import call_arguments
from errand.engine.data.importers.conversation import ForeignConversation, ForeignNode, moment
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.json_documents import Documents
from errand.protocol.base import JsonValue
from errand.protocol.blocks import (
    Block,
    ImageBlock,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.conversations import Role


class _Piece(msgspec.Struct, rename="camel"):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    thinking_signature: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: JsonValue = None
    data: str | None = None


class _Message(msgspec.Struct, rename="camel"):
    role: str = ""
    content: str | list[_Piece] = ""
    model: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    is_error: bool = False
    command: str | None = None
    output: str | None = None
    timestamp: float | str | None = None
    stop_reason: str | None = None
    error_message: str | None = None


class _Entry(msgspec.Struct, rename="camel"):
    type: str = ""
    id: str | None = None
    parent_id: str | None = None
    timestamp: float | str | None = None
    cwd: str | None = None
    name: str | None = None
    message: _Message | None = None
    summary: str | None = None
    first_kept_entry_id: str | None = None


_FILE_TAG = re.compile(r'\A(?:<file name="[^"\n]*"></file>\n?)+')


def read(documents: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    conversation = ForeignConversation("")
    before: str | None = None
    parents: dict[str, str | None] = {}
    for number, data in enumerate(documents, 1):
        entry = context.record(data, _Entry, "entries")
        if entry is None:
            continue
        if entry.type == "session":
            conversation.source_id, conversation.folder = entry.id or "", entry.cwd or ""
            conversation.created_at = moment(entry.timestamp)
            continue
        if entry.type == "session_info" and entry.name:
            conversation.title = entry.name
        # The first version has no ids: each entry follows the previous one.
        entry_id, parent_id = (entry.id, entry.parent_id) if entry.id else (f"line-{number}", before)
        parents[entry_id] = parent_id
        if entry.type == "compaction" and entry.summary and parent_id is not None:
            until_id = parents.get(entry.first_kept_entry_id or "") or parent_id
            block = SummaryBlock(text=entry.summary, until_id=until_id, nodes=len(conversation.nodes))
            conversation.add(ForeignNode(entry_id, parent_id, "system", [block], moment(entry.timestamp)))
        else:
            conversation.add(_node(entry_id, parent_id, entry, context))
        before = entry_id
    yield conversation


def _node(entry_id: str, parent_id: str | None, entry: _Entry, context: ImportContext) -> ForeignNode:
    """Return a node without blocks for entries that are not messages."""
    message = entry.message
    if entry.type != "message" or message is None:
        if entry.type in ("compaction", "branch_summary", "custom_message"):
            context.skip("summaries for the model" if entry.type != "custom_message" else "messages of extensions")
        return ForeignNode(entry_id, parent_id, "system", [])
    at = moment(message.timestamp) or moment(entry.timestamp)
    role, blocks = _role_and_blocks(message, context)
    node = ForeignNode(entry_id, parent_id, role, blocks, at, message.model or "")
    if role == "assistant" and message.stop_reason in ("error", "aborted"):
        # Models do not read failed replies: one with calls stays, for the sake of their results.
        has_calls = any(isinstance(block, ToolCallBlock) for block in blocks)
        node.status = "cut" if message.stop_reason == "aborted" or has_calls else "failed"
        node.error = message.error_message or "The reply was stopped."
    return node


def _role_and_blocks(message: _Message, context: ImportContext) -> tuple[Role, list[Block]]:
    content = message.content
    pieces = [_Piece(type="text", text=content)] if isinstance(content, str) else content
    match message.role:
        case "user":
            return "user", [block for piece in pieces for block in _blocks(_without_tags(piece), context)]
        case "assistant":
            return "assistant", [block for piece in pieces for block in _blocks(piece, context)]
        case "toolResult":
            return "tool_result", [_result(message, pieces, context)]
        case "bashExecution":
            return "user", [TextBlock(text=f"```\n$ {message.command or ''}\n{message.output or ''}\n```")]
        case other:
            context.skip(f"messages of the kind “{other[:40]}”")
            return "system", []


def _without_tags(piece: _Piece) -> _Piece:
    return msgspec.structs.replace(piece, text=_FILE_TAG.sub("", piece.text)) if piece.text else piece


def _blocks(piece: _Piece, context: ImportContext) -> Iterator[Block]:
    match piece.type:
        case "text":
            if piece.text and piece.text.strip():
                yield TextBlock(text=piece.text)
        case "thinking":
            if piece.thinking and piece.thinking.strip():
                yield ThinkingBlock(text=piece.thinking, signature=piece.thinking_signature or "")
        case "toolCall":
            arguments = call_arguments(piece.arguments)
            yield ToolCallBlock(call_id=piece.id or "", tool=piece.name or "tool", arguments=arguments)
        case "image" if piece.data:
            yield from context.picture(piece.data)
        case other:
            context.skip(f"contents of the kind “{other[:40]}”")


def _result(message: _Message, pieces: list[_Piece], context: ImportContext) -> ToolResultBlock:
    images: list[ImageBlock] = []
    for piece in pieces:
        if piece.type == "image" and piece.data:
            images += context.result_picture(piece.data)
    return ToolResultBlock(
        call_id=message.tool_call_id or "",
        tool=message.tool_name or "tool",
        text="\n".join(piece.text for piece in pieces if piece.text),
        is_error=message.is_error,
        images=tuple(images),
    )
