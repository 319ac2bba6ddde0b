"""Names the first character that differs, where a text is found but for characters that look alike."""

import re
import unicodedata
from bisect import bisect_right
from itertools import accumulate

from errand.engine.tools.code.loose_match import ONE_QUOTE

# A larger text is not searched: folding it takes a second for each million characters or so.
_MAX_SEARCHED = 1_000_000
_QUOTES = dict.fromkeys("‘’‚‛′ʼʹ`´", "'") | dict.fromkeys("“”„‟″«»", '"')
_DASHES = dict.fromkeys("‐‑‒–—―−﹘﹣", "-")
_NAMES = {"\t": "a tab", " ": "a blank", "\n": "a line end", "\r": "a carriage return"}


class _Folding(dict[int, str]):
    """A table for `str.translate`: characters that look alike become the same, those without width none."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = _QUOTES.get(character) or _DASHES.get(character)
        if folded is None:
            folded = "".join(map(_folded, unicodedata.normalize("NFKD", character)))
        self[code] = folded
        return folded


def _folded(character: str) -> str:
    if character in ("\n", "\t"):
        return " " if character == "\t" else character
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    return "" if category in ("Cf", "Cc") else _QUOTES.get(character) or _DASHES.get(character) or character


_folding = _Folding()
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
_ESCAPES = re.compile(r"\\([nt\"'\\])")


def look_alike_hint(text: str, old: str) -> str:
    """Return where `old` is but for characters that look alike, with the first that differs; empty if it is nowhere."""
    folded_old = old.translate(_folding)
    if len(text) > _MAX_SEARCHED or len(old) > _MAX_SEARCHED or not folded_old.strip():
        return ""
    # Blanks match any number of blanks: a tab stands for several.
    pattern = re.compile(re.sub(r"(?:\\ )+", " +", re.escape(folded_old)))
    match = pattern.search(text.translate(_folding))
    if match is None:
        return ""
    ends = list(accumulate(len(folded) for folded in map(str.translate, text, [_folding] * len(text))))
    start, end = bisect_right(ends, match.start()), bisect_right(ends, match.end() - 1) + 1
    line = text.count("\n", 0, start) + 1
    return f"It is at line {line} but for characters that look alike: {first_difference(old, text[start:end])}."


def near_miss_hint(text: str, old: str) -> str:
    """Return where `old` is but for the kind of its quotes, or with its escapes read; empty if it is nowhere."""
    if len(text) > _MAX_SEARCHED or len(old) > _MAX_SEARCHED:
        return ""
    at = text.translate(ONE_QUOTE).find(old.translate(ONE_QUOTE))
    if at >= 0 and old.strip():
        line = text.count("\n", 0, at) + 1
        return f"It is at line {line} but for its quotes: {first_difference(old, text[at : at + len(old)])}."
    unescaped = _ESCAPES.sub(lambda match: _ESCAPED[match[1]], old)
    if unescaped != old and unescaped.strip() and (at := text.find(unescaped)) >= 0:
        line = text.count("\n", 0, at) + 1
        return f"It is at line {line} but for backslashes: give line ends, tabs and quotes as they are in the file."
    return ""


def first_difference(old: str, text: str) -> str:
    """Return in words the first characters in which `old` and the text of the file differ."""
    index = next((at for at, (letter, other) in enumerate(zip(old, text, strict=False)) if letter != other), None)
    at = min(len(old), len(text)) if index is None else index
    return f"where the text to replace has {_described(old, at)}, the file has {_described(text, at)}"


def unusual_difference(old: str, text: str) -> str:
    """Return the first difference with the word before it, if a character there is not ASCII; else nothing."""
    at = next((at for at, (letter, other) in enumerate(zip(old, text, strict=False)) if letter != other), None)
    if at is None or (old[at].isascii() and text[at].isascii()):
        return ""
    return f" ({first_difference(old, text)})"


def _described(text: str, at: int) -> str:
    """Return the character at this position, with its combining marks."""
    if at >= len(text):
        return "nothing more"
    end = at + 1
    while end < len(text) and end < at + 3 and unicodedata.combining(text[end]):
        end += 1
    points = " ".join(f"U+{ord(character):04X}" for character in text[at:end])
    name = _NAMES.get(text[at]) or unicodedata.name(text[at], "a character without a name").lower()
    sign = f" {text[at:end]}" if text[at].isprintable() and not text[at].isspace() else ""
    return f"{points} ({name}{sign})"
