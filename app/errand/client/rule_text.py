"""Texts about rules: what an approval may allow from now on, what was granted, and which calls a rule decides."""

import shlex
from datetime import UTC, datetime

from errand.client.number_format import count, moment_text
from errand.client.safe_text import escape_hidden_line
from errand.protocol.asks import CoveredCall, Grant, GrantCoveredResult, GrantOffer, Remember

# How long and where an approval holds, as the end of a sentence.
REMEMBERED: dict[Remember, str] = {
    "once": "once",
    "conversation": "in this conversation",
    "workspace": "in this workspace",
    "user": "everywhere",
}


def rule_words(line: str) -> tuple[str, ...]:
    """The words of a command as a shell reads them, with operators as words of their own; without the final dots.

    Raises ValueError with a sentence if it ends within a word.
    """
    splitter = shlex.shlex(line, posix=True, punctuation_chars=True)
    splitter.whitespace_split, splitter.commenters = True, ""
    try:
        words = tuple(splitter)
    except ValueError as error:
        what = "a quotation mark has no counterpart, or nothing follows a backslash"
        raise ValueError(f"“{escape_hidden_line(line)}” is not one command: {what}.") from error
    return words[:-1] if words[-1:] in (("…",), ("...",)) else words


def offer_text(offer: GrantOffer) -> str:
    """A few words on what the offer covers, different from those of the other offers of its approval."""
    match offer.kind:
        case "exact":
            return "Exactly this"
        case "prefix":
            return escape_hidden_line(", ".join(f"{shlex.join(call.prefix)} …" for call in offer.calls))
        case "content":
            return "This file with this content"
        case "file":
            return "Any change of this file"
        case "folder":
            folders = ", ".join(call.folder or "" for call in offer.calls)
            return escape_hidden_line(f"Any change in {folders}")
        case "host":
            return escape_hidden_line(f"Pages of {', '.join(call.host or '' for call in offer.calls)}")
        case "tool":
            return "Any call of this tool"
        case "server":
            return "Any tool of this server"
        case "code":
            return "Any code, in the sandbox"


def grant_text(grant: Grant) -> str:
    """The scope of a grant, when and by whom it was given, its last use, and when it ends or was taken back."""
    by = f" by {escape_hidden_line(grant.created_by)}" if grant.created_by else ""
    used = f"last used {moment_text(grant.last_used_at)}" if grant.last_used_at else "not used yet"
    tool = escape_hidden_line(grant.tool) or "every tool"
    words = "denied" if grant.decision == "deny" else "given"
    parts = [_scope_text(grant), tool, f"{words} {moment_text(grant.created_at)}{by}"]
    if grant.decision == "allow":
        parts.append(used)
    if grant.expires_at is not None:
        verb = "expired" if grant.expires_at <= datetime.now(UTC) else "until"
        parts.append(f"{verb} {moment_text(grant.expires_at)}")
    if grant.revoked_at is not None:
        parts.append(f"revoked {moment_text(grant.revoked_at)}")
    return " · ".join(parts)


def covered_summary(found: GrantCoveredResult) -> str:
    """How many of the recorded calls a rule decides."""
    return f"It would have decided {len(found.calls):,} of the last {count(found.judged, 'call')}."


def covered_line(call: CoveredCall) -> str:
    """One of these calls: the verdict without the rule, and with it. Lines of several calls form columns."""
    verdicts = f"{call.without} → {call.verdict}"
    return f"{verdicts:<13}  {escape_hidden_line(call.text)}"


def _scope_text(grant: Grant) -> str:
    match grant.scope:
        case "conversation":
            return "In one conversation"
        case "workspace":
            return f"In {escape_hidden_line(grant.scope_id)}"
        case "user":
            return "Everywhere"
