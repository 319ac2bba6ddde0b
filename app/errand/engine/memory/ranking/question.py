"""Parses a question: its significant words, the days it names, who is to have said it, and the form of the answer."""

import re
from dataclasses import dataclass
from datetime import date

from errand.engine.memory.ranking.days import NamedDays, named_days
from errand.engine.memory.ranking.traits import Traits
from errand.engine.memory.words.stop_words import ENGLISH, language_of, stop_words

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_MAX_WORDS = 64
_MAX_QUESTION_LENGTH = 4_000
_ASKS_TIME = re.compile(
    r"\b(when|what (time|day|date|month|year|week)|which (day|date|month|year|week|weekday)|how long|since when|"
    r"until when|what's the date|how many (days|weeks|months|years)|wann|wie lange|wie spät|um wie viel uhr|"
    r"welche[nrsm]? (tag|datum|monat|jahr|woche)|wie viele (tage|wochen|monate|jahre))\b"
)
_ASKS_NUMBER = re.compile(
    r"\b(how (many|much|old|far|big|large|long|often|high|expensive|warm|fast|heavy|tall)|costs?|"
    r"(what|which) (price|number|amount|version|size|total|rate|port|percentage|share)|"
    r"wie (viele?|hoch|alt|teuer|groß|weit|oft|schwer)|kostet|kosten|"
    r"welche[nrsm]? (preis|nummer|betrag|version|port))\b"
)
_ASKS_NAME = re.compile(r"\b(who|whose|whom|name of|called|wer|wen|wem|wessen|heißt|name des|name der)\b")
_SELF_LIST = "i i'm i've i'd i'll me my mine myself ich mich mir mein meine meinen meinem meiner meines"
_SELF = frozenset(_SELF_LIST.split())
# What the question says that an agent said: only in the past, as "can you recommend …" asks for something new.
_SAID = (
    "said|told|suggested|recommended|mentioned|provided|gave|given|explained|listed|wrote|written|made|showed|shown"
    "|proposed|advised|drafted|named|called|described|compared|calculated|had me"
)
_SAY = (
    "say|tell|suggest|recommend|mention|provide|give|explain|list|write|make|show|propose|advise|draft|name|call"
    "|describe|compare|calculate|have me"
)
_SAID_GERMAN = "gesagt|vorgeschlagen|empfohlen|genannt|erklärt|geschrieben|erwähnt|gegeben|gezeigt|geraten|entworfen"
_ASKS_AGENT = re.compile(
    rf"\b(you(?:'ve| have| had)? (?:\w+ )?(?:{_SAID})|did you (?:\w+ )?(?:{_SAY})|(?:have|had) you (?:\w+ )?(?:{_SAID})"
    r"|(?:our|the) (?:previous|last|earlier|past) (?:conversation|chat|discussion|talk|session)"
    r"|your (?:last |first |second |third |earlier |previous )?(?:suggestion|advice|recommendation|list|draft|plan"
    r"|answer|example|proposal|explanation|letter|reply|table|summary|version)s?"
    rf"|(?:hast du|du)\b[^.?!]*\b(?:{_SAID_GERMAN})"
    r"|deine[rnms]? (?:empfehlung|liste|vorschlag|vorschläge|antwort|entwurf|rat|beispiel|erklärung)(?:en|s)?)\b"
)


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed question. `terms` are its words in lower case, in order, without stop words; `all_words` has all."""

    text: str
    terms: tuple[str, ...]
    all_words: frozenset[str]
    days: NamedDays
    asks_time: bool
    asks_number: bool
    asks_name: bool
    asks_agent: bool
    """It asks for something that the agent said: "the book that you recommended"."""
    language: str = ENGLISH

    @property
    def is_about_asker(self) -> bool:
        return not self.all_words.isdisjoint(_SELF)


def read_question(text: str, today: date | None = None) -> Question:
    """Parse a question that is asked `today`. Without that day, "last Friday" is any Friday."""
    text = text[:_MAX_QUESTION_LENGTH]
    lower = text.lower().replace("’", "'")
    every = [match[0] for match in _WORD.finditer(lower)][:_MAX_WORDS]
    language = language_of(every)
    terms = tuple(dict.fromkeys(word.removesuffix("'s") for word in every if word not in stop_words(language)))
    forms = (bool(form.search(lower)) for form in (_ASKS_TIME, _ASKS_NUMBER, _ASKS_NAME, _ASKS_AGENT))
    return Question(text, terms, frozenset(every), named_days(lower, today), *forms, language=language)


def has_asked_form(question: Question, traits: Traits) -> bool:
    """Return True if a text has what the question asks for: a time, a number, or a name not in the question."""
    return (
        (question.asks_time and traits.tells_time)
        or (question.asks_number and traits.tells_number)
        or (question.asks_name and not question.all_words.union(question.terms).issuperset(traits.names))
    )


def count_new_words(question: Question, traits: Traits) -> int:
    """Return how many significant words of what a text states are not in the question."""
    return len(set(traits.stated_words).difference(question.terms))
