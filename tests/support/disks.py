"""A database on a full disk, which rejects every change, or on a slow one, while an engine has it open."""

import ctypes
import fcntl
import os
import shutil
import sqlite3
import struct
import subprocess
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.limits import WAIT_LIMIT_S

_TABLES = ("conversations", "agents", "tasks", "nodes", "turns", "tool_executions", "asks", "events", "meta")

_CHUNK = 4096

# linux/ext4.h: all later writes fail, and pending writes in the journal or the cache are lost.
_SHUTDOWN = 0x8004587D
_WITHOUT_FLUSHING = 2

_DETACH = 2  # MNT_DETACH


@contextmanager
def full_disk(database: Path) -> Generator[None]:
    """Every insert fails until the block ends."""
    _run(
        database,
        *(
            f"CREATE TRIGGER full_{table} BEFORE INSERT ON {table} "
            "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            for table in _TABLES
        ),
    )
    try:
        yield
    finally:
        _run(database, *(f"DROP TRIGGER full_{table}" for table in _TABLES))


@contextmanager
def slow_disk(database: Path) -> Generator[None]:
    """No change is saved until the block ends, which must be within 5 s."""
    with closing(sqlite3.connect(database, timeout=10, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def _run(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database, timeout=10)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement)


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Generator[Path]:
    """Skips the test if this user may not mount."""
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
    """Nothing on it can be changed until the block ends."""
    give_up_at = time.monotonic() + WAIT_LIMIT_S
    while subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True, check=False).returncode:
        assert time.monotonic() < give_up_at, "somebody keeps files open on the disk"
        time.sleep(0.01)  # the kernel does not signal when an exiting process has released its files
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@contextmanager
def filled(disk: Path) -> Generator[None]:
    """No byte is free until the block ends."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * _CHUNK)
    try:
        yield
    finally:
        ballast.unlink()


class PoweredDisk:
    """A disk whose power can be cut. `folder` is its root.

    End all processes with open files on it between `cut` and `restore`.
    """

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
        """Mount it again, as the system does after the power is back."""
        self.unmount()
        assert self.mount(), "the disk cannot be mounted again"

    def unmount(self) -> None:
        give_up_at = time.monotonic() + WAIT_LIMIT_S
        unmounting = ["umount", str(self.folder)]
        while subprocess.run(unmounting, capture_output=True, check=False).returncode:
            assert time.monotonic() < give_up_at, "somebody keeps files open on the disk"
            time.sleep(0.01)  # the kernel does not signal when a killed process has released its files
        while self._is_mounted_elsewhere():
            assert time.monotonic() < give_up_at, "a sandbox keeps the disk mounted"
            time.sleep(0.01)

    def _is_mounted_elsewhere(self) -> bool:
        """A sandbox that is just ending has mounts of its own, and with them the disk as it was."""
        devices = subprocess.run(["losetup", "-j", str(self._image)], capture_output=True, check=True)
        return bool(devices.stdout)


@contextmanager
def powered_disk(folder: Path, megabytes: int = 96) -> Generator[PoweredDisk]:
    """Skips the test if this user may not mount, or if the machine has no loop devices or no ext4."""
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


@contextmanager
def hanging_folder(path: Path) -> Generator[Path]:
    """A folder that does not respond until the context ends, and then fails. Skips if none can be made."""
    path.mkdir()
    try:
        descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        pytest.skip("no file system of a program's own can be made here")
    library = ctypes.CDLL(None, use_errno=True)
    options = f"fd={descriptor},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if library.mount(b"hanging", os.fsencode(path), b"fuse", 0, options.encode()) != 0:
        os.close(descriptor)
        pytest.skip("no file system of a program's own may be mounted here")
    try:
        yield path
    finally:
        os.close(descriptor)
        library.umount2(os.fsencode(path), _DETACH)
