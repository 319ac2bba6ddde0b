"""Parses search queries: operators, words, phrases."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

# Limits that bound the cost of a search.
_MAX_PHRASES = 16
_MAX_PHRASE_LENGTH = 200
_TOKEN = re.compile(r'"([^"]*)(?:"|$)|([^\s"]+)')
_WORD = re.compile(r"[^\W_]+")

# Operators inside quotes are part of the phrase.
_OPERATOR = re.compile(r'(?<!\S)(from|in|tool|before|after):(?:"([^"]*)"?|(\S*))|"[^"]*"?', re.IGNORECASE)
_QUOTES = {ord(quote): '"' for quote in "“”„«»"}
# Year first, or day first with dots.
_DATE_FORMATS = tuple(
    re.compile(form)
    for form in (
        r"(?P<year>\d{4})(?:(?P<mark>[-/.])(?P<month>\d{1,2})(?:(?P=mark)(?P<day>\d{1,2}))?)?",
        r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
    )
)
_DAYS_AGO = {"today": 0, "yesterday": 1}
_MAX_OPERATORS = 8
_ADVICE = {
    "from": "from: wants who said it: user, agent, or an agent's name, as in from:user or from:Coder.",
    "in": 'in: wants words of a conversation\'s title, or its id, as in in:parser or in:"tide tables".',
    "tool": "tool: wants the name of a tool, as in tool:shell.",
    "before": "before: wants a day, a month or a year, as in before:2026-11-01, before:2026 or before:today.",
    "after": "after: wants a day, a month or a year, as in after:2026-11-01, after:2026 or after:yesterday.",
}


@dataclass(frozen=True, slots=True)
class QueryWords:
    """`phrases` must all occur. With `is_open`, the last word of the last phrase may be incomplete.

    `unfinished`: the same, if that word is long enough for few completions.
    """

    phrases: tuple[str, ...]
    is_open: bool
    unfinished: bool


def parse_words(text: str) -> QueryWords:
    """Words, and phrases in "quotes" (the last may be unclosed); pieces without letters or digits are dropped."""
    pieces = [" ".join((match[1] or match[2] or "").split()) for match in _TOKEN.finditer(text.replace("\0", " "))]
    phrases = tuple(piece[:_MAX_PHRASE_LENGTH] for piece in pieces if _WORD.search(piece))[:_MAX_PHRASES]
    if not phrases:
        return QueryWords((), False, False)
    closed = text.rstrip().endswith('"') and text.count('"') % 2 == 0
    return QueryWords(phrases, not closed, not closed and len(_WORD.findall(phrases[-1])[-1]) >= 3)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """`text` is what remains without operators.

    Values of one operator are alternatives; different operators must all match. `after` is inclusive, `before` is
    exclusive. `advice` explains an invalid operator value.
    """

    text: str
    senders: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    advice: str = ""

    @property
    def has_period(self) -> bool:
        """True if the query has a period."""
        return self.after is not None or self.before is not None

    @property
    def has_operators(self) -> bool:
        return self != SearchQuery(self.text)


def parse_query(text: str) -> SearchQuery:
    """Days are in the local time zone."""
    text = text.replace("\0", " ").translate(_QUOTES)
    without_operators = _OPERATOR.sub(lambda found: " " if found[1] else found[0], text)
    query = SearchQuery(" ".join(without_operators.split()))
    for match in [candidate for candidate in _OPERATOR.finditer(text) if candidate[1]][:_MAX_OPERATORS]:
        name, value = match[1].lower(), " ".join((match[2] or match[3] or "").split())
        query = _with(query, name, value)
    return query


def _with(query: SearchQuery, name: str, value: str) -> SearchQuery:
    if not re.search(r"\w", value):
        return replace(query, advice=query.advice or _ADVICE[name])
    match name:
        case "from":
            return replace(query, senders=(*query.senders, value))
        case "in":
            return replace(query, conversations=(*query.conversations, value))
        case "tool":
            return replace(query, tools=(*query.tools, value))
        case _:
            return _with_moment(query, name, value)


def _with_moment(query: SearchQuery, name: str, value: str) -> SearchQuery:
    moment = _start_of_period(value)
    if moment is None:
        return replace(query, advice=query.advice or _ADVICE[name])
    return replace(query, before=moment) if name == "before" else replace(query, after=moment)


def _start_of_period(value: str) -> datetime | None:
    """Return the start of a day, a month or a year; None for other values."""
    if (ago := _DAYS_AGO.get(value.lower())) is not None:
        day = datetime.now(UTC).astimezone() - timedelta(days=ago)
        return datetime(day.year, day.month, day.day).astimezone()
    match = next((match for form in _DATE_FORMATS if (match := form.fullmatch(value))), None)
    if match is None:
        return None
    year, month, day = (int(match[part]) if match[part] else 1 for part in ("year", "month", "day"))
    try:
        # Times near the ends of the calendar cannot be converted to UTC.
        return datetime(year, month, day).astimezone() if 1 < year < 9999 else None
    except (ValueError, OverflowError):
        return None
