"""`make mutants`: runs a sample of mutants and prints the survivors, with a table by part."""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Literal

from tests.mutants.checkout import Checkout, Run, refuse_elsewhere
from tests.mutants.mutations import Mutant, difference, mutants_of
from tests.mutants.parts import PARTS, Part

_Outcome = Literal["killed", "survived", "timed out"]
_OUTCOMES: tuple[_Outcome, ...] = ("killed", "survived", "timed out")

# The time beyond its tests' own that a mutant may take before it counts as hanging.
_TIMES = 3
_MORE_S = 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=random.randrange(1_000_000))
    parser.add_argument("--modules", nargs="*", default=[], help="names of parts, or pieces of paths")
    options = parser.parse_args()
    refuse_elsewhere()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        _say(f"seed {options.seed}")
        checkout = Checkout(Path(folder))
        chance = random.Random(options.seed)
        candidates = {part: _candidates(part, checkout, options.modules) for part in PARTS}
        candidates = {part: mutants for part, mutants in candidates.items() if mutants}
        rows: list[tuple[str, int, Counter[_Outcome]]] = []
        for number, (part, mutants) in enumerate(candidates.items()):
            share = (options.count * (number + 1)) // len(candidates) - (options.count * number) // len(candidates)
            chosen = chance.sample(mutants, min(share, len(mutants)))
            rows.append((part.name, len(mutants), _try_all(part, chosen, checkout)))
    _say(f"\n{'part':<12} {'mutants':>8} {'tried':>8} " + " ".join(f"{name:>9}" for name in _OUTCOMES))
    for name, of, counts in rows:
        _say(f"{name:<12} {of:>8} {counts.total():>8} " + " ".join(f"{counts[outcome]:>9}" for outcome in _OUTCOMES))


def _candidates(part: Part, checkout: Checkout, selected: list[str]) -> list[Mutant]:
    pieces = set(selected) - {part.name for part in PARTS}
    return [
        mutant
        for module in part.modules(checkout.root)
        if not selected or part.name in selected or any(piece in str(module) for piece in pieces)
        for mutant in mutants_of(module, (checkout.root / module).read_text())
    ]


def _try_all(part: Part, mutants: list[Mutant], checkout: Checkout) -> Counter[_Outcome]:
    counts: Counter[_Outcome] = Counter()
    baseline = checkout.test(part.tests)
    if baseline.code != 0:
        _say(f"{part.name}: left out, its tests fail without a mutant: {baseline.failed}")
        return counts
    _say(f"{part.name}: {len(mutants)} mutants, the tests take {baseline.seconds:.0f} s")
    for mutant in mutants:
        file = checkout.root / mutant.module
        source = file.read_text()
        changed = mutant.apply(source)
        file.write_text(changed)
        begun = time.monotonic()
        run = checkout.test(part.tests, baseline.seconds * _TIMES + _MORE_S)
        file.write_text(source)
        outcome = _outcome(run)
        counts[outcome] += 1
        _say(f"  {outcome:<9} {time.monotonic() - begun:4.0f} s  {mutant}  {run.failed[:150] if run.code else ''}")
        if outcome == "survived":
            for line in difference(source, changed):
                _say(f"            {line}")
    return counts


def _outcome(run: Run) -> _Outcome:
    return "timed out" if run.code is None else "killed" if run.code else "survived"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
