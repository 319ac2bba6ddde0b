"""The baselines of all workspaces, and whether what commands change in one can be undone."""

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import msgspec

from errand.engine.checkpoints.baseline import Coverage, FolderBaseline
from errand.engine.checkpoints.baseline_rows import drop_baselines
from errand.engine.checkpoints.contents import ContentStore
from errand.engine.core.errors import EngineError
from errand.engine.core.ids import new_id
from errand.engine.core.workspace_threads import in_workspace
from errand.protocol.changes import Change

_logger = logging.getLogger(__name__)

# Each has a descriptor of the kernel, of which a user has 128.
_MAX_OPEN_FOLDERS = 16
# For the first look at a folder, before a command runs without it.
WAIT_S = 10.0
_MAX_OPENING_S = 600.0
_NOT_READ = Coverage(False, "its files have not been read yet")


class Baselines:
    """One `FolderBaseline` for each workspace in which commands ran lately. Made in the event loop.

    `private` is the app's own data, of which no workspace has a part.
    """

    def __init__(self, contents: ContentStore, scratch: Path, private: Path) -> None:
        self.contents = contents
        self._scratch = scratch
        self._private = os.path.realpath(private)
        self._folders: OrderedDict[str, FolderBaseline] = OrderedDict()
        # The resolved paths of workspaces.
        self._roots: dict[str, str] = {}
        self._opening: dict[str, asyncio.Task[Coverage]] = {}

    def coverage_of(self, workspace: Path) -> Coverage:
        """Return whether all that a command changes in the workspace can be undone, as far as that is known now.

        It costs nothing: for a folder that was never looked at the answer is no. `prepare` looks.
        """
        baseline = self._known(workspace)
        return baseline.coverage if baseline is not None and baseline.is_known else _NOT_READ

    async def prepare(self, workspace: Path, within_s: float = WAIT_S) -> Coverage:
        """Return the same, after a first look at the workspace if there was none. That goes on if it takes longer."""
        baseline = self._known(workspace)
        if baseline is not None and baseline.is_known:
            self._folders.move_to_end(str(baseline.root))
            return baseline.coverage
        opening = self._opening.get(str(workspace))
        if opening is None:
            opening = asyncio.create_task(self._open(workspace), name=f"baseline of {workspace}")
            self._opening[str(workspace)] = opening
            opening.add_done_callback(lambda _: self._opening.pop(str(workspace), None))
        await asyncio.wait((opening,), timeout=within_s)
        return opening.result() if opening.done() else Coverage(False, "its files are still being read")

    def ready(self, workspace: Path) -> FolderBaseline | None:
        """Return the baseline of a workspace if it has one. Called in a thread."""
        baseline = self._known(workspace)
        if baseline is None or not baseline.is_ready or str(baseline.root) != os.path.realpath(workspace):
            self._roots.pop(str(workspace), None)  # a link that leads to another folder now
            return None
        return baseline

    def before_write(self, paths: Iterable[str]) -> None:
        """Record what commands have changed in files that a tool or an undo is about to write. Raises OSError."""
        baselines = [baseline for baseline in tuple(self._folders.values()) if baseline.is_running]
        for path in paths if baselines else ():
            for baseline in baselines:
                baseline.before_write(path)

    def after_write(self, path: str, content: str | None) -> None:
        """Take over what a tool or an undo has written, so that no command is taken for it; None for nothing."""
        for baseline in tuple(self._folders.values()):
            baseline.after_write(path, content)

    def forget(self, unused_s: float = 0.0) -> None:
        """Delete the stored baselines of workspaces in which no command runs or began for so long. Raises OSError.

        They are made again when they are needed. Called in a thread.
        """
        in_use = [str(baseline.root) for baseline in tuple(self._folders.values()) if not baseline.forget(unused_s)]
        if self.contents.is_there:
            self.contents.use(partial(drop_baselines, keep=in_use))

    async def recover(self, command: Change, *, keeps_changes: bool) -> None:
        """Note what a command changed whose engine was killed; its record has the folder as path. Raises OSError.

        The notes are published with those of other changes. Nothing is noted unless `keeps_changes`.
        """

        def change_of(path: Path, before: str) -> Change:
            return msgspec.structs.replace(command, id=new_id("change"), path=str(path), before=before, after=before)

        def record() -> None:
            baseline = FolderBaseline(
                Path(command.path), self.contents, self._scratch, self._private, self._tell_others
            )
            baseline.recover(command, change_of if keeps_changes else None)

        await in_workspace(Path(command.path), record, _MAX_OPENING_S)

    async def close(self) -> None:
        for baseline in tuple(self._folders.values()):
            await asyncio.to_thread(baseline.close)
        if self._opening:
            await asyncio.wait(tuple(self._opening.values()))

    async def _open(self, workspace: Path) -> Coverage:
        try:
            root = await in_workspace(workspace, partial(os.path.realpath, workspace))
            baseline = self._folders.get(root)
            if baseline is None:
                baseline = FolderBaseline(Path(root), self.contents, self._scratch, self._private, self._tell_others)
                self._folders[root] = baseline
                await self._close_oldest()
            self._roots[str(workspace)] = root
            await in_workspace(baseline.root, baseline.open, _MAX_OPENING_S)
        except EngineError as error:
            _logger.warning("no baseline of %s: %s", workspace, error)
            return Coverage(False, "the folder does not answer")
        return baseline.coverage

    async def _close_oldest(self) -> None:
        opening = {self._roots.get(workspace) for workspace in self._opening}
        for root, baseline in tuple(self._folders.items())[:-_MAX_OPEN_FOLDERS]:
            if not baseline.is_running and root not in opening:
                del self._folders[root]
                await asyncio.to_thread(baseline.close)

    def _known(self, workspace: Path) -> FolderBaseline | None:
        return self._folders.get(self._roots.get(str(workspace), ""))

    def _tell_others(self, recorded_by: FolderBaseline, path: str, content: str) -> None:
        for baseline in tuple(self._folders.values()):
            if baseline is not recorded_by:
                baseline.after_write(path, content)
