"""Limits in words, and the number a person names as a new one; for every face."""

from app.protocol.asks import ReachedLimit
from app.protocol.tasks import LimitKind

_MOST = 1e12
_MONEY: tuple[LimitKind, ...] = ("money", "day_money")


def limit_unit(kind: LimitKind) -> str:
    return "$" if kind in _MONEY else limit_name(kind)


def limit_words(kind: LimitKind, amount: float) -> str:
    """An amount of what is limited: `$2.50`, `50 turns`."""
    return f"${amount:.2f}" if kind in _MONEY else f"{amount:,.0f} {limit_unit(kind)}"


def limit_name(kind: LimitKind) -> str:
    return {"day_money": "money of today", "day_tokens": "tokens of today"}.get(kind, kind)


def new_limit(limit: ReachedLimit, text: str) -> float | None:
    """The number that was typed, where it can be the new limit: more than what was used, and whole for what is counted.

    A dollar sign and commas between thousands may be in it.
    """
    try:
        amount = float(text.strip().removeprefix("$").replace(",", ""))
    except ValueError:
        return None
    if not limit.used < amount < _MOST:
        return None
    return amount if limit.kind in ("minutes", *_MONEY) or amount.is_integer() else None
