"""The permission policy for tool calls: what only looks runs, what destroys never does, the rest is asked about.

It judges the effects that a tool declares (`Access`); asking and storing happen elsewhere. Judging the text of a
command is a convenience, not a security boundary.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import assert_never

from app.engine.permissions.command_policy import CommandContext, CommandDecision, judge_command
from app.engine.permissions.command_rules import CommandRule
from app.engine.permissions.paths import Places, closed_by_default, judge_path
from app.engine.permissions.programs.installed import find_program
from app.engine.permissions.repository_trust import names_no_program
from app.engine.permissions.verdict import Finding, RuleName, Verdict, ask, deny, strictest
from app.engine.tools.base import Access
from app.paths import USER_SKILLS, Paths
from app.protocol.asks import GrantedCall, Risk
from app.protocol.tasks import ApproveMode

HOME = Path.home()
PLAN_MODE = "plan mode: only reading is allowed; describe the change instead"
_RISKS: tuple[Risk, ...] = ("low", "medium", "high")
# Builtins of bash that the policy allows.
_BUILTINS = frozenset(("cd", "command", "type", ":", "echo", "printf", "pwd", "test", "[", "true", "false"))
_BROKEN = (ValueError, OSError, LookupError, RecursionError, MemoryError, AssertionError)


@dataclass(frozen=True, slots=True)
class Decision:
    """`reason` is in plain words, `rule` names what decided. `grantable` is what a grant would allow, if one can.

    `only_looks`, `argv` and `program_folders` are those of `Access`. `modes` would allow what is asked about.
    """

    verdict: Verdict
    reason: str
    risk: Risk = "low"
    grantable: GrantedCall | None = None
    rule: RuleName = "tool"
    only_looks: bool = False
    argv: tuple[str, ...] = ()
    program_folders: tuple[str, ...] = ()
    modes: tuple[ApproveMode, ...] = ()


def decide(
    access: Access,
    workspace: Path,
    approve: ApproveMode,
    granted: frozenset[GrantedCall],
    private: Path,
    home: Path = HOME,
) -> Decision:
    """Decide on a call. `private` is the app's data folder, closed to tools except for a workspace in `workspaces`.

    `granted` are the calls that the valid grants for this tool allow. A call that cannot be judged is asked about.
    """
    try:
        decision = _decide(access, approve, granted, _places(str(workspace), str(private), str(home)))
    except _BROKEN:
        return unchecked(approve, "it could not be checked because of an error")
    if approve == "plan" and decision.verdict == "allow" and access.has_effects and not decision.only_looks:
        return Decision("deny", PLAN_MODE, decision.risk, rule="mode")  # a grant allows nothing while planning
    return decision


def describe(call: GrantedCall) -> str:
    """A grant as text for people. The folder comes first, so that the command extends to the end."""
    if call.command is not None:
        return f"in {call.working_dir}: {call.command}"
    return f"{call.operation} {call.path}"


def unchecked(approve: ApproveMode, why: str) -> Decision:
    """The decision for a call that could not be checked in bounded time: ask a person, else deny."""
    if approve in ("ask", "edits"):
        return Decision("ask", why, "high", rule="unchecked text")
    advice = f"{why}. Put it into a script file in small parts, and run that"
    return Decision("deny", advice, "high", rule="unchecked text")


def _decide(access: Access, approve: ApproveMode, granted: frozenset[GrantedCall], places: Places) -> Decision:
    if access.tier == "free":
        return Decision("allow", "touches nothing outside the task")
    if access.command is not None:
        return _of_command(access, access.command, approve, granted, places)
    finding = _of_paths(access, places)
    call = _granted_path(access, finding)
    if call is not None and call in granted and finding.verdict == "ask":
        return Decision("allow", "you allowed exactly this before", finding.risk, call, "grant")
    return _in_mode(finding, approve, call, is_edit=_is_edit(access, finding))


def _of_command(
    access: Access, line: str, approve: ApproveMode, granted: frozenset[GrantedCall], places: Places
) -> Decision:
    folder = str(access.reads[0]) if access.reads else places.workspace
    for path in (*access.reads, *access.writes):
        if closed := places.closed_folder_of(str(path)):
            return _in_mode(deny("closed folder", f"never allowed: {closed} is closed to tools"), approve, None)
    context = CommandContext(places, folder, is_trusted=places.is_own_workspace, trusts_git=names_no_program)
    decided: CommandDecision = judge_command(line, context, tuple(_rules(granted, folder)))
    if not decided.is_complete and decided.finding.verdict != "deny":
        return unchecked(approve, decided.finding.reason)
    if decided.only_looks:
        return _looking(
            decided, approve, GrantedCall(operation=access.operation, command=line, working_dir=folder), places
        )
    call = None
    if decided.can_be_granted and decided.finding.verdict != "deny" and access.operation and len(access.reads) == 1:
        call = GrantedCall(operation=access.operation, command=line, working_dir=folder)
    return _in_mode(decided.finding, approve, call)


def _looking(decided: CommandDecision, approve: ApproveMode, call: GrantedCall, places: Places) -> Decision:
    """Allows the command with programs of the system and of trusted folders; those of other folders are asked about."""
    programs = [command.words[0] for command in decided.commands if command.words]
    path = os.environ.get("PATH", "")
    found = {name: find_program(name, places, path) for name in programs}
    missing = next((name for name, place in found.items() if place is None and name not in _BUILTINS), None)
    if missing is not None:
        reason = f"`{missing}` is not installed in a folder that only you and the system can change"
        return _in_mode(ask("program", reason), approve, call)
    argv: tuple[str, ...] = ()
    if decided.argv and programs[0] not in _BUILTINS:
        argv = (found[programs[0]] or programs[0], *decided.argv[1:])
    reason = decided.finding.reason
    folders = tuple(dict.fromkeys(os.path.dirname(place) for place in found.values() if place is not None))
    return Decision("allow", reason, rule=decided.finding.rule, only_looks=True, argv=argv, program_folders=folders)


def _rules(granted: Iterable[GrantedCall], folder: str) -> Iterable[CommandRule]:
    for call in granted:
        if call.command is not None and call.working_dir == folder:
            yield CommandRule("allow", command=call.command)


def _of_paths(access: Access, places: Places) -> Finding:
    """Judges paths as the tool will use them; a write is asked about each time."""
    if not access.reads and not access.writes:
        return ask("tool", "not known to be harmless")
    findings = [judge_path("write", str(path), places.workspace, places, False) for path in access.writes]
    findings += [_of_read(str(path), places) for path in access.reads]
    decisive = strictest(sorted(findings, key=lambda finding: _RISKS.index(finding.risk), reverse=True))
    assert decisive is not None
    if access.writes and access.is_partial and decisive.verdict == "ask" and decisive.risk == "low":
        return ask("path", "changes a file of the workspace, and the change cannot be shown in full")
    if decisive.verdict == "allow" and access.tier != "read":
        return ask("tool", "not known to be harmless")
    return deny(decisive.rule, f"never allowed: {decisive.reason}") if decisive.verdict == "deny" else decisive


def _is_edit(access: Access, finding: Finding) -> bool:
    """True for a change of ordinary files in the workspace that a person can see in full.

    A change that cannot be shown is left to a person: nobody could review it afterwards either.
    """
    is_ordinary = (finding.verdict, finding.rule, finding.risk) == ("ask", "path", "low")
    return is_ordinary and bool(access.writes) and not access.is_partial


def _of_read(path: str, places: Places) -> Finding:
    if any(places.is_inside(path, skills) for skills in _skills(places.home)) and not places.closed_folder_of(path):
        return Finding("allow", "path", "reading a skill of yours")
    return judge_path("read", path, places.workspace, places, False)


def _granted_path(access: Access, finding: Finding) -> GrantedCall | None:
    """A call that depends on a file's state cannot be granted: the next change is a different one."""
    paths = (*access.writes, *access.reads)
    if finding.risk == "high" or not access.operation or len(paths) != 1 or access.basis:
        return None
    return GrantedCall(operation=access.operation, path=str(paths[0]))


