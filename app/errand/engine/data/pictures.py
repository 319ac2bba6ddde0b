"""The bytes of pictures in nodes: stored copies, and pictures embedded in records."""

import base64
import binascii
import hashlib
from pathlib import Path

from errand.engine.agent.history.attachments import media_type
from errand.protocol.blocks import ImageBlock
from errand.system.regular_file import make_folder, read_regular, write_atomically

_MAX_PICTURE_BYTES = 20 * 1024 * 1024  # also the maximum for a picture of an export


def store_picture(attachments: Path, name: str, data: bytes) -> Path:
    """Store a copy beside attached pictures, in a folder named by its content, and return its path."""
    stored = attachments / hashlib.sha256(data).hexdigest()[:32] / name
    if not stored.exists():
        make_folder(stored.parent)
        write_atomically(stored, data)
    return stored


def read_copy(path: Path, attachments: Path) -> bytes | None:
    """Return None if the copy is missing, or if the path is not one of our copies."""
    if path.parent.parent != attachments:
        return None
    try:
        return read_regular(path, _MAX_PICTURE_BYTES, follow_links=False)
    except OSError:
        return None


def picture_of(block: ImageBlock, attachments: Path) -> tuple[bytes, str] | None:
    """Return the bytes and their detected media type; None for formats that models cannot read."""
    data = read_copy(Path(block.path), attachments) if block.path else _decoded(block.data)
    kind = media_type(data) if data else ""
    return (data, kind) if data and kind else None


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
