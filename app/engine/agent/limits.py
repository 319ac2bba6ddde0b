"""The limits of a task: turns, time, money, tokens. Reaching one asks a person, or ends the task where none is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, assert_never

from app.protocol.tasks import LimitKind, TaskLimitKind, TaskStopReason
from app.protocol.usage import Usage

Kind = TypeVar("Kind", bound=LimitKind, covariant=True)

_NEAR = 0.8
_REASONS: dict[LimitKind, TaskStopReason] = {
    "turns": "iteration_limit",
    "minutes": "time_limit",
    "money": "budget_limit",
    "tokens": "token_limit",
    "day_money": "day_limit",
    "day_tokens": "day_limit",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a task may use before it asks; None is no limit."""

    turns: int
    minutes: float | None = None
    budget_usd: float | None = None
    tokens: int | None = None

    def of(self, kind: TaskLimitKind) -> float | None:
        match kind:
            case "turns":
                return self.turns
            case "minutes":
                return self.minutes
            case "money":
                return self.budget_usd
            case "tokens":
                return self.tokens
            case _:
                assert_never(kind)

    def raised(self, kind: TaskLimitKind, to: float) -> "Limits":
        match kind:
            case "turns":
                return replace(self, turns=int(to))
            case "minutes":
                return replace(self, minutes=to)
            case "money":
                return replace(self, budget_usd=to)
            case "tokens":
                return replace(self, tokens=int(to))
            case _:
                assert_never(kind)


@dataclass(frozen=True, slots=True)
class Used(Generic[Kind]):
    """How much a task has used of one limit, in the unit of that."""

    kind: Kind
    used: float
    limit: float

    @property
    def reason(self) -> TaskStopReason:
        return _REASONS[self.kind]

    @property
    def text(self) -> str:
        """That it is used up, in words for the person."""
        kind: LimitKind = self.kind
        match kind:
            case "turns":
                return "It has used its one turn." if self.limit == 1 else f"It has used its {self.limit:.0f} turns."
            case "minutes":
                return f"It has worked for {self.limit:.0f} minutes."
            case "money":
                return f"It has spent its ${self.limit:.2f}."
            case "tokens":
                return f"It has used its {self.limit:,.0f} tokens."
            case "day_money":
                return f"All tasks together have spent the ${self.limit:.2f} of today."
            case "day_tokens":
                return f"All tasks together have used the {self.limit:,.0f} tokens of today."
            case _:
                assert_never(kind)

    @property
    def share(self) -> str:
        """How much of it."""
        kind: LimitKind = self.kind
        match kind:
            case "turns" | "minutes":
                return f"{self.used:.0f} of {self.limit:.0f} {kind}"
            case "money":
                return f"${self.used:.2f} of ${self.limit:.2f}"
            case "tokens":
                return f"{self.used:,.0f} of {self.limit:,.0f} tokens"
            case "day_money":
                return f"${self.used:.2f} of the ${self.limit:.2f} of today"
            case "day_tokens":
                return f"{self.used:,.0f} of the {self.limit:,.0f} tokens of today"
            case _:
                assert_never(kind)


def near(uses: Iterable[Used[LimitKind]]) -> tuple[Used[LimitKind], ...]:
    """Those of which four fifths are used up."""
    return tuple(used for used in uses if used.used >= _NEAR * used.limit)


def reached(uses: Iterable[Used[Kind]]) -> Used[Kind] | None:
    """The first that leaves no room for a further turn."""
    return next((used for used in uses if used.used >= used.limit), None)


def uses_of(limits: Limits, turns: int, seconds: float, usage: Usage) -> Iterator[Used[TaskLimitKind]]:
    """How much a task has used of each of its limits."""
    used: dict[TaskLimitKind, float] = {
        "turns": turns,
        "minutes": seconds / 60,
        "money": usage.cost_usd or 0.0,
        "tokens": usage.input_tokens + usage.output_tokens,
    }
    for kind, amount in used.items():
        limit = limits.of(kind)
        if limit is not None:
            yield Used(kind, amount, limit)
