"""Days that a text names, in English or German: dates, weekdays, weeks and months, and words such as "yesterday"."""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

_ENGLISH_MONTHS = "january february march april may june july august september october november december"
_GERMAN_MONTHS = "januar februar märz april mai juni juli august september oktober november dezember"
_ENGLISH_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_GERMAN_WEEKDAYS = "montag dienstag mittwoch donnerstag freitag samstag sonntag"
_ENGLISH_NUMBERS = "one two three four five six seven eight nine ten eleven twelve"
_GERMAN_NUMBERS = "einem zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"


def _numbered(*lists: str) -> dict[str, int]:
    return {name: number for names in lists for number, name in enumerate(names.split(), 1)}


MONTHS: Final = (
    _numbered(_ENGLISH_MONTHS, _GERMAN_MONTHS)
    | {name[:3]: number for name, number in _numbered(_ENGLISH_MONTHS).items()}
    | {"sept": 9, "jänner": 1, "okt": 10, "dez": 12}
)
WEEKDAYS: Final = {
    name: number - 1 for name, number in (_numbered(_ENGLISH_WEEKDAYS, _GERMAN_WEEKDAYS) | {"sonnabend": 6}).items()
}
_NUMBERS = (
    _numbered(_ENGLISH_NUMBERS, _GERMAN_NUMBERS)
    | {"a": 1, "an": 1, "einer": 1, "couple of": 2, "a couple of": 2}
    | {"few": 3, "a few": 3, "ein paar": 3, "einigen": 3}
)


def _any_of(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_MONTH, _WEEKDAY, _NUMBER = _any_of(MONTHS), _any_of(WEEKDAYS), rf"\d{{1,3}}|{_any_of(_NUMBERS)}"
_LAST = r"last|past|previous|letzte[nrsm]?|vergangene[nrsm]?|vorige[nrsm]?"
_NEXT = r"next|coming|nächste[nrsm]?|kommende[nrsm]?"
_THIS = r"this|diese[nrsm]?"
_WHICH = rf"(?:(?P<last>{_LAST})|(?P<next>{_NEXT})|(?P<this>{_THIS}))"

_ISO_DAY = re.compile(r"\b(\d{4})[-/](\d{1,2})[-/](\d{1,2})\b")
_GERMAN_DAY = re.compile(r"\b(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}))?(?![\d.])")
_DAY_OF_MONTH = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)? (?P<month>{_MONTH})"
    rf"|(?P<month2>{_MONTH})\.? (?:the )?(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?)\b(?:,? (?P<year>\d{{4}}))?"
)
_WEEK_OF_MONTH = re.compile(
    r"\b(?P<which>first|second|third|fourth|last|erste[nr]?|zweite[nr]?|dritte[nr]?|vierte[nr]?|letzte[nr]?) "
    rf"(?:week (?:of|in)|woche (?:im|des)) (?P<month>{_MONTH})\b(?: (?P<year>\d{{4}}))?"
)
# "may" and "march" are verbs too: a month alone needs a word in front.
_WHOLE_MONTH = re.compile(
    r"\b(?:in|of|during|since|until|by|early|late|mid|this|last|next|im|seit|bis|anfang|mitte|ende)[ -]"
    rf"(?P<month>{_MONTH})\b(?:,? (?P<year>\d{{4}}))?"
)
_ORDINALS = (("first", "erst"), ("second", "zweit"), ("third", "dritt"), ("fourth", "viert"))
_BY_WORD = {
    r"day before yesterday|vorgestern": -2,
    r"yesterday|last night|gestern": -1,
    r"today|tonight|this (?:morning|afternoon|evening)|heute": 0,
    r"day after tomorrow|übermorgen": 2,
    r"tomorrow|(?<!am )(?<!guten )(?<!jeden )morgen": 1,
}
_AGO = re.compile(
    rf"\b(?:(?P<count>{_NUMBER}) (?P<unit>day|week|month|year)s? (?:ago|earlier)"
    rf"|vor (?P<count2>{_NUMBER}) (?P<unit2>tag|woche|monat|jahr)(?:en?|n)?)\b"
)
_SPAN = re.compile(
    rf"\b(?:(?:last|past) (?P<count>{_NUMBER}) (?P<unit>day|week|month|year)s"
    rf"|(?:letzten|vergangenen) (?P<count2>{_NUMBER}) (?P<unit2>tag|woche|monat|jahr)e?n?)\b"
)
_UNIT = re.compile(rf"\b{_WHICH} (?P<unit>weekend|week|month|year|wochenende|woche|monat|jahr)\b")
_RELATIVE_WEEKDAY = re.compile(rf"\b{_WHICH} (?P<weekday>{_WEEKDAY})s?\b")
_PLAIN_WEEKDAY = re.compile(rf"\b(?P<weekday>{_WEEKDAY})s?\b")
_DAYS_OF_UNIT = {"day": 1, "tag": 1, "week": 7, "woche": 7, "month": 30, "monat": 30, "year": 365, "jahr": 365}
# "Two weeks ago" is seldom said of the very day.
_VAGUENESS = {1: 0, 7: 2, 30: 10, 365: 45}
_MAX_STATED_DAYS = 10
_MAX_STATED_PERIODS = 12
_MAX_LENGTH = 4_000
_ANY_HINT = re.compile(rf"\d|{_WEEKDAY}|day|night|week|month|ago|tag|gestern|heute|morgen|woche|monat")


