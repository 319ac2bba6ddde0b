"""Identifiers in a question: what is looked for as it is written, not by its meaning.

Colour codes, error numbers, tickets, hashes, file names and paths, versions, names in code, addresses, amounts, and
phone numbers.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from errand.engine.memory.words.spelling import camel_parts
from errand.engine.memory.words.stop_words import ENGLISH, stop_words

_MAX_IDENTIFIERS = 12
_MAX_LENGTH = 200
_MAX_TEXT_LENGTH = 2_000
# A hash is found by its beginning, as Git shortens it, and a short one in the whole one.
_MIN_HASH_LENGTH = 7
_MAX_SHORT_HASH = 12
_PHONE_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Identifier:
    """`pattern` finds it in a text, `phrases` are queries of FTS5 for the entries that may have it.

    `is_weak`: it may as well be a mere number or word, and tells something only if hardly any entry has it.
    """

    text: str
    phrases: tuple[str, ...]
    pattern: re.Pattern[str]
    is_weak: bool = False


def identifiers_in(text: str) -> tuple[Identifier, ...]:
    """Return the identifiers of a text in the order of their kinds, those of which others are parts first."""
    identifiers: dict[str, Identifier] = {}
    rest = text[:_MAX_TEXT_LENGTH] if _MAY_HAVE.search(text) else ""
    for form, build in _FORMS:
        for match in tuple(form.finditer(rest)):
            identifier = build(match) if len(match[0]) <= _MAX_LENGTH else None
            if identifier is not None:
                identifiers.setdefault(identifier.pattern.pattern, identifier)
            if identifier is not None or build is _skipped:
                rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
    return tuple(identifiers.values())[:_MAX_IDENTIFIERS]


def phrase(text: str) -> str:
    """Return a query of FTS5 for the words of a text, one after the other."""
    return '"' + re.sub(r"[\W_]+", " ", text).strip() + '"'


def _exactly(core: str, before: str = r"(?<!\w)", after: str = r"(?!\w)") -> re.Pattern[str]:
    return re.compile(f"{before}{core}{after}", re.IGNORECASE)


def _as_written(match: re.Match[str]) -> Identifier:
    return _written(match[0])


def _written(text: str, *, is_weak: bool = False) -> Identifier:
    core = re.escape(text)
    return Identifier(text, (phrase(text),), _exactly(core, r"(?<![\w])(?<!\d[.,])", r"(?!\w)(?![.,]\d)"), is_weak)


def _colour(match: re.Match[str]) -> Identifier | None:
    digits = match[1]
    if len(digits) not in (3, 4, 6, 8):
        return None
    return Identifier(match[0], (phrase(digits),), _exactly(f"(?:#|0x)?{digits}"))


def _ticket(match: re.Match[str]) -> Identifier | None:
    if not match[1].isupper():  # `step-2`
        return None
    # `ABC-123` is also written `ABC 123` and `abc_123`.
    core = rf"{re.escape(match[1])}[-_ #]?{match[2]}"
    return Identifier(
        match[0], (phrase(match[0]), phrase(match[1] + match[2])), _exactly(core, after=r"(?![\w]|[-.]\d)")
    )


def _hash(match: re.Match[str]) -> Identifier | None:
    digits = match[0].lower()
    if not (re.search(r"\d", digits) and re.search(r"[a-f]", digits)):
        return None
    shorter = [digits[:length] for length in range(_MIN_HASH_LENGTH, min(len(digits), _MAX_SHORT_HASH + 1))]
    core = "|".join([f"{digits}[0-9a-f]*", *shorter])
    return Identifier(match[0], (f"{phrase(digits)} *", *map(phrase, shorter)), _exactly(f"(?:{core})"))


def _version(match: re.Match[str]) -> Identifier:
    number = match["number"]
    # The index has `v2` as one word: the number alone, and with the letter.
    core = rf"(?:v|version )?{re.escape(number)}"
    return Identifier(
        match[0],
        (phrase(number), phrase(f"v{number}")),
        _exactly(core, r"(?<![\w])(?<!\d\.)", r"(?![\w]|\.\d|-\w)" if "-" not in number else r"(?!\w)"),
    )


def _amount(match: re.Match[str]) -> Identifier | None:
    units, cents = _parsed_amount(match["amount"] or match["amount2"])
    if not units:
        return None
    groups = _thousands(units)
    core = r"[.,'’\u00a0\u202f ]?".join(groups)
    core += rf"[.,]{cents}0?" if cents else r"(?:[.,](?:00|--?|–))?"
    endings = [f" {cents}", f" {cents}0"][: 3 - len(cents)] if cents else [""]
    phrases = [phrase(form + ending) for form in dict.fromkeys((" ".join(groups), units)) for ending in endings]
    # Also with the name of the currency as a part of the word: `12.99USD`, `EUR12`.
    return Identifier(
        match[0],
        tuple(phrases),
        _exactly(core, r"(?<!\d)(?<!\d[.,])", r"(?!\d)(?![.,]\d)"),
        is_weak=len(units) < 3 and not cents,
    )


def _parsed_amount(text: str) -> tuple[str, str]:
    """Return the digits of the amount and of its cents; without cents if they are zero."""
    text = re.sub(r"['’\s\u00a0\u202f]", "", text)
    match = re.fullmatch(r"(\d+|\d{1,3}(?:[.,]\d{3})+)(?:[.,](\d{2}|\d))?", text)
    if match is None:
        return "", ""
    return re.sub(r"\D", "", match[1]), "" if match[2] in (None, "00", "0") else match[2]


def _thousands(digits: str) -> list[str]:
    first = len(digits) % 3
    return [part for part in (digits[:first], *(digits[at : at + 3] for at in range(first, len(digits), 3))) if part]


def _phone(match: re.Match[str]) -> Identifier | None:
    digits = re.sub(r"\D", "", match[0])
    if not _PHONE_DIGITS <= len(digits) <= 15:
        return None
    # Without the code of the country or the zero in its place, and with spaces wherever people put them.
    own = digits[-9:] if len(digits) > 9 else digits.lstrip("0")
    groups = re.findall(r"\d+", match[0])
    core = r"(?:\+?\d{1,3}[ ().\-/]*)?" + r"[ ().\-/]*".join(own)
    in_twos = " ".join(digits[at : at + 2] for at in range(len(digits) - 8, len(digits), 2))
    likely = {phrase(match[0]), phrase(digits), phrase(f"0{own}"), phrase(own), phrase(in_twos)}
    likely |= {phrase(last) for last in (groups[-1], *(own[-size:] for size in range(3, 9))) if len(last) > 2}
    return Identifier(match[0], tuple(sorted(likely)), _exactly(core, r"(?<![\w])", r"(?!\d)"))


def _path(match: re.Match[str]) -> Identifier | None:
    text = re.sub(r"^(?:\.{1,2}/|~/)+", "", match[0].rstrip(".,:;")).rstrip("/\\")
    parts = [part for part in re.split(r"[/\\]+", text) if part]
    is_prose = len(parts) == 2 and all(map(str.isalpha, parts)) and text[0] not in "/\\"
    if not parts or (is_prose and not stop_words(ENGLISH).isdisjoint(parts)):  # `and/or`
        return None
    core = r"[/\\]+".join(map(re.escape, parts))
    return Identifier(match[0], (phrase(text),), _exactly(core, r"(?<![\w-])", r"(?![\w-])"), is_prose)


def _file_name(match: re.Match[str]) -> Identifier | None:
    base, ending = match[0].rsplit(".", 1)
    if len(base) == len(ending) == 1 or (base.islower() and ending.istitle()):  # `e.g`, or a space that is missing
        return None
    return Identifier(match[0], (phrase(match[0]),), _exactly(re.escape(match[0]), r"(?<![\w-])", r"(?![\w-])"))


def _name(match: re.Match[str]) -> Identifier | None:
    text = match[0].strip("-_.")
    if re.fullmatch(r"\d+[^\W\d_]{1,3}", text):  # `3rd`, `80mb`
        return None
    parts = [part for piece in re.split(r"[-_.]+", text) for part in camel_parts(piece)]
    if len(parts) < 2:
        return _written(text) if re.search(r"\d", text) else None
    joined = "".join(parts)
    core = r"[-_.]*".join(map(re.escape, parts))
    is_plain = all(part.islower() for part in parts) and "_" not in text and not match[0].startswith("-")
    if is_plain and (len(parts) == 2 or not stop_words(ENGLISH).isdisjoint(parts)):  # `well-known`, `state-of-the-art`
        return None
    return Identifier(
        match[0],
        (phrase(" ".join(parts)), phrase(joined)),
        _exactly(core, r"(?<![^\W_])", r"(?![^\W_])"),
        is_weak=is_plain or (len(parts) == 2 and text.isalpha()),  # `JavaScript`
    )


def _number(match: re.Match[str]) -> Identifier | None:
    digits = match["digits"]
    labelled = match["label"] is not None
    if not labelled and (len(digits) < 3 or re.fullmatch(r"(?:19|20)\d\d", digits)):
        return None
    core = r"[.,'’ ]?".join(_thousands(digits)) if len(digits) > 4 else digits
    phrases = [digits] if len(digits) <= 4 else [digits, " ".join(_thousands(digits))]
    return Identifier(
        digits,
        tuple(map(phrase, phrases)),
        _exactly(core, r"(?<![\w])(?<!\d[.,:/-])", r"(?![\w])(?![.,:/]\d)"),
        is_weak=len(digits) < 4,
    )


def _skipped(match: re.Match[str]) -> Identifier | None:
    """Leave out a date, an hour or an ordinal: days have an argument of their own."""
    return None


def _decimal(match: re.Match[str]) -> Identifier | None:
    amount = _amount(match)
    return replace(amount, is_weak=True) if amount is not None else None


_LABELS = (
    "error|fehler|code|port|status|errno|exit|ticket|issue|bug|order|invoice|pin|room|raum|zimmer|http|pr|nr|no|number|"
    "nummer"
)
_CURRENCY = r"(?:[$€£¥₹]|\b(?:usd|eur|gbp|chf|jpy|cny|inr|cad|aud|sek|nok|dkk|pln)\b)"
_AMOUNT = r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?"
_Build = Callable[[re.Match[str]], Identifier | None]
# A kind takes its characters from those that follow.
_KINDS: Sequence[tuple[str, _Build]] = (
    (r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.\w+", _as_written),
    (r"https?://[^\s<>\"'`]+[\w/]", _as_written),
    # A UUID, and the addresses of a network card and of a machine
    (r"(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])", _as_written),
    (r"(?<![\w:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:])", _as_written),
    (
        r"(?<![\w:.])(?=[0-9a-f:]*(?:::|(?::[0-9a-f]+){7}))(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{1,4}(?![\w:])",
        _as_written,
    ),
    (r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+|/\d{1,2})?(?![\w.]*\d)", _as_written),
    (r"\b\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d\d:\d\d(?::\d\d)?)?\b", _skipped),
    (r"\b\d{1,2}[:.]\d\d ?(?:uhr|am|pm)\b|\b\d{1,2}:\d\d\b|\b\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d\d)\b", _skipped),
    (r"#([0-9a-f]{3,8})\b(?<!#\d{3})(?<!#\d{4})", _colour),
    (rf"{_CURRENCY}\s?(?P<amount>{_AMOUNT})(?!\d)|(?<![\w.,])(?P<amount2>{_AMOUNT})\s?{_CURRENCY}", _amount),
    (
        r"(?<![\w/\\.-])(?:[a-z]:\\|~/|\.{1,2}/|/)?[\w.@+-]+(?:[/\\][\w.@+-]+)+/?"
        r"|(?<![\w/\\.])/[\w.@+-]+(?:/[\w.@+-]+)*",
        _path,
    ),
    (r"(?<![\w.])(?:v|(?=\d+\.\d+\.\d))(?P<number>\d+(?:\.\d+){1,3}(?:-[\w.]*\w)?)(?!\w)", _version),
    (r"(?<![\w.,:/-])(?P<amount>\d+[.,]\d{2})(?P<amount2>)(?!\w)(?![.,:/-]\d)", _decimal),
    (r"(?<![\w.-])[\w-]+(?:\.[\w-]+)*\.(?=[a-z]*[a-z])[a-z0-9]{1,5}(?![\w-])(?!\.\w)", _file_name),
    (r"(?<![\w-])([a-z][a-z0-9]{1,9})-(\d{1,7})(?![\w-])", _ticket),
    (
        r"(?<![\w.,])(?:\+\d|\(?0)\d*(?:[ ()./-]{1,2}\d+)+(?!\w)|(?<![\w.,])\+?\d{9,15}(?!\w)"
        r"|(?<!\w)\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?!\w)",
        _phone,
    ),
    (rf"(?<![\w-])[0-9a-f]{{{_MIN_HASH_LENGTH},64}}(?![\w-])", _hash),
    (
        rf"(?:(?P<label>#|\b(?:{_LABELS})\.?[ :#]+)-?|(?<![\w.,:/])(?<!\w-))(?P<digits>\d{{2,12}})(?![\w.,]*\d)(?!\w)",
        _number,
    ),
    (
        r"(?<![\w.])-{0,2}[^\W\d]\w*(?:[-.][^\W]\w*)+"
        r"|(?<!\w)\w*(?:(?-i:[a-z0-9][A-Z])|[^\W_]_[^\W_]|\d[^\W\d_]|[^\W\d_]\d)\w*",
        _name,
    ),
)
_MAY_HAVE = re.compile(r"[\d_/\\@]|[^\W_][.-]\w|[a-z][A-Z]")
_FORMS = tuple((re.compile(form, re.IGNORECASE), build) for form, build in _KINDS)
