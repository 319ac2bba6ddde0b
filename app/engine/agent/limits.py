"""The limits of a task: turns, time, money. Reaching one asks a person, or ends the task where none is there."""

from dataclasses import dataclass, replace

from app.protocol.tasks import LimitKind, TaskStopReason
from app.protocol.usage import Usage

_NEAR = 0.8


@dataclass(frozen=True, slots=True)
class Limits:
    """What a task may use before it asks; None is no limit."""

    turns: int
    minutes: float | None
    budget_usd: float | None


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit that is used up, in words for the person, and the limits after a yes: as much again."""

    reason: TaskStopReason
    text: str
    extended: Limits


def near(limits: Limits, turns: int, seconds: float, usage: Usage) -> dict[LimitKind, str]:
    """Which of `limits` are used up by four fifths, with the words for it."""
    found: dict[LimitKind, str] = {}
    if turns >= _NEAR * limits.turns:
        found["turns"] = f"{turns} of {limits.turns} turns"
    if limits.minutes is not None and seconds >= _NEAR * limits.minutes * 60:
        found["minutes"] = f"{seconds / 60:.0f} of {limits.minutes:.0f} minutes"
    spent = usage.cost_usd or 0.0
    if limits.budget_usd is not None and spent >= _NEAR * limits.budget_usd:
        found["money"] = f"${spent:.2f} of ${limits.budget_usd:.2f}"
    return found


def reached(limits: Limits, given: Limits, turns: int, seconds: float, usage: Usage) -> Reached | None:
    """The first of `limits` that leaves no room for a further turn; `given` is what a yes adds once more."""
    if turns >= limits.turns:
        used = "one turn" if limits.turns == 1 else f"{limits.turns} turns"
        return Reached("iteration_limit", f"It has used its {used}.", replace(limits, turns=turns + given.turns))
    if limits.minutes is not None and given.minutes is not None and seconds >= limits.minutes * 60:
        more = replace(limits, minutes=seconds / 60 + given.minutes)
        return Reached("time_limit", f"It has worked for {limits.minutes:.0f} minutes.", more)
    spent = usage.cost_usd or 0.0
    if limits.budget_usd is not None and given.budget_usd is not None and spent >= limits.budget_usd:
        more = replace(limits, budget_usd=spent + given.budget_usd)
        return Reached("budget_limit", f"It has spent its ${limits.budget_usd:.2f}.", more)
    return None
