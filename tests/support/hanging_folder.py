"""A folder that never answers, as on a network drive whose server is gone: a file system whose program says nothing."""

import ctypes
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

_DETACH = 2  # MNT_DETACH


@contextmanager
def hanging_folder(place: Path) -> Generator[Path]:
    """Whoever looks into it waits until the context ends, and gets an error. Skips where none can be made."""
    place.mkdir()
    try:
        descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        pytest.skip("no file system of a program's own can be made here")
    library = ctypes.CDLL(None, use_errno=True)
    options = f"fd={descriptor},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if library.mount(b"hanging", os.fsencode(place), b"fuse", 0, options.encode()) != 0:
        os.close(descriptor)
        pytest.skip("no file system of a program's own may be mounted here")
    try:
        yield place
    finally:
        os.close(descriptor)
        library.umount2(os.fsencode(place), _DETACH)
