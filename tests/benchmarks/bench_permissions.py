"""The time that the permission policy takes to judge a command: usual ones, and the worst that are known."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from errand.engine.permissions.cases import CaseContext, decide_command
from tests.benchmarks.row import Row

_USUAL = (
    "ls -la",
    "git log --oneline -5 | head",
    "cat a | sort | uniq -c | sort -rn | head -20",
    "cd src && rg -n 'def x' --type py && git status",
    "find . -name '*.py' -not -path './x/*' | xargs grep foo",
    "rm -rf build && npm test",
    "wc -l src/*.py | tail -1",
    'for f in docs/*.md; do echo "== $f"; head -3 "$f"; done',
    "grep -rn foo .",
)
# As long as the policy reads closely; the first ones are those that the grammar alone takes longest for.
_REPEATED = ("a|", "a=(", "<<", "${", "a;", "(", "`", "$(", "x ", "'a'", "echo a|sh;")
_WORST = (
    *(piece * (8_000 // len(piece)) for piece in _REPEATED),
    "cat " + "a/" * 2_000 + " " + "x " * 250,
    "cd a; " * 40 + "ls",
    "ls|" * 49 + "ls",
    "f(){ f|f& };" * 660,
    "for f in *.txt; do " + 'cat "$f"; ' * 20 + "done",
    "ls " + "* " * 280,
    "ls *; " * 50,
    "for f in *.txt; do cat $f; done; " * 40,
    'echo "' + "$|" * 4_000 + '"',
)
_ROUNDS = 5


async def judged() -> list[Row]:
    """A usual and a hostile command, without the engine."""
    return [
        Row("a usual command judged", _slowest(_USUAL), "ms", 5),
        Row("the worst command of 8 KB judged", _slowest(_WORST), "ms", 50),
    ]


def _slowest(lines: Sequence[str]) -> float:
    """The time of the slowest line, each judged a few times."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "home", "project")
        workspace.mkdir(parents=True)
        for name in ("src", "docs"):
            (workspace / name).mkdir()
            for number in range(20):
                (workspace / name / f"{number}.{'py' if name == 'src' else 'md'}").touch()
        for number in range(250):
            (workspace / f"{number}.txt").touch()
        context = CaseContext(workspace=str(workspace), home=str(workspace.parent), trusted=True)
        decide_command("ls", context)  # loads the grammar
        return max(_taken(line, context) for line in lines)


def _taken(line: str, context: CaseContext) -> float:
    taken: list[float] = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        decide_command(line, context)
        taken.append(1000 * (time.perf_counter() - started))
    return min(taken)
