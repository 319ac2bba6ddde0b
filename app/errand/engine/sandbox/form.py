"""Finds out which kind of sandbox this machine has, and describes it to people."""

import shutil
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from errand.engine.core.errors import ConfigurationError
from errand.engine.sandbox import bubblewrap, landlock, seccomp
from errand.protocol.engine import Condition, SandboxForm, SandboxMode, SandboxStatus
from errand.system.paths import Paths

_INSTALL = "Install bubblewrap (on Debian and Ubuntu: sudo apt-get install bubblewrap)."
_OTHER_SYSTEMS = {
    "darwin": "Errand has none for macOS yet.",
    "win32": "Windows has nothing like it that works without an administrator.",
}
# In the run directory: people were told that there is no sandbox.
_NOTE = "no-sandbox"
_probing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What the system offers. `problem` says why it is not bubblewrap, empty if it is.

    `binds_descriptors`: bubblewrap can mount an open file, so that nobody can put a link in its place meanwhile.
    `has_network_limits`: it can keep commands from the network. `filters_calls`: the kernel can keep them from some
    system calls.
    """

    form: SandboxForm
    program: str = ""
    problem: str = ""
    advice: str = ""
    binds_descriptors: bool = False
    has_network_limits: bool = True
    filters_calls: bool = True


def find_sandbox() -> Sandbox:
    """The strongest form that works here. Starts a process the first time (20 ms): call it in a thread then."""
    with _probing:
        return _found()


def forget_sandbox() -> None:
    """Probe again at the next call."""
    _found.cache_clear()


def sandbox_of(mode: SandboxMode) -> Sandbox | None:
    """The sandbox to use, None to run commands without one. Raises `ConfigurationError` if there must be one."""
    if mode == "off":
        return None
    found = find_sandbox()
    if found.form != "none":
        return found
    if mode == "required":
        raise ConfigurationError(
            f"Commands may run only in a sandbox, and there is none here: {found.problem} {found.advice} "
            "The setting command_sandbox decides about this."
        )
    return None


def is_sandboxed(mode: SandboxMode) -> bool:
    """True if commands run in a sandbox, or not at all."""
    return mode == "required" or (mode == "auto" and find_sandbox().form != "none")


def status_of(mode: SandboxMode) -> SandboxStatus:
    """What people are told: one sentence about what holds, and advice if it could be better."""
    if mode == "off":
        text = "Commands run without a sandbox: the setting command_sandbox is off."
        return SandboxStatus(form="none", mode=mode, text=f"{text} {_BARE}", advice="Set command_sandbox to auto.")
    found = find_sandbox()
    return SandboxStatus(form=found.form, mode=mode, text=_text(found, mode), advice=found.advice)


def short_text(mode: SandboxMode) -> str:
    """The same in a few words, for an approval."""
    match "none" if mode == "off" else find_sandbox().form:
        case "bubblewrap":
            return "runs in the sandbox (bubblewrap)"
        case "landlock":
            return "runs in the weaker sandbox (Landlock)"
        case "none" if mode == "required":
            return "does not run: there is no sandbox here"
        case "none":
            return "runs without a sandbox: it can do what you can do"


def missing_sandbox(paths: Paths, mode: SandboxMode) -> Condition | None:
    """What to tell people once if commands run without the sandbox that they want if there is any."""
    status, note = status_of(mode), paths.run / _NOTE
    if mode == "off" or status.form != "none":
        note.unlink(missing_ok=True)
        return None
    if note.exists():
        return None
    note.touch(mode=0o600)
    now = datetime.now(UTC)
    return Condition(kind="no_sandbox", text=status.text, advice=status.advice, since=now, holds=False)


_BARE = "They can do what you can do."


def _text(found: Sandbox, mode: SandboxMode) -> str:
    calls = "" if found.filters_calls else " This kernel filters no system calls: its keyring is open to them."
    match found.form:
        case "bubblewrap":
            looks = " What provably only looks may run outside." if mode == "auto" else ""
            return (
                "Commands run in a sandbox (bubblewrap): they can change only the workspace, /tmp and caches of their "
                "own, see neither keys nor other processes, and have the network only through Errand, if they have "
                f"it.{looks}{calls}"
            )
        case "landlock":
            network = "" if found.has_network_limits else " This kernel cannot keep them from the network."
            sockets = "" if found.filters_calls else " Unix sockets of services are open to them too."
            return (
                "Commands run in the weaker sandbox (Landlock): they can change only the workspace, and cannot read "
                f"keys. They see other processes, and UDP is open to them.{network}{calls}{sockets} "
                f"{found.problem}"
            )
        case "none" if mode == "required":
            return f"No command runs: there must be a sandbox, and there is none here. {found.problem}"
        case "none":
            return f"Commands run without a sandbox. {found.problem} {_BARE}"


@cache
def _found() -> Sandbox:
    if sys.platform != "linux":
        return Sandbox("none", problem=_OTHER_SYSTEMS.get(sys.platform, "This system has none that Errand knows."))
    program = shutil.which(bubblewrap.SANDBOX_PROCESS)
    problem = "bubblewrap is not installed." if program is None else bubblewrap.problem_of(program)
    if program is not None and not problem:
        by_descriptor = bubblewrap.binds_descriptors(program)
        return Sandbox("bubblewrap", program, binds_descriptors=by_descriptor, filters_calls=seccomp.is_supported())
    version = landlock.version()
    if version:
        return Sandbox(
            "landlock",
            "",
            problem,
            _INSTALL,
            has_network_limits=version >= landlock.NETWORK_SINCE,
            filters_calls=seccomp.is_supported(),
        )
    return Sandbox("none", "", problem, _INSTALL)
