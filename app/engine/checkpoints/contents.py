"""The contents of files, stored once each under the hash of their bytes."""

import hashlib
import logging
import os
import time
import zlib
from collections.abc import Set
from contextlib import suppress
from pathlib import Path

from app.regular_file import make_folder

_log = logging.getLogger(__name__)

# Smaller ones are not worth compressing.
_COMPRESSED_FROM = 512
_PLAIN, _COMPRESSED = b"p", b"z"
_LEVEL = 1
# Contents are stored before the change that names them: young ones stay.
_YOUNG_S = 3600
# All of them together; beyond this the oldest are deleted.
MOST_BYTES = 2_000_000_000
# What tools and commands change is no larger.
LARGEST = 20_000_000


class ContentStore:
    """Files in `folder`, in one folder for each first byte of the hash. Methods may be called in any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path_of(self, content_id: str) -> Path:
        return self._folder / content_id[:2] / content_id

    def put(self, content: bytes, *, durable: bool = True) -> str:
        """Store a content and return its id. If `durable`, it is on disk when this returns. Raises OSError."""
        content_id = id_of(content)
        file = self.path_of(content_id)
        try:
            os.utime(file)  # it is young again: a pruning leaves it
        except FileNotFoundError:
            self._write(file, content, durable=durable)
        else:
            if durable:
                _flush(file)
        return content_id

    def get(self, content_id: str) -> bytes | None:
        """The bytes; None if they are not kept any more, or were damaged."""
        try:
            stored = self.path_of(content_id).read_bytes()
            content = stored[1:] if stored[:1] == _PLAIN else zlib.decompress(stored[1:], bufsize=len(stored) * 4)
        except (OSError, zlib.error):
            return None
        return content if id_of(content) == content_id else None

    def has(self, content_id: str) -> bool:
        return self.path_of(content_id).is_file()

    def prune(self, used: Set[str], most_bytes: int = MOST_BYTES) -> None:
        """Delete the contents that no recent change uses, then the oldest until the rest is small enough."""
        young = time.time() - _YOUNG_S
        kept: list[tuple[float, int, Path]] = []
        for folder in _entries(self._folder):
            for file in _entries(folder):
                with suppress(OSError):
                    found = file.stat()
                    if file.name not in used and found.st_mtime < young:
                        file.unlink()
                    else:
                        kept.append((found.st_mtime, found.st_size, file))
        excess = sum(size for _, size, _ in kept) - most_bytes
        for _, size, file in sorted(kept):
            if excess <= 0:
                break
            with suppress(OSError):
                file.unlink()
                excess -= size

    def _write(self, file: Path, content: bytes, *, durable: bool) -> None:
        data = _PLAIN + content
        if len(content) >= _COMPRESSED_FROM:
            packed = zlib.compress(content, _LEVEL)
            data = _COMPRESSED + packed if len(packed) < len(content) else data
        if not file.parent.is_dir():
            make_folder(file.parent)
        unfinished = file.with_name(f"{file.name}.{os.urandom(4).hex()}.tmp")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with open(descriptor, "wb") as opened:
                opened.write(data)
                opened.flush()
                if durable:
                    os.fsync(descriptor)
            os.replace(unfinished, file)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise


def id_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=20).hexdigest()


def _flush(file: Path) -> None:
    """Flush a content that was stored without waiting for the disk; costs little if it is there already."""
    descriptor = os.open(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
