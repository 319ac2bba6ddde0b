"""Runs a file of permission cases through the policy: `python -m tests.conformance.permissions [FILE]`.

Commands, paths and addresses are decided by the policy, wire requests (`ws`) by a running engine. Wire cases without a
counterpart in our protocol are counted as not run.
"""

import argparse
import asyncio
import logging
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from websockets.exceptions import WebSocketException

from errand.engine.permissions.cases import Case, answer
from errand.engine.permissions.verdict import Verdict
from tests.conformance.case_links import CaseLink, make_links
from tests.conformance.wire_cases import WireCase, decide, not_run

FILE = Path(__file__).with_name("permissions.json")
# More cases of the same form.
ATTACKS = Path(__file__).with_name("permission_attacks.json")
WIRE_ATTACKS = Path(__file__).with_name("wire_attacks.json")
# What a case that cannot be played may raise; it counts as failed, and the others go on.
_BROKEN = (
    ValueError,
    TypeError,
    AttributeError,
    OSError,
    RuntimeError,
    AssertionError,
    LookupError,
    WebSocketException,
)
_STRICTNESS: tuple[Verdict, ...] = ("allow", "ask", "deny")


class _CaseLinks(msgspec.Struct, frozen=True):
    fs: tuple[CaseLink, ...] = ()


class _Expectation(msgspec.Struct, frozen=True):
    id: str
    kind: str
    expected: Verdict
    also_ok: tuple[Verdict, ...] = ()
    tags: tuple[str, ...] = ()
    context: _CaseLinks = _CaseLinks()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The expectation of a case and the policy's answer; `decision` is empty if the policy failed with an error."""

    case: _Expectation
    decision: str
    text: str

    @property
    def accepted(self) -> tuple[str, ...]:
        return (self.case.expected, *self.case.also_ok)

    @property
    def passed(self) -> bool:
        return self.decision in self.accepted or ("robustness" in self.case.tags and self.decision != "")

    @property
    def too_permissive(self) -> bool:
        if self.decision == "" or "robustness" in self.case.tags:
            return False
        return _STRICTNESS.index(self._decided) < min(map(_STRICTNESS.index, (self.case.expected, *self.case.also_ok)))

    @property
    def _decided(self) -> Verdict:
        return next(verdict for verdict in _STRICTNESS if verdict == self.decision)


def read(file: Path) -> list[msgspec.Raw]:
    return msgspec.json.decode(file.read_bytes(), type=list[msgspec.Raw])


def run(raws: Iterable[msgspec.Raw], folder: Path) -> list[Outcome]:
    """The outcomes of all cases that need no engine; `folder` is for their directories."""
    return list(_outcomes(raws, folder))


def _outcomes(raws: Iterable[msgspec.Raw], folder: Path) -> Iterator[Outcome]:
    for index, raw in enumerate(raws):
        if msgspec.json.decode(raw, type=_Expectation).kind == "ws":
            continue
        case = msgspec.json.decode(raw, type=_Expectation)
        try:
            verdict = answer(msgspec.json.decode(_in_folders(raw, case.context.fs, folder / str(index)), type=Case))
        except _BROKEN as error:
            yield Outcome(case, "", repr(error))
            continue
        yield Outcome(case, verdict.decision, f"{verdict.rule}: {verdict.reason}")


def _in_folders(raw: msgspec.Raw, links: Sequence[CaseLink], folder: Path) -> str:
    """The case with its placeholders replaced by directories, which are made for it with its links."""
    home, workspace = folder / "home" / "dana", folder / "work" / "proj"
    for directory in (home, workspace):
        directory.mkdir(parents=True)
    names = {"{{WSNAME}}": workspace.name, "{{WS}}": str(workspace), "{{HOME}}": str(home)}
    # A link in the place of the workspace may lead to where it really is.
    real = str(workspace.with_name("real")) if any(link.path == "{{WS}}" for link in links) else str(workspace)
    make_links((_named(link, {**names, "{{REALWS}}": real}) for link in links), folder)
    return _replaced(bytes(raw).decode(), {**names, "{{REALWS}}": os.path.realpath(workspace)})


def _named(link: CaseLink, names: Mapping[str, str]) -> CaseLink:
    path, target = _replaced(link.path, names), _replaced(link.target, names)
    return CaseLink(path, target, link.type, link.content)


def _replaced(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(name, value)
    return text


async def run_wire(raws: Iterable[msgspec.Raw], folder: Path) -> tuple[list[Outcome], dict[str, str]]:
    """The outcomes of the wire cases that ran against an engine, and why the others did not, by their ids."""
    outcomes, left_out = list[Outcome](), dict[str, str]()
    for index, raw in enumerate(raws):
        case = msgspec.json.decode(raw, type=_Expectation)
        if case.kind != "ws":
            continue
        try:
            wire = msgspec.json.decode(raw, type=WireCase)
            if reason := not_run(wire):
                left_out[case.id] = reason
                continue
            outcomes.append(Outcome(case, await decide(wire, folder / f"wire-{index}"), ""))
        except _BROKEN as error:
            outcomes.append(Outcome(case, "", repr(error)))
    return outcomes, left_out


def macro_recall(outcomes: Sequence[Outcome]) -> float:
    """The mean over allow, ask and deny of the part of the cases that got an accepted answer."""
    parts: list[float] = []
    for verdict in _STRICTNESS:
        of_it = [outcome.passed for outcome in outcomes if outcome.case.expected == verdict]
        if of_it:
            parts.append(sum(of_it) / len(of_it))
    return sum(parts) / len(parts) if parts else 1.0


def report(outcomes: Sequence[Outcome], left_out: Mapping[str, str]) -> Iterator[str]:
    for outcome in outcomes:
        if outcome.case.kind == "ws":
            yield f"{outcome.case.id}: ran against an engine, {outcome.decision or outcome.text}"
    for case_id, reason in left_out.items():
        yield f"{case_id}: not run, {reason}"
    failed = [outcome for outcome in outcomes if not outcome.passed]
    for outcome in failed:
        case = outcome.case
        expected, got = " or ".join(outcome.accepted), outcome.decision or "an error"
        yield f"{case.id} [{', '.join(case.tags)}]: wanted {expected}, got {got} ({outcome.text})"
    for tag, count in Counter(tag for outcome in failed for tag in outcome.case.tags).most_common():
        yield f"failures tagged {tag}: {count}"
    for kind in dict.fromkeys(outcome.case.kind for outcome in outcomes):
        of_kind = [outcome for outcome in outcomes if outcome.case.kind == kind]
        yield f"macro recall of {kind}: {macro_recall(of_kind):.3f} ({len(of_kind)} cases)"
    for reason, count in Counter(left_out.values()).most_common():
        yield f"not run: {count} wire cases, {reason}"
    yield f"too permissive: {sum(outcome.too_permissive for outcome in outcomes)}"
    yield f"macro recall: {macro_recall(outcomes):.3f}"
    yield f"{len(outcomes) - len(failed)} passed, {len(failed)} failed"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.permissions", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    file: Path = parser.parse_args(arguments).file
    logging.getLogger().addHandler(logging.NullHandler())  # the engine logs what it refuses
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(read(file), Path(folder))
        wire, left_out = asyncio.run(run_wire(read(file), Path(folder)))
    outcomes += wire
    sys.stdout.write("".join(f"{line}\n" for line in report(outcomes, left_out)))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
