"""A real disk of a few megabytes that can be filled to its last byte and emptied again; needs the right to mount."""

import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_CHUNK = 4096
_RELEASED_WITHIN_S = 10.0


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Generator[Path]:
    """Skips the test where this user may not mount."""
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def read_only(disk: Path) -> Generator[None]:
    """Nothing on it can be changed until the block is left."""
    give_up_at = time.monotonic() + _RELEASED_WITHIN_S
    while subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True, check=False).returncode:
        assert time.monotonic() < give_up_at, "somebody keeps files open on the disk"
        time.sleep(0.01)  # the kernel tells nobody that a process which ends has let go
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@contextmanager
def filled(disk: Path) -> Generator[None]:
    """Not a byte is free until the block is left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * _CHUNK)
    try:
        yield
    finally:
        ballast.unlink()
