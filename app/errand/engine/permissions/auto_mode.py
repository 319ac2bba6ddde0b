"""The approval mode `auto`: what runs unasked because the sandbox holds it, and an undo brings back what it changes.

The words of a command decide no more than what it is plainly meant to do: the sandbox holds the rest.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from errand.engine.permissions.command_policy import CommandDecision
from errand.engine.permissions.command_rules import SYSTEM_FOLDERS
from errand.engine.permissions.danger import danger_in
from errand.engine.permissions.files.folder_layout import FolderLayout
from errand.engine.permissions.files.paths import judge_operand, judge_path
from errand.engine.permissions.network import needs_network
from errand.engine.permissions.programs.git import git_call
from errand.engine.permissions.programs.moving import (
    DELETES,
    MOVES_FILES,
    READS_FILES,
    overwrites,
    words_that_may_change,
)
from errand.engine.permissions.shell.nested_code import FoundCommand, find_commands
from errand.engine.permissions.shell.scanner import UNKNOWN
from errand.engine.permissions.verdict import Finding, ask
from errand.engine.sandbox.detection import find_sandbox
from errand.engine.tools.base import Access
from errand.protocol.asks import TYPED
from errand.protocol.tasks.groups import NetworkMode

_HELD = Finding("allow", "mode", "it runs in the sandbox, without the network")
_PATTERN = re.compile(r"[*?\[{]")
_NULL = "/dev/null"
_TEMPORARY = "/tmp"
_DECIDED = frozenset(("your deny rule", "hard floor", "closed folder", "unchecked text"))


@dataclass(frozen=True, slots=True)
class Confinement:
    """The bounds of a task's commands and code, beside the policy.

    `is_sandboxed`: they run in a sandbox; `has_own_tmp`: with a `/tmp` of their own. `undo_gap` says why not all that
    they change can be undone; it is empty if it can.
    """

    is_sandboxed: bool = False
    has_own_tmp: bool = False
    network: NetworkMode = "asked"
    undo_gap: str = ""


def confinement_of(network: NetworkMode, undo_gap: str = "") -> Confinement:
    """Return what holds a task with this network that uses the sandbox. Starts a process the first time."""
    sandbox = find_sandbox()
    holds = sandbox.form != "none" and sandbox.has_network_limits
    return Confinement(holds, sandbox.form == "bubblewrap", network, undo_gap)


def judge_code(access: Access, finding: Finding, confinement: Confinement) -> Finding:
    """Return the finding of the mode `auto` on code, or on what is typed into a program, that the policy asks about."""
    is_plain = bool(access.code and access.operation) and not (access.address or access.is_changed)
    if finding.rule in _DECIDED or not is_plain:
        return finding
    needs = access.language == TYPED and needs_network(access.code, fetches=True)
    return _against_bounds(finding, confinement, needs=needs) or _HELD


def judge_command_line(
    line: str, folder: str, decided: CommandDecision, layout: FolderLayout, confinement: Confinement
) -> Finding:
    """Return the finding of the mode `auto` on a command that the policy asks about."""
    finding = decided.finding
    if finding.rule in _DECIDED or not decided.is_complete:
        return finding
    if against := _against_bounds(finding, confinement, needs=needs_network(line, fetches=True)):
        return against
    matches = find_commands(line, layout.home, folder, lambda _: True)
    if not matches.is_complete:
        return finding
    # What deletes by name is judged by these names below.
    if danger := danger_in([command for command in matches.commands if command.program != "rm"]):
        return ask("danger", danger, "high")
    judge, commands = _Words(layout, folder, confinement), matches.commands
    if all(command.program != "cd" for command in commands):
        # With the files that patterns match, and the values of loops.
        commands += tuple(FoundCommand(argv, (), folder) for argv in decided.runs if argv)
    return next((against for command in commands for against in judge.against(command)), _HELD)


def _against_bounds(finding: Finding, confinement: Confinement, *, needs: bool) -> Finding | None:
    """Return what is against it where it runs. `needs`: it is of little use without the network."""
    if not confinement.is_sandboxed:
        return finding
    if confinement.network == "on":
        return ask("network", "it has the network, like all commands of this conversation")
    if needs and confinement.network == "asked":
        return ask("network", "it needs the network")
    return None


class _Words:
    """Judges what a command names. Programs of which nothing is known may name anything."""

    def __init__(self, layout: FolderLayout, folder: str, confinement: Confinement) -> None:
        self._layout = layout
        self._folder = folder
        self._confinement = confinement

    def against(self, command: FoundCommand) -> Iterator[Finding]:
        folder = command.folder or self._folder
        if not self._layout.in_workspace(self._layout.real(folder)):
            yield ask("operand", f"it runs outside the workspace, in {folder}")
        for operator, target in command.redirects:
            yield from self._redirect(operator, target, folder)
        if not command.argv:
            return
        program = command.argv[0]
        if "/" in program and os.path.dirname(program) not in SYSTEM_FOLDERS:
            yield from self._path(program, folder, is_known=True, is_read=True)
        yield from self._operands(command, folder)
        yield from self._changes(command, folder)

    def _redirect(self, operator: str, target: str, folder: str) -> Iterator[Finding]:
        if operator.startswith("<<") or (operator in (">&", "<&") and target.isdecimal()) or target == _NULL:
            return
        is_read = operator == "<"
        yield from self._path(target, folder, is_known=True, is_read=is_read)
        if not is_read:
            yield from self._change(target, folder, deletes=False)
            if operator != ">>" and self._confinement.undo_gap and os.path.exists(os.path.join(folder, target)):
                yield self._gap()

    def _operands(self, command: FoundCommand, folder: str) -> Iterator[Finding]:
        program = command.program
        for word in command.argv[1:]:
            value = word.partition("=")[2] if word.startswith("-") or "=" in word else word
            if word.startswith("-") and not value and word[:2] != "--" and ("/" in word or ".." in word or "~" in word):
                value = word[2:]  # a path attached to a short flag
            if value and UNKNOWN not in value:
                is_known = program in MOVES_FILES
                yield from self._path(value, folder, is_known=is_known, is_read=program in READS_FILES)

    def _changes(self, command: FoundCommand, folder: str) -> Iterator[Finding]:
        program, deletes = command.program, command.program in DELETES
        argv = (program, *command.argv[1:])
        for word in words_that_may_change(argv):
            if UNKNOWN in word:
                if deletes:
                    yield ask("operand", "what it deletes is only known when it runs")
            else:
                yield from self._change(word, folder, deletes=deletes)
        git_command = next(iter(git_call(argv[1:]).argv), "") if program == "git" else ""
        if self._confinement.undo_gap and overwrites(program, git_command):
            yield self._gap()

    def _change(self, word: str, folder: str, *, deletes: bool) -> Iterator[Finding]:
        path = os.path.join(folder, word)
        if self._is_own_tmp(path) or word == _NULL:
            return
        finding = judge_path("delete" if deletes else "write", word, folder, self._layout, True)
        if finding.verdict != "allow":
            yield ask("operand", finding.reason, "high")
        if deletes and _holds_repository(path):
            yield ask("operand", f"{word} holds a git repository, whose history cannot be brought back", "high")

    def _path(self, word: str, folder: str, *, is_known: bool, is_read: bool) -> Iterator[Finding]:
        if word == _NULL or self._is_own_tmp(os.path.join(folder, word)):
            return
        if finding := judge_operand(word, (folder,), self._layout, is_known=is_known, is_read=is_read):
            yield ask("operand", finding.reason, finding.risk)

    def _is_own_tmp(self, path: str) -> bool:
        normal = os.path.normpath(path)
        is_there = normal == _TEMPORARY or normal.startswith(_TEMPORARY + "/")
        return is_there and self._confinement.has_own_tmp and not self._layout.in_workspace(normal)

    def _gap(self) -> Finding:
        return ask("operand", f"changes of commands cannot all be undone here: {self._confinement.undo_gap}")


def _holds_repository(path: str) -> bool:
    """Return True for a repository, a part of one, and a pattern that may match one."""
    names = os.path.normpath(path).split("/")
    is_part = any(name == ".git" or (name.startswith(".") and _PATTERN.search(name)) for name in names)
    return is_part or os.path.exists(os.path.join(path, ".git"))
