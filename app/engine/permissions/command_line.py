"""A shell command line taken apart into simple commands, tolerantly: for finding danger, never for proving safety."""

import re
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath

_SEPARATORS = frozenset(";&|()\n`")
_KEYWORDS = frozenset(("then", "do", "else", "elif", "if", "while", "until", "!", "{", "}", "time"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,200}=")
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish"))
_WRAPPERS = frozenset(
    {"sudo", "doas", "env", "nohup", "nice", "ionice", "setsid", "exec", "command", "builtin", "xargs", "timeout"}
    | {"stdbuf", "time", "busybox", "chroot", "unshare", "su", "watch"}
)
_SUBSTITUTION = re.compile(r"\$\(([^()]{1,4000})\)|`([^`]{1,4000})`")
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program by its bare name and its words, unquoted. `wrapped` says that sudo or the like stands before it."""

    program: str
    words: tuple[str, ...]
    wrapped: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(word for word in self.words if word.startswith("-"))

    @property
    def operands(self) -> tuple[str, ...]:
        return tuple(word for word in self.words if not word.startswith("-"))

    def has_flag(self, letters: str, *names: str) -> bool:
        """True for any of the letters in a bundle of short flags, or any of the long names."""
        short = {letter for flag in self.flags if not flag.startswith("--") for letter in flag[1:]}
        return not short.isdisjoint(letters) or any(flag in names for flag in self.flags)


def simple_commands(line: str, depth: int = 0) -> tuple[SimpleCommand, ...]:
    """All commands that the line holds, also inside substitutions, `sh -c` and `eval`, in order."""
    found: list[SimpleCommand] = []
    for words in _split(line):
        commands = _unwrapped(words)
        found.extend(commands)
        if depth < _DEEPEST:
            for text in [*_substitutions(words), *(text for command in commands for text in _nested(command))]:
                found.extend(simple_commands(text, depth + 1))
    return tuple(found)


def _split(line: str) -> list[list[str]]:
    commands: list[list[str]] = [[]]
    for token in _tokens(line.replace("\\\n", "")):
        if token and _SEPARATORS.issuperset(token):
            commands.append([])
        elif commands[-1] or not (token in _KEYWORDS or _ASSIGNMENT.match(token)):
            commands[-1].append(token)
    return [words for words in commands if words]


def _tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()\n`")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an open quote: look at the bare words
        return re.sub(r"[;&|()\n`]", r" \g<0> ", line.replace('"', "").replace("'", "")).split(" ")


def _unwrapped(words: list[str]) -> list[SimpleCommand]:
    """The command, and where it is a wrapper every command that may be meant behind it."""
    program = _program(words[0])
    commands = [SimpleCommand(program, tuple(words[1:]))]
    if program in _WRAPPERS:
        commands += [SimpleCommand(_program(word), tuple(words[at + 1 :]), True) for at, word in enumerate(words) if at]
    return commands


def _program(word: str) -> str:
    return PurePosixPath(word.lstrip("\\")).name


def _substitutions(words: list[str]) -> list[str]:
    return [inner for word in words for match in _SUBSTITUTION.finditer(word) for inner in match.groups() if inner]


def _nested(command: SimpleCommand) -> list[str]:
    if command.program == "eval":
        return [" ".join(command.words)]
    if command.program not in _SHELLS | {"su"}:
        return []
    follows = zip(command.words, command.words[1:], strict=False)
    return [text for flag, text in follows if re.fullmatch(r"-[a-zA-Z]*c", flag)]
