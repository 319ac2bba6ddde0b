"""What an ask asks, offers and came to. Sentences of the engine are written anew, in the person's language."""

from datetime import UTC, datetime

from errand.client.number_format import clock_time, short_day
from errand.client.safe_text import escape_hidden, escape_hidden_line, plain
from errand.protocol.asks import RUN_AGAIN, SKIP, STOP, Approval, Ask, AskKind, UnknownCall
from errand.text.notice_text import limit_text
from errand.text.translation import tr

_UNKNOWN = tr(
    "The engine was killed while this was under way. It may have taken effect in part, in whole, or not at all: "
    "look first, then choose."
)
# The choices that an engine writes; those of an agent are shown as they are.
_CHOICES = {
    RUN_AGAIN: tr("Run it again"),
    SKIP: tr("Skip it"),
    STOP: tr("Stop the task"),
    "Go on with as much again": tr("Go on with as much again"),
    "Go on": tr("Go on"),
    "Stop here": tr("Stop here"),
}
# How an ask ended that nobody answered in time, and how it would end.
_TIMED_OUT: dict[AskKind, str] = {
    "question": tr("not answered: {reason}"),
    "limit": tr("stopped here: {reason}"),
    "approval": tr("denied: {reason}"),
    "unknown": tr("not repeated: {reason}"),
}

_DEADLINES: dict[AskKind, str] = {
    "question": tr("Continues without an answer at {time}."),
    "limit": tr("Stops at {time} unless you answer."),
    "approval": tr("Denied at {time} unless you answer."),
    "unknown": tr("Not repeated unless you answer by {time}."),
}


def asked_text(ask: Ask) -> str:
    """Return the question of a person or agent as it is; a limit and an unknown outcome as a sentence of this
    client.
    """
    if ask.limit is not None:
        return f"{limit_text(ask.limit.kind, ask.limit.limit)} {tr('Go on?')}"
    return _UNKNOWN if ask.unknown is not None else plain(ask.text)


def choice_text(ask: Ask, choice: str) -> str:
    """Return the label of a choice; what answers with it is the choice itself."""
    return plain(choice) if ask.kind == "question" else _CHOICES.get(choice, plain(choice))


def settled_text(ask: Ask) -> str:
    """Return what settled an ask instead of an answer; empty if a person answered it, or a rule that they made."""
    reason = escape_hidden_line(ask.answer or "")
    match ask.settled_by:
        case "person" | "rule":
            return ""
        case "mode":
            return (
                tr("allowed by the new approval mode")
                if ask.allowed
                else tr("denied by the new approval mode: {reason}").format(reason=reason)
            )
        case "timeout":
            if ask.kind == "unknown":
                reason = tr("nobody answered in time")
            return _TIMED_OUT[ask.kind].format(reason=reason)


def deadline_text(ask: Ask) -> str:
    """Return the time at which an open ask is settled without an answer; empty if it has no time limit."""
    if ask.expires_at is None or ask.status != "waiting":
        return ""
    at = ask.expires_at.astimezone()
    is_today = at.date() == datetime.now(UTC).astimezone().date()
    when = clock_time(at) if is_today else tr("{time} on {day}").format(time=clock_time(at), day=short_day(at))
    return _DEADLINES[ask.kind].format(time=when)


def subject_text(ask: Approval | UnknownCall) -> str:
    """Return the subject of an approval: the exact command, or a description of a call that runs none."""
    return escape_hidden(ask.text if ask.command is None else ask.command)
