"""The text of asks: what a person must see before they answer, and the outcome."""

import msgspec

from errand.cli.rendering.ask_choices import choices_by_label
from errand.cli.rendering.tool_calls import full_diff_lines
from errand.cli.terminal.style import PLAIN, Style
from errand.cli.terminal.text import columns, escape_hidden, escape_hidden_line, one_line, plain, short_path, wrapped
from errand.client.texts.asks import asked_text, choice_text, deadline_text, settled_text, subject_text
from errand.client.texts.effects import EffectKind, effect_of
from errand.client.texts.limits import limit_amount_text
from errand.client.texts.rules import REMEMBERED
from errand.protocol.asks import Approval, Ask, GrantOffer, Risk, UnknownCall
from errand.text.translation import tr, trn, uncapitalised

_RISKS: dict[Risk, str] = {"low": tr("low risk"), "medium": tr("medium risk"), "high": tr("high risk, look closely")}
_MAX_PATHS = 10
_MAX_LINES, _LAST_LINES = 40, 8
_MAX_CHANGE_LINES = 400
# Told to the model where nobody can answer: not a reason that a person gave.
NOBODY = (
    "(no one is there to answer: find it out, or decide yourself and say what you assumed; "
    "if only the person can know it, say what is missing)"
)
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
_FULL_TEXT_WIDTH = 100


def ask_lines(ask: Ask, style: Style, width: int) -> list[str]:
    """Return the ask as lines, with everything a person must see before answering."""
    if ask.sub_agent:
        who = style.amber(tr("The sub-agent “{sub_agent}” asks:").format(sub_agent=one_line(plain(ask.sub_agent), 80)))
        return [who, *ask_lines(msgspec.structs.replace(ask, sub_agent=""), style, width)]
    until = [f"  {style.dim(text)}"] if (text := deadline_text(ask)) else []
    if ask.approval is not None:
        return [*_approval_lines(ask.approval, style, width), *until]
    if ask.unknown is not None:
        return [*_unknown_lines(ask, ask.unknown, style, width), *until]
    head = f"{style.amber(style.sign('ask'))} {style.bold(asked_text(ask))}"
    choices = [f"  {label}  {choice_text(ask, choice)}" for label, choice in choices_by_label(ask).items()]
    return [head, *choices, *until]


def outcome_text(ask: Ask) -> str:
    """Return the outcome of an ask in words."""
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


def full_text(approval: Approval) -> str:
    """Return the full text of everything that was shown in excerpts."""
    lines = [*_action_lines(approval, PLAIN, _FULL_TEXT_WIDTH), *_change_lines(approval, PLAIN, _FULL_TEXT_WIDTH)]
    paths = [*_all_path_lines(_READS, _reads(approval)), *_all_path_lines(_WRITES, approval.writes)]
    why = [f"  {escape_hidden(line)}" for line in approval.explained.splitlines()]
    return "\n".join([*lines, *paths, *why]).lstrip()


def unknown_command_text(call: UnknownCall) -> str:
    """Return the full text of the command whose outcome is unknown."""
    return "\n".join(_labelled(_RAN, subject_text(call), PLAIN, _FULL_TEXT_WIDTH)).lstrip()


def _approval_lines(approval: Approval, style: Style, width: int) -> list[str]:
    risk = _RISKS[approval.risk]
    painted = style.paint("1;31", risk) if approval.risk == "high" else style.amber(risk)
    head = f"{style.amber(style.sign('warn'))} {style.bold(tr('Approval needed'))}{style.sign('sep')}{painted}"
    lines = [*wrapped(head, width).splitlines(), *_excerpt(_action_lines(approval, style, width), style)]
    if approval.working_dir:
        lines.append(_line_of(_IN, escape_hidden_line(short_path(approval.working_dir))))
    lines += _path_lines(_READS, _reads(approval)) + _path_lines(_WRITES, approval.writes)
    lines += _prose(_WHY, approval.rule, style, width)
    if approval.sandbox:
        lines += _prose(_SAFETY, approval.sandbox, style, width)
    for number, offer in enumerate(approval.offers, start=1):
        lines += _offer_lines(number, offer, style, width)
    return lines + _excerpt(_change_lines(approval, style, width), style, _MAX_CHANGE_LINES)


def _change_lines(approval: Approval, style: Style, width: int) -> list[str]:
    """Return the diff, if the preview is one."""
    return [] if effect_of(approval).details else full_diff_lines(approval.preview, style, width)


def _offer_lines(number: int, offer: GrantOffer, style: Style, width: int) -> list[str]:
    """Return a rule that may be allowed from now on, with an example for it and one against it."""
    lines = _prose(_RULE.format(number=number), offer.covers, PLAIN, width)
    if offer.example and offer.kind != "exact":
        examples = [tr("for example: {call}").format(call=offer.example)]
        examples += [tr("but not: {call}").format(call=offer.not_covered)] if offer.not_covered else []
        lines += [line for example in examples for line in _prose("", example, style, width)]
    return lines


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


def _unknown_lines(ask: Ask, call: UnknownCall, style: Style, width: int) -> list[str]:
    return [
        f"{style.amber(style.sign('warn'))} {style.bold(tr('Outcome unknown'))}",
        *_excerpt(_labelled(_RAN, subject_text(call), style, width), style),
        _line_of(_SINCE, f"{call.started_at.astimezone():%H:%M:%S}"),
        *_prose(_WHY, asked_text(ask), style, width),
    ]


def _path_lines(verb: str, paths: tuple[str, ...]) -> list[str]:
    lines = _all_path_lines(verb, paths[:_MAX_PATHS])
    more = len(paths) - _MAX_PATHS
    return [*lines, _INDENT + tr("… {more} more (v shows all)").format(more=more)] if more > 0 else lines


def _all_path_lines(verb: str, paths: tuple[str, ...]) -> list[str]:
    return [_line_of(verb, escape_hidden_line(short_path(path))) for path in paths]


def _excerpt(lines: list[str], style: Style, most: int = _MAX_LINES) -> list[str]:
    """Return the beginning and the end, with the number of omitted lines between."""
    left_out = len(lines) - most
    if left_out <= 1:
        return lines
    mark = style.amber(_INDENT + trn("… {n} more line (v shows all)", "… {n} more lines (v shows all)", left_out))
    return [*lines[: most - _LAST_LINES], mark, *lines[-_LAST_LINES:]]


def _labelled(label: str, text: str, style: Style, width: int) -> list[str]:
    """Return a text of any length after its label; continuation lines are indented, so that they cannot imitate a
    label.
    """
    room = max(20, width - len(_INDENT) - 1)
    pieces = [piece for line in text.split("\n") for piece in _pieces(line, room)]
    return [_line_of(label, style.bold(pieces[0])), *(_INDENT + style.bold(piece) for piece in pieces[1:])]


def _prose(label: str, text: str, style: Style, width: int) -> list[str]:
    """Return a sentence after its label, wrapped at blanks and indented as `_labelled` does."""
    room = max(20, width - len(_INDENT) - 1)
    rows = [row for line in wrapped(escape_hidden_line(text), room).split("\n") for row in _pieces(line, room)]
    first, *more = (style.dim(row) for row in rows)
    return [_line_of(label, first), *(_INDENT + row for row in more)]


def _line_of(label: str, text: str) -> str:
    return f"  {label}{' ' * (_LABEL_WIDTH - columns(label))} {text}"


def _pieces(line: str, room: int) -> list[str]:
    return [line[at : at + room] for at in range(0, len(line), room)] or [""]
