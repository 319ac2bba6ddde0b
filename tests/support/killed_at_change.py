"""An engine that kills itself around a change of a file: `python -m tests.support.killed_at_change WHEN`.

`noted`: after the note of a change is on disk, before it is made. `writing`: while the new file has no name yet but its
temporary one. `made`: after the change was made, before its event is published. `undoing`: before the second file of an
undo.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from errand.engine import main as engine
from errand.engine.checkpoints import undo
from errand.engine.checkpoints.contents import ContentStore
from errand.engine.checkpoints.disk import restore
from errand.engine.checkpoints.history import Version
from errand.engine.tools.code import workspace_files
from errand.system import regular_file
from errand.system.regular_file import check_replaceable, replace_file


class KilledStore(ContentStore):
    def put(
        self,
        *contents: bytes,
        notes: Mapping[str, bytes] | None = None,
        done: Iterable[str] = (),
        also: Callable[[sqlite3.Connection], None] | None = None,
    ) -> tuple[str, ...]:
        ids = super().put(*contents, notes=notes, done=done, also=also)
        _kill()
        return ids


class KilledRestore:
    def __init__(self) -> None:
        self._count = 0

    def __call__(self, path: Path, version: Version, expected: str) -> None:
        self._count += 1
        if self._count == 2:
            _kill()
        restore(path, version, expected)


class KilledCheck:
    """Kills when a file of a workspace is about to get its name."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, path: Path, *, overwrite: bool, folder: int | None = None) -> None:
        self._count += folder is not None
        if self._count == 2:
            _kill()
        check_replaceable(path, overwrite=overwrite, folder=folder)


def _write_and_die(path: Path, data: bytes, *, folder: int | None = None, mode: int | None = None) -> None:
    replace_file(path, data, folder=folder, mode=mode)
    _kill()


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    match sys.argv[1]:
        case "noted":
            engine.ContentStore = KilledStore
        case "made":
            workspace_files.replace_file = _write_and_die
        case "writing":
            regular_file.check_replaceable = KilledCheck()
        case _:
            undo.restore = KilledRestore()
    sys.exit(engine.main([], {}))
