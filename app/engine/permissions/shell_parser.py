"""Splits a shell command line into simple commands, in bounded time; finds danger, does not prove safety."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

# Linux limits an argument to this length (MAX_ARG_STRLEN), and bash receives the line as one.
LONGEST = 131_072
_SEPARATORS = ";&|()\n`"
_KEYWORDS = frozenset(("then", "do", "else", "elif", "if", "while", "until", "!", "{", "}", "time"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,200}=")
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish"))
_WRAPPERS = frozenset(
    {"sudo", "doas", "env", "nohup", "nice", "ionice", "setsid", "exec", "command", "builtin", "xargs", "timeout"}
    | {"stdbuf", "time", "busybox", "chroot", "unshare", "su", "watch"}
)
_SUBSTITUTION = re.compile(r"\$\(([^()]{1,4000})\)|`([^`]{1,4000})`")
_COMMAND_OPTION = re.compile(r"-[a-zA-Z]*c")
# Possessive, so that hostile text is scanned once: blanks, separators, or a word of bare, escaped and quoted pieces.
_PIECE = r"""[^ \t\r;&|()\n`'"\\]++|\\.|'[^']*+'|"(?:[^"\\]++|\\.)*+\""""
_TOKEN = re.compile(rf"[ \t\r]++|(?P<separator>[;&|()\n`]++)|(?P<word>(?:{_PIECE})++)", re.DOTALL)
_QUOTED = re.compile(r"""\\(.)|'([^']*+)'|"((?:[^"\\]++|\\.)*+)\"""", re.DOTALL)
_DEEPEST = 4
# In characters read in total: 0.3 s at most. After a wrapper every word may be a command with all other words as its
# operands; a pair of words costs as much as four characters.
_MOST_WORK = 500_000


class TooComplex(Exception):
    """The line is too long or too deeply nested to be parsed in bounded time."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program by its bare name, at an index of a line of unquoted words. `wrapped`: after sudo or the like."""

    program: str
    line: tuple[str, ...]
    at: int = 0
    wrapped: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return self.line[self.at + 1 :]

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(word for word in self.words if word.startswith("-"))

    @property
    def operands(self) -> tuple[str, ...]:
        return tuple(word for word in self.words if not word.startswith("-"))

    def has_flag(self, letters: str, *names: str) -> bool:
        """True for any of the letters in a group of short flags, or any of the long names."""
        short = {letter for flag in self.flags if not flag.startswith("--") for letter in flag[1:]}
        return not short.isdisjoint(letters) or any(flag in names for flag in self.flags)


def simple_commands(line: str) -> tuple[SimpleCommand, ...]:
    """All commands in the line, including substitutions, `sh -c` and `eval`, in order. Raises `TooComplex`."""
    return tuple(_Parser().commands(line))


class _Parser:
    """Parses one line and everything nested in it, within one limit."""

    def __init__(self) -> None:
        self._left = _MOST_WORK

    def commands(self, line: str, depth: int = 0) -> Iterator[SimpleCommand]:
        if len(line) > LONGEST or depth > _DEEPEST:
            raise TooComplex
        self._spend(len(line))
        for words in _split(line):
            commands = self._unwrapped(words)
            yield from commands
            for text in [*_substitutions(words), *(text for command in commands for text in _nested(command))]:
                yield from self.commands(text, depth + 1)

    def _unwrapped(self, words: tuple[str, ...]) -> list[SimpleCommand]:
        """The command, and for a wrapper every command that may follow it."""
        program = _program(words[0])
        commands = [SimpleCommand(program, words)]
        if program in _WRAPPERS:
            self._spend(2 * len(words) * len(words))
            commands += [SimpleCommand(_program(word), words, at, True) for at, word in enumerate(words) if at]
        return commands

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TooComplex


def _split(line: str) -> Iterator[tuple[str, ...]]:
    words: list[str] = []
    for token in _tokens(line.replace("\\\n", "")):
        if token is None:
            if words:
                yield tuple(words)
            words = []
        elif words or not (token in _KEYWORDS or _ASSIGNMENT.match(token)):
            words.append(token)
    if words:
        yield tuple(words)


def _tokens(line: str) -> list[str | None]:
    """Words without their quotes; None for separators."""
    tokens: list[str | None] = []
    at = 0
    while at < len(line):
        found = _TOKEN.match(line, at)
        if found is None:  # an open quote: use the bare words
            bare = re.sub(r"[;&|()\n`]", r" \g<0> ", line.replace('"', "").replace("'", ""))
            return [None if token in _SEPARATORS else token for token in re.split(r"[ \t\r]++", bare) if token]
        at = found.end()
        if found["word"] is not None:
            tokens.append(_QUOTED.sub(_unquoted, found["word"]))
        elif found["separator"] is not None:
            tokens.append(None)
    return tokens


def _unquoted(found: re.Match[str]) -> str:
    escaped, single, double = found.groups()
    if double is not None:
        return re.sub(r'\\(["\\])', r"\1", double)
    return single if single is not None else escaped


def _program(word: str) -> str:
    return PurePosixPath(word.lstrip("\\")).name


def _substitutions(words: tuple[str, ...]) -> list[str]:
    return [inner for word in words for match in _SUBSTITUTION.finditer(word) for inner in match.groups() if inner]


def _nested(command: SimpleCommand) -> list[str]:
    if command.program == "eval":
        return [" ".join(command.words)]
    if command.program not in _SHELLS | {"su"}:
        return []
    words = command.words
    return [text for flag, text in pairwise(words) if _COMMAND_OPTION.fullmatch(flag)]
