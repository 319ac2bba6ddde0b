"""Room kept on the disk for a start when there is no other: a file that is given up, so that all can be read."""

import shutil
from contextlib import suppress
from pathlib import Path

# For the endpoint file, a line in the log and what SQLite keeps beside a database that is open.
_BYTES = 1024 * 1024
# It is only taken where there is plenty.
_PLENTY = 4 * _BYTES


def give_up_room(file: Path) -> None:
    """Where the disk is full."""
    with suppress(OSError):
        if shutil.disk_usage(file.parent).free < _BYTES:
            file.unlink(missing_ok=True)


def keep_room(file: Path) -> None:
    """Where it is not kept already, and the disk has it."""
    with suppress(OSError):
        if not file.exists() and shutil.disk_usage(file.parent).free >= _PLENTY:
            file.write_bytes(bytes(_BYTES))
