"""Limits in words, and the number a person names as a new one; for every face."""

import re

from app.protocol.asks import ReachedLimit
from app.protocol.tasks import LimitKind

_MOST = 1e12
_NUMBER = re.compile(r"(\d+|\d{1,3}(,\d{3})+)(\.\d*)?|\.\d+", re.ASCII)
_MONEY: tuple[LimitKind, ...] = ("money", "day_money")


def limit_unit(kind: LimitKind) -> str:
    return "$" if kind in _MONEY else limit_name(kind)


def limit_words(kind: LimitKind, amount: float) -> str:
    """An amount of what is limited: `$2.50`, `50 turns`."""
    if kind in _MONEY:
        return f"${amount:.2f}"
    return f"1 {limit_unit(kind)}".replace("s", "", 1) if amount == 1 else f"{amount:,.0f} {limit_unit(kind)}"


def limit_name(kind: LimitKind) -> str:
    return {"day_money": "money of today", "day_tokens": "tokens of today"}.get(kind, kind)


def new_limit(limit: ReachedLimit, text: str) -> float | None:
    """The number that was typed, if it can be the new limit: more than what was used, and whole for what is counted."""
    amount = number_of(text)
    if amount is None or not limit.used < amount < _MOST:
        return None
    return amount if limit.kind in ("minutes", *_MONEY) or amount.is_integer() else None


def number_of(text: str) -> float | None:
    """A number that can be read in one way only.

    Commas stand between thousands, a dollar sign may be before it; `2,50` is none, for it could be 2.5 or 250.
    """
    typed = text.strip().removeprefix("$").strip()
    return float(typed.replace(",", "")) if _NUMBER.fullmatch(typed) else None
