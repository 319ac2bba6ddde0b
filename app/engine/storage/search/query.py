"""The search box: operators, words, phrases."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

# More or longer pieces than this only cost time.
_MOST = 16
_LONGEST = 200
_PIECE = re.compile(r'"([^"]*)(?:"|$)|([^\s"]+)')
_WORD = re.compile(r"[^\W_]+")

# What stands in quotes is a phrase, and no operator is looked for in it.
_PIECE_SEARCH_QUERY = re.compile(r'(?<!\S)(from|in|tool|before|after):(?:"([^"]*)"?|(\S*))|"[^"]*"?', re.IGNORECASE)
_QUOTES = {ord(quote): '"' for quote in "“”„«»"}
# With the year first, or with the day first as it is written with dots.
_DAYS = tuple(
    re.compile(form)
    for form in (
        r"(?P<year>\d{4})(?:(?P<mark>[-/.])(?P<month>\d{1,2})(?:(?P=mark)(?P<day>\d{1,2}))?)?",
        r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
    )
)
_DAYS_AGO = {"today": 0, "yesterday": 1}
_MOST_SEARCH_QUERY = 8
_ADVICE = {
    "from": "from: wants who said it: user, agent, or an agent's name, as in from:user or from:Coder.",
    "in": 'in: wants words of a conversation\'s title, or its id, as in in:parser or in:"tide tables".',
    "tool": "tool: wants the name of a tool, as in tool:shell.",
    "before": "before: wants a day, a month or a year, as in before:2026-11-01, before:2026 or before:today.",
    "after": "after: wants a day, a month or a year, as in after:2026-11-01, after:2026 or after:yesterday.",
}


@dataclass(frozen=True, slots=True)
class QueryWords:
    """`phrases` must all occur. With `is_open` the last word of the last one may go on.

    `unfinished` is the same where that word is long enough for what it may become to be few.
    """

    phrases: tuple[str, ...]
    is_open: bool
    unfinished: bool


def parse_words(text: str) -> QueryWords:
    """Words by spaces, phrases by "quotes" (the last may be left open); pieces without letter or digit are left out."""
    pieces = [" ".join((match[1] or match[2] or "").split()) for match in _PIECE.finditer(text.replace("\0", " "))]
    phrases = tuple(piece[:_LONGEST] for piece in pieces if _WORD.search(piece))[:_MOST]
    if not phrases:
        return QueryWords((), False, False)
    closed = text.rstrip().endswith('"') and text.count('"') % 2 == 0
    return QueryWords(phrases, not closed, not closed and len(_WORD.findall(phrases[-1])[-1]) >= 3)


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
    text = text.replace("\0", " ").translate(_QUOTES)
    words = _PIECE_SEARCH_QUERY.sub(lambda found: " " if found[1] else found[0], text)
    query = SearchQuery(" ".join(words.split()))
    for found in [found for found in _PIECE_SEARCH_QUERY.finditer(text) if found[1]][:_MOST_SEARCH_QUERY]:
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
    if (ago := _DAYS_AGO.get(value.lower())) is not None:
        day = datetime.now(UTC).astimezone() - timedelta(days=ago)
        return datetime(day.year, day.month, day.day).astimezone()
    found = next((found for form in _DAYS if (found := form.fullmatch(value))), None)
    if found is None:
        return None
    year, month, day = (int(found[part]) if found[part] else 1 for part in ("year", "month", "day"))
    try:
        # Times near the ends of the calendar cannot be turned into UTC.
        return datetime(year, month, day).astimezone() if 1 < year < 9999 else None
    except (ValueError, OverflowError):
        return None
