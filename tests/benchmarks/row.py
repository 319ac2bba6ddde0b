"""A row of the benchmark table. This module imports nothing of Errand: the process that prints the table uses it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `limit` is the maximum allowed; `floor` is the baseline's value in the same run."""

    name: str
    value: float
    unit: str
    limit: float
    floor: float | None = None
    more_is_better: bool = False

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.more_is_better else self.value <= self.limit

    def line(self, place: str) -> str:
        """`place` says whether it was measured in the benchmark's process or from outside."""
        bound = f"{'≥' if self.more_is_better else '≤'} {self.limit:g}"
        ratio = f"{self.value / self.floor:.1f} × {self.floor:.2f}" if self.floor else ""
        state = "yes" if self.holds else "**FAIL**"
        return f"| {self.name} | {self.value:.2f} {self.unit} | {bound} | {ratio} | {place} | {state} |"
