"""Claude exports: `conversations.json`, an array of conversations with their messages."""

from collections.abc import Iterator

import msgspec

from errand.engine.data.importers.anthropic_content import ContentPiece, blocks_of, text_of
from errand.engine.data.importers.conversation import Chain, ForeignConversation, moment
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.json_documents import Documents
from errand.protocol.blocks import Block, TextBlock, ToolResultBlock


class _Attachment(msgspec.Struct):
    file_name: str | None = None
    extracted_content: str | None = None


class _Message(msgspec.Struct):
    uuid: str
    sender: str = ""
    text: str | None = None
    content: list[ContentPiece] = []
    created_at: str | None = None
    parent_message_uuid: str | None = None
    attachments: list[_Attachment] = []
    files: list[_Attachment] = []


class _Conversation(msgspec.Struct):
    uuid: str
    name: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    model: str | None = None
    current_leaf_message_uuid: str | None = None
    chat_messages: list[msgspec.Raw] = []


def read(documents: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    for data in documents:
        exported = context.record(data, _Conversation, "conversations")
        if exported is None:
            continue
        conversation = ForeignConversation(
            exported.uuid,
            title=exported.name or "",
            created_at=moment(exported.created_at),
            updated_at=moment(exported.updated_at),
            head_id=exported.current_leaf_message_uuid,
        )
        _add(conversation, exported, context)
        yield conversation


def _add(conversation: ForeignConversation, exported: _Conversation, context: ImportContext) -> None:
    before: str | None = None
    for data in exported.chat_messages:
        message = context.record(data, _Message, "messages")
        if message is None:
            continue
        # Older exports have no parents: each message follows the previous one.
        chain = Chain(conversation, message.uuid, message.parent_message_uuid or before)
        _add_message(chain, message, exported.model or "", context)
        conversation.links[message.uuid] = chain.last_id
        before = message.uuid


def _add_message(chain: Chain, message: _Message, model: str, context: ImportContext) -> None:
    at = moment(message.created_at)
    if message.sender == "human":
        blocks = (*blocks_of(message.content, context), *_attachments(message, context))
        chain.user(blocks or _text(message), at)
        return
    if not message.content:
        chain.agent(_text(message), at, model)
    for number, piece in enumerate(message.content):
        if piece.type == "tool_result":
            text, images = text_of(piece, context)
            called = piece.tool_use_id or f"{message.uuid}-{number - 1}"
            result = ToolResultBlock(
                call_id=called, tool=piece.name or "tool", text=text, is_error=bool(piece.is_error), images=images
            )
            chain.result(result, at)
        else:
            chain.agent(blocks_of((piece,), context, call_id=f"{message.uuid}-{number}"), at, model)


def _text(message: _Message) -> tuple[Block, ...]:
    return (TextBlock(text=message.text),) if message.text and message.text.strip() else ()


def _attachments(message: _Message, context: ImportContext) -> Iterator[Block]:
    """Yield the export has the text that Claude extracted from a file, never the file."""
    for attachment in message.attachments:
        if attachment.extracted_content:
            name = attachment.file_name or "Attached"
            yield TextBlock(text=f"{name}:\n\n````\n{attachment.extracted_content}\n````")
        else:
            context.skip("attached files")
    if message.files:
        context.skip("attached files", len(message.files))
