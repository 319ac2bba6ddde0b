"""Remarks on words that mix alphabets, or whose letters look like Latin ones, as in Unicode's report 39."""

import re
import unicodedata
from functools import cache

from errand.client.safe_text import escape_hidden_line
from errand.text.translation import tr

_MAX_WORDS, _MAX_LETTERS, _MAX_WORD_SHOWN = 3, 3, 40
_MAX_CHARACTERS = 100_000
_WORD = re.compile(r"[^\W\d_]+")
# Scripts that are written together, also with Latin letters: Chinese, Japanese and Korean.
_WRITTEN_WITH_LATIN = frozenset(
    ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HALFWIDTH", "BOPOMOFO", "HANGUL", "IDEOGRAPHIC")
)
# Letters of phonetic alphabets, which no word of a language mixes with plain ones; but the schwa of Azerbaijani.
_PHONETIC = ((0x0250, 0x02AF), (0x1D00, 0x1DBF), (0x2C60, 0x2C7F), (0xA720, 0xA7FF), (0xAB30, 0xAB6F))
_END_OF_LATIN = 0x180  # of the blocks whose letters are all Latin
_SCHWA = "\u0259"
# Letters that look like Latin ones in most typefaces: Cyrillic, Greek, Armenian, Cherokee.
_LOOK_ALIKES = frozenset(
    "асԁеһіјӏорԛѕԝхуѵьгАВЕНІЈКМОРЅТУХԌԚԜҮαγικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳօոսհցքղոզԼՏՍՕᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᎽᏀᏃᏎᏏᏒᏔᏚᏞᏟᏢᏦᏴ"
)


def alphabet_remark(text: str) -> str:
    """Return what a person could not see in the letters of a command or a file name; empty for most texts."""
    odd_words = _odd_words(text)
    remarks = [_remark_on(word) for word in odd_words[:_MAX_WORDS]]
    if len(odd_words) > _MAX_WORDS:
        remarks.append(tr("and more words like these"))
    return "; ".join(remarks)


def _odd_words(text: str) -> list[str]:
    if text.isascii():
        return []
    distinct = dict.fromkeys(_WORD.findall(text[:_MAX_CHARACTERS]))
    foreign = {
        letter for word in distinct for letter in word if _script(letter) not in ("", "LATIN", *_WRITTEN_WITH_LATIN)
    }
    is_imitation = bool(foreign) and foreign <= _LOOK_ALIKES
    return [word for word in distinct if _is_mixed(word) or (is_imitation and not foreign.isdisjoint(word))]


def _is_mixed(word: str) -> bool:
    scripts = {_script(letter) for letter in word} - {""}
    return len(scripts) > 1 and not scripts - {"LATIN"} <= _WRITTEN_WITH_LATIN


def _remark_on(word: str) -> str:
    odd = dict.fromkeys(letter for letter in word if _script(letter) not in ("", "LATIN"))
    letters = ", ".join(f"{letter} = U+{ord(letter):04X} {_name(letter)}" for letter in list(odd)[:_MAX_LETTERS])
    if len(odd) > _MAX_LETTERS:
        letters += ", …"
    template = (
        tr("“{word}” mixes alphabets: {letters}") if _is_mixed(word) else tr("“{word}” looks Latin, but: {letters}")
    )
    return template.format(word=escape_hidden_line(word[:_MAX_WORD_SHOWN]), letters=letters)


@cache
def _script(letter: str) -> str:
    """Return the script of a letter by its name; styled forms of Latin letters are scripts of their own."""
    name, code = _name(letter), ord(letter)
    if code < _END_OF_LATIN:
        return "LATIN"
    if name.startswith("MODIFIER "):
        return ""
    if letter != _SCHWA and any(first <= code <= last for first, last in _PHONETIC):
        return "PHONETIC"
    plain = unicodedata.normalize("NFKC", letter)
    if plain.isascii() and plain.isalpha() and len(plain) == 1:
        return "STYLED"
    return name.partition(" ")[0]


def _name(letter: str) -> str:
    return unicodedata.name(letter, "?")
