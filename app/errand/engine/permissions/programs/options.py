"""Reads the words of a command by the specification of its program: an allow-list of flags, and what operands are.

Flags are written as in getopt: `n:` takes a value, `f@` takes a path, `c?` may have a value attached, `#` allows
`-20`, `L%` takes a text that ends in `:PATH`. Long flags are separated by blanks: `max-count=` takes a value,
`file=@` takes a path, `color=?` may have one after `=`, `arg==` takes two, `slurpfile==@` a name and a path.
Abbreviations of long flags are unknown flags.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

# What the words that are no flags are. `pattern` is a text before paths, unless a flag of `pattern_flags` has it.
OperandKind = Literal["paths", "text", "none", "pattern", "revisions"]
_NUMBER = re.compile(r"[-+]?\d+[a-zA-Z]{0,3}")


class UnknownFlag(Exception):
    """A flag that is not on the allow-list of the program, or is not used as its specification says."""


class MoreThanLooking(UnknownFlag):
    """The flags are known, but this form of the program may do more than look."""


@dataclass(slots=True)
class Usage:
    """The words of a command by kind: its flags, its operands, and all paths among both.

    The values of a flag that is given several times are joined by line breaks.
    """

    flags: dict[str, str] = field(default_factory=dict[str, str])
    operands: list[str] = field(default_factory=list[str])
    paths: list[str] = field(default_factory=list[str])
    takes_folders: bool = True

    def add(self, flag: str, value: str) -> None:
        self.flags[flag] = f"{self.flags[flag]}\n{value}" if flag in self.flags else value


Check = Callable[[Usage], str | None]
ReadWords = Callable[[Sequence[str]], Usage]


@dataclass(frozen=True)
class Program:
    """One row of the table: programs with the same flags (`grep|egrep`), or one subcommand such as `pip list`.

    `clusters` says how the program reads short flags: as getopt does, with values as words of their own, or one flag
    in a word. `requires` are flags of which one must be there. `check` returns a problem of the usage; `read` replaces
    the reading of flags for programs that do it in their own way. `needs_trust`: files of the folder decide what it
    runs. `takes_folders` is False for a program that follows links in folders.
    """

    names: str
    short: str = ""
    long: str = ""
    operands: OperandKind = "paths"
    at_most: int | None = None
    clusters: Literal["getopt", "spaced", "single"] = "getopt"
    requires: str = ""
    pattern_flags: str = ""
    check: Check | None = None
    read: ReadWords | None = None
    needs_trust: bool = False
    takes_folders: bool = True

    @property
    def is_version_only(self) -> bool:
        """True for a program that may only say its version."""
        return self.operands == "none" and "version" in self.requires

    @cached_property
    def _short_values(self) -> dict[str, str]:
        return {option[1]: option[2] for option in re.finditer(r"(\w)([:@?%]?)", self.short)}

    @cached_property
    def _long_values(self) -> dict[str, str]:
        return {name: f"{mark}{rest}" for name, mark, rest in (flag.partition("=") for flag in self.long.split())}

    def usage(self, words: Sequence[str]) -> Usage:
        """Return the parts of the words after the program's name. Raises `UnknownFlag`."""
        usage = self.read(words) if self.read else self._read(words)
        usage.takes_folders = self.takes_folders
        if self.requires and usage.flags.keys().isdisjoint(self.requires.split()):
            raise MoreThanLooking(f"it only looks with one of {self.requires}")
        if self.at_most is not None and len(usage.operands) > self.at_most:
            raise MoreThanLooking("it has more operands than the form that only looks")
        if self.check is not None and (problem := self.check(usage)):
            raise MoreThanLooking(problem)
        return usage

    def _read(self, words: Sequence[str]) -> Usage:
        usage, rest = Usage(), list(reversed(words))
        while rest:
            word = rest.pop()
            if word == "--":
                usage.operands += reversed(rest)
                break
            if self._could_be_written(word, usage):
                raise UnknownFlag(f"{word} after an operand could be a file that it writes")
            if word.startswith("--"):
                self._read_long(word, rest, usage)
            elif word.startswith("-") and len(word) > 1:
                self._read_short(word, rest, usage)
            else:
                usage.operands.append(word)
        self._add_paths(usage)
        return usage

    def _could_be_written(self, word: str, usage: Usage) -> bool:
        """xxd, and others on BSD, take a flag after the file that they read for the file that they write."""
        writes = self.at_most is not None and not self.names.startswith("git ")
        return writes and bool(usage.operands) and word.startswith("-")

    def _read_long(self, word: str, rest: list[str], usage: Usage) -> None:
        name, has_value, value = word[2:].partition("=")
        mark = self._long_values.get(name)
        if mark is None or (mark == "" and has_value):
            raise UnknownFlag(f"--{name} is not known to only look")
        if mark.startswith("=="):
            usage.add(name, _value(rest, word))
            value = _value(rest, word)
        elif mark and mark != "=?" and not has_value:
            value = _value(rest, word)
        usage.add(name, value)
        if mark.endswith("@"):
            usage.paths.append(value)

    def _read_short(self, word: str, rest: list[str], usage: Usage) -> None:
        if self.clusters == "single" and len(word) > 2:
            raise UnknownFlag(f"{word} is not plain")
        if "#" in self.short and word[1:].isdecimal():
            return
        for index, letter in enumerate(word[1:], start=1):
            mark = self._short_values.get(letter)
            if mark is None:
                raise UnknownFlag(f"-{letter} is not known to only look")
            if mark:
                attached = word[index + 1 :]
                if attached and self.clusters != "getopt":
                    raise UnknownFlag(f"{word} is not plain")
                value = attached or ("" if mark == "?" else _value(rest, word))
                usage.add(letter, value)
                if mark == "@":
                    usage.paths.append(value)
                if mark == "%":
                    usage.paths.append(value.rpartition(":")[2])
                return
            usage.add(letter, "")

    def _add_paths(self, usage: Usage) -> None:
        operands = usage.operands
        match self.operands:
            case "none" if operands:
                raise MoreThanLooking("with operands it does more than look")
            case "pattern" if usage.flags.keys().isdisjoint(self.pattern_flags.split()):
                usage.paths += _with_revisions(operands[1:]) if self.names.startswith("git ") else operands[1:]
            case "paths" | "pattern":
                usage.paths += operands
            case "revisions":
                usage.paths += _with_revisions(operands)
            case "text" | "none":
                return
        if not usage.paths:
            usage.paths.append(".")


def _with_revisions(operands: Sequence[str]) -> list[str]:
    """Return the words as paths; each may also be a revision with a path, such as `HEAD:file`."""
    return [part for word in operands for part in ((word, word.rpartition(":")[2]) if ":" in word else (word,))]


def _value(rest: list[str], flag: str) -> str:
    """Return the next word; it may not look like a flag, which a program could take it for."""
    if not rest or (rest[-1].startswith("-") and len(rest[-1]) > 1 and not _NUMBER.fullmatch(rest[-1])):
        raise UnknownFlag(f"{flag} has no plain value")
    return rest.pop()