@dataclass(frozen=True, slots=True)
class Period:
    """Days from `first` to `last`, both included. Without a `has_year` they are meant in any year."""

    first: date
    last: date
    has_year: bool = True

    def holds(self, day: date) -> bool:
        if self.has_year:
            return self.first <= day <= self.last
        start, end = (self.first.month, self.first.day), (self.last.month, self.last.day)
        return start <= (day.month, day.day) <= end

    def days(self) -> Iterator[date]:
        return (self.first + timedelta(days=step) for step in range((self.last - self.first).days + 1))


@dataclass(frozen=True, slots=True)
class NamedDays:
    """The days that a question names: those of the periods that are one of the weekdays, where both are named."""

    periods: tuple[Period, ...] = ()
    weekdays: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.periods or self.weekdays)

    def mean(self, day: date) -> bool:
        if self.weekdays and day.weekday() not in self.weekdays:
            return False
        return not self.periods or any(period.holds(day) for period in self.periods)

    def mean_any_of(self, period: Period) -> bool:
        return any(map(self.mean, period.days()))


def named_days(text: str, today: date | None) -> NamedDays:
    """Return the days that a question in lower case names. Without `today`, "last Friday" is any Friday."""
    reader = _Reader(text)
    periods = [*reader.absolute(), *reader.relative(today)]
    if not periods:
        periods = reader.months()
    return NamedDays(tuple(periods), tuple(dict.fromkeys(reader.weekdays())))


def stated_days(text: str, on: date) -> tuple[Period, ...]:
    """Return the days that an entry of the day `on` names, each a few days long at most.

    A weekday alone may be the one before or the one after: both are returned.
    """
    lower = text[:_MAX_LENGTH].lower()
    if not _ANY_HINT.search(lower):
        return ()
    reader = _Reader(lower)
    periods = [_nearest_year(period, on) for period in reader.absolute()] + reader.relative(on)
    for weekday in reader.weekdays():
        periods += (_one(_weekday_from(on, weekday, step)) for step in (-1, 1))
    short = (period for period in periods if (period.last - period.first).days < _MAX_STATED_DAYS)
    return tuple(dict.fromkeys(short))[:_MAX_STATED_PERIODS]


class _Reader:
    """A text in lower case; what was read of it is blanked out, so that it is read once."""

    def __init__(self, text: str) -> None:
        self._text = text

    def relative(self, today: date | None) -> list[Period]:
        """Return the days that count from today. Without one they are blanked out all the same, but weekdays."""
        if today is None:
            for form in (_AGO, _SPAN, _UNIT):
                self._take(form, lambda _: None)
            return []
        periods = self._take(_AGO, lambda match: _ago(match, today))
        periods += self._take(_SPAN, lambda match: _span(match, today))
        periods += self._take(_RELATIVE_WEEKDAY, lambda match: _relative_weekday(match, today))
        periods += self._take(_UNIT, lambda match: _unit(match, today))
        for phrases, step in _BY_WORD.items():
            day = _moved(today, step)
            periods += self._take(re.compile(rf"\b(?:{phrases})\b"), lambda _, day=day: _one(day))
        return periods

    def absolute(self) -> list[Period]:
        periods = self._take(_ISO_DAY, lambda match: _day(match[1], int(match[2]), int(match[3])))
        periods += self._take(_GERMAN_DAY, lambda match: _day(match[3], int(match[2]), int(match[1])))
        periods += self._take(
            _DAY_OF_MONTH,
            lambda match: _day(
                match["year"], MONTHS[match["month"] or match["month2"]], int(match["day"] or match["day2"])
            ),
        )
        return periods + self._take(_WEEK_OF_MONTH, _week_of_month)

    def months(self) -> list[Period]:
        return self._take(_WHOLE_MONTH, _whole_month)

    def weekdays(self) -> list[int]:
        return [WEEKDAYS[match["weekday"]] for match in _PLAIN_WEEKDAY.finditer(self._text)]

    def _take(self, form: re.Pattern[str], read: Callable[[re.Match[str]], Period | None]) -> list[Period]:
        periods: list[Period] = []

        def blank(match: re.Match[str]) -> str:
            period = read(match)
            if period is not None:
                periods.append(period)
            return " " * len(match[0])

        self._text = form.sub(blank, self._text)
        return periods


