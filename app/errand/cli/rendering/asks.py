"""Asks at the prompt: their text, and the parsing of a typed answer."""

import re
import string
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from errand.cli.rendering.tool_calls import whole_diff_lines
from errand.cli.terminal.style import PLAIN, Style
from errand.cli.terminal.text import columns, escape_hidden, escape_hidden_line, one_line, plain, short_path, wrapped
from errand.client.ask_text import asked_text, choice_text
from errand.client.display_text import (
    deadline_text,
    limit_after,
    limit_amount_text,
    limit_unit,
    more_text,
    new_limit,
    settled_text,
    subject_text,
    uncapitalised,
)
from errand.client.effect_text import EffectKind, effect_of
from errand.client.rule_text import REMEMBERED
from errand.protocol.asks import (
    Approval,
    Ask,
    AskAnswerParams,
    GrantOffer,
    ReachedLimit,
    Remember,
    Risk,
    UnknownCall,
)
from errand.translation import tr, trn

_RISKS: dict[Risk, str] = {"low": tr("low risk"), "medium": tr("medium risk"), "high": tr("high risk, look closely")}
_MOST_PATHS = 10
_MOST_LINES, _LAST_LINES = 40, 8
_MOST_OF_CHANGE = 400
# Told to the model where nobody can answer: not a reason that a person gave.
NOBODY = "(no one is there to answer; decide yourself and say what you assumed)"
# Kinds of offers that the letters p and u mean; all tools of a server are chosen by their number.
_WIDE = frozenset(("prefix", "folder", "host", "tool", "code"))
_VERBS: dict[EffectKind, str] = {
    "command": tr("run"),
    "address": tr("open"),
    "code": tr("run"),
    "service": tr("call"),
    "text": tr("do"),
}
_IN, _READS, _WRITES, _WHY, _SAFETY = tr("in"), tr("reads"), tr("writes"), tr("why"), tr("safety")
_HOST, _DOES, _NOTE, _WITH, _RAN, _SINCE = tr("host"), tr("does"), tr("note"), tr("with"), tr("ran"), tr("since")
_RULE = tr("rule {number}")
_LABELS = (
    _IN,
    _READS,
    _WRITES,
    _WHY,
    _SAFETY,
    _HOST,
    _DOES,
    _NOTE,
    _WITH,
    _RAN,
    _SINCE,
    _RULE.format(number=1),
    *_VERBS.values(),
)
_LABEL_WIDTH = max(columns(label) for label in _LABELS)
_INDENT = " " * (_LABEL_WIDTH + 3)
_WHOLE_WIDTH = 100
_RAISE_LABEL = "3"  # below the two choices of a limit that can be raised
_LONGEST_LABEL = 9
# A letter, the number of an offer and how long it holds: `w`, `c 2`, `p 30m`, `w2 8h`.
_REMEMBER = re.compile(r"([cwpu])\s*(\d{1,2})?(?:\s+(\d{1,5})([mhd]))?", re.IGNORECASE)
_SCOPES: dict[str, Remember] = {"c": "conversation", "w": "workspace", "p": "workspace", "u": "user"}
_UNITS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0}
_BEGINS_WITH_A_NUMBER = re.compile(r"[-+$#]?\d")


@dataclass(frozen=True, slots=True)
class InvalidReply:
    """The line does not settle the ask; `text` says what to type."""

    text: str


Reply: TypeAlias = AskAnswerParams | InvalidReply


def ask_lines(ask: Ask, style: Style, width: int) -> list[str]:
    """The ask as lines, with everything a person must see before answering."""
    if ask.sub_agent:
        who = style.amber(tr("The sub-agent “{sub_agent}” asks:").format(sub_agent=one_line(plain(ask.sub_agent), 80)))
        return [who, *ask_lines(msgspec.structs.replace(ask, sub_agent=""), style, width)]
    until = [f"  {style.dim(text)}"] if (text := deadline_text(ask)) else []
    if ask.approval is not None:
        return [*_approval_lines(ask.approval, style, width), *until]
    if ask.unknown is not None:
        return [*_unknown_lines(ask, ask.unknown, style, width), *until]
    head = f"{style.amber(style.sign('ask'))} {style.bold(asked_text(ask))}"
    choices = [f"  {label}  {choice_text(ask, choice)}" for label, choice in _choices_by_label(ask).items()]
    return [head, *choices, *until]


