"""What the commands of a task may reach."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# The program that makes sandboxes.
SANDBOX_PROCESS = "bwrap"

# Below the home directory: keys and sessions that let a command act as the user elsewhere.
_SECRETS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker/config.json",
    ".config/gcloud",
    ".config/gh",
    ".git-credentials",
    ".config/git/credentials",
    ".netrc",
    ".pypirc",
    ".npmrc",
    ".Xauthority",
    ".local/share/keyrings",
    ".password-store",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
)
# Sockets of services that start programs outside the sandbox, and boot files.
_SERVICES = (
    "/boot",
    "/run/user",
    "/run/dbus",
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/systemd/private",
    "/run/tmux",
    "/run/screen",
)
# In a workspace: files that make tools, editors or agents run something later.
_PROTECTED = (
    ".git/hooks",
    ".git/config",
    ".git/info/attributes",
    ".hg/hgrc",
    ".vscode",
    ".idea",
    ".envrc",
    ".mcp.json",
    ".errand",
    ".agents",
    ".claude",
    ".cursor",
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
class SandboxProfile:
    """What the commands of one task may reach. Whatever is not named can be read, and not changed.

    `homes` are home directories of the person, `private` is the app's own data. The methods read the file system and
    return real paths: call them in a thread.
    """

    workspace: Path
    homes: tuple[Path, ...]
    private: Path
    output_dir: Path
    cache: Path
    network: bool = True

    @property
    def temporary(self) -> Path:
        """Shown as /tmp inside. It is deleted with the task's output."""
        return self.output_dir / "tmp"

    def prepare(self) -> None:
        """Create the folders that are mounted. Raises OSError."""
        for folder in (self.temporary, self.cache):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def hidden(self) -> tuple[Path, ...]:
        """What looks empty: the app's own data, keys and sessions, sockets of services."""
        candidates = (self.private, *(home / name for home in self.homes for name in _SECRETS), *map(Path, _SERVICES))
        return tuple(_outermost(real for path in candidates if (real := _existing(path)) is not None))

    def writable(self) -> tuple[Path, ...]:
        return tuple(real for path in (self.workspace, self.cache) if (real := _existing(path)) is not None)

    def readable(self) -> tuple[Path, ...]:
        """What can be read although it lies in something hidden."""
        return tuple(real for path in (self.output_dir,) if (real := _existing(path)) is not None)

    def protected(self) -> tuple[Path, ...]:
        """Existing files of the workspace that cannot be changed.

        Not what links lead to: a command could make one, and the mount would show what is hidden.
        """
        root = Path(os.path.realpath(self.workspace))
        return tuple(path for name in _PROTECTED if (path := root / name) == _existing(path))

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables of a sandboxed command."""
        caches = {name: str(self.cache / folder) for name, folder in _CACHES.items()}
        return {**environment, **caches, "TMPDIR": "/tmp"}


def _existing(path: Path) -> Path | None:
    """The real path, or None if there is nothing, or nothing that we may see."""
    try:
        return Path(os.path.realpath(path, strict=True))
    except OSError:
        return None


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Without those inside another one."""
    found: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(outer) for outer in found):
            found.append(path)
    return found