def _one(day: date) -> Period:
    return Period(day, day)


def _moved(day: date, days: int) -> date:
    """Return the day so many days later, or the first or last one that there is."""
    return date.fromordinal(min(date.max.toordinal(), max(1, day.toordinal() + days)))


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text]


def _ago(match: re.Match[str], today: date) -> Period:
    unit = _DAYS_OF_UNIT[match["unit"] or match["unit2"]]
    day = _moved(today, -unit * _count(match["count"] or match["count2"]))
    return Period(_moved(day, -_VAGUENESS[unit]), _moved(day, _VAGUENESS[unit]))


def _span(match: re.Match[str], today: date) -> Period:
    unit = _DAYS_OF_UNIT[match["unit"] or match["unit2"]]
    return Period(_moved(today, -unit * _count(match["count"] or match["count2"])), today)


def _relative_weekday(match: re.Match[str], today: date) -> Period:
    weekday = WEEKDAYS[match["weekday"]]
    if match["this"]:
        return _one(_moved(today, weekday - today.weekday()))
    return _one(_weekday_from(_moved(today, 1 if match["next"] else 0), weekday, 1 if match["next"] else -1))


def _weekday_from(day: date, weekday: int, step: int) -> date:
    """Return the nearest day of that weekday: before the day itself, or else the day itself or after it."""
    return _moved(day, (weekday - day.weekday()) % 7 if step > 0 else -((day.weekday() - weekday - 1) % 7 + 1))


def _unit(match: re.Match[str], today: date) -> Period:
    step = -1 if match["last"] else 1 if match["next"] else 0
    unit = match["unit"]
    if unit in ("year", "jahr"):
        year = _year_within(today.year + step)
        return Period(date(year, 1, 1), date(year, 12, 31))
    if unit in ("month", "monat"):
        months = today.year * 12 + today.month - 1 + step
        year, month = _year_within(months // 12), months % 12 + 1
        return Period(date(year, month, 1), date(year, month, monthrange(year, month)[1]))
    monday = _moved(today, 7 * step - today.weekday())
    return Period(_moved(monday, 5) if "end" in unit else monday, _moved(monday, 6))


def _year_within(year: int) -> int:
    return min(9999, max(1, year))


def _year(text: str | None) -> int:
    """Return a leap year where none is named, so that each day of any year exists."""
    return _year_within(int(text)) if text else 2000


def _day(year: str | None, month: int, day: int) -> Period | None:
    try:
        day_of_year = date(_year(year), month, day)
    except ValueError:
        return None
    return Period(day_of_year, day_of_year, bool(year))


def _week_of_month(match: re.Match[str]) -> Period:
    year, month = _year(match["year"]), MONTHS[match["month"]]
    last = date(year, month, monthrange(year, month)[1])
    for week, stems in enumerate(_ORDINALS):
        if match["which"].startswith(stems):
            first = date(year, month, 1 + 7 * week)
            return Period(first, first + timedelta(days=6), bool(match["year"]))
    return Period(last - timedelta(days=6), last, bool(match["year"]))


def _whole_month(match: re.Match[str]) -> Period:
    year, month = _year(match["year"]), MONTHS[match["month"]]
    return Period(date(year, month, 1), date(year, month, monthrange(year, month)[1]), bool(match["year"]))


def _nearest_year(period: Period, on: date) -> Period:
    """Return the period of any year in the year that brings it nearest to a day."""
    if period.has_year:
        return period
    nearest: list[Period] = []
    for year in (on.year - 1, on.year, on.year + 1):
        try:
            nearest.append(Period(period.first.replace(year=year), period.last.replace(year=year)))
        except ValueError:  # 29 February, or the end of all years
            continue
    return min(nearest, key=lambda near: abs((near.first - on).days), default=period)
