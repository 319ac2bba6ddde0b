"""The permission policy for tool calls: what only looks runs, what destroys never does, the rest is asked about.

It judges the effects that a tool declares (`Access`); asking and storing happen elsewhere. Judging the text of a
command is a convenience, not a security boundary.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import assert_never

from errand.engine.permissions.auto_mode import Confinement, judge_code, judge_command_line
from errand.engine.permissions.call_policy import grantable_call, is_of_call, judge_call
from errand.engine.permissions.command_policy import CommandContext, CommandDecision, judge_command
from errand.engine.permissions.command_rules import CommandRule, named_folder
from errand.engine.permissions.files.file_policy import denied_folder, exact_call, is_edit, judge_files
from errand.engine.permissions.files.folder_layout import FolderLayout, closed_by_default
from errand.engine.permissions.grants import covers
from errand.engine.permissions.programs.installed import find_program
from errand.engine.permissions.repository_trust import directs_no_program, names_no_program
from errand.engine.permissions.run_time.hidden_commands import unfinished_command
from errand.engine.permissions.shell.nested_code import FoundCommand, find_commands
from errand.engine.permissions.verdict import Finding, RuleName, Verdict, ask, deny
from errand.engine.tools.base import Access
from errand.protocol.asks import TYPED, GrantedCall, Risk
from errand.protocol.tasks.groups import ApproveMode
from errand.system.paths import Paths

_ONLY_READS = "this agent only reads, and does not run what could change anything; describe the change instead"
PLAN_MODE = "plan mode: only reading is allowed; describe the change instead"
# Builtins of bash that the policy allows.
_BUILTINS = frozenset(("cd", "command", "type", ":", "echo", "printf", "pwd", "test", "[", "true", "false"))
# How keys stand in what is typed; these end a line.
_ENTERED = re.compile(r"(?i)<(?:enter|return|ctrl-[cdjmu])>")
_KEY = re.compile(r"<[\w-]+>")
_NOT_SAFE = " in a folder that only you and the system can change"
_UNCONFINED = Confinement()
# Modes in which a person is asked.
_ASKS = frozenset[ApproveMode](("ask", "edits", "auto"))
_BROKEN = (ValueError, OSError, LookupError, RecursionError, MemoryError, AssertionError)


@dataclass(frozen=True, slots=True)
class Decision:
    """`reason` is in plain words, `rule` names what decided. `grantable` is the exact call that a grant may allow.

    `only_looks`, `argv` and `program_folders` are those of `Access`. `modes` would allow what is asked about. `used`
    are the grants without which this would be asked about, and `parsed` is what was found in a command.
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
    used: tuple[GrantedCall, ...] = ()
    parsed: CommandDecision | None = field(default=None, compare=False)

    @property
    def may_look(self) -> bool:
        """True for a command that only looks, also if a person is asked about its program."""
        return self.only_looks or (self.verdict == "ask" and self.parsed is not None and self.parsed.only_looks)


def decide(
    access: Access,
    workspace: Path,
    approve: ApproveMode,
    granted: frozenset[GrantedCall],
    private: Path,
    home: Path | None = None,
    denied: frozenset[GrantedCall] = frozenset(),
    confinement: Confinement = _UNCONFINED,
) -> Decision:
    """Decide on a call. `private` is the app's data folder, closed to tools except for a workspace in `workspaces`.

    `granted` and `denied` are what the valid grants for this tool allow and deny; the mode `auto` also looks at
    `confinement`. A call that cannot be judged is asked about.
    """
    try:
        layout = _layout(str(workspace), private, str(home or os.path.expanduser("~")), denied)
        decision = _decide(access, _Terms(approve, granted, denied, layout, private, confinement))
    except _BROKEN:
        decision = unchecked(approve, "it could not be checked because of an error")
    if access.must_read and access.has_effects and decision.verdict != "deny" and not decision.may_look:
        why = f" ({decision.reason})" if decision.verdict == "ask" else ""  # else it is why it would be allowed
        return Decision("deny", _ONLY_READS + why, decision.risk, rule="reading tool")
    if approve == "plan" and decision.verdict == "allow" and access.has_effects and not decision.only_looks:
        return Decision("deny", PLAN_MODE, decision.risk, rule="mode")  # a grant allows nothing while planning
    return decision


def unchecked(approve: ApproveMode, why: str) -> Decision:
    """Return the decision for a call that could not be checked in bounded time: ask a person, else deny."""
    if approve in _ASKS:
        return Decision("ask", why, "high", rule="unchecked text")
    advice = f"{why}. Put it into a script file in small parts, and run that"
    return Decision("deny", advice, "high", rule="unchecked text")


@dataclass(frozen=True, slots=True)
class _Terms:
    """The decisions that a person made beforehand, and the folders of the task."""

    approve: ApproveMode
    granted: frozenset[GrantedCall]
    denied: frozenset[GrantedCall]
    layout: FolderLayout
    private: Path
    confinement: Confinement


