"""Parses a question: its significant words, the dates it refers to, and the form of answer it asks for."""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta

from errand.engine.memory.words.stop_words import ENGLISH, language_of, stop_words

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_MAX_WORDS = 64
_MAX_QUESTION_LENGTH = 4_000
_BEGINNING = 800
_MONTH_LIST = "january february march april may june july august september october november december"
_WEEKDAY_LIST = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = _MONTH_LIST.split()
_MONTH_NUMBERS = {key: number for number, name in enumerate(_MONTHS, 1) for key in (name, name[:3])} | {"sept": 9}
_WEEKDAYS = {name: day for day, name in enumerate(_WEEKDAY_LIST.split())}
_MONTH = "|".join(sorted((name for name in _MONTH_NUMBERS), key=len, reverse=True))
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_ISO_DAY = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_DAY_OF_MONTH = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})"
    rf"|(?P<month2>{_MONTH})\.? (?:the )?(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?)\b(?:,? (?P<year>\d{{4}}))?"
)
_WEEK_OF_MONTH = re.compile(
    rf"\b(?P<which>first|second|third|fourth|last) week (?:of|in) (?P<month>{_MONTH})\b(?: (?P<year>\d{{4}}))?"
)
# "may" and "march" are verbs too: a month alone needs a word in front.
_WHOLE_MONTH = re.compile(
    rf"\b(?:in|of|during|since|until|by|early|late|mid|this|last|next)[ -](?P<month>{_MONTH})\b"
    r"(?:,? (?P<year>\d{4}))?"
)
_WEEK_NUMBERS = {"first": 0, "second": 1, "third": 2, "fourth": 3}
_ASKS_TIME = re.compile(
    r"\b(when|what (time|day|date|month|year|week)|which (day|date|month|year|week|weekday)|how long|since when|"
    r"until when|what's the date|how many (days|weeks|months|years))\b"
)
_TELLS_TIME = re.compile(
    r"\b(today|tonight|yesterday|tomorrow|this (morning|evening|weekend)|last night|"
    rf"{'|'.join(_WEEKDAYS)}|{'|'.join(_MONTHS)}|\d{{1,2}}(:\d\d| ?[ap]m)|"
    rf"\d{{4}}-\d\d-\d\d|(19|20)\d\d|ago|days?|weeks?|months?|years?)\b"
)
_ASKS_NUMBER = re.compile(
    r"\b(how (many|much|old|far|big|large|long|often|high|expensive|warm|fast|heavy|tall)|costs?|"
    r"(what|which) (price|number|amount|version|size|total|rate|port|percentage|share))\b"
)
_ASKS_NAME = re.compile(r"\b(who|whose|whom|name of|called)\b")
_SELF = frozenset(("i", "i'm", "i've", "i'd", "i'll", "me", "my", "mine", "myself"))
# A word after another within a sentence: one with a capital is a name there.
_INNER_WORD = re.compile(r"(?<=[^\s.!?] )[^\W\d_]\w+")