def hint(ask: Ask) -> str:
    """The possible answers; those of an approval on a line each."""
    if ask.approval is not None:
        return _approval_hint(ask.approval)
    if ask.kind == "limit":
        goes_on = uncapitalised(next((choice_text(ask, choice) for choice in ask.choices), tr("Go on")))
        return f"{_range(ask)} · y {goes_on} · n {uncapitalised(tr('Stop here'))}{_amount_hint(ask.limit)}"
    if ask.kind == "unknown":
        return " · ".join(
            f"{label} {uncapitalised(choice_text(ask, choice))}" for label, choice in _choices_by_label(ask).items()
        )
    return tr("{ask}, or an answer of your own").format(ask=_range(ask)) if ask.choices else tr("type your answer")


def hint_lines(ask: Ask, width: int) -> list[str]:
    """The possible answers as lines of at most `width` columns."""
    return [f"  {row.strip()}" for row in wrapped(hint(ask), width - 2).splitlines()]


def short_hint(ask: Ask) -> str:
    """The possible answers on one line."""
    return _keys_text(ask.approval) if ask.approval is not None else hint(ask)


class AskInput:
    """One ask at the prompt until a line settles it; raising a limit takes a second line."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self._is_raising_limit = False

    @property
    def short_hint(self) -> str:
        """The prompt before the input, for when the hint has scrolled away."""
        ask = self.ask
        if ask.approval is not None:
            keys = " ".join(("a", *_keys(ask.approval), "d", "r"))
            return tr("allow? {keys} > ").format(keys=keys)
        if ask.limit is not None and self._is_raising_limit:
            return tr("new limit in {kind} > ").format(kind=limit_unit(ask.limit.kind))
        return tr("go on? {numbers} > ").format(numbers=_range(ask)) if ask.kind == "limit" else tr("answer > ")

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
    listed = _choices_by_label(ask)
    if ask.unknown is not None and text == "v":
        return InvalidReply("\n".join(_labelled(_RAN, subject_text(ask.unknown), PLAIN, _WHOLE_WIDTH)).lstrip())
    if ask.kind == "unknown":
        if text not in listed:
            return InvalidReply(tr("Nothing was decided. Type one of: {ask}").format(ask=hint(ask)))
        return AskAnswerParams(ask_id=ask.id, text=listed[text])
    return _question_reply(ask, text, listed)


def outcome_text(ask: Ask) -> str:
    """The outcome of an ask in words."""
    by = tr(" by {answered_by}").format(answered_by=ask.answered_by) if ask.answered_by else ""
    if ask.status == "cancelled":
        return tr("no longer needed")
    if settled := settled_text(ask):
        return f"{settled}{by}"
    if ask.kind == "question":
        return tr("answered{by}: {answer}").format(by=by, answer=plain(ask.answer or ""))
    if ask.kind == "unknown":
        return f"{uncapitalised(choice_text(ask, ask.answer or ''))}{by}"
    if not ask.allowed:
        reason = f": {plain(ask.answer)}" if ask.answer and ask.answer != NOBODY else ""
        return f"{tr('stopped here') if ask.kind == 'limit' else tr('denied')}{by}{reason}"
    if ask.amount is not None and ask.limit is not None:
        return tr("raised to {kind}{by}").format(kind=limit_amount_text(ask.limit.kind, ask.amount), by=by)
    if ask.kind == "limit":
        return tr("continued{by}").format(by=by)
    return tr("allowed {how_long}").format(how_long=REMEMBERED[ask.remember]) + by


def _approval_lines(approval: Approval, style: Style, width: int) -> list[str]:
    risk = _RISKS[approval.risk]
    painted = style.paint("1;31", risk) if approval.risk == "high" else style.amber(risk)
    head = f"{style.amber(style.sign('warn'))} {style.bold(tr('Approval needed'))}{style.sign('sep')}{painted}"
    lines = [head, *_excerpt(_action_lines(approval, style, width), style)]
    if approval.working_dir:
        lines.append(_line_of(_IN, escape_hidden_line(short_path(approval.working_dir))))
    lines += _path_lines(_READS, _reads(approval)) + _path_lines(_WRITES, approval.writes)
    lines += _prose(_WHY, approval.rule, style, width)
    if approval.sandbox:
        lines += _prose(_SAFETY, approval.sandbox, style, width)
    for number, offer in enumerate(approval.offers, start=1):
        lines += _offer_lines(number, offer, style, width)
    return lines + _excerpt(_change_lines(approval, style, width), style, _MOST_OF_CHANGE)


def _change_lines(approval: Approval, style: Style, width: int) -> list[str]:
    """The diff, if the preview is one."""
    return [] if effect_of(approval).details else whole_diff_lines(approval.preview, style, width)


def _offer_lines(number: int, offer: GrantOffer, style: Style, width: int) -> list[str]:
    """A rule that may be allowed from now on, with an example for it and one against it."""
    lines = _prose(_RULE.format(number=number), offer.covers, PLAIN, width)
    if offer.example and offer.kind != "exact":
        examples = [tr("for example: {call}").format(call=offer.example)]
        examples += [tr("but not: {call}").format(call=offer.not_covered)] if offer.not_covered else []
        lines += [line for example in examples for line in _prose("", example, style, width)]
    return lines


def _approval_hint(approval: Approval) -> str:
    texts = [("a", tr("allow once"))]
    for key in _keys(approval):
        number = _offer_number(approval, key, None)
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
    return REMEMBERED[_SCOPES[key]]


def _keys_text(approval: Approval) -> str:
    return ", ".join(("a", *_keys(approval), "d", tr("r REASON"), "v"))


def _keys(approval: Approval) -> tuple[str, ...]:
    """The letters that allow more than this call."""
    if not approval.offers:
        return ()
    has_kind = _offer_number(approval, "p", None) > 1  # else `w` is the same
    return ("c", "w", *(("p",) if has_kind else ()), *(("u",) if _offer_number(approval, "u", None) else ()))


def _offer_number(approval: Approval, key: str, given: str | None) -> int:
    """The number of the offer that the letter means, from 1; 0 if there is none. `p` and `u` mean the widest."""
    offers = approval.offers
    if given is None and key in ("c", "w"):
        number = 1
    elif given is None:
        wide = [at for at, offer in enumerate(offers, start=1) if offer.kind in _WIDE]
        number = wide[-1] if wide else 0
    else:
        number = int(given)
    return number if 0 < number <= len(offers) and _SCOPES[key] in offers[number - 1].scopes else 0


def _reads(approval: Approval) -> tuple[str, ...]:
    """Without the working directory, which has its own line."""
    return tuple(path for path in approval.reads if path != approval.working_dir)


def _action_lines(approval: Approval, style: Style, width: int) -> list[str]:
    effect = effect_of(approval)
    lines = _labelled(_VERBS[effect.kind], effect.text, style, width)
    if effect.kind == "address":
        start, end = effect.host_at
        lines.append(_line_of(_HOST, style.bold(effect.text[start:end])))
    if effect.does:
        lines += _labelled(_DOES, effect.does, PLAIN, width)
    if effect.remark:
        lines.append(_line_of(_NOTE, style.amber(effect.remark)))
    if effect.details:
        lines += _labelled(_WITH, effect.details, PLAIN, width)
    return lines


def _full_text(approval: Approval, style: Style, width: int) -> str:
    """The full text of everything that was shown in excerpts."""
    lines = [*_action_lines(approval, style, width), *_change_lines(approval, style, width)]
    paths = [*_all_path_lines(_READS, _reads(approval)), *_all_path_lines(_WRITES, approval.writes)]
    why = [f"  {escape_hidden(line)}" for line in approval.explained.splitlines()]
    return "\n".join([*lines, *paths, *why]).lstrip()


def _excerpt(lines: list[str], style: Style, most: int = _MOST_LINES) -> list[str]:
    """The beginning and the end, with the number of omitted lines between."""
    left_out = len(lines) - most
    if left_out <= 1:
        return lines
    mark = style.amber(_INDENT + trn("… {n} more line (v shows all)", "… {n} more lines (v shows all)", left_out))
    return [*lines[: most - _LAST_LINES], mark, *lines[-_LAST_LINES:]]


def _labelled(label: str, text: str, style: Style, width: int) -> list[str]:
    """A text of any length after its label; continuation lines are indented, so that they cannot imitate a label."""
    room = max(20, width - len(_INDENT) - 1)
    pieces = [piece for line in text.split("\n") for piece in _pieces(line, room)]
    return [_line_of(label, style.bold(pieces[0])), *(_INDENT + style.bold(piece) for piece in pieces[1:])]


def _prose(label: str, text: str, style: Style, width: int) -> list[str]:
    """A sentence after its label, wrapped at blanks and indented as `_labelled` does."""
    room = max(20, width - len(_INDENT) - 1)
    rows = [row for line in wrapped(escape_hidden_line(text), room).split("\n") for row in _pieces(line, room)]
    first, *more = (style.dim(row) for row in rows)
    return [_line_of(label, first), *(_INDENT + row for row in more)]


def _line_of(label: str, text: str) -> str:
    return f"  {label}{' ' * (_LABEL_WIDTH - columns(label))} {text}"


def _pieces(line: str, room: int) -> list[str]:
    return [line[at : at + room] for at in range(0, len(line), room)] or [""]


def _unknown_lines(ask: Ask, call: UnknownCall, style: Style, width: int) -> list[str]:
    return [
        f"{style.amber(style.sign('warn'))} {style.bold(tr('Outcome unknown'))}",
        *_excerpt(_labelled(_RAN, subject_text(call), style, width), style),
        _line_of(_SINCE, f"{call.started_at.astimezone():%H:%M:%S}"),
        *_prose(_WHY, asked_text(ask), style, width),
    ]


def _path_lines(verb: str, paths: tuple[str, ...]) -> list[str]:
    lines = _all_path_lines(verb, paths[:_MOST_PATHS])
    more = len(paths) - _MOST_PATHS
    return [*lines, _INDENT + tr("… {more} more (v shows all)").format(more=more)] if more > 0 else lines


def _all_path_lines(verb: str, paths: tuple[str, ...]) -> list[str]:
    return [_line_of(verb, escape_hidden_line(short_path(path))) for path in paths]


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
            return InvalidReply(_full_text(approval, PLAIN, _WHOLE_WIDTH))
        case "r":
            return InvalidReply(tr("Say why after the r, for example: r use the test folder instead"))
        case _:
            return InvalidReply(_undecided(approval))


def _undecided(approval: Approval) -> str:
    return tr("Nothing was decided. Type one of {keys}; ? explains them.").format(keys=_keys_text(approval))


def _remember_reply(ask: Ask, approval: Approval, given: re.Match[str]) -> Reply:
    key, number, count, unit = given.groups()
    key, count = key.lower(), count or "0"
    offer = _offer_number(approval, key, number)
    if not offer or (unit is not None and int(count) == 0):
        return InvalidReply(_undecided(approval))
    seconds = int(count) * _UNITS[unit.lower()] if unit is not None else None
    return AskAnswerParams(ask_id=ask.id, allow=True, remember=_SCOPES[key], offer=offer - 1, expires_s=seconds)


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
        return InvalidReply(say.format(unknown=_unknown_label_text(text), numbers=_range(ask), text=text))
    return AskAnswerParams(ask_id=ask.id, text=text)


def _choices_by_label(ask: Ask) -> dict[str, str]:
    """The choices by their labels: numbers, unless a choice itself begins with one."""
    choices = ask.choices if ask.limit is None else (*ask.choices, tr("Raise the limit to …"))
    labels = [str(number) for number in range(1, len(choices) + 1)]
    if any(_BEGINS_WITH_A_NUMBER.match(choice.lstrip()) for choice in choices):
        letters = string.ascii_lowercase[: len(choices)]
        is_clear = len(letters) == len(choices) and not any(choice.strip().lower() in letters for choice in choices)
        labels = list(letters) if is_clear else [f"#{label}" for label in labels]
    return dict(zip(labels, choices, strict=True))


def _looks_like_a_label(text: str, listed: dict[str, str]) -> bool:
    if "a" in listed:
        return len(text) == 1 and text.isalpha()
    return text.isdecimal() if "1" in listed else text.startswith("#")


def _range(ask: Ask) -> str:
    labels = list(_choices_by_label(ask))
    return labels[0] if len(labels) == 1 else tr("{first} to {last}").format(first=labels[0], last=labels[-1])


def _unknown_label_text(text: str) -> str:
    return (
        tr("There is no {text} in the list. ").format(text=plain(text)) if text and len(text) <= _LONGEST_LABEL else ""
    )


def _minimum_text(limit: ReachedLimit) -> str:
    amount = limit_amount_text(limit.kind, limit.used)
    if limit.kind in ("minutes", "money", "day_money"):
        return tr("more than {amount}").format(amount=amount)
    return tr("a whole number, more than {amount}").format(amount=amount)


def _amount_hint(limit: ReachedLimit | None) -> str:
    if limit is None:
        return ""
    more, new = f"{limit.adds:.10g}", f"{limit.used + limit.adds:.10g}"
    to = tr("the new limit in {unit}").format(unit=limit_unit(limit.kind))
    return f" · +{more} {more_text(limit.kind, limit.adds)} · ={new} {to}"
