"""The first policy, plain and safe: reads inside the workspace pass, everything else asks, a few things never run.

It judges what a tool says it will touch (`Access`); who is asked and what is stored is up to others. A text rule is a
convenience and no boundary.
"""

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from app.engine.permissions.command_line import TooComplex
from app.engine.permissions.danger import floor, high_risk
from app.engine.tools.base import Access
from app.paths import OWN_SKILLS
from app.protocol.asks import Risk
from app.protocol.tasks import ApproveMode

Verdict = Literal["allow", "ask", "deny"]
HOME = Path.home()


@dataclass(frozen=True, slots=True)
class Decision:
    """`rule` says why, in plain words. `remembered` is the exact text a grant would hold, None where none can be."""

    verdict: Verdict
    rule: str
    risk: Risk = "low"
    remembered: str | None = None


def decide(
    access: Access,
    workspace: Path,
    approve: ApproveMode,
    remembered: frozenset[str],
    private: Path,
    home: Path = HOME,
) -> Decision:
    """What may happen with a call. `private` is the app's own data, which no tool may touch but for a workspace in it.

    `remembered` are the texts of the grants that hold for this tool here.
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
    text = _text_to_remember(access, workspace, risk)
    if text is not None and text in remembered:
        return Decision("allow", "you allowed exactly this before", risk, text)
    match approve:
        case "all":
            return Decision("allow", "everything is allowed in this task", risk, text)
        case "never":
            return Decision("deny", f"{rule}, and nobody is there to ask", risk, text)
        case "ask":
            return Decision("ask", rule, risk, text)


def unchecked(approve: ApproveMode, why: str) -> Decision:
    """A call that could not be checked in bounded time: a person decides, and where none does it does not run."""
    if approve == "ask":
        return Decision("ask", why, "high")
    return Decision("deny", f"{why}. Put it into a script file in small parts, and run that", "high")


def _refusal(access: Access, workspace: Path, private: Path, home: Path) -> str | None:
    reason = floor(access.command, home) if access.command is not None else None
    if reason:
        return f"never allowed: {reason}"
    for path in (*access.reads, *access.writes):
        for folder in _blocked(private, home):
            own = _is_inside(workspace, folder) and folder == _real(private) and _is_inside(path, workspace)
            if _is_inside(path, folder) and not own:
                return f"never allowed: {folder} is closed to tools"
    return None


@cache
def _blocked(private: Path, home: Path) -> tuple[Path, ...]:
    system = (Path("/etc"), Path("/sys"), Path("/proc"), Path("/boot"))
    return tuple(_real(path) for path in (*system, home / ".ssh", home / ".gnupg", home / ".aws", private))


@cache
def _skills(home: Path) -> tuple[Path, ...]:
    return tuple(_real(home / place) for place in OWN_SKILLS)


def _stays_inside(access: Access, folders: tuple[Path, ...], blocked: tuple[Path, ...]) -> bool:
    if not access.reads:
        return False
    # A workspace such as the home directory holds closed folders: a list or search of all of it is no plain read.
    holds_blocked = any(_is_inside(folder, path) for folder in blocked for path in access.reads)
    return not holds_blocked and all(any(_is_inside(path, one) for one in folders) for path in access.reads)


def _judged(access: Access, workspace: Path) -> tuple[Risk, str]:
    outside = [path for path in access.writes if not _is_inside(path, workspace)]
    if outside:
        return "high", f"writes outside the workspace: {outside[0]}"
    if access.command is not None:
        danger = high_risk(access.command)
        return ("high", danger) if danger else ("medium", "runs a command")
    if access.writes:
        return "low", "changes a file of the workspace"
    far = [path for path in access.reads if not _is_inside(path, workspace)]
    return "medium", f"reads outside the workspace: {far[0]}" if far else "not known to be harmless"


def _text_to_remember(access: Access, workspace: Path, risk: Risk) -> str | None:
    if risk == "high":
        return None
    if access.command is not None:
        elsewhere = [path for path in access.reads if path != workspace]
        return f"{access.command} (in {elsewhere[0]})" if elsewhere else access.command
    paths = [f"write {path}" for path in access.writes] or [f"read {path}" for path in access.reads]
    return paths[0] if len(paths) == 1 else None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_inside(path: Path, folder: Path) -> bool:
    """By components. As text: it is asked some twenty times for each call, and pathlib takes ten times as long."""
    inner, outer = os.fspath(path), os.fspath(folder)
    if sys.platform != "linux":
        inner, outer = inner.casefold(), outer.casefold()
    return inner == outer or inner.startswith(outer.rstrip(os.sep) + os.sep)
