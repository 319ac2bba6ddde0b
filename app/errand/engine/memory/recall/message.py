"""Parses a message of a person: its parts, its telling words, and the identifiers among them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from errand.engine.memory.words.stop_words import ENGLISH, language_of, stop_words

# Of a longer message, the beginning.
_MAX_LENGTH = 4_000
_MAX_TERMS = 120
# The whole and its clauses, of which a long message has more than one.
_MAX_PARTS = 10
_MIN_PART_LENGTH = 25
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE = re.compile(r"(?<=[,;:])\s+|\s[–—-]\s+")
# A word with a capital that does not begin a sentence.
_NAME = re.compile(r"(?<=[^\s.!?] )[^\W\d_]\w{2,}")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
# Names that people make up: kTideBlue, round_half_even, GPIO27, f3a91c7, MX-4471-B, 318-K-55/24, 9187, #0B6E99.
_COMPOUND = re.compile(r"#?\w+(?:[-./:_#]\w+)*")
_CAMEL_CASE = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_MIN_DIGITS = 4
_MIN_IDENTIFIER_LENGTH = 3
_YEAR = re.compile(r"(?:19|20)\d\d")
_DATE_OR_TIME = re.compile(r"\d{1,4}(?:[-./:]\d{1,4}){1,2}")


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """`parts` are texts to compare by meaning, the whole first. `terms` are words in lower case as the index has them.

    `identifiers` are names and numbers as they stand in the message, `names` words with a capital, in lower case.
    """

    parts: tuple[str, ...]
    terms: tuple[str, ...]
    identifiers: tuple[str, ...]
    names: frozenset[str]


def parse_message(text: str) -> ParsedMessage:
    text = text[:_MAX_LENGTH]
    lower = text.lower().replace("’", "'")
    all_words = [match[0].removesuffix("'s") for match in _WORD.finditer(lower)]
    common = stop_words(language_of(all_words)) | stop_words(ENGLISH)
    terms = tuple(word for word in dict.fromkeys(all_words) if word not in common and len(word) > 1)[:_MAX_TERMS]
    names = frozenset(match[0].lower() for match in _NAME.finditer(text) if match[0][0].isupper())
    return ParsedMessage(_parts(text), terms, _identifiers(text), names)


def is_identifier(word: str) -> bool:
    """Return True for a name or number that hardly stands in a text by chance."""
    if len(word) < _MIN_IDENTIFIER_LENGTH or _YEAR.fullmatch(word) or _DATE_OR_TIME.fullmatch(word):
        return False
    digits = sum(map(str.isdigit, word))
    if digits:
        has_letter = any(map(str.isalpha, word))
        return digits >= _MIN_DIGITS or (has_letter and len(word) > _MIN_IDENTIFIER_LENGTH and not _is_amount(word))
    return "_" in word.strip("_") or bool(_CAMEL_CASE.search(word))


def _is_amount(word: str) -> bool:
    """Return True for a number with a unit or an ending, such as 250mm, 14th and 9am."""
    return re.fullmatch(r"\d+[a-zA-Z]{1,4}", word) is not None


def _identifiers(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in _COMPOUND.findall(text) if is_identifier(word)))


def _parts(text: str) -> tuple[str, ...]:
    """Return the message and its clauses: in each may be what an entry bears on."""
    sentences = _joined(map(str.strip, _SENTENCE.split(text)))
    clauses = [clause for sentence in sentences for clause in _joined(_CLAUSE.split(sentence))]
    return (text, *clauses[: _MAX_PARTS - 1]) if len(clauses) > 1 else (text,)


def _joined(pieces: Iterable[str]) -> list[str]:
    """Return the pieces, short ones with the one before."""
    joined: list[str] = []
    for piece in filter(None, pieces):
        if joined and min(len(piece), len(joined[-1])) < _MIN_PART_LENGTH:
            joined[-1] = f"{joined[-1]} {piece}"
        else:
            joined.append(piece)
    return joined
