"""Texts about rules: what an approval may allow from now on, what was granted, and which calls a rule decides."""

import shlex
from datetime import UTC, datetime

from errand.client.number_format import moment_text
from errand.client.safe_text import escape_hidden_line
from errand.protocol.asks import CoveredCall, Grant, GrantCoveredResult, GrantOffer, Remember
from errand.text.translation import grouped, tr, trn

# How long and where an approval holds, as the end of a sentence.
REMEMBERED: dict[Remember, str] = {
    "once": tr("once"),
    "conversation": tr("in this conversation"),
    "workspace": tr("in this folder"),
    "user": tr("everywhere"),
}


def rule_words(line: str) -> tuple[str, ...]:
    """Return the words of a command as a shell reads them, with operators as words of their own; without the final
    dots.

    Raises ValueError with a sentence if it ends within a word.
    """
    splitter = shlex.shlex(line, posix=True, punctuation_chars=True)
    splitter.whitespace_split, splitter.commenters = True, ""
    try:
        arguments = tuple(splitter)
    except ValueError as error:
        problem = tr("“{line}” is not one command: a quotation mark is missing, or nothing follows a backslash.")
        raise ValueError(problem.format(line=escape_hidden_line(line))) from error
    return arguments[:-1] if arguments[-1:] in (("…",), ("...",)) else arguments


def offer_text(offer: GrantOffer) -> str:
    """Return a few words on what the offer covers, different from those of the other offers of its approval."""
    match offer.kind:
        case "exact":
            return tr("Exactly this")
        case "prefix":
            return escape_hidden_line(", ".join(f"{shlex.join(call.prefix)} …" for call in offer.calls))
        case "content":
            return tr("This file with this content")
        case "file":
            return tr("Any change to this file")
        case "folder":
            folders = ", ".join(call.folder or "" for call in offer.calls)
            return tr("Any change in {folders}").format(folders=escape_hidden_line(folders))
        case "host":
            hosts = ", ".join(call.host or "" for call in offer.calls)
            return tr("Pages of {hosts}").format(hosts=escape_hidden_line(hosts))
        case "tool":
            return tr("Any call of this tool")
        case "server":
            return tr("Any tool of this server")
        case "code":
            return tr("Any code, in the sandbox")


def grant_text(grant: Grant) -> str:
    """Return the scope of a grant, when and by whom it was given, its last use, and when it ends or was taken back."""
    parts = [_scope_text(grant), escape_hidden_line(grant.tool) or tr("every tool"), _decision_text(grant)]
    if grant.decision == "allow":
        last = grant.last_used_at
        parts.append(tr("last used {time}").format(time=moment_text(last)) if last else tr("not used yet"))
    if grant.expires_at is not None:
        is_over = grant.expires_at <= datetime.now(UTC)
        expiry = tr("expired {time}") if is_over else tr("until {time}")
        parts.append(expiry.format(time=moment_text(grant.expires_at)))
    if grant.revoked_at is not None:
        parts.append(tr("revoked {time}").format(time=moment_text(grant.revoked_at)))
    return " · ".join(parts)


def _decision_text(grant: Grant) -> str:
    time, who = moment_text(grant.created_at), escape_hidden_line(grant.created_by)
    if grant.decision == "deny":
        decided = tr("denied {time} by {who}") if who else tr("denied {time}")
    else:
        decided = tr("given {time} by {who}") if who else tr("given {time}")
    return decided.format(time=time, who=who)


def covered_summary(found: GrantCoveredResult) -> str:
    """Return the number of recorded calls that a rule decides, in words."""
    return trn(
        "Would have decided {decided} of the last call.",
        "Would have decided {decided} of the last {n} calls.",
        found.judged,
    ).format(decided=grouped(len(found.calls)))


def covered_line(call: CoveredCall) -> str:
    """One of these calls: the verdict without the rule, and with it. Lines of several calls form columns."""
    verdicts = f"{call.without} → {call.verdict}"
    return f"{verdicts:<13}  {escape_hidden_line(call.text)}"


def _scope_text(grant: Grant) -> str:
    match grant.scope:
        case "conversation":
            return tr("In one conversation")
        case "workspace":
            return tr("In {folder}").format(folder=escape_hidden_line(grant.scope_id))
        case "user":
            return tr("Everywhere")
