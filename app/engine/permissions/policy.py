"""The permission policy: allows reads inside the workspace, denies a few calls always, and asks for the others.

It judges the effects that a tool declares (`Access`); asking and storing happen elsewhere. Matching command text is
a convenience, not a security boundary.
"""

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from app.engine.permissions.dangerous_commands import hard_block, high_risk
from app.engine.permissions.shell_parser import TooComplex
from app.engine.tools.base import Access
from app.paths import USER_SKILLS, Paths
from app.protocol.asks import GrantedCall, Risk
from app.protocol.tasks import ApproveMode

Verdict = Literal["allow", "ask", "deny"]
HOME = Path.home()


@dataclass(frozen=True, slots=True)
class Decision:
    """`rule` is the reason in plain words. `grantable` is what a grant would allow, None if no grant is possible."""

    verdict: Verdict
    rule: str
    risk: Risk = "low"
    grantable: GrantedCall | None = None


def decide(
    access: Access,
    workspace: Path,
    approve: ApproveMode,
    granted: frozenset[GrantedCall],
    private: Path,
    home: Path = HOME,
) -> Decision:
    """Decide on a call. `private` is the app's data folder, closed to tools except for a workspace in `workspaces`.

    `granted` are the calls that the valid grants for this tool allow.
    """
    workspace = Path(os.path.realpath(workspace))
    try:
        refusal = _refusal(access, workspace, private, home)
    except TooComplex:
        return unchecked(approve, "the command is too long or too deeply nested to be checked")
    if refusal:
        return Decision("deny", refusal, "high")
    if access.tier == "free":
        return Decision("allow", "touches nothing outside the task")
    if access.tier == "read" and _stays_inside(access, (workspace,), _blocked(private, home)):
        return Decision("allow", "reading inside the workspace")
    if access.tier == "read" and _stays_inside(access, _skills(home), _blocked(private, home)):
        return Decision("allow", "reading a skill of yours")
    risk, rule = _judged(access, workspace)
    call = _grantable(access, risk)
    if call is not None and call in granted:
        return Decision("allow", "you allowed exactly this before", risk, call)
    match approve:
        case "all":
            return Decision("allow", "everything is allowed in this task", risk, call)
        case "never":
            return Decision("deny", f"{rule}, and nobody is there to ask", risk, call)
        case "ask":
            return Decision("ask", rule, risk, call)


def describe(call: GrantedCall) -> str:
    """A grant as text for people. The folder comes first, so that the command extends to the end."""
    if call.command is not None:
        return f"in {call.working_dir}: {call.command}"
    return f"{call.operation} {call.path}"


def unchecked(approve: ApproveMode, why: str) -> Decision:
    """The decision for a call that could not be checked in bounded time: ask a person, else deny."""
    if approve == "ask":
        return Decision("ask", why, "high")
    return Decision("deny", f"{why}. Put it into a script file in small parts, and run that", "high")


def _refusal(access: Access, workspace: Path, private: Path, home: Path) -> str | None:
    reason = hard_block(access.command, home) if access.command is not None else None
    if reason:
        return f"never allowed: {reason}"
    for path in (*access.reads, *access.writes):
        for folder in _blocked(private, home):
            if _is_inside(path, folder) and not _is_in_own_workspace(path, workspace, private):
                return f"never allowed: {folder} is closed to tools"
    return None


def _is_in_own_workspace(path: Path, workspace: Path, private: Path) -> bool:
    """True inside a workspace that the app made. The data folder itself stays closed as a workspace: it holds keys."""
    return _is_inside(path, workspace) and _is_inside(workspace, _real(Paths(private).workspaces))


@cache
def _blocked(private: Path, home: Path) -> tuple[Path, ...]:
    system = (Path("/etc"), Path("/sys"), Path("/proc"), Path("/boot"))
    return tuple(_real(path) for path in (*system, home / ".ssh", home / ".gnupg", home / ".aws", private))


@cache
def _skills(home: Path) -> tuple[Path, ...]:
    return tuple(_real(home / place) for place in USER_SKILLS)


def _stays_inside(access: Access, folders: tuple[Path, ...], blocked: tuple[Path, ...]) -> bool:
    if not access.reads:
        return False
    # A workspace such as the home directory contains closed folders: listing or searching all of it is no plain read.
    holds_blocked = any(_is_inside(folder, path) for folder in blocked for path in access.reads)
    return not holds_blocked and all(any(_is_inside(path, one) for one in folders) for path in access.reads)


def _judged(access: Access, workspace: Path) -> tuple[Risk, str]:
    outside = [path for path in access.writes if not _is_inside(path, workspace)]
    if outside:
        return "high", f"writes outside the workspace: {outside[0]}"
    if access.command is not None:
        danger = high_risk(access.command)
        return ("high", danger) if danger else ("medium", "runs a command")
    if access.writes and access.is_partial:
        return "medium", "changes a file of the workspace, and the change cannot be shown in full"
    if access.writes:
        return "low", "changes a file of the workspace"
    far = [path for path in access.reads if not _is_inside(path, workspace)]
    return "medium", f"reads outside the workspace: {far[0]}" if far else "not known to be harmless"


def _grantable(access: Access, risk: Risk) -> GrantedCall | None:
    """A call that depends on a file's state cannot be granted: the next change is a different one."""
    paths = (*access.writes, *access.reads)
    if risk == "high" or not access.operation or len(paths) != 1:
        return None
    path = str(paths[0])
    if access.command is not None:
        return GrantedCall(operation=access.operation, command=access.command, working_dir=path)
    return None if access.basis else GrantedCall(operation=access.operation, path=path)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_inside(path: Path, folder: Path) -> bool:
    """Compares components, as text: it runs some twenty times per call, and pathlib is ten times slower."""
    inner, outer = os.fspath(path), os.fspath(folder)
    if sys.platform != "linux":
        inner, outer = inner.casefold(), outer.casefold()
    return inner == outer or inner.startswith(outer.rstrip(os.sep) + os.sep)
