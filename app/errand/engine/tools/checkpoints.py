"""The interface by which tools report files before they change them, for undo; `engine/checkpoints` implements it."""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.workspace_threads import PATIENCE_S, in_workspace
from errand.protocol.changes import Change

_log = logging.getLogger(__name__)

# For the comparison after a command that was stopped.
_STOPPED_S = 0.2


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
    """The files that a command may change, as they were before it."""

    def record_changes(self) -> None:
        """Note and publish what the command has changed, which has ended. Called in a thread; raises OSError."""
        ...


class Checkpoints(Protocol):
    """Keeps what the changes of one task replace. Called in threads."""

    def note(self, call_id: str, change: FileChange) -> Change:
        """Note that the change is about to be made; that and the contents are on disk then. Raises OSError."""
        ...

    def made(self, change: Change) -> None:
        """The change was made: it is published, and committed with the next commit."""
        ...

    async def prepare(self) -> None:
        """Look at the workspace before its first command. Called in the event loop; it may be cancelled."""
        ...

    async def command_begins(self, call_id: str, line: str, folder: Path) -> CommandFiles | None:
        """Keep what a command may change in the workspace; None for nothing. Called in the event loop.

        `line` is empty for code of another language. Raises OSError and `FolderNotAnswering`.
        """
        ...

    def failed(self, change: Change) -> None:
        """The change was not made after all."""
        ...


async def keep_before(
    checkpoints: Checkpoints | None, call_id: str, line: str, folder: Path, cancel: CancelSignal
) -> CommandFiles | None:
    """Keep what a command may change, so that its changes can be undone. If that fails it runs all the same.

    None soon after `cancel` is set.
    """
    if checkpoints is None:
        return None
    try:
        preparing = asyncio.ensure_future(checkpoints.prepare())
        unsubscribe = cancel.subscribe(lambda: _stop(preparing))
        try:
            await preparing
        finally:
            unsubscribe()
        return await checkpoints.command_begins(call_id, line, folder)
    except asyncio.CancelledError:
        if not cancel.is_set:
            raise
        return None
    except (EngineError, OSError) as error:
        _log.warning("what a command changes will not be recorded: %s", error)
        return None


def _stop(preparing: asyncio.Future[None]) -> None:
    preparing.cancel()


async def record_after(
    files: CommandFiles | None, workspace: Path, *, is_stopped: bool = False, within_s: float = PATIENCE_S
) -> None:
    """Record what a command has changed; one that was stopped is not waited for.

    A folder that does not answer in time is compared when it does again.
    """
    if files is None:
        return
    try:
        await in_workspace(workspace, files.record_changes, _STOPPED_S if is_stopped else within_s)
    except (EngineError, OSError) as error:
        _log.warning("what a command changed is not recorded: %s", error)


def missing_folders(path: Path) -> int:
    """Return the number of folders above a path that do not exist."""
    return next((count for count, above in enumerate(path.parents) if above.exists()), 0)
