"""Runs a file of permission cases through the policy: `python -m tests.conformance.permissions [FILE]`.

Commands, paths and addresses are decided here. Wire requests (`ws`) need a running engine, and are counted as not
run.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.engine.permissions.cases import Case, answer
from app.engine.permissions.verdict import Verdict

FILE = Path(__file__).with_name("permissions.json")
_STRICTNESS: tuple[Verdict, ...] = ("allow", "ask", "deny")


class _Link(msgspec.Struct, frozen=True):
    path: str
    target: str
    type: str = "symlink"


class _CaseLinks(msgspec.Struct, frozen=True):
    fs: tuple[_Link, ...] = ()


class _Expectation(msgspec.Struct, frozen=True):
    id: str
    kind: str
    expected: Verdict
    also_ok: tuple[Verdict, ...] = ()
    tags: tuple[str, ...] = ()
    context: _CaseLinks = _CaseLinks()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one case expects and what the policy says; `decision` is empty if it failed with an error."""

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


def run(file: Path, folder: Path) -> list[Outcome]:
    """The outcomes of all cases of the file that need no engine; `folder` is for their directories."""
    raws = msgspec.json.decode(file.read_bytes(), type=list[msgspec.Raw])
    return list(_outcomes(raws, folder))


def _outcomes(raws: Iterable[msgspec.Raw], folder: Path) -> Iterator[Outcome]:
    for index, raw in enumerate(raws):
        if msgspec.json.decode(raw, type=_Expectation).kind == "ws":
            continue
        text = _in_folders(raw, folder / str(index))
        case = msgspec.json.decode(text, type=_Expectation)
        for link in case.context.fs:
            Path(link.path).parent.mkdir(parents=True, exist_ok=True)
            os.symlink(link.target, link.path)
        try:
            found = answer(msgspec.json.decode(text, type=Case))
        except (ValueError, OSError, RecursionError, AssertionError, LookupError) as error:
            yield Outcome(case, "", repr(error))
            continue
        yield Outcome(case, found.decision, f"{found.rule}: {found.reason}")


def _in_folders(raw: msgspec.Raw, folder: Path) -> str:
    """The case with its placeholders replaced by directories that are made for it."""
    home, workspace = folder / "home" / "dana", folder / "work" / "proj"
    for place in (home, workspace):
        place.mkdir(parents=True)
    text = bytes(raw).decode()
    for name, value in (
        ("{{WSNAME}}", workspace.name),
        ("{{REALWS}}", os.path.realpath(workspace)),
        ("{{WS}}", str(workspace)),
        ("{{HOME}}", str(home)),
    ):
        text = text.replace(name, value)
    return text


def macro_recall(outcomes: Sequence[Outcome]) -> float:
    """The mean over allow, ask and deny of the part of the cases that got an accepted answer."""
    parts: list[float] = []
    for verdict in _STRICTNESS:
        of_it = [outcome.passed for outcome in outcomes if outcome.case.expected == verdict]
        if of_it:
            parts.append(sum(of_it) / len(of_it))
    return sum(parts) / len(parts) if parts else 1.0


def report(outcomes: Sequence[Outcome], not_run: int) -> Iterator[str]:
    failed = [outcome for outcome in outcomes if not outcome.passed]
    for outcome in failed:
        case = outcome.case
        wanted, got = " or ".join(outcome.accepted), outcome.decision or "an error"
        yield f"{case.id} [{', '.join(case.tags)}]: wanted {wanted}, got {got} ({outcome.text})"
    for tag, count in Counter(tag for outcome in failed for tag in outcome.case.tags).most_common():
        yield f"failures tagged {tag}: {count}"
    for kind in dict.fromkeys(outcome.case.kind for outcome in outcomes):
        of_kind = [outcome for outcome in outcomes if outcome.case.kind == kind]
        yield f"macro recall of {kind}: {macro_recall(of_kind):.3f} ({len(of_kind)} cases)"
    if not_run:
        yield f"not run: {not_run} wire cases (ws), which need a running engine"
    yield f"too permissive: {sum(outcome.too_permissive for outcome in outcomes)}"
    yield f"macro recall: {macro_recall(outcomes):.3f}"
    yield f"{len(outcomes) - len(failed)} passed, {len(failed)} failed"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.permissions", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    file: Path = parser.parse_args(arguments).file
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(file, Path(folder))
    not_run = len(msgspec.json.decode(file.read_bytes(), type=list[msgspec.Raw])) - len(outcomes)
    sys.stdout.write("".join(f"{line}\n" for line in report(outcomes, not_run)))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
