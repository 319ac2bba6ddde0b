"""Pieces of content as Anthropic's API has them: the exports and sessions of several programs are made of these."""

from collections.abc import Iterable, Iterator

import msgspec

from app.engine.data.importers.import_context import ImportContext
from app.protocol.base import JsonObject, JsonValue
from app.protocol.blocks import Block, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock


class ContentSource(msgspec.Struct):
    type: str = ""
    data: str | None = None


class ContentPiece(msgspec.Struct):
    """All fields of all kinds: which ones count, `type` says."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: JsonValue = None
    tool_use_id: str | None = None
    content: JsonValue = None
    is_error: bool | None = None
    source: ContentSource | None = None


def blocks_of(pieces: Iterable[ContentPiece], intake: ImportContext, call_id: str = "") -> tuple[Block, ...]:
    """What a person or an agent said; `call_id` is for calls that have none."""
    return tuple(block for piece in pieces for block in _blocks(piece, intake, call_id))


def text_of(piece: ContentPiece, intake: ImportContext) -> tuple[str, tuple[ImageBlock, ...]]:
    """What a tool gave back: its texts, and its pictures."""
    if isinstance(piece.content, str):
        return piece.content, ()
    texts: list[str] = []
    images: list[ImageBlock] = []
    for one in piece.content if isinstance(piece.content, list) else ():
        match one:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image", "source": {"data": str(data)}} | {"type": "image", "data": str(data)}:
                images += intake.result_picture(data)
            case {"title": str(title), "url": str(url)}:
                texts.append(f"{title}\n{url}")
            case {"type": str(kind)}:
                intake.skip(f"results of the kind “{kind[:40]}”")
            case _:
                intake.skip("results that cannot be read")
    return "\n".join(texts), tuple(images)


def called(arguments: JsonValue) -> JsonObject:
    """A call's arguments, which are always an object here."""
    return arguments if isinstance(arguments, dict) else {} if arguments is None else {"input": arguments}


def _blocks(piece: ContentPiece, intake: ImportContext, call_id: str) -> Iterator[Block]:
    match piece.type:
        case "text":
            if piece.text and piece.text.strip():
                yield TextBlock(text=piece.text)
        case "thinking":
            if piece.thinking and piece.thinking.strip():
                yield ThinkingBlock(text=piece.thinking, signature=piece.signature or "")
        case "tool_use" | "server_tool_use":
            arguments = called(piece.input)
            yield ToolCallBlock(call_id=piece.id or call_id, tool=piece.name or "tool", arguments=arguments)
        case "image" if piece.source is not None and piece.source.data:
            yield from intake.picture(piece.source.data)
        case "redacted_thinking":
            intake.skip("encrypted thoughts")
        case "token_budget" | "flag":
            pass  # remarks of the program to itself
        case other:
            intake.skip(f"contents of the kind “{other[:40]}”")
