"""The files and folders that the commands of a task may reach."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from errand.engine.core.file_names import SECRETS_AT_HOME, is_secret_name
from errand.protocol.engine import SandboxMode
from errand.system.paths import USER_SKILLS
from errand.system.regular_file import real_path

# Keys of the system, /run (sockets of services, their secrets), and boot files.
_RUN = Path("/run")
_OF_THE_SYSTEM = (
    "/boot",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
    str(_RUN),
)
# Paths below it: the system itself on NixOS and Guix, names of hosts, disks of the person, devices.
_OPEN_IN_RUN = (
    "current-system",
    "booted-system",
    "opengl-driver",
    "opengl-driver-32",
    "systemd/resolve/resolv.conf",
    "systemd/resolve/stub-resolv.conf",
    "NetworkManager/resolv.conf",
    "resolvconf/resolv.conf",
    "media",
    "udev/data",
    "utmp",
    ".containerenv",
)
# Where services bind sockets, also later.
_SOCKETS = ("/var/snap/lxd/common/lxd/unix.socket", "/var/lib/lxd/unix.socket", "/var/lib/incus/unix.socket")
_SOCKETS_AT_HOME = (
    ".docker/run",
    ".docker/desktop",
    ".colima",
    ".rd",
    ".lima",
    ".orbstack/run",
    ".local/share/containers/podman/machine",
)
# Their caches lie in the home directory, which a sandboxed command cannot write.
_CACHES = {
    "XDG_CACHE_HOME": "",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "GOCACHE": "go-build",
    "GOMODCACHE": "go-mod",
    "CCACHE_DIR": "ccache",
    "PYTHONPYCACHEPREFIX": "pycache",
}


@dataclass(frozen=True, slots=True)
class DeniedFolders:
    """Folders that rules of the person deny: `closed` to all use, `unchanged` to changes."""

    closed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SandboxProfile:
    """The bounds of the commands of one task. Paths that are not named can be read, but not changed.

    `homes` are home directories of the person, `private` is the app's own data, `granted` are folders that the person
    opened, `denied` returns what they deny now. `network`: every command has the network, not only those that ask for
    it. The methods read the file system and return real paths: call them in a thread.
    """

    workspace: Path
    homes: tuple[Path, ...]
    private: Path
    output_dir: Path
    cache: Path
    network: bool = False
    granted: tuple[Path, ...] = ()
    mode: SandboxMode = "required"
    denied: Callable[[], DeniedFolders] = DeniedFolders

    @property
    def temporary(self) -> Path:
        """Shown as /tmp inside. It is deleted with the task's output."""
        return self.output_dir / "tmp"

    def prepare(self) -> None:
        """Create the folders that are mounted. Raises OSError."""
        for folder in (self.temporary, self.cache):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def hidden(self) -> tuple[Path, ...]:
        """Return what looks empty: the app's data, keys and sessions, sockets of services, what the person denied."""
        secrets = (path for home in dict.fromkeys(self.homes) for path in _secrets(home))
        candidates = (self.private, *secrets, *_OF_THE_SYSTEM, *_SOCKETS, *self.closed())
        return tuple(_outermost(real for path in candidates if (real := _existing(path)) is not None))

    def writable(self) -> tuple[Path, ...]:
        own = [real for path in (self.workspace, self.cache) if (real := _existing(path)) is not None]
        granted = [real for path in self.granted if (real := _existing(path)) is not None]
        hidden = self.hidden() if granted else ()
        # A link may have been put where the person meant a folder.
        opened = (
            real
            for real in granted
            if not any(_overlap(real, hidden_path) for hidden_path in hidden) or self._is_service(real)
        )
        return (*own, *opened)

    def _is_service(self, path: Path) -> bool:
        """Return True for a socket in /run, which is hidden as a whole: the person opened this one."""
        return path.is_socket() and path.is_relative_to(_RUN)

    def closed(self) -> tuple[Path, ...]:
        """Return the paths that the person denied, which look empty also inside the workspace."""
        return tuple(real for path in self.denied().closed if (real := _existing(Path(path))) is not None)

    def unchanged(self) -> tuple[Path, ...]:
        """Return the paths that can only be read, although they are in a writable folder or contain one."""
        folders = [real for path in self.denied().unchanged if (real := _existing(Path(path))) is not None]
        roots = self.writable() if folders else ()
        inside = [root for root in roots if any(root.is_relative_to(folder) for folder in folders)]
        return tuple(dict.fromkeys((*folders, *inside)))

    def readable(self) -> tuple[Path, ...]:
        """Return the readable paths in hidden folders: the task's output, and the skills of the person."""
        shut = (self.private, *self.closed())
        skills = [real for path in self._skills() if (real := _existing(path)) is not None]
        open_skills = [real for real in skills if not any(real.is_relative_to(folder) for folder in shut)]
        own = (self.output_dir, *(path for path in _existing_in_run() if not os.path.islink(path)))
        return (*(real for path in own if (real := _existing(path)) is not None), *open_skills)

    def links(self) -> dict[Path, str]:
        """Return the targets of the readable links in hidden folders."""
        return {Path(path): os.readlink(path) for path in _existing_in_run() if os.path.islink(path)}

    def _skills(self) -> tuple[Path, ...]:
        return tuple(home / folder for home in dict.fromkeys(self.homes) for folder in USER_SKILLS)

    def environment(self, environment: Mapping[str, str], temporary: str) -> dict[str, str]:
        """Return the variables of a sandboxed command; `temporary` is the task's own folder as the command sees it."""
        cache = str(self.cache)
        caches = {name: f"{cache}/{folder}" if folder else cache for name, folder in _CACHES.items()}
        return {**environment, **caches, "TMPDIR": temporary}


def _secrets(home: Path) -> list[str]:
    """Known places of keys, and whatever else in the home directory has the name of a secret."""
    names = [*SECRETS_AT_HOME, *_SOCKETS_AT_HOME]
    with suppress(OSError):
        names += filter(is_secret_name, os.listdir(home))
    return [os.path.join(home, name) for name in names]


def _existing_in_run() -> list[str]:
    return [path for name in _OPEN_IN_RUN if os.path.lexists(path := f"{_RUN}/{name}")]


def _existing(path: str | Path) -> Path | None:
    """Return the real path, or None if there is nothing that we may see."""
    if not os.path.lexists(path):  # most do not exist: this is one system call, to resolve the path takes many
        return None
    real = real_path(path)
    return Path(real) if os.path.lexists(real) else None


def _overlap(first: Path, second: Path) -> bool:
    return first.is_relative_to(second) or second.is_relative_to(first)


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that are not inside another one."""
    outermost, insides = list[str](), tuple[str, ...]()
    for path in sorted({*map(str, paths)}):
        if not path.startswith(insides):
            outermost.append(path)
            insides = (*insides, f"{path.rstrip('/')}/")
    return list(map(Path, outermost))
