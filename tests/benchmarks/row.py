"""A row of the benchmark table. This module imports nothing of Errand: the process that prints the table uses it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `floor` is the baseline's value in the same run.

    `limit` is the maximum allowed, None where another row judges; with `of_floor` it is in multiples of the floor, so
    that a slow machine is judged like a quick one.
    """

    name: str
    value: float
    unit: str
    limit: float | None
    floor: float | None = None
    more_is_better: bool = False
    of_floor: bool = False

    @property
    def holds(self) -> bool:
        if self.limit is None:
            return True
        value = self.value / self.floor if self.of_floor and self.floor else self.value
        return value >= self.limit if self.more_is_better else value <= self.limit

    def line(self, measured_in: str) -> str:
        """Return the line of the table; `measured_in` is the benchmark's process, or outside of it."""
        relation, unit = "≥" if self.more_is_better else "≤", " ×" if self.of_floor else ""
        bound = "" if self.limit is None else f"{relation} {self.limit:g}{unit}"
        ratio = f"{self.value / self.floor:.1f} × {self.floor:.2f}" if self.floor else ""
        state = "" if self.limit is None else "yes" if self.holds else "**FAIL**"
        value = f"{self.value:.2f} {self.unit}".rstrip()
        return f"| {self.name} | {value} | {bound} | {ratio} | {measured_in} | {state} |"
