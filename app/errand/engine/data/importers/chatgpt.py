"""ChatGPT exports: `conversations.json`, an array of message trees."""

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from errand.engine.data.importers.conversation import ForeignConversation, ForeignNode, moment
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.json_documents import Documents
from errand.protocol.base import JsonObject
from errand.protocol.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock

_Time: TypeAlias = float | str | None


class _Author(msgspec.Struct):
    role: str = ""
    name: str | None = None


class _Thought(msgspec.Struct):
    summary: str = ""
    content: str = ""


class _Content(msgspec.Struct):
    content_type: str = ""
    parts: list[str | JsonObject | None] = []
    text: str | None = None
    result: str | None = None
    thoughts: list[_Thought] = []


class _Metadata(msgspec.Struct):
    model_slug: str | None = None
    is_visually_hidden_from_conversation: bool = False


class _Message(msgspec.Struct):
    id: str
    author: _Author
    content: _Content
    create_time: _Time = None
    recipient: str | None = None
    metadata: _Metadata | None = None


class _TreeEntry(msgspec.Struct):
    id: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    parent: str | None = None


class _Conversation(msgspec.Struct):
    mapping: dict[str, _TreeEntry]
    title: str | None = None
    create_time: _Time = None
    update_time: _Time = None
    current_node: str | None = None
    conversation_id: str | None = None
    id: str | None = None


def read(documents: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    for data in documents:
        exported = context.record(data, _Conversation, "conversations")
        if exported is None:
            continue
        source_id = exported.conversation_id or exported.id or next(iter(exported.mapping), "")
        conversation = ForeignConversation(
            source_id,
            title=exported.title or "",
            created_at=moment(exported.create_time),
            updated_at=moment(exported.update_time),
            head_id=exported.current_node,
        )
        for node_id, node in exported.mapping.items():
            conversation.add(_node(node_id, node, context))
        yield conversation


def _node(entry_id: str, entry: _TreeEntry, context: ImportContext) -> ForeignNode:
    """Return a node, without blocks for other entries: the root, ChatGPT's instructions, unreadable messages."""
    nothing = ForeignNode(entry_id, entry.parent, "system", [])
    if bytes(entry.message) == b"null":
        return nothing
    message = context.record(entry.message, _Message, "messages")
    if message is None:
        return nothing
    about = message.metadata or _Metadata()
    if message.author.role == "system" or about.is_visually_hidden_from_conversation:
        return nothing
    at, model = moment(message.create_time), about.model_slug or ""
    match message.author.role:
        case "user":
            return ForeignNode(entry_id, entry.parent, "user", list(_blocks(message.content, context)), at)
        case "assistant":
            return ForeignNode(entry_id, entry.parent, "assistant", list(_reply_blocks(message, context)), at, model)
        case "tool":
            return ForeignNode(entry_id, entry.parent, "tool_result", list(_result(message, entry, context)), at)
        case other:
            context.skip(f"messages of “{other[:40]}”")
            return nothing


def _blocks(content: _Content, context: ImportContext) -> Iterator[Block]:
    match content.content_type:
        case "text" | "multimodal_text":
            for part in content.parts:
                yield from _part(part, context)
        case "code" | "execution_output" | "system_error":
            if content.text:
                yield TextBlock(text=f"```\n{content.text}\n```")
        case "thoughts":
            for thought in content.thoughts:
                if text := "\n\n".join(part for part in (thought.summary, thought.content) if part):
                    yield ThinkingBlock(text=text)
        case "reasoning_recap":
            pass  # "Thought for 12 seconds": the thoughts themselves are included
        case "user_editable_context" | "model_editable_context":
            context.skip("custom instructions and memories")
        case other:
            yield from _text_or_skip(other, content.text or content.result, context)


def _text_or_skip(kind: str, text: str | None, context: ImportContext) -> Iterator[Block]:
    if text:
        yield TextBlock(text=text)
    else:
        context.skip(f"contents of the kind “{kind[:40]}”")


def _part(part: str | JsonObject | None, context: ImportContext) -> Iterator[Block]:
    match part:
        case str():
            if part.strip():
                yield TextBlock(text=part)
        case {"content_type": "image_asset_pointer", "asset_pointer": str(pointer)}:
            yield from context.picture_from_file(pointer.rpartition("/")[2])
        case {"content_type": "audio_transcription", "text": str(text)}:
            yield TextBlock(text=text)
        case {"content_type": "audio_asset_pointer" | "real_time_user_audio_video_asset_pointer"}:
            context.skip("voice messages")
        case None:
            pass
        case _:
            context.skip("attachments")


def _reply_blocks(message: _Message, context: ImportContext) -> Iterator[Block]:
    """Yield a message to a tool is a call: the code for Python, the query for the browser."""
    if message.recipient in (None, "all"):
        yield from _blocks(message.content, context)
        return
    parts = (part for part in message.content.parts if isinstance(part, str))
    asked = message.content.text or "\n".join(parts)
    yield ToolCallBlock(call_id=message.id, tool=message.recipient or "", arguments={"input": asked})


def _result(message: _Message, entry: _TreeEntry, context: ImportContext) -> Iterator[Block]:
    """Yield a result follows its call, whose id is the id of the previous message."""
    content = message.content
    texts = [part for part in content.parts if isinstance(part, str)] or [content.text or content.result or ""]
    for part in content.parts:
        if isinstance(part, dict):
            yield from _part(part, context)
    tool, text = message.author.name or "tool", "\n".join(texts).strip()
    failed = content.content_type == "system_error"
    yield ToolResultBlock(call_id=entry.parent or "", tool=tool, text=text, is_error=failed)
