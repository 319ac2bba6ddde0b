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
# A file in the run directory: people know by now that there is no sandbox.
_NOTICE_MARKER = "no-sandbox"
_probing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The sandbox that this system offers. `problem` says why it is not bubblewrap, empty if it is.

    `binds_descriptors`: bubblewrap can mount an open file, so that nobody can replace the file by a link meanwhile.
    `has_network_limits`: it can cut commands off from the network. `filters_calls`: the kernel can refuse some system
    calls.
    """

    form: SandboxForm
    program: str = ""
    problem: str = ""
    advice: str = ""
    binds_descriptors: bool = False
    has_network_limits: bool = True
    filters_calls: bool = True


def find_sandbox() -> Sandbox:
    """Return the strongest form that works here. Starts a process the first time (20 ms): call it in a thread then."""
    with _probing:
        return _probed_sandbox()


def forget_sandbox() -> None:
    """Probe again at the next call."""
    _probed_sandbox.cache_clear()


def sandbox_of(mode: SandboxMode) -> Sandbox | None:
    """Return the sandbox to use, None to run commands without one. Raises `ConfigurationError` if there must be one."""
    if mode == "off":
        return None
    sandbox = find_sandbox()
    if sandbox.form != "none":
        return sandbox
    if mode == "required":
        raise ConfigurationError(
            f"Commands may run only in a sandbox, and there is none here: {sandbox.problem} {sandbox.advice} "
            "The setting command_sandbox decides about this."
        )
    return None


def is_sandboxed(mode: SandboxMode) -> bool:
    """Return True if commands run in a sandbox, or not at all."""
    return mode == "required" or (mode == "auto" and find_sandbox().form != "none")


def status_of(mode: SandboxMode) -> SandboxStatus:
    """Return one sentence for people about the sandbox in use, and advice if there is a better one."""
    if mode == "off":
        text = "Commands run without a sandbox: the setting command_sandbox is off."
        return SandboxStatus(form="none", mode=mode, text=f"{text} {_BARE}", advice="Set command_sandbox to auto.")
    sandbox = find_sandbox()
    return SandboxStatus(form=sandbox.form, mode=mode, text=_text(sandbox, mode), advice=sandbox.advice)


def short_text(mode: SandboxMode) -> str:
    """Return the text of the status in a few words, for an approval."""
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
    """Return a notice, once, if the mode asks for a sandbox and commands run without one."""
    status, marker = status_of(mode), paths.run / _NOTICE_MARKER
    if mode == "off" or status.form != "none":
        marker.unlink(missing_ok=True)
        return None
    if marker.exists():
        return None
    marker.touch(mode=0o600)
    now = datetime.now(UTC)
    return Condition(kind="no_sandbox", text=status.text, advice=status.advice, since=now, holds=False)


_BARE = "They can do what you can do."


def _text(sandbox: Sandbox, mode: SandboxMode) -> str:
    calls = "" if sandbox.filters_calls else " This kernel filters no system calls: its keyring is open to them."
    match sandbox.form:
        case "bubblewrap":
            looks = " Read-only commands may run outside the sandbox." if mode == "auto" else ""
            return (
                "Commands run in a sandbox (bubblewrap): they can change only the workspace, /tmp and caches of their "
                "own, see neither keys nor other processes, and have the network only through Errand, if they have "
                f"it.{looks}{calls}"
            )
        case "landlock":
            network = "" if sandbox.has_network_limits else " This kernel cannot keep them from the network."
            sockets = "" if sandbox.filters_calls else " Unix sockets of services are open to them too."
            return (
                "Commands run in the weaker sandbox (Landlock): they can change only the workspace, and cannot read "
                f"keys. They see other processes, and UDP is open to them.{network}{calls}{sockets} "
                f"{sandbox.problem}"
            )
        case "none" if mode == "required":
            return f"No command runs: there must be a sandbox, and there is none here. {sandbox.problem}"
        case "none":
            return f"Commands run without a sandbox. {sandbox.problem} {_BARE}"


@cache
def _probed_sandbox() -> Sandbox:
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
