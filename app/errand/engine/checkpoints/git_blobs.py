"""What git has of a workspace: the blobs of its index, which need no copy, and their content when it is needed.

The repository may be somebody else's. So no setting of it is read and nothing of it runs: the index is parsed here, and
`git cat-file` reads objects for an empty repository of ours that borrows theirs.
"""

import hashlib
import logging
import os
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from errand.engine.checkpoints.contents import MAX_FILE_BYTES
from errand.system.regular_file import make_folder, open_regular, read_at_most

_log = logging.getLogger(__name__)

_MAX_INDEX_BYTES = 50_000_000
_MAX_POINTER_BYTES = 4_096
_TIMEOUT_S = 60.0
_ENTRY = struct.Struct(">10I20sH")
_EXTENDED, _STAGE, _NAME_LENGTH = 0x4000, 0x3000, 0x0FFF
_REGULAR = 0o100000
_NO_CHECKSUM = bytes(20)


@dataclass(frozen=True, slots=True)
class TrackedFiles:
    """The blobs of tracked files, by paths relative to the workspace, and the folders that have such files."""

    blobs: dict[str, str] = field(default_factory=dict[str, str])
    folders: frozenset[str] = frozenset()
    objects: str = ""


def tracked_files(workspace: Path) -> TrackedFiles:
    """Return what the index of the workspace's repository names; nothing if there is none that can be read."""
    if shutil.which("git") is None:
        return TrackedFiles()
    for folder in (workspace, *workspace.parents):
        git = _git_folder(folder)
        if git is None:
            continue
        prefix = "" if folder == workspace else f"{workspace.relative_to(folder).as_posix()}/"
        try:
            with open_regular(git / "index") as file:
                data = read_at_most(file, _MAX_INDEX_BYTES + 1)
            blobs = dict(_entries(data, os.fsencode(prefix)))
        except (OSError, ValueError, struct.error, IndexError) as error:
            _log.info("the index of %s is not used: %s", folder, error)
            return TrackedFiles()
        folders: set[str] = set()
        for path in blobs:
            above = path.rpartition("/")[0]
            while above and above not in folders:
                folders.add(above)
                above = above.rpartition("/")[0]
        return TrackedFiles(blobs, frozenset(folders), str(git / _pointer(git / "commondir") / "objects"))
    return TrackedFiles()


def blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def read_blobs(objects: str, blobs: Iterable[str], scratch: Path) -> dict[str, bytes]:
    """Return the contents of these blobs, without those that git does not have any more.

    `scratch` is a folder of ours for an empty repository.
    """
    ids = sorted(set(blobs))
    if not ids:
        return {}
    try:
        for name in ("objects", "refs"):
            make_folder(scratch / name)
        (scratch / "HEAD").write_text("ref: refs/heads/none\n")
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "GIT_DIR": str(scratch),
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }
        with tempfile.TemporaryFile() as request:
            request.write("\n".join(ids).encode() + b"\n")
            request.seek(0)
            with subprocess.Popen(
                ("git", "cat-file", "--batch"),
                stdin=request,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=scratch,
            ) as git:
                limit = threading.Timer(_TIMEOUT_S, git.kill)
                limit.start()
                try:
                    assert git.stdout is not None
                    return dict(_read(git.stdout))
                finally:
                    limit.cancel()
                    git.kill()
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("contents were not read from git: %s", error)
        return {}


def _read(output: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield blobs as `git cat-file --batch` prints them, until one is larger than what is kept.

    Commands can write git's objects: one may hold something else than its name says, of any size.
    """
    while header := output.readline(_MAX_POINTER_BYTES).split():
        if len(header) != 3 or not header[2].isdigit():
            continue  # missing
        size = int(header[2])
        if size > MAX_FILE_BYTES:
            return
        content = output.read(size + 1)[:size]
        if blob_id(content) == header[0].decode():
            yield header[0].decode(), content


def _git_folder(folder: Path) -> Path | None:
    git = folder / ".git"
    if git.is_dir():
        return git
    pointer = _pointer(git)
    return folder / pointer.removeprefix("gitdir:").strip() if pointer.startswith("gitdir:") else None


def _pointer(file: Path) -> str:
    try:
        with open_regular(file) as opened:
            return os.fsdecode(read_at_most(opened, _MAX_POINTER_BYTES)).partition("\n")[0].strip().replace("\0", "")
    except OSError:
        return ""


def _entries(data: bytes, prefix: bytes) -> Iterable[tuple[str, str]]:
    """Yield paths and blobs of the regular files below a prefix. Raises ValueError for what is not understood.

    The format: https://git-scm.com/docs/index-format
    """
    signature, version, count = struct.unpack_from(">4sII", data, 0)
    if signature != b"DIRC" or version not in (2, 3, 4) or len(data) > _MAX_INDEX_BYTES:
        raise ValueError("another format")
    if data[-20:] not in (_NO_CHECKSUM, hashlib.sha1(data[:-20], usedforsecurity=False).digest()):
        raise ValueError("another checksum, such as that of a repository with SHA-256")
    at, name = 12, b""
    for _ in range(count):
        start = at
        entry = _ENTRY.unpack_from(data, at)
        mode, blob, flags = entry[6], entry[10], entry[11]
        at += _ENTRY.size + (2 if flags & _EXTENDED else 0)
        if version == 4:
            cut, at = _varint(data, at)
            end = data.index(b"\0", at)
            name = name[: len(name) - cut] + data[at:end]
            at = end + 1
        else:
            end = (
                data.index(b"\0", at + flags % (_NAME_LENGTH + 1))
                if flags & _NAME_LENGTH == _NAME_LENGTH
                else (at + (flags & _NAME_LENGTH))
            )
            name = data[at:end]
            at = start + (end - start + 8 & ~7)
        if mode & 0o170000 == _REGULAR and not flags & _STAGE and name.startswith(prefix):
            yield os.fsdecode(name[len(prefix) :]), blob.hex()


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 127
    while byte & 128:
        at += 1
        byte = data[at]
        value = (value + 1 << 7) | (byte & 127)
    return value, at + 1
