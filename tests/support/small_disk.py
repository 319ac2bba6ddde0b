"""A real disk of a few megabytes that can be filled to its last byte and emptied again; needs the right to mount."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_CHUNK = 4096


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
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
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
