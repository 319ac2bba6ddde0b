"""Asks at the prompt: what is shown, and how the line a person types is read. Settling them is the engine's."""

from dataclasses import dataclass
from typing import TypeAlias

from app.cli.diff import whole_diff_lines
from app.cli.plain import exact, plain, short_path
from app.cli.style import Style
from app.client.call_words import exactly
from app.client.limits import limit_unit, limit_words, new_limit
from app.protocol.asks import Approval, Ask, AskAnswerParams, Remember, Risk, UnknownCall

_RISKS: dict[Risk, str] = {"low": "low risk", "medium": "medium risk", "high": "high risk, look closely"}
_MOST_PATHS = 10


@dataclass(frozen=True, slots=True)
class Problem:
    """The line could not be taken as an answer; `text` says what could."""

    text: str


Reply: TypeAlias = AskAnswerParams | Problem


def ask_lines(ask: Ask, style: Style) -> list[str]:
    """The ask as a person must see it before answering."""
    if ask.approval is not None:
        return _approval_lines(ask.approval, style)
    if ask.unknown is not None:
        return _unknown_lines(ask, ask.unknown, style)
    head = f"{style.amber(style.sign('ask'))} {style.bold(plain(ask.text))}"
    choices = [f"  {number}  {plain(choice)}" for number, choice in enumerate(ask.choices, start=1)]
    return [head, *choices]


def hint(ask: Ask) -> str:
    """What may be typed."""
    if ask.approval is not None:
        deny = "d deny · r REASON deny and say why"
        if ask.approval.remembered is None:
            return f"a allow once · {deny}"
        return f"a allow once · c exactly this in this conversation · w in this workspace\n  {deny}"
    if ask.kind == "limit":
        raised = "" if ask.limit is None else f" · a number of your own: the new limit in {limit_unit(ask.limit.kind)}"
        return f"y {next(iter(ask.choices), 'go on').lower()} · n stop here{raised}"
    if ask.kind == "unknown":
        return " · ".join(f"{number} {choice.lower()}" for number, choice in enumerate(ask.choices, start=1))
    return "a number, or an answer of your own" if ask.choices else "type your answer"


def short_hint(ask: Ask) -> str:
    """What stands before the place where one types, for when the hint has scrolled away."""
    if ask.approval is not None:
        return "allow? a c w d r > " if ask.approval.remembered else "allow? a d r > "
    if ask.kind == "limit":
        return "go on? y n or a number > " if ask.limit is not None else "go on? y n > "
    return "answer > "


def read_reply(ask: Ask, line: str) -> Reply:
    """The answer that a typed line means, or what is wrong with it."""
    text = line.strip()
    if ask.approval is not None:
        return _approval_reply(ask, ask.approval, text)
    if ask.kind == "limit":
        return _limit_reply(ask, text)
    if ask.kind == "unknown" and not (text.isdecimal() and 1 <= int(text) <= len(ask.choices)):
        return Problem(f"Nothing was decided. Type one of: {hint(ask)}")
    if not text:
        return Problem("Type an answer, or press Ctrl+C to stop the task.")
    if ask.choices and text.isdecimal() and 1 <= int(text) <= len(ask.choices):
        return AskAnswerParams(ask_id=ask.id, text=ask.choices[int(text) - 1])
    return AskAnswerParams(ask_id=ask.id, text=text)


def outcome(ask: Ask) -> str:
    """How an ask was settled, in words."""
    by = f" by {ask.answered_by}" if ask.answered_by else ""
    if ask.status == "cancelled":
        return "no longer needed"
    if ask.kind == "question":
        return f"answered{by}: {plain(ask.answer or '')}"
    if ask.kind == "unknown":
        return f"{plain(ask.answer or '').lower()}{by}"
    if not ask.allowed:
        reason = f": {plain(ask.answer)}" if ask.answer else ""
        return f"{'stopped here' if ask.kind == 'limit' else 'denied'}{by}{reason}"
    if ask.amount is not None and ask.limit is not None:
        return f"raised to {limit_words(ask.limit.kind, ask.amount)}{by}"
    lasting = {"once": "once", "conversation": "in this conversation", "workspace": "in this workspace"}
    return f"went on{by}" if ask.kind == "limit" else f"allowed {lasting[ask.remember]}{by}"


def _approval_lines(approval: Approval, style: Style) -> list[str]:
    risk = _RISKS[approval.risk]
    painted = style.paint("1;31", risk) if approval.risk == "high" else style.amber(risk)
    lines = [f"{style.amber(style.sign('warn'))} {style.bold('approval needed')}{style.sign('sep')}{painted}"]
    if approval.command is not None:
        lines.append(f"  run    {style.bold(_indented(exact(approval.command)))}")
    else:
        lines.append(f"  do     {style.bold(_indented(exact(approval.text)))}")
    if approval.working_dir:
        lines.append(f"  in     {exact(short_path(approval.working_dir))}")
    reads = tuple(path for path in approval.reads if path != approval.working_dir)
    lines += _path_lines("reads", reads) + _path_lines("writes", approval.writes)
    lines.append(f"  why    {style.dim(plain(approval.rule))}")
    return lines + whole_diff_lines(approval.preview, style)


def _unknown_lines(ask: Ask, call: UnknownCall, style: Style) -> list[str]:
    return [
        f"{style.amber(style.sign('warn'))} {style.bold('outcome unknown')}",
        f"  ran    {style.bold(_indented(exactly(call)))}",
        f"  since  {call.started_at.astimezone():%H:%M:%S}",
        f"  why    {style.dim(plain(ask.text))}",
    ]


def _path_lines(verb: str, paths: tuple[str, ...]) -> list[str]:
    lines = [f"  {verb:<6} {exact(short_path(path))}" for path in paths[:_MOST_PATHS]]
    more = len(paths) - _MOST_PATHS
    return [*lines, f"         and {more} more"] if more > 0 else lines


def _indented(text: str) -> str:
    return text.replace("\n", "\n         ")


def _approval_reply(ask: Ask, approval: Approval, text: str) -> Reply:
    letter, _, rest = text.partition(" ")
    allowed: dict[str, Remember] = {"a": "once"}
    if approval.remembered is not None:
        allowed |= {"c": "conversation", "w": "workspace"}
    match letter.lower():
        case remember if remember in allowed and not rest:
            return AskAnswerParams(ask_id=ask.id, allow=True, remember=allowed[remember])
        case "d" if not rest:
            return AskAnswerParams(ask_id=ask.id, allow=False)
        case "r" if rest.strip():
            return AskAnswerParams(ask_id=ask.id, allow=False, text=rest.strip())
        case "r":
            return Problem("Say why after the r, for example: r use the test folder instead")
        case _:
            return Problem(f"Nothing was decided. Type one of: {hint(ask)}")


def _limit_reply(ask: Ask, text: str) -> Reply:
    if text.lower() in ("y", "yes"):
        return AskAnswerParams(ask_id=ask.id, allow=True)
    if text.lower() in ("n", "no"):
        return AskAnswerParams(ask_id=ask.id, allow=False)
    amount = new_limit(ask.limit, text) if ask.limit is not None else None
    if amount is not None:
        return AskAnswerParams(ask_id=ask.id, allow=True, amount=amount)
    least = "" if ask.limit is None else f"; it must be more than {limit_words(ask.limit.kind, ask.limit.used)}"
    return Problem(f"Type one of: {hint(ask)}{least}")
