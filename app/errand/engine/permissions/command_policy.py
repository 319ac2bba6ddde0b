"""Decides on a shell command: hard floor, deny rules, pre-filter, strict parse, each command, its operands.

The order and the meaning of the steps are those of docs/decisions/0036. A later step can only make a decision
stricter, and a line is allowed only if every command in it is.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from errand.engine.permissions import windows_shells
from errand.engine.permissions.command_rules import (
    SYSTEM_FOLDERS,
    CommandRule,
    allowed_by_prefix,
    allowed_exactly,
    denied_by,
    inner_words,
)
from errand.engine.permissions.danger import danger_in
from errand.engine.permissions.files.folder_layout import FolderLayout
from errand.engine.permissions.files.paths import judge_operand, judge_path
from errand.engine.permissions.hard_floor import floor_reason
from errand.engine.permissions.programs.git import git_call
from errand.engine.permissions.programs.moving import MOVES_FILES, READS_FILES, words_that_may_change
from errand.engine.permissions.programs.options import MoreThanLooking, Program, UnknownFlag, Usage
from errand.engine.permissions.programs.risky_flags import risky_flag
from errand.engine.permissions.programs.table import PROGRAMS
from errand.engine.permissions.recursive_search import against_search
from errand.engine.permissions.run_time.hidden_commands import hidden_command
from errand.engine.permissions.shell.expansion import expanded, start_of
from errand.engine.permissions.shell.grammar import Loop, NotPlain, PlainCommand, check_text, parse
from errand.engine.permissions.shell.nested_code import FoundCommands, find_commands, is_interpreter
from errand.engine.permissions.shell.scanner import program_name
from errand.engine.permissions.verdict import Finding, ask, deny, strictest
from errand.system.regular_file import real_path

_NULL = "/dev/null"
_MAX_FOLDERS = 4
# Words that patterns and loops may make of a line: each is looked up on the disk.
_MAX_EXPANDED_WORDS = 1_000


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The folder and the rights with which a command would run.

    `trusts_git` is True for a folder in which git may read, `trusts_project` for a program and a folder that it may
    read: see repository_trust.py.
    """

    layout: FolderLayout
    folder: str
    shell: str = "bash"
    is_trusted: bool = False
    trusts_git: Callable[[str], bool] = lambda _: False
    trusts_project: Callable[[str, str], bool] = lambda _program, _folder: False


