"""The answers that an ask takes at the prompt: the label of each choice, the letters of an approval, and hints."""

import re
import string

from errand.cli.terminal.text import columns, wrapped
from errand.client.texts.asks import choice_text
from errand.client.texts.limits import limit_unit, more_text
from errand.client.texts.rules import REMEMBERED
from errand.protocol.asks import Approval, Ask, ReachedLimit, Remember
from errand.text.translation import tr, uncapitalised

# How long and where an approval holds, by the letter that allows more than one call.
SCOPES: dict[str, Remember] = {"c": "conversation", "w": "workspace", "p": "workspace", "u": "user"}
# Kinds of offers that the letters p and u mean; all tools of a server are chosen by their number.
_WIDE = frozenset(("prefix", "folder", "host", "tool", "code"))
_BEGINS_WITH_A_NUMBER = re.compile(r"[-+$#]?\d")


def hint(ask: Ask) -> str:
    """Return the possible answers; those of an approval on a line each."""
    if ask.approval is not None:
        return _approval_hint(ask.approval)
    if ask.kind == "limit":
        goes_on = uncapitalised(next((choice_text(ask, choice) for choice in ask.choices), tr("Go on")))
        return f"{label_range(ask)} · y {goes_on} · n {uncapitalised(tr('Stop here'))}{_amount_hint(ask.limit)}"
    if ask.kind == "unknown":
        return " · ".join(
            f"{label} {uncapitalised(choice_text(ask, choice))}" for label, choice in choices_by_label(ask).items()
        )
    return tr("{ask}, or an answer of your own").format(ask=label_range(ask)) if ask.choices else tr("type your answer")


def hint_lines(ask: Ask, width: int) -> list[str]:
    """Return the possible answers as lines of at most `width` columns."""
    return [f"  {row.strip()}" for row in wrapped(hint(ask), width - 2).splitlines()]


def short_hint(ask: Ask) -> str:
    """Return the possible answers on one line."""
    return keys_text(ask.approval) if ask.approval is not None else hint(ask)


def keys_text(approval: Approval) -> str:
    """Return the letters that answer an approval, on one line."""
    return ", ".join(("a", *approval_keys(approval), "d", tr("r REASON"), "v"))


def approval_keys(approval: Approval) -> tuple[str, ...]:
    """Return the letters that allow more than this call."""
    if not approval.offers:
        return ()
    has_kind = offer_number(approval, "p", None) > 1  # else `w` is the same
    return ("c", "w", *(("p",) if has_kind else ()), *(("u",) if offer_number(approval, "u", None) else ()))


def offer_number(approval: Approval, key: str, given: str | None) -> int:
    """Return the number of the offer that the letter means, from 1; 0 if there is none. `p` and `u` mean the widest."""
    offers = approval.offers
    if given is None and key in ("c", "w"):
        number = 1
    elif given is None:
        wide = [at for at, offer in enumerate(offers, start=1) if offer.kind in _WIDE]
        number = wide[-1] if wide else 0
    else:
        number = int(given)
    return number if 0 < number <= len(offers) and SCOPES[key] in offers[number - 1].scopes else 0


def choices_by_label(ask: Ask) -> dict[str, str]:
    """Return the choices by their labels: numbers, unless a choice itself begins with one."""
    choices = ask.choices if ask.limit is None else (*ask.choices, tr("Raise the limit to …"))
    labels = [str(number) for number in range(1, len(choices) + 1)]
    if any(_BEGINS_WITH_A_NUMBER.match(choice.lstrip()) for choice in choices):
        letters = string.ascii_lowercase[: len(choices)]
        is_clear = len(letters) == len(choices) and not any(choice.strip().lower() in letters for choice in choices)
        labels = list(letters) if is_clear else [f"#{label}" for label in labels]
    return dict(zip(labels, choices, strict=True))


def label_range(ask: Ask) -> str:
    """Return the labels of all choices, such as `1 to 3`."""
    labels = list(choices_by_label(ask))
    return labels[0] if len(labels) == 1 else tr("{first} to {last}").format(first=labels[0], last=labels[-1])


def _approval_hint(approval: Approval) -> str:
    texts = [("a", tr("allow once"))]
    for key in approval_keys(approval):
        number = offer_number(approval, key, None)
        texts.append((key, tr("allow rule {number} {how_long}").format(number=number, how_long=_how_long(key))))
    texts += [
        ("d", tr("deny")),
        (tr("r REASON"), tr("deny and say why")),
        ("v", tr("show everything, and why it asks")),
    ]
    room = max(columns(key) for key, _ in texts)
    lines = [f"{key}{' ' * (room - columns(key))}  {text}" for key, text in texts]
    if len(approval.offers) > 1:
        lines.append(tr("a number chooses the rule, a time ends it (m, h, d): w 2 8h"))
    elif approval.offers:
        lines.append(tr("a time ends the rule (m, h, d): w 8h"))
    return "\n  ".join(lines)


def _how_long(key: str) -> str:
    return REMEMBERED[SCOPES[key]]


def _amount_hint(limit: ReachedLimit | None) -> str:
    if limit is None:
        return ""
    more, new = f"{limit.adds:.10g}", f"{limit.used + limit.adds:.10g}"
    to = tr("the new limit in {unit}").format(unit=limit_unit(limit.kind))
    return f" · +{more} {more_text(limit.kind, limit.adds)} · ={new} {to}"
