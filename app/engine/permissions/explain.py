"""`errand explain`: the decision on one command, path or address for people, or on many cases as JSON lines."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

import msgspec

from app.engine.permissions.cases import (
    AddressCase,
    AddressInput,
    Answer,
    Case,
    CaseContext,
    PathCase,
    PathInput,
    answer,
)
from app.engine.permissions.command_policy import CommandContext, judge_command
from app.engine.permissions.paths import Places, closed_by_default
from app.engine.permissions.repository_trust import names_no_program
from app.engine.permissions.shell.grammar import PlainCommand
from app.printable import printable

_LONGEST_LINE = 10_000_000
_BROKEN = (ValueError, OSError, LookupError, RecursionError, MemoryError, AssertionError)


class _Id(msgspec.Struct, frozen=True):
    id: str = ""


def explain_command(line: str, folder: str, private: Path, out: TextIO) -> None:
    """Print the decision on a command line, the rule that decided, and its parsed parts."""
    home = str(Path.home())
    places = Places(folder, home, closed_by_default(home), (str(private),), str(private / "workspaces"))
    context = CommandContext(places, folder, trusts_git=names_no_program)
    decided = judge_command(line, context)
    _print(decided.finding.verdict, decided.finding.rule, decided.finding.reason, out)
    for number, command in enumerate(decided.commands, start=1):
        out.write(f"part {number}  {printable(_shown(command))}\n")
    others = [finding for finding in decided.findings if finding.verdict != "allow" and finding is not decided.finding]
    for finding in others:
        out.write(f"also    {finding.verdict}, {finding.rule}: {printable(finding.reason)}\n")


def explain_path(path: str, folder: str, private: Path, out: TextIO, *, writes: bool) -> None:
    home = str(Path.home())
    context = CaseContext(workspace=folder, home=home, app_config_dir=str(private))
    found = answer(PathCase("", PathInput(path, "write" if writes else "read"), context))
    _print(found.decision, found.rule, found.reason, out)
    out.write(f"path    {printable(os.path.realpath(os.path.join(folder, os.path.expanduser(path))))}\n")


def explain_address(url: str, out: TextIO) -> None:
    found = answer(AddressCase("", AddressInput(url)))
    _print(found.decision, found.rule, found.reason, out)


def explain_cases(lines: BinaryIO, out: TextIO) -> None:
    """Answer one case a line; what cannot be read or judged is asked about."""
    for line in _lines(lines):
        out.write(msgspec.json.encode(_answer(line)).decode() + "\n")
        out.flush()


def _answer(line: bytes) -> Answer:
    try:
        return answer(msgspec.json.decode(line, type=Case))
    except _BROKEN as error:
        return Answer(_id_of(line), "ask", f"the case cannot be judged: {error}"[:500], "unchecked text")


def _id_of(line: bytes) -> str:
    try:
        return msgspec.json.decode(line, type=_Id).id
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""


def _lines(source: BinaryIO) -> Iterator[bytes]:
    while line := source.readline(_LONGEST_LINE):
        if line.strip():
            yield line


def _shown(command: PlainCommand) -> str:
    words = " ".join(repr(word) for word in command.words)
    redirects = "".join(f"  {redirect.operator} {redirect.target!r}" for redirect in command.redirects)
    return f"{command.connector or ' ':3} {words}{redirects}"


def _print(verdict: str, rule: str, reason: str, out: TextIO) -> None:
    out.write(f"{verdict}: {printable(reason)}\nrule    {rule}\n")