@dataclass(frozen=True, slots=True)
class CommandDecision:
    """The decisive finding, all findings, and the parsed commands; none if the line is not plain.

    `is_complete` is False if the line was too long or too deep to be read fully: then nothing may allow it.
    `can_be_granted` is False for danger, which is asked about each time. `runs` are the words of each command as its
    program gets them: with the files that patterns match, and once for each value of a loop.
    """

    finding: Finding
    commands: tuple[PlainCommand, ...] = ()
    findings: tuple[Finding, ...] = ()
    is_complete: bool = True
    can_be_granted: bool = True
    runs: tuple[tuple[str, ...], ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of a line that is one command without redirects, and so needs no shell."""
        is_one = len(self.commands) == len(self.runs) == 1 and not self.commands[0].redirects
        return self.runs[0] if is_one and self.commands[0].loop is None else ()

    @property
    def only_looks(self) -> bool:
        """True if every command is allowed because it only looks, and none by a grant."""
        return bool(self.findings) and all(
            (finding.verdict, finding.rule) == ("allow", "read-only command") for finding in self.findings
        )


def judge_command(line: str, context: CommandContext, rules: Sequence[CommandRule] = ()) -> CommandDecision:
    """Decide on a command line."""
    if context.shell in windows_shells.NAMES:
        return CommandDecision(windows_shells.judge(line, rules))
    reason, commands_found = floor_reason(line, context.layout.home, context.folder)
    if reason is not None:
        return CommandDecision(deny("hard floor", reason), is_complete=commands_found.is_complete)
    for command in commands_found.commands:
        if command.program.removesuffix(".exe") in windows_shells.NAMES:
            inner = windows_shells.judge(" ".join(command.argv), rules)
            if inner.verdict == "deny":
                return CommandDecision(inner)
    if rule := _denied(rules, line, commands_found, context):
        return CommandDecision(
            deny("your deny rule", f"you denied `{rule.shown}`"), is_complete=commands_found.is_complete
        )
    if not commands_found.is_complete:
        finding = ask("unchecked text", "the command is too long or too deeply nested to be checked", "high")
        return CommandDecision(finding, is_complete=False, can_be_granted=False)
    if hidden := hidden_command(line, rules, context.folder):
        finding = ask("your deny rule", f"{hidden.text}: it could be `{hidden.rule.shown}`, which you denied")
        return CommandDecision(finding, can_be_granted=False)
    danger, is_granted = danger_in(commands_found.commands), False
    granted = Finding("allow", "grant", "you allowed exactly this before")
    try:
        check_text(line)
        is_granted = danger is None and allowed_exactly(rules, line, commands_found.commands)
        commands = parse(line, context.layout.home)
        if context.shell not in ("bash", "sh", "dash"):
            _check_other_shell(line, context.shell)
    except NotPlain as problem:
        if is_granted and not problem.is_text:
            return CommandDecision(granted)
        rule_name = "unchecked text" if problem.is_text else "grammar"
        finding = ask(rule_name, str(problem), "high" if problem.is_text else "medium")
        finding = ask("danger", danger, "high") if danger else finding
        return CommandDecision(finding, can_be_granted=danger is None and not problem.is_text)
    judge = _Judge(context, rules)
    findings = tuple(judge.findings(commands))
    decisive = strictest(findings)
    assert decisive is not None
    if is_granted and decisive.verdict != "deny" and all(finding.risk != "high" for finding in findings):
        return CommandDecision(granted, commands, findings)
    if danger is not None and decisive.verdict != "deny":
        decisive = ask("danger", danger, "high")
    can_be_granted = danger is None and decisive.risk != "high"
    return CommandDecision(decisive, commands, findings, can_be_granted=can_be_granted, runs=tuple(judge.runs))


def _denied(
    rules: Sequence[CommandRule], line: str, found: FoundCommands, context: CommandContext
) -> CommandRule | None:
    names = frozenset(program_name(rule.argv[0]) for rule in rules if rule.decision == "deny" and rule.argv)
    if not names and not any(rule.decision == "deny" for rule in rules):
        return None
    commands = find_commands(line, context.layout.home, context.folder, names.__contains__).commands if names else ()
    return denied_by(rules, line, (*found.commands, *commands))


def _check_other_shell(line: str, shell: str) -> None:
    """zsh reads plain words as bash does, but expands more of them."""
    if shell != "zsh":
        raise NotPlain(f"{shell} is not read by this policy")
    if any(letter in line for letter in "*?[]{}()=^#~!$") or line.startswith("for "):
        raise NotPlain("zsh could expand a word")


class _Judge:
    """Judges the commands of one line in order, and follows `cd`."""

    def __init__(self, context: CommandContext, rules: Sequence[CommandRule]) -> None:
        self._context = context
        self._layout = context.layout
        self._rules = rules
        # The folders after success and after failure of what came before.
        self._after_success = self._after_failure = (context.folder,)
        self.runs: list[tuple[str, ...]] = []
        self._loop_words: list[str] = []
        self._left = _MAX_EXPANDED_WORDS

    def findings(self, commands: Sequence[PlainCommand]) -> Iterator[Finding]:
        if not self._layout.in_workspace(self._layout.real(self._context.folder)):
            yield ask("operand", f"it runs outside the workspace, in {self._context.folder}")
        loop: Loop | None = None
        folders: tuple[str, ...] = ()
        for index, command in enumerate(commands):
            # A loop cannot change the folder: all its commands run where it starts.
            is_same_loop = command.loop is not None and command.loop is loop
            if command.loop is not None and not is_same_loop:
                self._loop_words = [word for other in commands if other.loop is command.loop for word in other.argv]
            folders = folders if is_same_loop else self._folders(command.connector)
            loop = command.loop
            is_piped = "|" in (command.connector, *(after.connector for after in commands[index + 1 : index + 2]))
            command_findings = list(self._judge(command, folders, is_piped=is_piped))
            yield from command_findings
            if not is_same_loop:
                self._step(command, folders)

    def _folders(self, connector: str) -> tuple[str, ...]:
        match connector:
            case "&&":
                return self._after_success
            case "||":
                return self._after_failure
            case _:
                return tuple(dict.fromkeys((*self._after_success, *self._after_failure)))

    def _step(self, command: PlainCommand, folders: tuple[str, ...]) -> None:
        """The folders after this command, which is what `cd` changes."""
        moved = folders
        if command.argv[:1] == ("cd",) and len(command.argv) > 1:
            target = command.argv[-1]
            moved = tuple(dict.fromkeys(real_path(os.path.join(folder, target)) for folder in folders))
        both = {"&&": (moved, (*self._after_failure, *folders)), "||": ((*self._after_success, *moved), folders)}
        success, failure = both.get(command.connector, (moved, folders))
        self._after_success = tuple(dict.fromkeys(success))[:_MAX_FOLDERS]
        self._after_failure = tuple(dict.fromkeys(failure))[:_MAX_FOLDERS]

    def _judge(self, command: PlainCommand, folders: tuple[str, ...], *, is_piped: bool) -> Iterator[Finding]:
        yield from self._redirects(command, folders)
        if len(folders) >= _MAX_FOLDERS:
            yield ask("operand", "the folder it runs in is not certain")
        if not command.argv:
            yield Finding("allow", "read-only command", "the redirects of a loop")
        elif command.argv[0] == "cd":
            if command.loop is not None or command.patterns:
                yield ask("operand", "cd leads to a folder that is not certain")
            yield from self._cd(command.argv, folders, is_piped=is_piped)
        elif command.loop is not None or command.patterns:
            yield from self._expanded(command, folders)
        else:
            yield from self._words(command.argv, folders)

    def _expanded(self, command: PlainCommand, folders: tuple[str, ...]) -> Iterator[Finding]:
        """Judges the command with the files that its patterns match, and with each value of its loop."""
        patterns = [command.argv[at] for at in command.patterns]
        if command.loop is not None:
            patterns += [command.loop.values[at] for at in command.loop.patterns]
        for folder in folders if self._left > 0 else ():
            against = [judge_operand(start_of(pattern), (folder,), self._layout, is_known=True) for pattern in patterns]
            if any(against):
                yield from filter(None, against)
                continue
            try:
                several = expanded(command, folder, self._loop_words)
            except NotPlain as problem:
                yield ask("operand", str(problem))
                continue
            self._left -= sum(map(len, several))
            for argv in several if self._left > 0 else ():
                yield from self._words(argv, (folder,))
        if self._left <= 0:
            yield ask("operand", "the line names too many files to be checked")

    def _words(self, words: tuple[str, ...], folders: tuple[str, ...]) -> Iterator[Finding]:
        self.runs.append(words)
        name = words[0]
        if "/" in name:
            if self._layout.is_of_skill(name):
                yield from self._script(words, folders)
                return
            if os.path.dirname(name) not in SYSTEM_FOLDERS:
                yield ask("program", f"{name} is not in a system folder", "high")
                return
            name = os.path.basename(name)
        yield from self._program((name, *words[1:]), folders)

    def _script(self, words: tuple[str, ...], folders: tuple[str, ...]) -> Iterator[Finding]:
        """Yield a script of a skill, by its full path: nobody can say what it does, but a person can allow it."""
        rule = allowed_by_prefix(self._rules, words)
        yield from self._words_against(words, folders, is_known=False)
        if rule is None:
            yield ask("program", f"{words[0]} is a script of a skill")
            return
        yield from self._changes_against(words, folders)
        yield _granted(rule)

    def _redirects(self, command: PlainCommand, folders: tuple[str, ...]) -> Iterator[Finding]:
        for redirect in command.redirects:
            if redirect.operator in (">&", "<&") and redirect.target.isdecimal():
                continue
            if redirect.target == _NULL and redirect.operator != "<&":
                continue
            is_read = redirect.operator == "<"
            against = judge_operand(redirect.target, folders, self._layout, is_known=True, is_read=is_read)
            if against is not None:
                yield against
            elif redirect.operator != "<":
                yield ask("redirect", f"it writes to {redirect.target}")

    def _cd(self, words: tuple[str, ...], folders: tuple[str, ...], *, is_piped: bool) -> Iterator[Finding]:
        if len(words) != 2 or words[1].startswith("-") or is_piped:
            yield ask("operand", "cd leads to a folder that is not certain")
            return
        against = judge_operand(words[1], folders, self._layout, is_known=True)
        if against is not None and against.reason.endswith("which is closed to tools"):
            yield against
        elif against is not None:
            yield ask("operand", against.reason)
        elif any(real_path(path) != _real_start(path, self._layout) for path in _joined(folders, words[1])):
            yield ask("operand", f"{words[1]} leads through a link")
        else:
            yield Finding("allow", "read-only command", "changes the folder within the workspace")

    def _program(self, words: tuple[str, ...], folders: tuple[str, ...]) -> Iterator[Finding]:
        rule = allowed_by_prefix(self._rules, words)
        usage, problem = self._usage(words, folders)
        if usage is None and rule is None:
            yield problem
            yield from self._words_against(words, folders, is_known=words[0] in MOVES_FILES)
            return
        if words[0] == "git" and (against := self._against_git(words, folders)):
            yield against
        if rule is not None and (flag := _risky_flag(words)):
            yield ask("flag", f"{flag} is not covered by what you allowed", "high")
        if usage is None:
            if problem.rule == "flag":
                yield problem
            assert rule is not None
            yield from self._words_against(words, folders, is_known=words[0] in MOVES_FILES)
            yield from self._changes_against(words, folders)
            yield _granted(rule)
            return
        if words[0] == "git" and (start := git_call(words[1:]).folder):
            folders = tuple(_joined(folders, start))
        yield from against_search(words[0], usage, folders)
        for path in usage.paths:
            if path == _NULL:
                continue
            if not usage.takes_folders and any(map(os.path.isdir, _joined(folders, path))):
                yield ask("operand", f"`{words[0]}` follows the links in a folder")
            if self._layout.is_of_skill(path):
                continue
            if against := judge_operand(path, folders, self._layout, is_known=True, is_read=True):
                yield against
        yield Finding("allow", "read-only command", f"`{words[0]}` only looks, in the workspace")

    def _usage(self, words: tuple[str, ...], folders: tuple[str, ...]) -> tuple[Usage | None, Finding]:
        """Return what the words are by the specification of the program; without one, the reason to ask."""
        rest = words[1:]
        if words[0] == "git":
            rest = git_call(rest).argv
        rows = [(row, rest[1:]) for row in PROGRAMS.get(" ".join((words[0], *rest[:1])), ())]
        rows += [(row, rest) for row in PROGRAMS.get(words[0], ())]
        problem = ask("program", f"`{words[0]}` can change things")
        if words[0] == "git" and rest:
            problem = ask("program", f"`git {rest[0]}` can change things")
        for row, words_of_row in rows:
            try:
                usage = row.usage(words_of_row)
            except UnknownFlag as unknown:
                if not row.is_version_only:
                    problem = ask("program" if isinstance(unknown, MoreThanLooking) else "flag", str(unknown))
                continue
            if trouble := self._untrusted(row, words[0], folders):
                problem = trouble
                continue
            return usage, problem
        return None, problem

    def _untrusted(self, row: Program, program: str, folders: tuple[str, ...]) -> Finding | None:
        """Git's own trust is checked with its folder."""
        if not row.needs_trust or row.names.startswith("git ") or self._context.is_trusted:
            return None
        if all(self._context.trusts_project(program, folder) for folder in folders):
            return None
        return ask("untrusted folder", "the files of this folder could name a program that it runs")

    def _against_git(self, words: tuple[str, ...], folders: tuple[str, ...]) -> Finding | None:
        call = git_call(words[1:])
        if call.unusual:
            return ask("flag", f"git {call.unusual} can change what git runs", "high")
        if call.folder and (against := judge_operand(call.folder, folders, self._layout, is_known=True)):
            return against
        if call.argv[:1] in (("version",), ("--version",)):
            return None
        starts = _joined(folders, call.folder) if call.folder else folders
        if not all(map(self._context.trusts_git, starts)):
            return ask("untrusted folder", "the configuration of this repository could name programs to run")
        return None

    def _words_against(self, words: tuple[str, ...], folders: tuple[str, ...], *, is_known: bool) -> Iterator[Finding]:
        """Looks for paths among words of which nothing is known, the values of flags included."""
        is_read = words[0] in READS_FILES
        for word in words[2:] if self._runs_script(words) else words[1:]:
            value = word.partition("=")[2] if word.startswith("-") or "=" in word else word
            if word.startswith("-") and not value and word[:2] != "--" and ("/" in word or ".." in word or "~" in word):
                value = word[2:]  # a path attached to a short flag
            if value and (against := judge_operand(value, folders, self._layout, is_known=is_known, is_read=is_read)):
                yield against

    def _runs_script(self, words: tuple[str, ...]) -> bool:
        """Return True for an interpreter with a script of a skill."""
        return len(words) > 1 and is_interpreter(words[0]) and self._layout.is_of_skill(words[1])

    def _changes_against(self, words: tuple[str, ...], folders: tuple[str, ...]) -> Iterator[Finding]:
        """A grant does not cover changing files that configure tools or agents: as operands of what moves files, and
        as values of flags.
        """
        for word in words_that_may_change(words):
            for folder in folders:
                finding = judge_path("write", word, folder, self._layout, True)
                if finding.verdict != "allow":
                    yield ask("operand", finding.reason, "high")


def _granted(rule: CommandRule) -> Finding:
    return Finding("allow", "grant", f"you allowed `{' '.join(rule.argv)} …` before")


def _risky_flag(words: tuple[str, ...]) -> str | None:
    """Return a flag that a grant does not cover, of the program or of the one that it runs."""
    called = git_call(words[1:]).argv if words[0] == "git" else ()
    return risky_flag(words, *called[:1]) or risky_flag(inner_words(words))


def _joined(folders: tuple[str, ...], path: str) -> list[str]:
    return [os.path.normpath(os.path.join(folder, path)) for folder in folders]


def _real_start(path: str, layout: FolderLayout) -> str:
    """Return the path with its workspace resolved, and nothing else."""
    root = next((root for root in layout.roots if layout.is_inside(path, root)), path)
    return real_path(root) + path[len(root) :]
