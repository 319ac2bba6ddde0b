"""Finds what of a command line could be a denied command that only shows when the line runs.

A word in the place of a program, or of the subcommand of a denied program, which the shell computes; code that it
computes; and what changes the meaning of names. Arguments, scripts and the code of other languages are not looked at.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from errand.engine.permissions.command_rules import CommandRule, denied_by, inner_words
from errand.engine.permissions.run_time.marked_line import (
    MARKS,
    ONE_WORD,
    SEVERAL_WORDS,
    STREAM,
    mark_line,
)
from errand.engine.permissions.run_time.subcommands import is_unknown_program, may_begin
from errand.engine.permissions.run_time.variables import (
    assignment_danger,
    holds_command,
    is_git_command_key,
    may_be_git_key,
)
from errand.engine.permissions.run_time.wrappers import (
    Uncertain,
    index_of_command,
    inner_command,
    is_marked,
    is_several,
    xargs_placeholder,
)
from errand.engine.permissions.shell.nested_code import MAX_LINE_LENGTH, SHELLS, WRAPPERS, FoundCommand
from errand.engine.permissions.shell.scanner import ScannedCommand, program_name, scan

_MAX_DEPTH, _MAX_CHARACTERS = 16, 400_000
_MAX_SHOWN_CHARACTERS = 120
_SHELL_CODE = re.compile(r"-[A-Za-z]*c[A-Za-z]*|--command")
_SHELL_VALUED = frozenset(("-o", "+o", "-O", "+O", "--rcfile", "--init-file"))
_INPUT_FILES = re.compile(r"-|/dev/stdin|/dev/fd/\d+|/proc/(?:self|thread-self|\d+)/fd/\d+")
_DESCRIPTORS = re.compile(r"/dev/fd/[1-9]\d*|/proc/(?:self|thread-self|\d+)/fd/[1-9]\d*")
_ASSIGNING = frozenset(("export", "declare", "local", "readonly", "typeset", "printf", "read", "mapfile", "readarray"))
_COMPUTES = _ASSIGNING | {"let", "test", "[", "unset", "getopts"}
_FIND_ACTIONS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_FD_ACTIONS = frozenset(("-x", "-X", "--exec", "--exec-batch"))


@dataclass(frozen=True, slots=True)
class HiddenCommand:
    """Name the commands that a rule may deny, in plain words."""

    text: str
    rule: CommandRule


def hidden_command(line: str, rules: Sequence[CommandRule], folder: str) -> HiddenCommand | None:
    """Return what of the line could be a command that is denied, None for most. `folder` is where it runs."""
    denying = tuple(rule for rule in rules if rule.decision == "deny" and _prefix(rule))
    if not denying:
        return None
    try:
        _Search(denying, folder).search(line)
    except _Hidden as hidden:
        return HiddenCommand(hidden.text, hidden.rule or denying[0])
    return None


def unfinished_command(typed: str, rules: Sequence[CommandRule]) -> HiddenCommand | None:
    """Return the denied command that text typed without its end could become."""
    line = " ".join(typed.split())
    for rule in rules:
        if line and rule.decision == "deny" and " ".join(_prefix(rule)).startswith(line):
            return HiddenCommand(f"`{line}` is not finished", rule)
    return None


def _prefix(rule: CommandRule) -> tuple[str, ...]:
    return rule.argv or tuple((rule.command or "").split())


class _Hidden(Exception):
    def __init__(self, text: str, rule: CommandRule | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.rule = rule


@dataclass(frozen=True, slots=True)
class _Code:
    """Shell code at some depth; `more` follows the words of its last command."""

    text: str
    depth: int = 0
    more: str = ""
    constants: Mapping[str, str] | None = None


class _Search:
    def __init__(self, rules: tuple[CommandRule, ...], folder: str) -> None:
        self._rules = rules
        self._folder = folder
        self._left = _MAX_CHARACTERS
        self._waiting: list[_Code] = []
        self._depth = 0
        self._special: Mapping[str, Callable[[list[str], ScannedCommand], None]] = {
            "eval": lambda words, _: self._run_text(" ".join(words[1:])),
            "trap": lambda words, _: self._run_text(next((word for word in words[1:] if word[:1] != "-"), "")),
            "alias": lambda words, _: self._define_aliases(words),
            "source": self._read_script,
            ".": self._read_script,
            "hash": lambda words, _: self._refuse_flag(words, "p", "changes which program a name means"),
            "enable": lambda words, _: self._refuse_flag(words, "f", "loads commands from a file"),
            "git": lambda words, _: self._run_git(words),
            "find": lambda words, _: self._run_found(words, _FIND_ACTIONS),
            "fd": lambda words, _: self._run_found(words, _FD_ACTIONS),
            "fdfind": lambda words, _: self._run_found(words, _FD_ACTIONS),
            "xargs": self._run_xargs,
            "parallel": self._run_parallel,
            "ssh": lambda words, _: self._run_text(" ".join(inner_command(words))),
            "watch": lambda words, _: self._run_text(" ".join(inner_command(words))),
            "hyperfine": lambda words, _: self._run_operands(words),
            "complete": lambda words, _: self._run_after_flag(words, "-C"),
            "compgen": lambda words, _: self._run_after_flag(words, "-C"),
            "at": self._read_script,
            "batch": self._read_script,
        }

    def search(self, line: str) -> None:
        """Raise `_Hidden` for the first part that could be a denied command."""
        if len(line) > MAX_LINE_LENGTH:
            raise _Hidden("the line is too long to be checked")
        self._waiting = [_Code(line)]
        while self._waiting:
            code = self._waiting.pop()
            self._left -= len(code.text)
            if code.depth > _MAX_DEPTH or self._left < 0:
                raise _Hidden("the line is too deeply nested to be checked")
            self._depth = code.depth
            self._search_code(code)

    def _search_code(self, code: _Code) -> None:
        marked = mark_line(code.text, code.constants or {})
        if not marked.is_read:
            raise _Hidden("a part of the line cannot be read, so it is known only when it runs")
        self._waiting += (_Code(text, code.depth + 1, constants=marked.constants) for text in marked.inner_code)
        for assignment in marked.assignments:
            self._assign(assignment.name, _unquoted(assignment.value))
        for command in scan(marked.text + (" " + code.more if code.more else ""), {}):
            for _, target in command.redirects:
                self._check_code_in(target)
            self._judge(command.argv, command)

    def _judge(self, words: list[str], command: ScannedCommand) -> None:
        if not words:
            return
        if is_unknown_program(words[0]):
            raise _Hidden(f"`{_shown(words)}` is known only when it runs")
        name = program_name(words[0])
        self._check_rules([name, *words[1:]])
        inner = list(inner_words(tuple(words)))
        if inner != words:
            self._judge(inner, command)
        if name in _COMPUTES:
            self._compute(name, words)
        if name in SHELLS:
            self._run_shell(words, command)
        elif name in self._special:
            try:
                self._special[name](words, command)
            except Uncertain:
                raise _Hidden(f"which command `{_shown(words)}` runs is known only when it runs") from None
        elif name in WRAPPERS:
            self._run_wrapped(name, words, command)
        elif runner := index_of_command(name, words):
            self._run_after(words[runner:], command)

    def _run_operands(self, words: list[str]) -> None:
        for word in words[1:]:
            if not word.startswith("-"):
                self._run_text(word)

    def _run_after(self, words: list[str], command: ScannedCommand) -> None:
        """Look at the command after flags, of which it is not known whether they take a value."""
        operands = [at for at, word in enumerate(words) if not word.startswith("-")]
        has_value = operands[:1] != [0] or words[0] == "."
        for at in operands[: 1 + has_value]:
            self._judge(words[at:], command)

    def _check_rules(self, words: list[str]) -> None:
        for rule in self._rules:
            if may_begin(words, _prefix(rule)) or denied_by((rule,), "\0", (FoundCommand(tuple(words), (), ""),)):
                raise _Hidden(f"`{_shown(words)}` is known only when it runs", rule)

    def _run_wrapped(self, name: str, words: list[str], command: ScannedCommand) -> None:
        if name == "command" and any(word in ("-v", "-V") for word in words[1:2]):
            return
        for word in words[1:] if name in ("env", "sudo") else ():
            if word.startswith(("-S", "--split-string")):
                self._run_text(" ".join(words[words.index(word) :]).removeprefix("--split-string").removeprefix("-S"))
                return
            variable, is_set, value = word.partition("=")
            if is_set and not is_marked(variable):
                self._assign(variable, value)
        try:
            inner = inner_command(words)
        except Uncertain:
            raise _Hidden(f"which command `{_shown(words)}` runs is known only when it runs") from None
        if name == "flock" and inner[:1] in (["-c"], ["--command"]):
            self._run_text(" ".join(inner[1:]))
        else:
            self._judge(inner, command)

    def _assign(self, name: str, value: str) -> None:
        bare = name.removesuffix("+")
        if is_marked(bare.partition("[")[0]):
            raise _Hidden("which variable is set is known only when it runs")
        self._check_code_in(bare)
        if danger := assignment_danger(bare, value, self._folder):
            raise _Hidden(danger)
        if holds_command(bare):
            self._run_text(value, SEVERAL_WORDS)

    def _compute(self, name: str, words: list[str]) -> None:
        """Look at builtins that set variables, or compute texts as arithmetic."""
        for word in words[1:]:
            self._check_code_in(word)
        if name not in _ASSIGNING:
            return
        operands = words[1:] if name != "printf" else words[2:3] if words[1:2] == ["-v"] else ()
        for word in operands:
            if word.startswith(("-", "+")):
                continue
            variable, is_set, value = word.partition("=")
            if is_marked(variable) and name not in ("mapfile", "readarray"):
                raise _Hidden("which variable is set is known only when it runs")
            if is_set or name in ("printf", "read", "mapfile", "readarray"):
                self._assign(variable, value if is_set else ONE_WORD)
        if name in ("mapfile", "readarray"):
            self._run_after_flag(words, "-C")

    def _run_after_flag(self, words: list[str], flag: str) -> None:
        """Look at the command that the value of a flag is, attached or as the next word."""
        for at, word in enumerate(words):
            value = "".join(words[at + 1 : at + 2]) if word == flag else word.removeprefix(flag)
            if word.startswith(flag):
                self._run_text(value, SEVERAL_WORDS)

    def _check_code_in(self, text: str) -> None:
        if "$(" in text or "`" in text:
            self._waiting.append(_Code(text, self._depth + 1))

    def _define_aliases(self, words: list[str]) -> None:
        for word in words[1:]:
            name, is_defined, value = word.partition("=")
            if is_marked(name):
                raise _Hidden("which alias is set is known only when it runs")
            if is_defined:
                self._run_text(value, SEVERAL_WORDS)

    def _refuse_flag(self, words: list[str], letter: str, effect: str) -> None:
        for word in words[1:]:
            if is_marked(word) or (word.startswith("-") and letter in word):
                raise _Hidden(f"`{_shown(words)}` {effect}")

    def _run_text(self, text: str, more: str = "") -> None:
        """Look at code that a command is given as text."""
        if is_marked(text):
            raise _Hidden("code that it runs is known only when it runs")
        self._waiting.append(_Code(text, self._depth + 1, more))

    def _run_shell(self, words: list[str], command: ScannedCommand) -> None:
        at = 1
        while at < len(words) and words[at].startswith(("-", "+")) and words[at] not in ("-", "--"):
            if _SHELL_CODE.fullmatch(words[at]):
                rest = [word for word in words[at + 1 :] if word != "--"]
                code = next((word for word in rest if not word.startswith("-")), rest[0] if rest else "")
                self._run_text(code)
                return
            if is_marked(words[at]) or STREAM in "".join(words[at + 1 : at + 2]):
                raise _Hidden(f"`{_shown(words)}` runs code that is known only when it runs")
            at += 2 if words[at] in _SHELL_VALUED else 1
        at += words[at : at + 1] == ["--"]
        script = words[at] if at < len(words) else ""
        reads_input = "-s" in words[1:at] or not script
        if is_several(script) or (script[:1] in MARKS and len(words) > at + 1 and "/" not in script):
            raise _Hidden(f"`{_shown(words)}` runs code that is known only when it runs")
        self._read_script(["sh"] if reads_input else ["sh", script], command)

    def _read_script(self, words: list[str], command: ScannedCommand) -> None:
        """Look at a script that comes from a stream; files are not looked at."""
        operands = [word for word in words[1:] if not word.startswith("-") or word == "-"]
        is_unknown = is_several(operands[0]) and "/" not in operands[0] if operands else False
        if operands and (is_unknown or STREAM in operands[0] or _DESCRIPTORS.fullmatch(operands[0])):
            raise _Hidden(f"`{_shown(words)}` runs code that is known only when it runs")
        streams = [(operator, target) for operator, target in command.redirects if operator in ("<", "<&", "<>")]
        if any(STREAM in target or operator == "<&" or _INPUT_FILES.fullmatch(target) for operator, target in streams):
            raise _Hidden("a shell reads code that is known only when it runs")
        is_script = bool(operands) and not _INPUT_FILES.fullmatch(operands[0]) and words[0] not in ("at", "batch")
        has_input = bool(command.text_in) or command.source is not None
        if is_script and not (has_input and is_marked(operands[0])):
            return
        if command.text_in:
            self._run_text(command.text_in)
        elif command.source is not None:
            self._run_text(_output_of(command.source))

    def _run_git(self, words: list[str]) -> None:
        is_rebase = "rebase" in words
        for at, word in enumerate(words):
            if word == "-c" and at + 1 < len(words):
                key, _, value = words[at + 1].partition("=")
                self._configure_git(key, value)
            elif word == "config":
                keys = [at for at in range(at + 1, len(words)) if may_be_git_key(words[at])]
                if keys:
                    self._configure_git(words[keys[0]], " ".join(words[keys[0] + 1 : keys[0] + 2]))
            elif word.startswith("--exec-path="):
                raise _Hidden("git takes its programs from a folder that is known only when it runs")
            elif word in ("foreach", "run") and at and words[at - 1] in ("submodule", "bisect"):
                self._run_text(" ".join(words[at + 1 :]))
            elif is_rebase and word in ("-x", "--exec"):
                self._run_text(" ".join(words[at + 1 : at + 2]))
            elif is_rebase and word.startswith("--exec="):
                self._run_text(word.removeprefix("--exec="))

    def _configure_git(self, key: str, value: str) -> None:
        if is_marked(key):
            raise _Hidden("which setting of git is changed is known only when it runs")
        if key.lower().startswith("alias.") and value:
            if is_marked(value):
                raise _Hidden(f"`{key}` of git is known only when it runs")
            self._run_text(value[1:] if value.startswith("!") else f"git {value}", SEVERAL_WORDS)
        elif value and is_git_command_key(key):
            self._run_text(value.removeprefix("!"), SEVERAL_WORDS)

    def _run_found(self, words: list[str], actions: frozenset[str]) -> None:
        for at, word in enumerate(words):
            if word not in actions:
                continue
            end = next((end for end in range(at, len(words)) if words[end] in (";", "+")), len(words))
            inner = [word.replace("{}", ONE_WORD) for word in words[at + 1 : end]]
            self._judge(inner + ([] if actions is _FIND_ACTIONS else [ONE_WORD]), ScannedCommand())

    def _run_xargs(self, words: list[str], command: ScannedCommand) -> None:
        inner = inner_command(words)
        if not inner:
            return
        before = words[: len(words) - len(inner)]
        text = _output_of(command.source) if command.source is not None and not command.text_in else command.text_in
        placeholder = xargs_placeholder(before)
        if placeholder:
            inner = [word.replace(placeholder, ONE_WORD) for word in inner]
        elif text and not is_marked(text):
            inner += text.replace("\\n", " ").replace("\\0", " ").split()
        else:
            inner.append(SEVERAL_WORDS)
        self._judge(inner, ScannedCommand())

    def _run_parallel(self, words: list[str], command: ScannedCommand) -> None:
        if any(map(is_marked, words)):
            raise Uncertain
        start = next((at for at in range(1, len(words)) if not words[at].startswith("-")), len(words))
        end = next((at for at in range(start, len(words)) if words[at].startswith(":::")), len(words))
        if start == end:
            for text in words[end + 1 :]:
                self._run_text(text)
            if end == len(words) and (command.source is not None or command.text_in):
                raise Uncertain
            return
        inner = [word.replace("{}", ONE_WORD) for word in words[start:end]]
        self._judge([*inner, SEVERAL_WORDS], ScannedCommand())


def _output_of(source: ScannedCommand) -> str:
    """Return what a command writes, if its words say it; else a mark."""
    if source.program in ("echo", "printf") and source.source is None:
        arguments = [word for word in source.argv[1:] if word not in ("-n", "-e", "-en", "-ne")]
        text = " ".join(arguments).replace("\\n", "\n")
        is_computed = "\\" in text or (source.program == "printf" and "%" in text)
        return SEVERAL_WORDS if is_computed else text
    if source.program == "cat" and len(source.argv) == 1 and source.text_in:
        return source.text_in
    return SEVERAL_WORDS


def _unquoted(value: str) -> str:
    """Return the text of an assigned value without its quotes."""
    scanned = scan(f"x {value}", {})
    arguments = scanned[0].argv[1:] if len(scanned) == 1 else []
    return arguments[0] if len(arguments) == 1 else value


def _shown(words: Sequence[str]) -> str:
    text = " ".join(words)
    for mark in MARKS:
        text = text.replace(mark, "…")
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else text[:_MAX_SHOWN_CHARACTERS] + "…"
