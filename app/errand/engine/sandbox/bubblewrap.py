"""Runs a command in bubblewrap (own mounts, own processes, no capabilities), and finds out whether that works here.

Linux only. https://github.com/containers/bubblewrap
"""

import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from errand.engine.sandbox import unix_sockets
from errand.engine.sandbox.profile import SandboxProfile
from errand.engine.sandbox.protected_files import PinnedPath

# The program that makes sandboxes.
SANDBOX_PROCESS = "bwrap"

_PROBE_S = 5.0
# As process 1 `true` leaves no process of bubblewrap behind, which nobody would reap.
_PROBED = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-net", "--as-pid-1")
_LIMITS = ("--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL")
# Folders of /proc that bubblewrap mounts read-only itself.
_READ_ONLY_IN_PROC = frozenset(("irq", "bus"))
# It lists the keys of the kernel's keyring.
_KEYS = Path("/proc/keys")
# The only way out of it is the engine's proxy.
_OWN_NETWORK = ("--unshare-net",)


@dataclass(frozen=True, slots=True)
class Joining:
    """The steps by which a process joins the network of others: a call of `enter`, or a `prefix` of its command line.

    The thread that starts the process calls `enter`, which needs the descriptors `held`. The process gets the
    descriptors `inherited`, which bubblewrap closes by `options`. Close them all.
    """

    enter: Callable[[], None] | None = None
    held: tuple[int, ...] = ()
    prefix: tuple[str, ...] = ()
    inherited: tuple[int, ...] = ()
    options: tuple[str, ...] = ()


def problem_of(program: str) -> str:
    """Return why this bubblewrap cannot make a sandbox here; empty if it can. Starts a process."""
    try:
        tried = subprocess.run(
            [program, *_PROBED, "--cap-drop", "ALL", "--", "true"], capture_output=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} fails: {error}."
    reason = tried.stderr.decode(errors="replace").strip()[:300]
    return f"This system does not let {program} make one: {reason}." if tried.returncode else ""


def binds_descriptors(program: str) -> bool:
    """Return True if this bubblewrap can mount an open file. Starts a process."""
    try:
        help_output = subprocess.run([program, "--help"], capture_output=True, timeout=_PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"--ro-bind-fd" in help_output.stdout


class Mount(NamedTuple):
    """An option of bubblewrap that puts something at a path, with what it takes, and the pinned file if it is one."""

    path: Path
    option: str
    source: str | None = None
    pinned: PinnedPath | None = None

    @property
    def words(self) -> tuple[str, ...]:
        return (self.option, *(() if self.source is None else (self.source,)), str(self.path))


class View(NamedTuple):
    """The mounts that a command sees, the outer first, and hidden folders that look empty."""

    mounts: list[Mount]
    sealed: tuple[Path, ...]


def view_of(
    profile: SandboxProfile, writable: Sequence[Path], pinned: Iterable[PinnedPath], environment: Mapping[str, str]
) -> View:
    """Return what a command sees within the profile. Reads the file system.

    `writable` are the folders that the profile opens now. The `environment` may name sockets of services.
    """
    closed, unchanged = profile.closed(), profile.unchanged()
    hidden = tuple(dict.fromkeys((*profile.hidden(), *closed)))
    folders = tuple(path for path in hidden if path.is_dir())
    for path in unix_sockets.services((*writable, profile.output_dir), folders, profile.homes, environment):
        hidden = (*hidden, path)
        folders = (*folders, path) if path.is_dir() else folders
    denied = (*unchanged, *closed)
    temporary = str(profile.temporary)
    mounts = [
        Mount(Path("/"), "--ro-bind", "/"),
        Mount(Path("/dev"), "--dev"),
        Mount(Path("/proc"), "--proc"),
        *(Mount(path, "--ro-bind", str(path)) for path in _settings_of_the_machine()),
        *(Mount(path, "--ro-bind", "/dev/null") for path in (_KEYS,) if path.exists()),
        Mount(Path("/tmp"), "--bind", temporary),
        Mount(Path("/var/tmp"), "--bind", temporary),
        *(Mount(path, "--tmpfs") if path in folders else Mount(path, "--ro-bind", "/dev/null") for path in hidden),
        *(Mount(path, "--bind", str(path)) for path in writable),
        *(Mount(path, "--ro-bind", str(path)) for path in profile.readable()),
        *(Mount(path, "--symlink", target) for path, target in profile.links().items()),
        *(
            Mount(file.path, "--bind" if file.is_writable else "--ro-bind", str(file.path), file)
            for file in pinned
            if _is_mountable(file.path, hidden, writable, denied)
        ),
        *(Mount(path, "--ro-bind", str(path)) for path in unchanged),
    ]
    # A mount covers what was mounted below its path before.
    mounts.sort(key=lambda mount: len(mount.path.parts))
    return View(mounts, folders)


def bubblewrapped(
    program: str,
    arguments: Sequence[str],
    folder: Path,
    view: View,
    held: Mapping[Path, int],
    joining: Joining | None,
    call_filter: int | None,
    own: Sequence[str] = (),
    *,
    by_descriptor: bool,
) -> list[str]:
    """Return the command line that runs `arguments` in `folder` with this view, and with its `own` options.

    The process needs the descriptors of the pinned files, `held` by their paths, and that of the `call_filter`, which
    bubblewrap closes. `by_descriptor`: mount these open files instead of what is at their paths. Without `joining`, the
    process gets a network of its own.
    """
    options = [word for mount in view.mounts for word in _words(mount, held, by_descriptor)]
    sealed = [word for path in view.sealed for word in ("--remount-ro", str(path))]
    prefix, network = ((), _OWN_NETWORK) if joining is None else (joining.prefix, joining.options)
    filtered = [] if call_filter is None else ["--seccomp", str(call_filter)]
    limits = [*_LIMITS, *network, *filtered]
    return [*prefix, program, *options, *sealed, *limits, *own, "--chdir", str(folder), "--", *arguments]


def _words(mount: Mount, held: Mapping[Path, int], by_descriptor: bool) -> tuple[str, ...]:
    if mount.pinned is None:
        return mount.words
    descriptor = held.get(mount.path)
    if descriptor is None:
        return ()
    return (f"{mount.option}-fd", str(descriptor), str(mount.path)) if by_descriptor else mount.words


@cache
def _settings_of_the_machine() -> tuple[Path, ...]:
    """Return the paths in /proc that belong to no process and that root, and nobody else, can change.

    bubblewrap 0.8 leaves out what `access` takes for closed, as the folder /proc/sys, whose files are open.
    """
    if os.geteuid() != 0:
        return ()
    with os.scandir("/proc") as entries:
        names = {entry.name for entry in entries if not (entry.name.isdecimal() or entry.is_symlink())}
    return tuple(path for name in names - _READ_ONLY_IN_PROC if _is_open_to_root(path := Path("/proc", name)))


def _is_open_to_root(path: Path) -> bool:
    """Return True for a file that its owner may write, and for a folder that has one."""
    if not path.is_dir():
        return bool(os.lstat(path).st_mode & 0o222)
    files = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    return any(os.lstat(file).st_mode & 0o222 for file in files)


def _is_mountable(path: Path, hidden: Iterable[Path], writable: Iterable[Path], denied: Iterable[Path]) -> bool:
    """Return False if the mount would show hidden files: the nearest of these folders is hidden, not writable."""
    around = {path, *path.parents}
    if not around.isdisjoint(denied):
        return False
    hides = [len(folder.parts) for folder in around.intersection(hidden)]
    opens = [len(folder.parts) for folder in around.intersection(writable)]
    return max(hides, default=0) < max(opens, default=1)
