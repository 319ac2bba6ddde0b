"""The limits of a task: turns, time, money, tokens. Reaching one asks a person, or ends the task where none is."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from app.protocol.tasks import LimitKind, TaskStopReason
from app.protocol.usage import Usage

_NEAR = 0.8
_REASONS: dict[LimitKind, TaskStopReason] = {
    "turns": "iteration_limit",
    "minutes": "time_limit",
    "money": "budget_limit",
    "tokens": "token_limit",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a task may use before it asks; None is no limit."""

    turns: int
    minutes: float | None = None
    budget_usd: float | None = None
    tokens: int | None = None

    def of(self, kind: LimitKind) -> float | None:
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

    def raised(self, kind: LimitKind, to: float) -> "Limits":
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
class Used:
    """How much a task has used of one limit, in the unit of that."""

    kind: LimitKind
    used: float
    limit: float

    @property
    def reason(self) -> TaskStopReason:
        return _REASONS[self.kind]

    @property
    def text(self) -> str:
        """That it is used up, in words for the person."""
        match self.kind:
            case "turns":
                return "It has used its one turn." if self.limit == 1 else f"It has used its {self.limit:.0f} turns."
            case "minutes":
                return f"It has worked for {self.limit:.0f} minutes."
            case "money":
                return f"It has spent its ${self.limit:.2f}."
            case "tokens":
                return f"It has used its {self.limit:,.0f} tokens."
            case _:
                assert_never(self.kind)

    @property
    def share(self) -> str:
        """How much of it."""
        match self.kind:
            case "turns" | "minutes":
                return f"{self.used:.0f} of {self.limit:.0f} {self.kind}"
            case "money":
                return f"${self.used:.2f} of ${self.limit:.2f}"
            case "tokens":
                return f"{self.used:,.0f} of {self.limit:,.0f} tokens"
            case _:
                assert_never(self.kind)


def near(limits: Limits, turns: int, seconds: float, usage: Usage) -> tuple[Used, ...]:
    """Those of `limits` of which four fifths are used up."""
    return tuple(used for used in _uses(limits, turns, seconds, usage) if used.used >= _NEAR * used.limit)


def reached(limits: Limits, turns: int, seconds: float, usage: Usage) -> Used | None:
    """The first of `limits` that leaves no room for a further turn."""
    return next((used for used in _uses(limits, turns, seconds, usage) if used.used >= used.limit), None)


def _uses(limits: Limits, turns: int, seconds: float, usage: Usage) -> Iterator[Used]:
    used: dict[LimitKind, float] = {
        "turns": turns,
        "minutes": seconds / 60,
        "money": usage.cost_usd or 0.0,
        "tokens": usage.input_tokens + usage.output_tokens,
    }
    for kind, amount in used.items():
        limit = limits.of(kind)
        if limit is not None:
            yield Used(kind, amount, limit)