def _decide(access: Access, terms: _Terms) -> Decision:
    if GrantedCall() in terms.denied:
        return Decision("deny", "you denied this tool", "high", rule="your deny rule")
    if access.tier == "free":
        return Decision("allow", "touches nothing outside the task")
    if folder := denied_folder(access, terms.denied):
        return Decision("deny", f"you denied what is in {folder}", "high", rule="your deny rule")
    if access.command is not None:
        return _of_command(access, access.command, terms)
    if access.language == TYPED and (held := _typed_denied(access.code, terms)):
        return held
    if is_of_call(access):
        finding, used = judge_call(access, terms.granted, terms.denied, terms.private)
        if finding.verdict == "allow":
            return Decision("allow", finding.reason, finding.risk, rule=finding.rule, used=used)
        return _in_mode(
            finding,
            terms.approve,
            grantable_call(access),
            partial(judge_code, access, finding, terms.layout, terms.confinement),
        )
    finding = judge_files(access, terms.layout)
    if finding.verdict == "ask" and finding.risk != "high":
        used = tuple(call for call in terms.granted if covers(call, access))
        if used:
            exact = exact_call(access, finding)
            return Decision("allow", "you allowed this before", finding.risk, exact, "grant", used=used)
    if is_edit(access, finding):
        return _of_edit(finding, terms.approve, exact_call(access, finding))
    return _in_mode(finding, terms.approve, exact_call(access, finding))


def _of_command(access: Access, line: str, terms: _Terms) -> Decision:
    layout = terms.layout
    folder = str(access.reads[0]) if access.reads else layout.workspace
    for path in (*access.reads, *access.writes):
        if closed := layout.closed_folder_of(str(path)):
            return _in_mode(deny("closed folder", f"{closed} is closed to tools"), terms.approve, None)
    context = CommandContext(
        layout,
        folder,
        is_trusted=layout.is_own_workspace,
        trusts_git=names_no_program,
        trusts_project=partial(directs_no_program, home=layout.home),
    )
    rules = tuple(_rules(terms, folder))
    decided: CommandDecision = judge_command(line, context, rules)
    if finding := _named_denied(line, folder, decided, terms):
        return _in_mode(finding, terms.approve, None)
    return replace(_of_judged(access, line, folder, decided, terms), parsed=decided)


def _typed_denied(typed: str, terms: _Terms) -> Decision | None:
    """Judge a text that is typed into a background program as a command for a shell, or the beginning of one.

    Each call is looked at alone: what keys make of a line that was typed before is not known.
    """
    rules = tuple(rule for rule in _rules(terms, terms.layout.workspace) if rule.decision == "deny")
    lines = _ENTERED.sub("\n", typed)
    complete, _, unfinished = lines.rpartition("\n")
    context = CommandContext(terms.layout, terms.layout.workspace)
    for text in filter(str.strip, (complete, unfinished) if rules else ()):
        finding = judge_command(_KEY.sub("", text), context, rules).finding
        if finding.rule == "your deny rule":
            return _by_deny_rule(finding, terms.approve)
    if hidden := unfinished_command(_KEY.sub("", unfinished), rules):
        reason = f"{hidden.text}: it could be `{hidden.rule.shown}`, which you denied"
        return _by_deny_rule(ask("your deny rule", reason), terms.approve)
    return None


def _of_judged(access: Access, line: str, folder: str, decided: CommandDecision, terms: _Terms) -> Decision:
    if decided.finding.rule == "your deny rule":
        return _by_deny_rule(decided.finding, terms.approve)
    if not decided.is_complete and decided.finding.verdict != "deny":
        return unchecked(terms.approve, decided.finding.reason)
    exact = GrantedCall(operation=access.operation, command=line, working_dir=folder)
    used = tuple(rule for rule in terms.granted if _is_used(rule, line, folder, decided))
    if decided.only_looks:
        looked = _looking(decided, exact, terms, partial(_in_sandbox, line, folder, decided, terms))
        if looked.verdict != "ask" or not _is_covered(exact, decided, used):
            return looked
    can_be_granted = decided.can_be_granted and decided.finding.verdict != "deny"
    call = exact if can_be_granted and access.operation and len(access.reads) == 1 else None
    if decided.finding.verdict == "allow":
        allowing = next((finding for finding in decided.findings if finding.rule == "grant"), decided.finding)
        return Decision("allow", allowing.reason, decided.finding.risk, call, "grant", used=used)
    return _in_mode(decided.finding, terms.approve, call, partial(_in_sandbox, line, folder, decided, terms))


def _in_sandbox(line: str, folder: str, decided: CommandDecision, terms: _Terms) -> Finding:
    return judge_command_line(line, folder, decided, terms.layout, terms.confinement)


def _by_deny_rule(finding: Finding, approve: ApproveMode) -> Decision:
    """Ask about a call that a rule may deny; deny it where nobody is asked, also where all else is allowed."""
    if finding.verdict == "deny":
        return Decision("deny", finding.reason, finding.risk, rule=finding.rule)
    if approve in _ASKS:
        return Decision("ask", finding.reason, finding.risk, rule=finding.rule)
    return Decision("deny", finding.reason, finding.risk, rule=finding.rule)