@dataclass(frozen=True, slots=True)
class Period:
    """Days from `first` to `last`, both included. Without a `has_year` they are meant in any year."""

    first: date
    last: date
    has_year: bool

    def holds(self, day: date) -> bool:
        if self.has_year:
            return self.first <= day <= self.last
        start, end = (self.first.month, self.first.day), (self.last.month, self.last.day)
        return start <= (day.month, day.day) <= end


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed question. `terms` are its words in lower case, in order, without stop words; `all_words` has all."""

    text: str
    terms: tuple[str, ...]
    all_words: frozenset[str]
    periods: tuple[Period, ...]
    weekdays: tuple[int, ...]
    asks_time: bool
    asks_number: bool
    asks_name: bool
    language: str = ENGLISH

    @property
    def is_about_asker(self) -> bool:
        return not self.all_words.isdisjoint(_SELF)

    @property
    def names_days(self) -> bool:
        return bool(self.periods or self.weekdays)

    def means(self, day: date) -> bool:
        return any(period.holds(day) for period in self.periods) or day.weekday() in self.weekdays


def read_question(text: str) -> Question:
    text = text[:_MAX_QUESTION_LENGTH]
    lower = text.lower().replace("’", "'")
    every = [match[0] for match in _WORD.finditer(lower)][:_MAX_WORDS]
    language = language_of(every)
    terms = tuple(dict.fromkeys(word.removesuffix("'s") for word in every if word not in stop_words(language)))
    weekdays = tuple(day for name, day in _WEEKDAYS.items() if re.search(rf"\b{name}s?\b", lower))
    asked = (bool(form.search(lower)) for form in (_ASKS_TIME, _ASKS_NUMBER, _ASKS_NAME))
    return Question(text, terms, frozenset(every), tuple(_periods(lower)), weekdays, *asked, language=language)


def has_asked_form(question: Question, text: str) -> bool:
    """Return True if a text has what the question asks for: a time, a number, or a name not in the question."""
    return (
        (question.asks_time and tells_time(text))
        or (question.asks_number and any(map(str.isdigit, text)))
        or (question.asks_name and _has_other_name(question, text))
    )


def count_new_words(question: Question, text: str) -> int:
    """Return how many significant words the beginning of a text has that are not in the question."""
    beginning = text[:_BEGINNING].lower().replace("’", "'").replace("'s", "")
    return len(set(_WORD.findall(beginning)).difference(stop_words(question.language), question.terms))


def tells_time(text: str) -> bool:
    """Return True if a text has a day, an hour or a length of time in it."""
    return bool(_TELLS_TIME.search(text[:_MAX_QUESTION_LENGTH].lower()))


def share_of_questions(text: str) -> float:
    """Return the part of its sentences that end in a question mark, from 0 to 1."""
    if "?" not in text:
        return 0.0
    sentences = [part for part in _SENTENCE.split(text[:_MAX_QUESTION_LENGTH]) if part.strip()]
    asked = sum(part.rstrip(" \"')*_").endswith("?") for part in sentences)
    return asked / len(sentences) if sentences else 0.0


def _has_other_name(question: Question, text: str) -> bool:
    question_words = question.all_words.union(question.terms)
    inner = (match[0] for match in _INNER_WORD.finditer(text[:_MAX_QUESTION_LENGTH]))
    return any(word[0].isupper() and word.lower() not in question_words for word in inner)


def _periods(text: str) -> list[Period]:
    periods: list[Period] = []
    for match in _ISO_DAY.finditer(text):
        periods += _one_day(int(match[1]), int(match[2]), int(match[3]), has_year=True)
    for match in _DAY_OF_MONTH.finditer(text):
        month = _MONTH_NUMBERS[match["month"] or match["month2"]]
        periods += _one_day(
            _year(match["year"]), month, int(match["day"] or match["day2"]), has_year=bool(match["year"])
        )
    for match in _WEEK_OF_MONTH.finditer(text):
        periods.append(_week(_year(match["year"]), _MONTH_NUMBERS[match["month"]], match["which"], bool(match["year"])))
    if not periods:
        for match in _WHOLE_MONTH.finditer(text):
            year, month = _year(match["year"]), _MONTH_NUMBERS[match["month"]]
            last = monthrange(year, month)[1]
            periods.append(Period(date(year, month, 1), date(year, month, last), bool(match["year"])))
    return periods


def _year(text: str | None) -> int:
    """Return a leap year where none is named, so that each day of any year exists."""
    return min(9999, max(1, int(text))) if text else 2000


def _one_day(year: int, month: int, day: int, *, has_year: bool) -> list[Period]:
    try:
        day_of_year = date(year, month, day)
    except ValueError:
        return []
    return [Period(day_of_year, day_of_year, has_year)]


def _week(year: int, month: int, which: str, has_year: bool) -> Period:
    last = date(year, month, monthrange(year, month)[1])
    if which == "last":
        return Period(last - timedelta(days=6), last, has_year)
    first = date(year, month, 1 + 7 * _WEEK_NUMBERS[which])
    return Period(first, first + timedelta(days=6), has_year)
