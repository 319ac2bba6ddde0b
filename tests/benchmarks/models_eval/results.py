"""Rows of the evaluation: kept as JSON lines in a file, printed as a table."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec


class EvalRow(msgspec.Struct, frozen=True, kw_only=True):
    """The measured values of one task with one model.

    `false_claim`: the task ended by itself with exit code 0, and is not solved. `has_tick`: a person is told that it is
    done. `worked` are the calls that ran and do not only control the task. `end` says how it ended; `answer` is what
    the person read last.
    """

    task: str
    model: str
    solved: bool
    meant: int
    well_formed: int
    run: int
    false_claim: bool
    turns: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float
    end: str
    answer: str
    worked: int = 0
    has_tick: bool = True

    @property
    def claim(self) -> str:
        """The false claim in a word or two, empty if there is none."""
        if not self.false_claim:
            return ""
        if not self.has_tick:
            return "yes"
        return "**yes, with a tick**" if self.worked else "**yes, with a tick, no tool used**"


HEAD = (
    "| task | solved | calls meant / well formed / run | false claim | turns | tokens in (cached) | out | seconds "
    "| end |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


class ResultsFile:
    """A file with a row in each line. A row that is written again replaces the one of the same task and model."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def rows(self, model: str) -> dict[str, EvalRow]:
        """Return the rows of this model by the name of the task."""
        if not self._path.exists():
            return {}
        rows = (msgspec.json.decode(line, type=EvalRow) for line in self._path.read_text("utf-8").splitlines() if line)
        return {row.task: row for row in rows if row.model == model}

    def add(self, row: EvalRow) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(msgspec.json.encode(row).decode() + "\n")


def row_line(row: EvalRow) -> str:
    """Return the row as a line of the table."""
    calls = f"{row.meant} / {row.well_formed} / {row.run}"
    tokens = f"{row.prompt_tokens} ({row.cached_tokens})"
    values = (row.task, "yes" if row.solved else "no", calls, row.claim, row.turns, tokens, row.completion_tokens)
    return "| " + " | ".join(map(str, (*values, f"{row.seconds:.0f}", row.end))) + " |"


def sum_line(rows: Sequence[EvalRow]) -> str:
    """Return the last line of the table."""
    meant, formed, run = (_sum(values) for values in zip(*((r.meant, r.well_formed, r.run) for r in rows), strict=True))
    share = f" ({run / meant:.0%} run)" if meant else ""
    tokens = f"{_sum(row.prompt_tokens for row in rows)} ({_sum(row.cached_tokens for row in rows)})"
    solved, claims = _sum(row.solved for row in rows), _sum(row.false_claim for row in rows)
    ticked = _sum(row.false_claim and row.has_tick for row in rows)
    idle = _sum(row.false_claim and row.has_tick and not row.worked for row in rows)
    seconds = sum(row.seconds for row in rows)
    return (
        f"| **{solved} of {len(rows)} solved** | {solved} | {meant} / {formed} / {run}{share} "
        f"| {claims}, {ticked} with a tick ({idle} without a tool) "
        f"| {_sum(row.turns for row in rows)} | {tokens} | {_sum(row.completion_tokens for row in rows)} "
        f"| {seconds:.0f} | |"
    )


def _sum(values: Iterable[int]) -> int:
    return sum(values)
