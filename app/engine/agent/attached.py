"""What a person attached, as blocks: pictures are known by their content, whatever they are called."""

from pathlib import Path

from app.protocol.blocks import Block, FileBlock, ImageBlock, TextBlock
from app.regular_file import NotRegularFile, read_beginning

_HEAD = 16


def said(text: str, attachments: tuple[str, ...]) -> tuple[Block, ...]:
    """The blocks of a message that a person wrote. Reads the beginning of each file; a gone one is named still."""
    texts = (TextBlock(text=text),) if text.strip() else ()
    return (*texts, *(_block(Path(path)) for path in attachments))


def media_type(head: bytes) -> str:
    """Of a picture that models read, from the first bytes of its file; empty for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return ""


def head_of(path: Path) -> bytes:
    """The first bytes of a file; none of a folder. OSError where it cannot be read."""
    try:
        return read_beginning(path, _HEAD)
    except NotRegularFile:
        return b""


def _block(path: Path) -> Block:
    try:
        kind, size = media_type(head_of(path)), path.stat().st_size
    except OSError:
        kind, size = "", 0
    if kind:
        return ImageBlock(media_type=kind, path=str(path), name=path.name)
    return FileBlock(path=str(path), name=path.name, size=size)
