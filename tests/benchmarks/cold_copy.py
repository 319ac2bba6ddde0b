"""Python, its libraries, Qt and Errand as files that no process has loaded, for a start as after a reboot.

Pages of a file that some process maps stay in the page cache: those of this Python and of the running engine do. Of a
copy all can be evicted. What stays are the system's own libraries (libc, those of the display, fonts), which a desktop
has loaded too, and the names in folders.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import errand

# Packages that a window never loads: large ones, but Qt.
_LARGE_BYTES = 25_000_000
_OF_WINDOW = ("PySide6", "shiboken6")


@contextmanager
def cold_copy() -> Generator[Path]:
    """The Python of a copy; `python -m errand` starts it."""
    with tempfile.TemporaryDirectory(prefix="errand-cold-") as name:
        root = Path(name)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        library, program = root / "lib" / version, root / "bin" / version
        _copy(Path(sysconfig.get_path("stdlib")), library, "site-packages", "dist-packages", "test", "config-*")
        _copy(Path(sysconfig.get_path("purelib")), library / "site-packages", *_unused())
        _copy(Path(errand.__file__).parent, library / "site-packages" / "errand")
        resources = Path(str(files("errand.resources")))  # beside the code in a checkout, in it when installed
        shutil.copytree(resources, library / "site-packages" / "errand" / "resources", dirs_exist_ok=True)
        program.parent.mkdir()
        shutil.copy2(Path(sys.executable).resolve(), program)
        for shared in _shared_libraries():
            shutil.copy2(shared, root / "lib" / shared.name)
        subprocess.run(["sync", "-f", root], check=True)  # pages that are not written yet cannot be evicted
        yield program


def evict(program: Path) -> None:
    """Drop all files of a copy from the page cache."""
    for file in program.parents[1].rglob("*"):
        if file.is_file():
            with file.open("rb") as read:
                os.posix_fadvise(read.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_mb(pid: int) -> float:
    """Return what the process has read from the disk, and not from the page cache, in MB."""
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes:")) / 1e6


def _copy(source: Path, target: Path, *left_out: str) -> None:
    """Copy a folder with the times of its files: compiled ones are valid only for these."""
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(*left_out))


def _unused() -> list[str]:
    folders = [folder for folder in Path(sysconfig.get_path("purelib")).iterdir() if folder.is_dir()]
    large = [folder.name for folder in folders if folder.name not in _OF_WINDOW and _size(folder) > _LARGE_BYTES]
    return [*large, "__editable__*"]


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _shared_libraries() -> list[Path]:
    """The library of Python itself, if it is one."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return sorted({Path(line.split()[-1]) for line in lines if "/libpython" in line})
