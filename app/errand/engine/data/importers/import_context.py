"""Helpers for readers of other programs' files: store pictures, count skipped content."""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from errand.engine.agent.history.attachments import media_type
from errand.engine.data.importers.session_folder import SessionFolder
from errand.engine.data.pictures import store_picture
from errand.protocol.blocks import ImageBlock

_MAX_PICTURE_BYTES = 10 * 1024 * 1024
_MAX_NAME_BYTES = 80  # bytes
_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)

T = TypeVar("T")

# Returns the bytes of a file that came with the conversations, by the beginning of its name.
Asset: TypeAlias = Callable[[str], bytes | None]


class ImportContext:
    """Counts skipped content in `left`, by kind in plain words. `folder` is None for a file in a zip."""

    def __init__(
        self,
        attachments: Path,
        asset: Asset,
        skipped: Counter[str],
        folder: SessionFolder | None = None,
    ) -> None:
        self._attachments = attachments
        self._asset = asset
        self._skipped = skipped
        self.folder = folder

    def skip(self, kind: str, count: int = 1) -> None:
        self._skipped[kind] += count

    def silent(self) -> "ImportContext":
        """Return a context without counts and other sessions, to look at a session that is imported elsewhere."""
        return ImportContext(self._attachments, self._asset, Counter())

    def record(self, data: bytes | msgspec.Raw, shape: type[T], kind: str) -> T | None:
        """Decode a record; counts an unreadable one as a `kind` "that cannot be read" and returns None."""
        try:
            return msgspec.json.decode(data, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.skip(f"{kind} that cannot be read")
            return None

    def picture(self, data: str, name: str = "") -> tuple[ImageBlock, ...]:
        """Store a picture from base64 or a `data:` URL like an attached one. Empty if it is not a picture."""
        return self._store_picture(_decoded(data), name)

    def picture_from_file(self, beginning: str) -> tuple[ImageBlock, ...]:
        """Store a picture from an included file."""
        return self._store_picture(self._asset(beginning), "")

    def result_picture(self, data: str) -> tuple[ImageBlock, ...]:
        """Return a picture embedded in the record, as in tool results."""
        picture = _decoded(data)
        kind = media_type(picture) if picture else ""
        if picture is None or not kind:
            self.skip("pictures")
            return ()
        return (ImageBlock(media_type=kind, data=base64.b64encode(picture).decode()),)

    def _store_picture(self, data: bytes | None, name: str) -> tuple[ImageBlock, ...]:
        kind = media_type(data) if data else ""
        if data is None or not kind or len(data) > _MAX_PICTURE_BYTES:
            self.skip("pictures")
            return ()
        safe = re.sub(r"[^\w.-]+", "-", name).strip("-.").encode()[-_MAX_NAME_BYTES:].decode("utf-8", "ignore")
        safe = safe.strip("-.") or f"picture.{kind.partition('/')[2]}"
        path = store_picture(self._attachments, safe, data)
        return (ImageBlock(media_type=kind, path=str(path), name=safe),)


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(_DATA_URL.sub("", data, count=1), validate=True)
    except (binascii.Error, ValueError):
        return None
