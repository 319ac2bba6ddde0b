"""The terms of a question as queries of FTS5: other spellings and forms, parts of compounds, and misspelt words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from unicodedata import normalize

from errand.engine.memory.words.spelling import (
    MIN_PART_LENGTH,
    REVERSED_MARK,
    camel_parts,
    camel_words,
    expanded_words,
    folded,
    pairs,
    runs,
    without_runs,
)
from errand.engine.memory.words.stop_words import ENGLISH
from errand.engine.memory.words.vocabulary import Vocabulary

# `l'eau`, `dell'acqua`: a word that is joined with the one after it.
_ELISION = re.compile(r"^(?:[cdjlmnst]|qu|un|dell|nell|sull|all|dall|quell|quest|jusqu|lorsqu|puisqu)'(?=\w{3})")
# The endings of nouns, adjectives and verbs. Those of English are removed by FTS5, but not within reversed words.
_ENDINGS = {
    ENGLISH: ("s",),
    "de": ("ern", "en", "er", "em", "es", "e", "n", "s"),
    "nl": ("en", "es", "e", "n", "s"),
    "fr": ("es", "s", "x", "e"),
    "es": ("es", "as", "os", "s", "a", "o", "e"),
    "pt": ("es", "as", "os", "s", "a", "o", "e"),
    "it": ("a", "e", "i", "o"),
}
_MIN_STEM_LENGTH = 4
_MIN_BEGINNING_LENGTH = 5
_MAX_MEANT = 3


def queries_of(
    terms: Sequence[str], text: str, language: str, vocabulary: Vocabulary
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return each word of these terms with its queries: any of them finds it. `text` is the whole question."""
    camel = {word.lower(): camel_parts(word) for word in camel_words(text)}
    for term in terms:
        word = term
        if not term.isascii():
            word = normalize("NFKC", term)
            for run in (run for part in runs(word) for run in _by_script(part)):
                yield from ((pair, (_pair_query(pair, run),)) for pair in pairs(run, with_last=False))
            word = without_runs(word)
        for part in _ELISION.sub("", word).split():
            if language == ENGLISH or not part.isalpha():
                yield part, tuple(map(quoted, _spellings(part, camel.get(part, ()))))
            else:
                yield part, (*_forms_that_exist(part, language, vocabulary), *in_compounds(part, language, vocabulary))


def in_compounds(word: str, language: str, vocabulary: Vocabulary) -> Iterator[str]:
    """Return the queries for longer words of entries that begin or end with a word."""
    if not word.isalpha():
        return
    if len(word) >= _MIN_BEGINNING_LENGTH and vocabulary.has_beginning(beginning := plain(word)):
        yield f"{quoted(beginning)} *"
    for form in _forms(plain(word), language):
        if len(form) >= MIN_PART_LENGTH and vocabulary.has_beginning(ending := form[::-1], REVERSED_MARK):
            yield f"{quoted(ending)} *"


def misspelt(word: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the queries for the words of entries that a misspelt one may mean."""
    return tuple(map(quoted, vocabulary.meant_by(plain(word), _MAX_MEANT)))


def plain(word: str) -> str:
    """Return a word in small letters without accents, as FTS5 stores it."""
    if word.isascii():
        return word.lower()
    letters = normalize("NFD", folded(word).lower())
    return normalize("NFC", "".join(letter for letter in letters if not "\u0300" <= letter <= "\u036f"))


def quoted(word: str) -> str:
    return '"' + word.replace('"', " ") + '"'


def _forms_that_exist(word: str, language: str, vocabulary: Vocabulary) -> Iterator[str]:
    """Return the queries for the spellings and forms of a word that entries have."""
    spellings = dict.fromkeys(map(plain, _spellings(word, ())))
    forms = dict.fromkeys(form for spelling in spellings for form in _forms(spelling, language))
    return map(quoted, vocabulary.indexed(forms))


def _spellings(word: str, parts: Sequence[str]) -> Iterable[str]:
    """Return a word with its other spellings: with two letters for an umlaut, and as the parts of a name."""
    if word.isascii():
        return (word, " ".join(parts)) if len(parts) > 1 else (word,)
    return dict.fromkeys((folded(word), *expanded_words(word)))


def _forms(word: str, language: str) -> Iterator[str]:
    """Return a word and its forms with other endings."""
    yield word
    endings = _ENDINGS.get(language, ())
    stems = (word[: -len(ending)] for ending in endings if word.endswith(ending))
    stem = next((stem for stem in stems if len(stem) >= _MIN_STEM_LENGTH), "")
    if not stem and len(word) >= _MIN_STEM_LENGTH:
        stem = word
    if stem:
        yield from (form for ending in ("", *endings) if (form := stem + ending) != word)


def _by_script(run: str) -> Iterator[str]:
    """Return the parts of a run that end where a script does: kanji and kana are seldom parts of one word.

    A single kana is a particle.
    """
    parts = ((script, "".join(signs)) for script, signs in groupby(run, _script))
    return (part for script, part in parts if script != "kana" or len(part) > 1)


def _script(sign: str) -> str:
    return "kana" if "\u3040" <= sign <= "\u309f" else "other"


def _pair_query(pair: str, run: str) -> str:
    """Return the query for a pair; a single sign is the first one of pairs."""
    return f"{quoted(pair)} *" if pair == run else quoted(pair)
