"""The interface by which tools report files before they change them, for undo; `engine/checkpoints` implements it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from errand.protocol.changes import Change


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change that is about to be made. `before` and `after` are the bytes, `NOTHING` or `FOLDER`.

    `mode` has the permissions before. `made_folders` counts the folders above that the change makes. The counts are
    lines.
    """

    path: Path
    before: bytes | Literal["", "folder"]
    after: bytes | Literal["", "folder"]
    mode: int | None = None
    made_folders: int = 0
    added: int = 0
    removed: int = 0


class CommandFiles(Protocol):
    """The files that a command names, as they were before it."""

    def record_changes(self) -> None:
        """The command has ended: note and publish what it changed in them. Called in a thread; raises OSError."""
        ...


class Checkpoints(Protocol):
    """Keeps what the changes of one task replace. Called in threads."""

    def note(self, call_id: str, change: FileChange) -> Change:
        """Note that the change is about to be made; that and the contents are on disk then. Raises OSError."""
        ...

    def made(self, change: Change) -> None:
        """The change was made: it is published, and committed with the next commit."""
        ...

    def keep_named(self, call_id: str, line: str, folder: Path) -> CommandFiles | None:
        """Keep the files of the workspace that a command line names; None if it names none. Raises OSError."""
        ...

    def failed(self, change: Change) -> None:
        """The change was not made after all."""
        ...


def missing_folders(path: Path) -> int:
    """Return the number of folders above a path that do not exist."""
    return next((count for count, above in enumerate(path.parents) if above.exists()), 0)
