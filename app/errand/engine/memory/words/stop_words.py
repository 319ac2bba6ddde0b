"""Words that say nothing about what is looked for, by language. The lists are in resources/stop_words."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "de", "fr", "es", "it", "pt", "nl")

_LETTERS = re.compile(r"[^\W\d_]+")
_LAST_LATIN = "\u024f"
_MAX_LENGTH = 500


def language_of(words: Collection[str]) -> str:
    """Return the language that most of these words, in lower case, are stop words of; English if there are none."""
    counts = Counter(language for word in words for language in _languages().get(word, ()))
    return max(LANGUAGES, key=lambda language: counts[language])


def is_english(text: str) -> bool:
    """Return False for a text in another script, or with more stop words of another language."""
    all_words = _LETTERS.findall(text[:_MAX_LENGTH].lower())
    in_other_scripts = sum(max(word) > _LAST_LATIN for word in all_words)
    return 2 * in_other_scripts <= len(all_words) and language_of(all_words) == ENGLISH


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of one of `LANGUAGES`, in lower case."""
    file = files("errand.resources") / "stop_words" / f"{language}.txt"
    return frozenset(file.read_text(encoding="utf-8").split())


@cache
def _languages() -> Mapping[str, Sequence[str]]:
    """Return the languages of each stop word."""
    languages: dict[str, list[str]] = {}
    for language in LANGUAGES:
        for word in stop_words(language):
            languages.setdefault(word, []).append(language)
    return languages
