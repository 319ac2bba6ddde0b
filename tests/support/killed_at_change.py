"""An engine that kills itself around a change of a file: `python -m tests.support.killed_at_change WHEN`.

`noted`: after the note of a change is on disk, before it is made. `made`: after it was made, before its event is
published. `undoing`: before the second file of an undo.
"""

import os
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from errand.engine import main as engine
from errand.engine.checkpoints import undo
from errand.engine.checkpoints.contents import ContentStore
from errand.engine.checkpoints.disk import restore
from errand.engine.checkpoints.history import Version
from errand.engine.tools.code import workspace_files
from errand.regular_file import write_atomically


class KilledStore(ContentStore):
    def put(
        self, *contents: bytes, notes: Mapping[str, bytes] | None = None, done: Iterable[str] = ()
    ) -> tuple[str, ...]:
        ids = super().put(*contents, notes=notes, done=done)
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


def _write_and_die(path: Path, data: bytes, *, folder: int | None = None, mode: int | None = None) -> None:
    write_atomically(path, data, folder=folder, mode=mode)
    _kill()


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    match sys.argv[1]:
        case "noted":
            engine.ContentStore = KilledStore
        case "made":
            workspace_files.write_atomically = _write_and_die
        case _:
            undo.restore = KilledRestore()
    sys.exit(engine.main([], {}))
