"""Vectors on this machine, in a folder: Qdrant's embedded engine in a process that starts with the first call."""

import asyncio
import json
import os
import stat
import sys
from importlib.util import find_spec
from pathlib import Path

from errand.engine.memory.vectors.base import (
    VectorsDamaged,
    VectorsError,
    VectorsInUse,
    VectorsMismatch,
    VectorsUnavailable,
    VectorsUntrusted,
)
from errand.engine.memory.vectors.process import (
    IDLE_S,
    ProcessVectors,
    StartedProcess,
    StoreAnswer,
    started_process,
)
from errand.system.local_trust import own_user
from errand.text.printable import reason

_PACKAGE = "qdrant_edge"
_CHILD = Path(__file__).with_name("embedded_child.py")


class EmbeddedVectors(ProcessVectors):
    """A `VectorStore` in `folder`, which is made if it is missing. The process ends `idle_s` after the last call."""

    def __init__(self, folder: Path, dimensions: int, model: str, idle_s: float = IDLE_S) -> None:
        super().__init__(dimensions, model, idle_s)
        self._folder = folder

    async def start(self) -> StartedProcess:
        await asyncio.to_thread(_check_folder, self._folder)
        if sys.platform == "win32":
            raise VectorsUnavailable(
                "The index of vectors on this machine does not run on Windows. Use a Qdrant server."
            )
        if find_spec(_PACKAGE) is None:
            raise VectorsUnavailable(
                "The package qdrant-edge-py, which keeps the vectors, is not installed. It comes with Errand on Linux "
                "(x86-64, ARM64) and macOS (Apple silicon) with Python 3.11 to 3.14: install Errand again there."
            )
        return await started_process("vectors", str(_CHILD), (str(self._folder),))

    def opening_request(self) -> dict[str, object]:
        return {"dimensions": self._dimensions, "model": self._model}

    def refusal(self, answer: StoreAnswer) -> VectorsError:
        match answer.kind:
            case "mismatch":
                return VectorsMismatch(f"The index of vectors is of another model: {answer.error}. Rebuild it.")
            case "in_use":
                return VectorsInUse("Another process uses the index of vectors. End the other Errand.")
            case "failed":
                return VectorsUnavailable(f"The index of vectors cannot be used: {answer.error}.")
            case "full":
                return VectorsUnavailable(f"The disk is too full for the index of vectors: {answer.error}.")
            case _:
                return VectorsDamaged(f"The index of vectors cannot be read: {answer.error}. Rebuild it.")

    async def has_remains(self) -> bool:
        return await asyncio.to_thread(_has_remains, self._folder, self.opening_request())


def _check_folder(folder: Path) -> None:
    """Make the folder if it is missing. Raises `VectorsUntrusted` if others could have put something into it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_own(folder)
        for root, folders, files in os.walk(folder):
            for name in (*folders, *files):
                _check_own(Path(root, name))
    except FileNotFoundError:
        pass  # the process of another engine is at work here: it has the lock
    except OSError as error:
        raise VectorsUnavailable(f"The folder of the index of vectors cannot be used: {reason(error)}") from error


def _has_remains(folder: Path, expected: dict[str, object]) -> bool:
    if not (folder / "shard").exists():
        return False
    try:
        stored = json.loads((folder / "index.json").read_bytes())
        return not (folder / "purged").exists() or not expected.items() <= stored.items()
    except (OSError, ValueError, AttributeError):  # half written, or damaged
        return True


def _check_own(path: Path) -> None:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise VectorsUntrusted(f"{path} is a link: the index of vectors is not opened. Remove the link.")
    if status.st_uid != own_user():
        raise VectorsUntrusted(f"{path} belongs to another user: the index of vectors is not opened. Remove it.")
    if status.st_mode & stat.S_IWOTH:
        raise VectorsUntrusted(f"Everybody may write to {path}: the index of vectors is not opened. Remove it.")
