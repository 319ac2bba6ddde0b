"""Writing a file so that it is at any instant either the old one or the new one."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from app.regular_file import written_whole


def write_atomically(path: Path, data: bytes, *, folder: int | None = None) -> None:
    """Replace or make a regular file; rights and, where allowed, the owner are kept. Raises OSError.

    `path` must be a real path, or a name in `folder`, a descriptor: a link there is refused, as is whatever else is no
    file.
    """
    old = None
    with suppress(FileNotFoundError):
        old = os.stat(path, dir_fd=folder, follow_symlinks=False)
    with written_whole(path, overwrite=True, mode=0o666, folder=folder) as file:
        if old:
            _keep_rights(file.fileno(), old)
        file.write(data)


def _keep_rights(descriptor: int, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        try:
            os.chown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:
            return  # another's file: the rights meant for its owner must not be handed to us
    os.chmod(descriptor, stat.S_IMODE(old.st_mode))
