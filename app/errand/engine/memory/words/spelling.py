"""The text that full text indexes: spellings made alike, scripts without spaces in pairs, parts of joined words.

Entries and questions are written alike here. FTS5 folds case and most diacritics (`TOKENIZER`).
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final
from unicodedata import normalize

# Marks are letters too: in Indic scripts and in Thai they are vowels.
TOKENIZER: Final = "porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''"
# What ends a word that was reversed: no rule of English endings applies to it.
REVERSED_MARK: Final = "1"
# A shorter word hardly consists of two.
MIN_COMPOUND_LENGTH: Final = 8
MIN_PART_LENGTH: Final = 4

# Texts of the entries that are indexed together: each is written with its neighbours, too.
_RECENT = 256
_WORD = re.compile(r"\w+")
_HAN_KANA_HANGUL = (
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
_THAI_LAO_MYANMAR_KHMER = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_NO_SPACES = f"{_HAN_KANA_HANGUL}{_THAI_LAO_MYANMAR_KHMER}"
_RUN = re.compile(f"[{_NO_SPACES}]+")
# A consonant with the vowels and tones that stand on it.
_UNIT = re.compile(
    f"[{_NO_SPACES}][\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3]*"
)

# Letters that FTS5 leaves as they are.
_FOLDED_LETTERS = {
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L",
    "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "TH", "ı": "i", "ħ": "h", "Ħ": "H",
    "ё": "е", "Ё": "Е", "ά": "α", "έ": "ε", "ή": "η", "ί": "ι", "ϊ": "ι", "ΐ": "ι", "ό": "ο", "ύ": "υ", "ϋ": "υ",
    "ΰ": "υ", "ώ": "ω", "Ά": "Α", "Έ": "Ε", "Ή": "Η", "Ί": "Ι", "Ό": "Ο", "Ύ": "Υ", "Ώ": "Ω", "أ": "ا", "إ": "ا",
    "آ": "ا", "ى": "ي",
}  # fmt: skip
_FOLDED = re.compile(f"[{''.join(_FOLDED_LETTERS)}\u0591-\u05c7\u0640\u064b-\u0652\ufe00-\ufe0f]")
# Letters that are also written as two.
_TWO_LETTERS = {
    "ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "Ø": "Oe", "Å": "Aa",
}  # fmt: skip
_EXPANDED = str.maketrans(_TWO_LETTERS)
_TO_EXPAND = re.compile(f"[{''.join(_TWO_LETTERS)}]")
# Also half and full width, letters and accents apart: what NFKC makes one.
_FOREIGN = re.compile(
    f"[{_NO_SPACES}{''.join(_FOLDED_LETTERS)}{''.join(_TWO_LETTERS)}\u0300-\u036f\u0591-\u0652\ufe00-\uffef]"
)
_HUMP = re.compile(r"[a-zß-ÿ0-9][A-Z]")
_PLAIN_WORD = re.compile(r"[^\W_]+")
_CAMEL_HUMP = re.compile(r"[a-z0-9][A-Z]")
_CAMEL_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+")
_LETTERS = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=_RECENT)
def indexed_text(text: str) -> str:
    """Return the text to index. The same for the same text: FTS5 needs it to remove an entry, too.

    Raise the version of the index when this changes.
    """
    extra: list[str] = []
    if not text.isascii() and _FOREIGN.search(text):
        text = normalize("NFKC", text)
        extra += expanded_words(text)
        text = with_pairs(folded(text))
    if _HUMP.search(text):
        extra += (part for word in camel_words(text) for part in camel_parts(word))
    return f"{text}\n{' '.join(extra)}" if extra else text


def with_endings(text: str) -> str:
    """Return the text to index, and its long words once more, reversed: compounds are found by their end, too."""
    endings = " ".join(map(reversed_word, _long_words(text)))
    return f"{indexed_text(text)}\n{endings}" if endings else indexed_text(text)


def folded(text: str) -> str:
    """Return the text with one letter or two in place of those that FTS5 does not fold."""
    return _FOLDED.sub(lambda match: _FOLDED_LETTERS.get(match[0], ""), text)


def expanded_words(text: str) -> list[str]:
    """Return the words with umlauts, written with two letters: Brandstaetter."""
    return [folded(word.translate(_EXPANDED)) for word in _WORD.findall(text) if _TO_EXPAND.search(word)]


def with_pairs(text: str) -> str:
    """Return the text with the runs of scripts without spaces as pairs of signs that overlap."""
    return _RUN.sub(lambda match: f" {' '.join(pairs(match[0]))} ", text)


def pairs(run: str, *, with_last: bool = True) -> list[str]:
    """Return the pairs of signs of a run and, if asked for, its last sign: a single sign is the beginning of a pair."""
    units = _UNIT.findall(run)
    joined = [first + second for first, second in pairwise(units)]
    return joined + units[-1:] if with_last or not joined else joined


def runs(word: str) -> list[str]:
    """Return the parts of a word that have no spaces between words."""
    return _RUN.findall(word)


def without_runs(word: str) -> str:
    return _RUN.sub(" ", word)


def camel_words(text: str) -> Iterable[str]:
    """Return the names in camel case of a text."""
    return filter(_CAMEL_HUMP.search, _PLAIN_WORD.findall(text))


def camel_parts(word: str) -> list[str]:
    """Return the parts of a name in camel case; the name itself if it has one part only."""
    return _CAMEL_PART.findall(word)


def reversed_word(word: str) -> str:
    """Return a word to be found by its end: as a prefix."""
    return word.lower()[::-1] + REVERSED_MARK


def count_words(text: str) -> int:
    """Return the number of words; two signs of a script without spaces are about one."""
    if text.isascii():
        return len(_WORD.findall(text))
    return len(_WORD.findall(_RUN.sub(" ", text))) + sum((len(run) + 1) // 2 for run in _RUN.findall(text))


def _long_words(text: str) -> Iterator[str]:
    chunks: Iterable[str] = (chunk for chunk in text.split() if len(chunk) >= MIN_COMPOUND_LENGTH)
    return (word for chunk in chunks for word in _LETTERS.findall(chunk) if len(word) >= MIN_COMPOUND_LENGTH)
