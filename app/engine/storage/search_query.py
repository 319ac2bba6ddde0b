"""What a person typed into the search box, first part: the operators that narrow a search, taken out of its words."""

import re
from dataclasses import dataclass, replace
from datetime import datetime

_OPERATOR = re.compile(r'(?<!\S)(from|in|tool|before|after):(?:"([^"]*)"?|(\S*))', re.IGNORECASE)
_DAY = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")
_MOST = 8
_ADVICE = {
    "from": "from: wants who said it: user, agent, or an agent's name, as in from:user or from:Coder.",
    "in": 'in: wants words of a conversation\'s title, or its id, as in in:parser or in:"tide tables".',
    "tool": "tool: wants the name of a tool, as in tool:shell.",
    "before": "before: wants a day, a month or a year, as in before:2026-11-01, before:2026-11 or before:2026.",
    "after": "after: wants a day, a month or a year, as in after:2026-11-01, after:2026-11 or after:2026.",
}


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """`words` is the rest of the text. Of one operator any value fits, of different ones all must.

    `after` and `before` are the first moment in it, and the first one that is not. `advice` says what to write where a
    value means nothing.
    """

    words: str
    senders: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    advice: str = ""

    @property
    def spans(self) -> bool:
        """A time is given."""
        return self.after is not None or self.before is not None

    @property
    def narrows(self) -> bool:
        return self != SearchQuery(self.words)


def parse_query(text: str) -> SearchQuery:
    """Days are those of this computer's clock."""
    text = text.replace("\0", " ")
    query = SearchQuery(" ".join(_OPERATOR.sub(" ", text).split()))
    for found in list(_OPERATOR.finditer(text))[:_MOST]:
        name, value = found[1].lower(), " ".join((found[2] or found[3] or "").split())
        query = _with(query, name, value)
    return query


def _with(query: SearchQuery, name: str, value: str) -> SearchQuery:
    if not re.search(r"\w", value):
        return replace(query, advice=query.advice or _ADVICE[name])
    match name:
        case "from":
            return replace(query, senders=(*query.senders, value))
        case "in":
            return replace(query, places=(*query.places, value))
        case "tool":
            return replace(query, tools=(*query.tools, value))
        case _:
            return _with_moment(query, name, value)


def _with_moment(query: SearchQuery, name: str, value: str) -> SearchQuery:
    moment = _begin(value)
    if moment is None:
        return replace(query, advice=query.advice or _ADVICE[name])
    return replace(query, before=moment) if name == "before" else replace(query, after=moment)


def _begin(value: str) -> datetime | None:
    """The first moment of a day, a month or a year; None for what is none."""
    found = _DAY.fullmatch(value)
    if found is None:
        return None
    year, month, day = (int(part) if part else 1 for part in found.groups())
    try:
        # Times near the ends of the calendar cannot be turned into UTC.
        return datetime(year, month, day).astimezone() if 1 < year < 9999 else None
    except (ValueError, OverflowError):
        return None