def _in_mode(finding: Finding, approve: ApproveMode, call: GrantedCall | None, *, is_edit: bool = False) -> Decision:
    reason, risk = finding.reason, finding.risk
    if finding.verdict != "ask":
        return Decision(finding.verdict, reason, risk, call if finding.verdict == "allow" else None, finding.rule)
    match approve:
        case "all":
            return Decision("allow", "everything is allowed in this task", risk, call, "mode")
        case "never":
            return Decision("deny", f"{reason}, and nobody is there to ask", risk, call, finding.rule)
        case "plan":
            return Decision("deny", f"{PLAN_MODE} ({reason})", risk, rule="mode")
        case "edits" if is_edit:
            return Decision("allow", "edits of files in the workspace are allowed in this mode", risk, call, "mode")
        case "edits" | "ask":
            modes: tuple[ApproveMode, ...] = ("edits", "all") if is_edit else ("all",)
            return Decision("ask", reason, risk, call, finding.rule, modes=modes)
        case _:
            assert_never(approve)


def _places(workspace: str, private: str, home: str) -> Places:
    return Places(workspace, home, closed_by_default(home), (private,), str(Paths(Path(private)).workspaces))


@cache
def _skills(home: str) -> tuple[str, ...]:
    return tuple(os.path.realpath(os.path.join(home, place)) for place in USER_SKILLS)