def _is_covered(exact: GrantedCall, decided: CommandDecision, used: tuple[GrantedCall, ...]) -> bool:
    """Return True if the line, or each of its commands, was allowed."""
    prefixes = [call.prefix for call in used if call.prefix]
    return exact in used or all(
        any(command.argv[: len(prefix)] == prefix for prefix in prefixes) for command in decided.commands
    )


def _is_used(call: GrantedCall, line: str, folder: str, decided: CommandDecision) -> bool:
    if call.command is not None:
        return (call.command, call.working_dir) == (line, folder)
    length = len(call.prefix)
    return bool(length) and any(command.argv[:length] == call.prefix for command in decided.commands)


def _named_denied(line: str, folder: str, decided: CommandDecision, terms: _Terms) -> Finding | None:
    """Return a folder of a deny rule that a command names at any depth; what only looks may name one closed to
    writing.
    """
    if decided.finding.verdict == "deny":
        return None
    folders = [
        call.folder
        for call in terms.denied
        if call.folder is not None and (call.operation != "write" or not decided.only_looks)
    ]
    if not folders:
        return None
    commands = find_commands(line, terms.layout.home, folder, lambda _: False).commands
    # With the files that patterns match, and the values of loops.
    commands += tuple(FoundCommand(argv, (), "") for argv in decided.runs)
    named = named_folder(commands, folders, folder, terms.layout.home)
    return deny("your deny rule", f"you denied what is in {named}") if named else None


def _looking(decided: CommandDecision, call: GrantedCall, terms: _Terms, in_sandbox: Callable[[], Finding]) -> Decision:
    """Allows the command with programs of the system and of trusted folders; those of other folders are asked about."""
    programs = [command.argv[0] for command in decided.commands if command.argv]
    path = os.environ.get("PATH", "")
    programs_paths = {name: find_program(name, terms.layout, path) for name in programs if name not in _BUILTINS}
    missing = next((name for name, program in programs_paths.items() if program is None), None)
    if missing is not None:
        is_there = shutil.which(missing, path=path) is not None
        reason = f"`{missing}` is not installed{_NOT_SAFE if is_there else ''}"
        return _in_mode(ask("program", reason), terms.approve, call, in_sandbox)
    argv: tuple[str, ...] = ()
    if decided.argv and programs[0] not in _BUILTINS:
        argv = (programs_paths[programs[0]] or programs[0], *decided.argv[1:])
    reason = decided.finding.reason
    folders = tuple(
        dict.fromkeys(os.path.dirname(program) for program in programs_paths.values() if program is not None)
    )
    return Decision("allow", reason, rule=decided.finding.rule, only_looks=True, argv=argv, program_folders=folders)


def _rules(terms: _Terms, folder: str) -> Iterable[CommandRule]:
    roots = terms.layout.roots
    for call in terms.granted:
        if call.command is not None and call.working_dir == folder:
            yield CommandRule("allow", command=call.command)
        elif call.prefix and call.working_dir in (None, roots[-1]):
            yield CommandRule("allow", call.prefix)
    for call in terms.denied:
        if call.command is not None and call.working_dir in (None, folder):
            yield CommandRule("deny", command=call.command)
        elif call.prefix and call.working_dir in (None, *roots):
            yield CommandRule("deny", call.prefix)


def _in_mode(
    finding: Finding,
    approve: ApproveMode,
    call: GrantedCall | None,
    in_sandbox: Callable[[], Finding] | None = None,
) -> Decision:
    """Decide in a mode. `in_sandbox` returns the finding of the mode `auto`, where it may differ."""
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
        case "ask" | "edits" | "auto":
            held = finding if in_sandbox is None else in_sandbox()
            if approve == "auto":
                finding = held
            if finding.verdict == "allow":
                return Decision("allow", finding.reason, risk, call, finding.rule)
            modes: tuple[ApproveMode, ...] = ("auto", "all") if held.verdict == "allow" else ("all",)
            return Decision("ask", finding.reason, finding.risk, call, finding.rule, modes=modes)
        case _:
            assert_never(approve)


def _of_edit(finding: Finding, approve: ApproveMode, call: GrantedCall | None) -> Decision:
    """Decide on a change of an ordinary file in the workspace."""
    if approve in ("edits", "auto"):
        return Decision("allow", "edits of files in the workspace are allowed in this mode", finding.risk, call, "mode")
    decision = _in_mode(finding, approve, call)
    return replace(decision, modes=("edits", "auto", "all")) if decision.verdict == "ask" else decision


def _layout(workspace: str, private: Path, home: str, denied: Iterable[GrantedCall]) -> FolderLayout:
    """Return the folders of a task. A folder that a rule denies for reading is closed, like those closed to all."""
    own = sorted(call.folder for call in denied if call.folder is not None and call.operation != "write")
    closed = (*closed_by_default(home), *own)
    return FolderLayout(workspace, home, closed, (str(private),), str(Paths(private).workspaces))
