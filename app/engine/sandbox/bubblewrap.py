"""Runs a command in bubblewrap: own mounts, own processes, no capabilities.

Linux only. https://github.com/containers/bubblewrap
"""

import shutil
import subprocess
from functools import cache
from pathlib import Path

from app.engine.core.errors import ConfigurationError
from app.engine.sandbox.profile import SANDBOX_PROCESS, SandboxProfile

_PROBE_S = 5.0
_ADVICE = "Install it (on Debian and Ubuntu: sudo apt-get install bubblewrap), or turn the setting command_sandbox off."


@cache
def find_bubblewrap() -> str:
    """The program, if a sandbox can be made here. Raises `ConfigurationError` with what to do. Takes 20 ms once."""
    program = shutil.which(SANDBOX_PROCESS)
    if program is None:
        raise ConfigurationError(f"Commands are to run in a sandbox, but bubblewrap is not installed. {_ADVICE}")
    probe = [program, "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--cap-drop", "ALL", "--", "true"]
    try:
        tried = subprocess.run(probe, capture_output=True, timeout=_PROBE_S, check=False)
        reason = tried.stderr.decode(errors="replace").strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(
            f"Commands are to run in a sandbox, but {program} fails: {error}. {_ADVICE}"
        ) from error
    if tried.returncode:
        raise ConfigurationError(
            f"Commands are to run in a sandbox, but this system does not let {program} make one: {reason}. {_ADVICE}"
        )
    return program


def sandboxed(arguments: list[str], folder: Path, profile: SandboxProfile) -> list[str]:
    """The command line that runs `arguments` in `folder` within the profile. Call it in a thread.

    Raises `ConfigurationError`, or OSError if a folder cannot be made.
    """
    program = find_bubblewrap()
    profile.prepare()
    hidden = profile.hidden()
    folders = tuple(path for path in hidden if path.is_dir())
    temporary = str(profile.temporary)
    mounts = [
        (Path("/"), ["--ro-bind", "/"]),
        (Path("/dev"), ["--dev"]),
        (Path("/proc"), ["--proc"]),
        (Path("/tmp"), ["--bind", temporary]),
        (Path("/var/tmp"), ["--bind", temporary]),
        *((path, ["--tmpfs"] if path in folders else ["--ro-bind", "/dev/null"]) for path in hidden),
        *((path, ["--bind", str(path)]) for path in profile.writable()),
        *((path, ["--ro-bind", str(path)]) for path in (*profile.readable(), *profile.protected())),
    ]
    # A mount covers what was mounted below its path before.
    mounts.sort(key=lambda mount: len(mount[0].parts))
    options = [word for path, how in mounts for word in (*how, str(path))]
    sealed = [word for path in folders for word in ("--remount-ro", str(path))]
    limits = ["--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL", *(() if profile.network else ("--unshare-net",))]
    return [program, *options, *sealed, *limits, "--chdir", str(folder), "--", *arguments]
