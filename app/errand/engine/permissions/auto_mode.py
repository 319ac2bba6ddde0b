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
from errand.engine.permissions.files.repositories import holds_repository
from errand.engine.permissions.network import needs_network
from errand.engine.permissions.programs.git import git_call
from errand.engine.permissions.programs.moving import (
    DELETES,
    ERASES,
    MOVES_FILES,
    READS_FILES,
    deletes_extra,
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

_KEY = re.compile(r"<[\w-]+>")
_HELD = Finding("allow", "mode", "it runs in the sandbox, without the network")
_TEMPORARY = "/tmp"
# No command in the sandbox can change them, and they hold no secrets.
_SYSTEM_FILES = ("/usr/", "/dev/zero", "/dev/urandom", "/dev/random")
_STANDARD_STREAMS = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"))
_DECIDED = frozenset(("your deny rule", "hard floor", "closed folder", "unchecked text"))


@dataclass(frozen=True, slots=True)
class Confinement:
    """The bounds of a task's commands and code, beside the policy.

    `is_sandboxed`: they run in a sandbox; `has_own_tmp`: with a `/tmp` of their own; `has_own_processes`: they reach no
    others. `undo_gap` says why not all that they change can be undone; it is empty if it can.
    """

    is_sandboxed: bool = False
    has_own_tmp: bool = False
    has_own_processes: bool = False
    network: NetworkMode = "asked"
    undo_gap: str = ""


def confinement_of(network: NetworkMode, undo_gap: str = "") -> Confinement:
    """Return what holds a task with this network that uses the sandbox. Starts a process the first time."""
    sandbox = find_sandbox()
    holds = sandbox.form != "none" and sandbox.has_network_limits
    is_apart = sandbox.form == "bubblewrap"
    return Confinement(holds, is_apart, is_apart, network, undo_gap)


def judge_code(access: Access, finding: Finding, layout: FolderLayout, confinement: Confinement) -> Finding:
    """Return the finding of the mode `auto` on code, or on what is typed into a program, that the policy asks about.

    What is typed is judged as commands, since the program may be a shell.
    """
    is_plain = bool(access.code and access.operation) and not (access.address or access.is_changed)
    if finding.rule in _DECIDED or not is_plain:
        return finding
    if access.language != TYPED:
        return _against_bounds(finding, confinement, needs=False) or _HELD
    typed = _KEY.sub("\n", access.code)
    return _judge_words(typed, layout.workspace, (), finding, layout, confinement)


def judge_command_line(
    line: str, folder: str, decided: CommandDecision, layout: FolderLayout, confinement: Confinement
) -> Finding:
    """Return the finding of the mode `auto` on a command that the policy asks about."""
    finding = decided.finding
    if finding.rule in _DECIDED or not decided.is_complete:
        return finding
    return _judge_words(line, folder, decided.runs, finding, layout, confinement)


def _judge_words(
    line: str,
    folder: str,
    runs: tuple[tuple[str, ...], ...],
    finding: Finding,
    layout: FolderLayout,
    confinement: Confinement,
) -> Finding:
    """Judge what the words plainly mean. `runs` are those of `CommandDecision`."""
    needs = needs_network(line, fetches=True, folder=folder)
    if against := _against_bounds(finding, confinement, needs=needs):
        return against
    matches = find_commands(line, layout.home, folder, lambda _: True)
    if not matches.is_complete:
        return finding
    # What deletes by name is judged by these names below.
    dangerous = [command for command in matches.commands if command.program != "rm"]
    if danger := danger_in(dangerous, is_held=confinement.has_own_processes):
        return ask("danger", danger, "high")
    judge, commands = _Words(layout, folder, confinement), matches.commands
    if not confinement.undo_gap:
        commands = _not_run_by_find(commands)
    if all(command.program != "cd" for command in commands):
        # With the files that patterns match, and the values of loops.
        commands += tuple(FoundCommand(argv, (), folder) for argv in runs if argv)
    return next((against for command in commands for against in judge.against(command)), _HELD)


def _not_run_by_find(commands: tuple[FoundCommand, ...]) -> tuple[FoundCommand, ...]:
    """Leave out an `rm` that `find` runs on the files it finds, which was judged with it."""
    found_by = [command.argv for command in commands if command.program == "find"]
    return tuple(
        command
        for command in commands
        if command.program != "rm" or not any(argv[-len(command.argv) :] == command.argv for argv in found_by)
    )


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
        if not self._layout.in_workspace(self._layout.real(folder)) and not self._is_own_tmp(folder):
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
        if (
            operator.startswith("<<")
            or (operator in (">&", "<&") and target.isdecimal())
            or target in _STANDARD_STREAMS
        ):
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
        program = command.program
        argv = (program, *command.argv[1:])
        deletes, operands = program in DELETES or deletes_extra(argv), list(filter(None, words_that_may_change(argv)))
        # Without any it gets them from another program.
        is_unsure = program in ERASES and (not operands or any("{}" in word for word in operands))
        if is_unsure or (deletes and any(UNKNOWN in word for word in operands)):
            yield ask("operand", "what it deletes is only known when it runs")
        paths = [word for word in operands if UNKNOWN not in word]
        lost = paths if program != "rsync" else argv[-1:]
        # What is moved within the workspace is not lost.
        if program == "mv" and not any(self._is_own_tmp(os.path.join(folder, word)) for word in paths):
            lost = ()
        for word in paths:
            if program in MOVES_FILES or not self._is_of_system(word):
                yield from self._change(word, folder, deletes=deletes and (word in lost or program == "mv"))
            if deletes and word in lost and holds_repository(os.path.join(folder, word)):
                yield ask("operand", f"{word} holds a git repository, whose history cannot be brought back", "high")
        git_command = next(iter(git_call(argv[1:]).argv), "") if program == "git" else ""
        may_lose = overwrites(program, git_command) or (program == "find" and "-delete" in argv)
        if self._confinement.undo_gap and may_lose:
            yield self._gap()

    def _change(self, word: str, folder: str, *, deletes: bool) -> Iterator[Finding]:
        path = os.path.join(folder, word)
        if self._is_own_tmp(path) or word in _STANDARD_STREAMS:
            return
        finding = judge_path("delete" if deletes else "write", word, folder, self._layout, True)
        if finding.verdict != "allow":
            yield ask("operand", finding.reason, "high")

    def _path(self, word: str, folder: str, *, is_known: bool, is_read: bool) -> Iterator[Finding]:
        if word in _STANDARD_STREAMS or self._is_own_tmp(os.path.join(folder, word)):
            return
        finding = judge_operand(word, (folder,), self._layout, is_known=is_known, is_read=is_read)
        if finding and (finding.risk == "high" or not self._is_of_system(word) or (is_known and not is_read)):
            yield ask("operand", finding.reason, finding.risk)

    def _is_own_tmp(self, path: str) -> bool:
        normal = os.path.normpath(path)
        is_there = normal == _TEMPORARY or normal.startswith(_TEMPORARY + "/")
        return is_there and self._confinement.has_own_tmp and not self._layout.in_workspace(normal)

    def _is_of_system(self, word: str) -> bool:
        paths = (os.path.normpath(word), self._layout.real(word))
        return all(path.startswith(_SYSTEM_FILES) and not self._layout.in_workspace(path) for path in paths)

    def _gap(self) -> Finding:
        return ask("operand", f"changes of commands cannot all be undone here: {self._confinement.undo_gap}")
