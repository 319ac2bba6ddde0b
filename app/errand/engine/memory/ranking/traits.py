"""What the ranking needs to know of an entry's text, found when the entry is indexed and stored with it."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from errand.engine.memory.ranking.days import MONTHS, WEEKDAYS
from errand.engine.memory.words.stop_words import language_of, stop_words

_MAX_LENGTH = 4_000
# Of what a text states, the beginning tells how much it says; of its words, more than a question has are kept.
_BEGINNING = 800
_MAX_NEW_WORDS = 40
_MAX_NAMES = 24
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_QUESTION_END: Final = " \"')*_"
_FIRST_PERSON = re.compile(
    r"\b(i|i'm|i've|i'd|i'll|my|mine|we|we've|we're|our|ich|mein|meine|meinen|meinem|meiner|wir|unser|unsere)\b"
)
_ASKING = (
    "can|could|do|does|did|would|will|is|are|was|were|should|shall|have|has|what|what's|how|how's|any|which|where|when"
    "|who|whose|why|may|might|kannst|könntest|können|könnten|hast|haben|ist|sind|war|waren|soll|sollte|darf|gibt|weißt"
    "|was|wie|wo|wann|wer|wen|wem|warum|wieso|welche|welcher|welches|welchen"
)
_OPENING = r"(?:(?:and|but|so|also|thanks|ok|okay|oh|hi|hey|great|well|und|aber|danke|gut|hallo)\b[ ,!]*)*"
_ASKS = re.compile(rf"^\W*{_OPENING}(?:{_ASKING})\b")
# "I'm worried about my plan, can you help?" states its first part.
_ASKING_CLAUSE = re.compile(rf"[,;:–—-]\s*(?=(?:and |but |so |und |aber )?(?:{_ASKING})\b)", re.IGNORECASE)
# "Mar" and "Dec" are names and words too.
_LONG_MONTHS = [name for name in MONTHS if len(name) > 3 or name in ("may", "mai")]
_TELLS_TIME = re.compile(
    r"\b(today|tonight|yesterday|tomorrow|this (morning|evening|weekend)|last night|heute|gestern|vorgestern|"
    rf"{'|'.join((*WEEKDAYS, *_LONG_MONTHS))}|\d{{1,2}}(:\d\d| ?[ap]m| uhr)|\d{{1,2}}\.\d{{1,2}}\.|"
    r"\d{4}-\d\d-\d\d|(19|20)\d\d|ago|days?|weeks?|months?|years?|tage?n?|wochen?|monate?n?|jahre?n?)\b"
)
# A word after another within a sentence: one with a capital is a name there.
_INNER_WORD = re.compile(r"(?<=[^\s.!?] )[^\W\d_]\w+")
_TIME, _NUMBER = "t", "n"


class Traits(NamedTuple):
    """`stated_words` are significant words of what the text states, in lower case; `names` stand inside sentences."""

    stated_words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    tells_time: bool = False
    tells_number: bool = False

    def encode(self) -> str:
        flags = _TIME * self.tells_time + _NUMBER * self.tells_number
        return f"{flags}|{' '.join(self.names)}|{' '.join(self.stated_words)}"


def traits_of(text: str) -> Traits:
    """Return the traits of a text. Of a very long one the beginning counts."""
    text = text[:_MAX_LENGTH]
    lower = _plain(text)
    stated = _words(" ".join(statements(text))[:_BEGINNING])
    ignored = stop_words(language_of(stated))
    names = (match[0].lower() for match in _INNER_WORD.finditer(text) if match[0][0].isupper())
    return Traits(
        _first(_MAX_NEW_WORDS, (word for word in stated if word not in ignored)),
        _first(_MAX_NAMES, names),
        bool(_TELLS_TIME.search(lower)),
        any(map(str.isdigit, text)),
    )


def decode_traits(code: str) -> Traits:
    """Return the traits that were stored; none for an empty text."""
    if not code:
        return Traits()
    flags, names, stated_words = code.split("|")
    return Traits(tuple(stated_words.split()), tuple(names.split()), _TIME in flags, _NUMBER in flags)


def statements(text: str) -> Iterator[str]:
    """Yield what a text states: its sentences that do not ask, and what stands before the question in others."""
    for sentence in _SENTENCE.split(text):
        if not sentence.rstrip(_QUESTION_END).endswith("?"):
            yield sentence
            continue
        clauses = _ASKING_CLAUSE.split(sentence)
        head = _plain(clauses[0]).strip()
        if not _ASKS.match(head) and (len(clauses) > 1 or _FIRST_PERSON.match(head)):
            yield clauses[0]


def _words(text: str) -> list[str]:
    return [word.removesuffix("'s") for word in _WORD.findall(_plain(text))]


def _plain(text: str) -> str:
    return text.lower().replace("’", "'")


def _first(amount: int, values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))[:amount]
