"""Parses what a person types at the prompt into the answer of an ask."""

import re
from dataclasses import dataclass
from typing import TypeAlias

from errand.cli.rendering.ask_choices import (
    SCOPES,
    approval_keys,
    choices_by_label,
    hint,
    keys_text,
    label_range,
    offer_number,
)
from errand.cli.rendering.asks import full_text, unknown_command_text
from errand.cli.terminal.text import plain
from errand.client.texts.limits import limit_after, limit_amount_text, limit_unit, new_limit
from errand.protocol.asks import Approval, Ask, AskAnswerParams, ReachedLimit
from errand.text.translation import tr

_RAISE_LABEL = "3"  # below the two choices of a limit that can be raised
_MAX_LABEL_LENGTH = 9
# A letter, the number of an offer and how long it holds: `w`, `c 2`, `p 30m`, `w2 8h`.
_REMEMBER = re.compile(r"([cwpu])\s*(\d{1,2})?(?:\s+(\d{1,5})([mhd]))?", re.IGNORECASE)
_UNITS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True)
class InvalidReply:
    """The line does not settle the ask; `text` says what to type."""

    text: str


Reply: TypeAlias = AskAnswerParams | InvalidReply


class AskInput:
    """One ask at the prompt until a line settles it; raising a limit takes a second line."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self._is_raising_limit = False

    @property
    def prompt(self) -> str:
        """The prompt before the input, for when the hint has scrolled away."""
        ask = self.ask
        if ask.approval is not None:
            keys = " ".join(("a", *approval_keys(ask.approval), "d", "r"))
            return tr("allow? {keys} > ").format(keys=keys)
        if ask.limit is not None and self._is_raising_limit:
            return tr("new limit in {kind} > ").format(kind=limit_unit(ask.limit.kind))
        return tr("go on? {numbers} > ").format(numbers=label_range(ask)) if ask.kind == "limit" else tr("answer > ")

    def read(self, line: str) -> Reply:
        """Parse a typed line into an answer, or into a text that says what to type next."""
        text = line.strip()
        if self._is_raising_limit:
            return self._new_limit(text)
        if self.ask.limit is not None and text == _RAISE_LABEL:
            self._is_raising_limit = True
            return InvalidReply(
                tr("Type the new limit: {limit}. Press Enter to go back.").format(limit=_minimum_text(self.ask.limit))
            )
        return read_reply(self.ask, text)

    def _new_limit(self, text: str) -> Reply:
        if not text:
            self._is_raising_limit = False
            return InvalidReply(tr("The limit was not raised. Type one of: {ask}").format(ask=hint(self.ask)))
        return _raise_reply(self.ask, text if text.startswith("+") else text.removeprefix("="))


def read_reply(ask: Ask, line: str) -> Reply:
    """Parse a typed line by itself into an answer, or into the reason why it is invalid."""
    text = line.strip()
    if ask.approval is not None:
        return _approval_reply(ask, ask.approval, text)
    if ask.kind == "limit":
        return _limit_reply(ask, text)
    listed = choices_by_label(ask)
    if ask.unknown is not None and text == "v":
        return InvalidReply(unknown_command_text(ask.unknown))
    if ask.kind == "unknown":
        if text not in listed:
            return InvalidReply(tr("Nothing was decided. Type one of: {ask}").format(ask=hint(ask)))
        return AskAnswerParams(ask_id=ask.id, text=listed[text])
    return _question_reply(ask, text, listed)


def _approval_reply(ask: Ask, approval: Approval, text: str) -> Reply:
    if remembering := _REMEMBER.fullmatch(text):
        return _remember_reply(ask, approval, remembering)
    letter, _, rest = text.partition(" ")
    match letter.lower():
        case "a" if not rest:
            return AskAnswerParams(ask_id=ask.id, allow=True)
        case "d" if not rest:
            return AskAnswerParams(ask_id=ask.id, allow=False)
        case "r" if rest.strip():
            return AskAnswerParams(ask_id=ask.id, allow=False, text=rest.strip())
        case "?" if not rest:
            return InvalidReply(hint(ask))
        case "v" if not rest:
            return InvalidReply(full_text(approval))
        case "r":
            return InvalidReply(tr("Say why after the r, for example: r use the test folder instead"))
        case _:
            return InvalidReply(_undecided(approval))


def _undecided(approval: Approval) -> str:
    return tr("Nothing was decided. Type one of {keys}; ? explains them.").format(keys=keys_text(approval))


def _remember_reply(ask: Ask, approval: Approval, given: re.Match[str]) -> Reply:
    key, number, count, unit = given.groups()
    key, count = key.lower(), count or "0"
    offer = offer_number(approval, key, number)
    if not offer or (unit is not None and int(count) == 0):
        return InvalidReply(_undecided(approval))
    seconds = int(count) * _UNITS[unit.lower()] if unit is not None else None
    return AskAnswerParams(ask_id=ask.id, allow=True, remember=SCOPES[key], offer=offer - 1, expires_s=seconds)


def _limit_reply(ask: Ask, text: str) -> Reply:
    if text[:1] in ("=", "+") and ask.limit is not None:
        return _raise_reply(ask, text.removeprefix("="))
    match text.lower():
        case "y" | "yes" | "1":
            return AskAnswerParams(ask_id=ask.id, allow=True)
        case "n" | "no" | "2":
            return AskAnswerParams(ask_id=ask.id, allow=False)
        case _:
            return InvalidReply(
                tr("{text}Nothing was decided. Type one of: {ask}").format(
                    text=_unknown_label_text(text), ask=hint(ask)
                )
            )


def _raise_reply(ask: Ask, text: str) -> Reply:
    """`80` is the new limit, `+30` is as much more than what was used."""
    assert ask.limit is not None
    more = text.removeprefix("+")
    amount = new_limit(ask.limit, text) if more == text else limit_after(ask.limit, more)
    if amount is None:
        return InvalidReply(tr("The limit was not raised: type {limit}.").format(limit=_minimum_text(ask.limit)))
    return AskAnswerParams(ask_id=ask.id, allow=True, amount=amount)


def _question_reply(ask: Ask, text: str, listed: dict[str, str]) -> Reply:
    own = text.removeprefix("=").strip() if text.startswith("=") else ""
    if not text or text == "=":
        return InvalidReply(
            tr("Nothing was answered. Type {ask}.").format(ask=hint(ask))
            if listed
            else tr("Nothing was answered. Type an answer.")
        )
    if own:
        return AskAnswerParams(ask_id=ask.id, text=own)
    if text.lower() in listed:
        return AskAnswerParams(ask_id=ask.id, text=listed[text.lower()])
    if listed and _looks_like_a_label(text, listed):
        say = tr("{unknown}Type {numbers}, or ={text} if {text} is your answer.")
        return InvalidReply(say.format(unknown=_unknown_label_text(text), numbers=label_range(ask), text=text))
    return AskAnswerParams(ask_id=ask.id, text=text)


def _looks_like_a_label(text: str, listed: dict[str, str]) -> bool:
    if "a" in listed:
        return len(text) == 1 and text.isalpha()
    return text.isdecimal() if "1" in listed else text.startswith("#")


def _unknown_label_text(text: str) -> str:
    return (
        tr("There is no {text} in the list. ").format(text=plain(text))
        if text and len(text) <= _MAX_LABEL_LENGTH
        else ""
    )


def _minimum_text(limit: ReachedLimit) -> str:
    amount = limit_amount_text(limit.kind, limit.used)
    if limit.kind in ("minutes", "money", "day_money"):
        return tr("more than {amount}").format(amount=amount)
    return tr("a whole number, more than {amount}").format(amount=amount)
