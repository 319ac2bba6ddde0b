"""The command line that runs a command in bubblewrap: own mounts, own processes, no capabilities.

Linux only. https://github.com/containers/bubblewrap
"""

from pathlib import Path

from app.engine.sandbox.form import Sandbox
from app.engine.sandbox.profile import SandboxProfile
from app.engine.sandbox.protected_files import PinnedPath

# The only way into the network is the engine's proxy.
_LIMITS = ("--unshare-pid", "--unshare-ipc", "--unshare-net", "--cap-drop", "ALL")


def bubblewrapped(
    arguments: list[str], folder: Path, profile: SandboxProfile, pinned: list[PinnedPath], sandbox: Sandbox
) -> list[str]:
    """The command line that runs `arguments` in `folder` within the profile. Call it in a thread.

    The process needs the descriptors of `pinned`, which bubblewrap closes.
    """
    closed, unchanged = profile.closed(), profile.unchanged()
    hidden = tuple(dict.fromkeys((*profile.hidden(), *closed)))
    folders = tuple(path for path in hidden if path.is_dir())
    denied = (*unchanged, *closed)
    temporary = str(profile.temporary)
    mounts = [
        (Path("/"), ["--ro-bind", "/"]),
        (Path("/dev"), ["--dev"]),
        (Path("/proc"), ["--proc"]),
        (Path("/tmp"), ["--bind", temporary]),
        (Path("/var/tmp"), ["--bind", temporary]),
        *((path, ["--tmpfs"] if path in folders else ["--ro-bind", "/dev/null"]) for path in hidden),
        *((path, ["--bind", str(path)]) for path in profile.writable()),
        *((path, ["--ro-bind", str(path)]) for path in profile.readable()),
        *((one.path, _mount(one, sandbox)) for one in pinned if not any(map(one.path.is_relative_to, denied))),
        *((path, ["--ro-bind", str(path)]) for path in unchanged),
    ]
    # A mount covers what was mounted below its path before.
    mounts.sort(key=lambda mount: len(mount[0].parts))
    options = [word for path, how in mounts for word in (*how, str(path))]
    sealed = [word for path in folders for word in ("--remount-ro", str(path))]
    return [sandbox.program, *options, *sealed, *_LIMITS, "--chdir", str(folder), "--", *arguments]


def _mount(one: PinnedPath, sandbox: Sandbox) -> list[str]:
    kind = "--bind" if one.is_writable else "--ro-bind"
    return [f"{kind}-fd", str(one.descriptor)] if sandbox.binds_descriptors else [kind, str(one.path)]
