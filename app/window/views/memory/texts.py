"""The sentences of memory's window."""

from datetime import datetime

from app.client.safe_text import escape_hidden_line
from app.protocol.facts import Fact


def date_text(moment: datetime) -> str:
    """The local date and time, such as 3 Nov 2026, 14:20."""
    local = moment.astimezone()
    return f"{local.day} {local:%b %Y, %H:%M}"


def origin_text(fact: Fact) -> str:
    """Where the fact holds, who added it and when."""
    match fact.scope:
        case "always":
            where = "Always"
        case "me":
            where = "About me"
        case "folder":
            where = f"In {escape_hidden_line(fact.folder)}"
    verb = "proposed" if fact.status == "proposed" else "pinned"
    by = f" by {escape_hidden_line(fact.by)}" if fact.by else ""
    return f"{where} · {verb}{by} on {date_text(fact.at)}"
