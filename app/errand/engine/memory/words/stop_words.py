"""Words that say nothing about what is looked for, by language. The lists are in resources/stop_words."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "de", "fr", "es", "it", "pt", "nl")


def language_of(words: Collection[str]) -> str:
    """Return the language that most of these words, in lower case, are stop words of; English if there are none."""
    counts = Counter(language for word in words for language in _languages().get(word, ()))
    return max(LANGUAGES, key=lambda language: counts[language])


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
