"""`errand explain`: the decision on one command, path or address for people, or on many cases as JSON lines."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TextIO

import msgspec

from errand.engine.core.errors import ConfigurationError
from errand.engine.core.settings import Settings
from errand.engine.permissions.auto_mode import Confinement, confinement_of
from errand.engine.permissions.cases import Answer, Case, answer
from errand.engine.permissions.files.paths import unusable_path
from errand.engine.permissions.grants import Grants, describe
from errand.engine.permissions.policy import Decision, decide
from errand.engine.permissions.shell.grammar import PlainCommand
from errand.engine.sandbox.detection import is_sandboxed, status_of
from errand.engine.tools.base import Access
from errand.protocol.asks import Grant
from errand.system.paths import Paths
from errand.system.regular_file import real_path
from errand.text.printable import printable

_WITHOUT_RULES = "grants  not looked at here; `errand grants` lists what you allowed and denied\n"
_MAX_LINE_LENGTH = 10_000_000
_BROKEN = (ValueError, OSError, LookupError, RecursionError, MemoryError, AssertionError)


class _Id(msgspec.Struct, frozen=True):
    id: str = ""


def explanation(decision: Decision) -> str:
    """Why a call was allowed, asked about or denied: the rule that decided, the parsed parts, the other findings."""
    lines = [f"{decision.verdict}: {printable(decision.reason)}", f"rule    {decision.rule}"]
    if decision.parsed is None:
        return "\n".join(lines)
    for number, command in enumerate(decision.parsed.commands, start=1):
        lines.append(f"part {number}  {printable(_shown(command))}")
    for finding in decision.parsed.findings:
        if finding.verdict != "allow" and finding is not decision.parsed.finding:
            lines.append(f"also    {finding.verdict}, {finding.rule}: {printable(finding.reason)}")
    return "\n".join(lines)


def explain_command(line: str, folder: str, private: Path, out: TextIO) -> None:
    """Print the decision on a command line in a workspace, the rule that decided, and its parsed parts."""
    access = Access("run", line, reads=(Path(folder),), command=line, operation="run")
    decision = decide(access, Path(folder), "ask", frozenset(), private)
    out.write(explanation(decision) + "\n" + _WITHOUT_RULES)
    with suppress(ConfigurationError):  # the settings file is broken: the engine says so
        mode = Settings(Paths(private).settings).values.command_sandbox
        if decision.verdict == "ask":
            held = confinement_of("asked") if is_sandboxed(mode) else Confinement()
            auto = decide(access, Path(folder), "auto", frozenset(), private, confinement=held)
            out.write(f"auto    {auto.verdict}: {printable(auto.reason)}\n")
        out.write(f"sandbox {printable(status_of(mode).text)}\n")


def explain_path(path: str, folder: str, private: Path, out: TextIO, *, writes: bool) -> None:
    """Print the decision on reading or writing a file in a workspace, and where its path leads."""
    if unusable := unusable_path(path):
        _print("deny", "path", unusable, out)
        return
    real = Path(real_path(os.path.join(folder, os.path.expanduser(path))))
    if writes:
        access = Access("write", path, writes=(real,), operation="write", named_path=path)
    else:
        access = Access("read", path, reads=(real,), operation="read", named_path=path)
    out.write(explanation(decide(access, Path(folder), "ask", frozenset(), private)) + "\n")
    out.write(f"path    {printable(str(real))}\n{_WITHOUT_RULES}")


def explain_address(url: str, folder: str, private: Path, grants: Iterable[Grant] | None, out: TextIO) -> None:
    """Print the decision on opening an address from a workspace. `grants` None: they could not be read."""
    # Rules about hosts hold for every tool; those of single conversations are left out.
    about = [grant for grant in grants or () if grant.call is not None and grant.call.host is not None]
    rules = Grants(msgspec.structs.replace(grant, tool="") for grant in about)
    decision = decide(
        Access("read", url, address=url, operation="open"),
        Path(folder),
        "ask",
        rules.granted("", "", folder),
        private,
        denied=rules.denied("", "", folder),
    )
    out.write(explanation(decision) + "\n")
    out.writelines(f"grant   {printable(describe(call))}\n" for call in decision.used)
    if grants is None:
        out.write(_WITHOUT_RULES)


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
    while line := source.readline(_MAX_LINE_LENGTH):
        if line.strip():
            yield line


def _shown(command: PlainCommand) -> str:
    quoted_words = " ".join(repr(word) for word in command.argv)
    redirects = "".join(f"  {redirect.operator} {redirect.target!r}" for redirect in command.redirects)
    return f"{command.connector or ' ':3} {quoted_words}{redirects}"


def _print(verdict: str, rule: str, reason: str, out: TextIO) -> None:
    out.write(f"{verdict}: {printable(reason)}\nrule    {rule}\n")
