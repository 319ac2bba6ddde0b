"""A real disk, ext4 in a file, whose power can be cut: what had not reached it is gone when it is there again."""

import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

# linux/ext4.h: every write from then on fails, and what waits in the journal or the cache is not written.
_SHUTDOWN = 0x8004587D
_WITHOUT_FLUSHING = 2
_RELEASED_WITHIN_S = 10.0


class PoweredDisk:
    """`folder` is its root. End whoever has files open on it between `cut` and `restore`."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.folder = folder
        self._image = image

    def mount(self) -> bool:
        mounting = ["mount", "-o", "loop", str(self._image), str(self.folder)]
        return subprocess.run(mounting, capture_output=True, check=False).returncode == 0

    def cut(self) -> None:
        root = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(root, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSHING))
        finally:
            os.close(root)

    def restore(self) -> None:
        """Mount it again, as the system does after the power came back."""
        self.unmount()
        assert self.mount(), "the disk cannot be mounted again"

    def unmount(self) -> None:
        give_up_at = time.monotonic() + _RELEASED_WITHIN_S
        unmounting = ["umount", str(self.folder)]
        while subprocess.run(unmounting, capture_output=True, check=False).returncode:
            assert time.monotonic() < give_up_at, "somebody keeps files open on the disk"
            time.sleep(0.01)  # the kernel tells nobody that a killed process has let go


@contextmanager
def powered_disk(folder: Path, megabytes: int = 96) -> Generator[PoweredDisk]:
    """Skips the test where this user may not mount, or the machine has no loop devices or no ext4."""
    root, image = folder / "disk", folder / "disk.img"
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("this machine cannot make an ext4 disk: mkfs.ext4 is not installed")
    root.mkdir()
    with image.open("wb") as file:
        file.truncate(megabytes * 1024 * 1024)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    disk = PoweredDisk(image, root)
    if not disk.mount():
        pytest.skip("this user may not mount a disk, or there is no loop device: a power cut cannot be played")
    try:
        yield disk
    finally:
        with suppress(FileNotFoundError):
            disk.unmount()
        image.unlink()
