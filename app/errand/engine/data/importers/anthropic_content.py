"""Content pieces in the format of Anthropic's API, which several programs use in exports and sessions."""

from collections.abc import Iterable, Iterator

import msgspec

from errand.engine.data.importers.import_context import ImportContext
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import Block, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock


class ContentSource(msgspec.Struct):
    type: str = ""
    data: str | None = None


class ContentPiece(msgspec.Struct):
    """All fields of all kinds; `type` determines which ones apply."""

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


def blocks_of(pieces: Iterable[ContentPiece], context: ImportContext, call_id: str = "") -> tuple[Block, ...]:
    """Return the blocks of a person's or an agent's message; `call_id` is for calls without an id."""
    return tuple(block for piece in pieces for block in _blocks(piece, context, call_id))


def text_of(piece: ContentPiece, context: ImportContext) -> tuple[str, tuple[ImageBlock, ...]]:
    """Return a tool result: its text and its pictures."""
    if isinstance(piece.content, str):
        return piece.content, ()
    texts: list[str] = []
    images: list[ImageBlock] = []
    for part in piece.content if isinstance(piece.content, list) else ():
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image", "source": {"data": str(data)}} | {"type": "image", "data": str(data)}:
                images += context.result_picture(data)
            case {"title": str(title), "url": str(url)}:
                texts.append(f"{title}\n{url}")
            case {"type": str(kind)}:
                context.skip(f"results of the kind “{kind[:40]}”")
            case _:
                context.skip("results that cannot be read")
    return "\n".join(texts), tuple(images)


def call_arguments(arguments: JsonValue) -> JsonObject:
    """Return a call's arguments, always as an object."""
    return arguments if isinstance(arguments, dict) else {} if arguments is None else {"input": arguments}


def _blocks(piece: ContentPiece, context: ImportContext, call_id: str) -> Iterator[Block]:
    match piece.type:
        case "text":
            if piece.text and piece.text.strip():
                yield TextBlock(text=piece.text)
        case "thinking":
            if piece.thinking and piece.thinking.strip():
                yield ThinkingBlock(text=piece.thinking, signature=piece.signature or "")
        case "tool_use" | "server_tool_use":
            arguments = call_arguments(piece.input)
            yield ToolCallBlock(call_id=piece.id or call_id, tool=piece.name or "tool", arguments=arguments)
        case "image" if piece.source is not None and piece.source.data:
            yield from context.picture(piece.source.data)
        case "redacted_thinking":
            context.skip("encrypted thoughts")
        case "token_budget" | "flag":
            pass  # internal remarks of the program
        case other:
            context.skip(f"contents of the kind “{other[:40]}”")
