"""The Unix sockets of services outside a sandbox: a process that sees the path of one may connect, even on a read-only
mount.

For bubblewrap, which covers them. Landlock refuses the sockets themselves (seccomp.py, landlock.py).
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

# The sandbox has folders of its own there.
_REPLACED = ("/run/", "/tmp/", "/var/tmp/", "/dev/", "/proc/", "/sys/")
# Disks of the person, which stay.
_DISKS = "/run/media/"
_PATH_IN_VALUE = re.compile(r"/[^\s,;:]+")
MAX_VALUE_LENGTH = 4_096
MAX_FOLDER_ENTRIES = 32
# If a folder has more, it is covered as a whole.
MAX_SOCKETS_IN_FOLDER = 8
_BESIDE_SOCKETS = (".pid", ".lock")


def services(
    open_folders: Iterable[Path], covered: Iterable[Path], homes: Iterable[Path], environment: Mapping[str, str]
) -> list[Path]:
    """Return the sockets to cover: those that exist outside the open folders and are not covered yet.

    A folder that holds only sockets stands for them, so that sockets that are bound there later are covered too.
    Sockets are found by the kernel's lists of bound sockets and in the values of the environment. Reads many files.
    """
    opened = list(open_folders)
    ignored = [*opened, *covered]
    by_folder: dict[Path, list[Path]] = {}
    for path in dict.fromkeys((*_bound(homes), *_named(environment))):
        real = _real_socket(path)
        if real is not None and not any(map(real.is_relative_to, ignored)):
            by_folder.setdefault(real.parent, []).append(real)
    to_cover: list[Path] = []
    for folder, sockets in by_folder.items():
        is_needed = folder in (*homes, Path("/")) or any(path.is_relative_to(folder) for path in opened)
        is_full = len(sockets) > MAX_SOCKETS_IN_FOLDER or _has_sockets_alone(folder)
        to_cover += [folder] if is_full and not is_needed else sockets
    return to_cover


def _bound(homes: Iterable[Path]) -> Iterator[str]:
    """Yield the paths that are bound on this machine and in running sandboxes, as their programs wrote them."""
    names = {name for file in ("/proc/self/net/unix", *_of_sandboxes()) for name in _names_in(file)}
    relative = {name for name in names if not name.startswith("/")}
    yield from names - relative
    if relative:
        folders = {*map(str, homes), *_working_folders()}
        yield from (os.path.join(folder, name) for folder in folders for name in relative)


def _names_in(file: str) -> Iterator[str]:
    with suppress(OSError), open(file, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            fields = line.rstrip("\n").split(None, 7)
            if len(fields) == 8 and fields[0] != "Num" and not (fields[7].startswith("@") or _is_replaced(fields[7])):
                yield fields[7]


def _of_sandboxes() -> list[str]:
    """List the files for commands that run in networks of their own: below each process that holds a sandbox."""
    inner = [child for holder in _children("self") for child in _children(holder)]
    return [f"/proc/{pid}/net/unix" for pid in inner]


def _children(pid: str) -> list[str]:
    children: list[str] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                children += file.read().split()
    return children


def _working_folders() -> set[str]:
    folders: set[str] = set()
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError):
                folders.add(os.readlink(f"/proc/{name}/cwd"))
    return folders


def _named(environment: Mapping[str, str]) -> Iterator[str]:
    for value in environment.values():
        if "/" in value and len(value) <= MAX_VALUE_LENGTH:
            yield from _PATH_IN_VALUE.findall(value)


def _real_socket(path: str) -> Path | None:
    """Return the path without links, or None if there is no socket."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return None
        real = os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None
    return None if _is_replaced(real) else Path(real)


def _is_replaced(path: str) -> bool:
    return path.startswith(_REPLACED) and not path.startswith(_DISKS)


def _has_sockets_alone(folder: Path) -> bool:
    """Return True if the folder holds sockets, and files that programs keep beside them."""
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                is_socket = stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
                if count >= MAX_FOLDER_ENTRIES or not (is_socket or entry.name.endswith(_BESIDE_SOCKETS)):
                    return False
    except OSError:
        return False
    return True
