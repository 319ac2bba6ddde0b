"""Writing a file so that it is at any instant either the old one or the new one."""

import os
import secrets
import stat
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace or make a file; rights and, where allowed, the owner are kept. Raises OSError.

    `path` must be a real path: a link there would be replaced, not followed.
    """
    old = os.stat(path) if path.exists() else None
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            if old:
                _keep_rights(descriptor, old)
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _keep_rights(descriptor: int, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        try:
            os.chown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:
            return  # another's file: the rights meant for its owner must not be handed to us
    os.chmod(descriptor, stat.S_IMODE(old.st_mode))
