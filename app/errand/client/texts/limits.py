"""Limits of a task: their names and amounts, and the parsing of a new one."""

import re

from errand.client.number_format import dollars
from errand.protocol.asks import ReachedLimit
from errand.protocol.tasks.groups import LimitKind
from errand.text.translation import decimal, tr, trn

_MAX_AMOUNT = 1e12
_NUMBER = re.compile(r"(\d+|\d{1,3}(,\d{3})+)(\.\d*)?|\.\d+", re.ASCII)

_LIMIT_NAMES: dict[LimitKind, str] = {
    "turns": tr("turns"),
    "minutes": tr("minutes"),
    "money": tr("money"),
    "tokens": tr("tokens"),
    "day_money": tr("today's budget"),
    "day_tokens": tr("today's tokens"),
}
_MONEY: tuple[LimitKind, ...] = ("money", "day_money")


def limit_name(kind: LimitKind) -> str:
    return _LIMIT_NAMES[kind]


def limit_unit(kind: LimitKind) -> str:
    return "$" if kind in _MONEY else limit_name(kind)


def limit_amount_text(kind: LimitKind, amount: float) -> str:
    """Return an amount of a limit: `$2.50`, `50 turns`."""
    if kind in _MONEY:
        return dollars(amount)
    number = round(amount)
    match kind:
        case "turns":
            return trn("{n} turn", "{n} turns", number)
        case "minutes":
            return trn("{n} minute", "{n} minutes", number)
        case "tokens":
            return trn("{n} token", "{n} tokens", number)
        case _:
            return trn("{n} token today", "{n} tokens today", number)


def more_text(kind: LimitKind, amount: float) -> str:
    """Return the addition to a limit: `50 more turns`, `$2.50 more`."""
    match kind:
        case "money":
            return tr("{money} more").format(money=dollars(amount))
        case "day_money":
            return tr("{money} more today").format(money=dollars(amount))
        case "day_tokens":
            return tr("{number} more tokens today").format(number=decimal(f"{amount:,.10g}"))
        case "turns":
            return trn("{n} more turn", "{n} more turns", int(amount))
        case "minutes":
            return tr("{number} more minutes").format(number=decimal(f"{amount:,.10g}"))
        case "tokens":
            return tr("{number} more tokens").format(number=decimal(f"{amount:,.10g}"))


def new_limit(limit: ReachedLimit, text: str) -> float | None:
    """Return the typed number if it is a valid new limit: above the used amount, and whole for countable kinds."""
    amount = number_of(text)
    if amount is None or not limit.used < amount < _MAX_AMOUNT:
        return None
    return amount if limit.kind in ("minutes", *_MONEY) or amount.is_integer() else None


def limit_after(limit: ReachedLimit, text: str) -> float | None:
    """Return the new limit that adds the typed number to what was used, if that is valid."""
    more = number_of(text)
    return new_limit(limit, f"{limit.used + more:.12f}") if more is not None and more > 0 else None


def number_of(text: str) -> float | None:
    """Parse a number that has only one reading.

    Commas separate thousands, a dollar sign may precede or follow it; `2,50` is rejected, since it could be 2.5 or
    250. In languages with the other marks it is the other way round.
    """
    typed = text.strip().removeprefix("$").removesuffix("$").strip()
    readings = (decimal(typed), typed)
    number = next((reading for reading in readings if _NUMBER.fullmatch(reading)), None)
    return float(number.replace(",", "")) if number is not None else None
