"""What a tool tells of a file before it changes it, so that the change can be undone: see `engine/checkpoints`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.protocol.changes import Change


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change that is about to be made: `before` and `after` are ids of contents, `NOTHING` or `FOLDER`.

    `mode` has the permissions before. `made_folders` counts the folders above that the change makes. The counts are
    lines.
    """

    path: Path
    before: str
    after: str
    mode: int | None = None
    made_folders: int = 0
    added: int = 0
    removed: int = 0


class Checkpoints(Protocol):
    """Keeps what the changes of one task replace."""

    def keep(self, content: bytes, *, durable: bool) -> str:
        """Store a content, `durable` if nothing else has it, and return its id. Called in a thread; raises OSError."""
        ...

    async def record(self, call_id: str, change: FileChange) -> Change:
        """Commit that the change is about to be made."""
        ...

    def failed(self, change: Change) -> None:
        """The change was not made after all."""
        ...


def missing_folders(path: Path) -> int:
    """The number of folders above a path that do not exist."""
    return next((count for count, above in enumerate(path.parents) if above.exists()), 0)
