"""What a person typed into the search box, taken apart: words and phrases, the last one perhaps unfinished."""

import re
from dataclasses import dataclass

# More words than this only cost time.
_MOST = 16
_LONGEST = 200
_PIECE = re.compile(r'"([^"]*)"?|([^\s"]+)')
_LETTERS = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class SearchWords:
    """`phrases` must all occur. With `unfinished` the last word of the last one may go on."""

    phrases: tuple[str, ...]
    unfinished: bool


def parse(text: str) -> SearchWords:
    """Words by spaces, phrases by "quotes" (one may be left open); what holds no letter or digit is left out."""
    pieces = [(match[1] or match[2] or "", match[2] is not None) for match in _PIECE.finditer(text.replace("\0", " "))]
    kept = [(" ".join(piece.split())[:_LONGEST], plain) for piece, plain in pieces if _LETTERS.search(piece)][:_MOST]
    if not kept:
        return SearchWords((), False)
    last, plain = kept[-1]
    return SearchWords(tuple(piece for piece, _ in kept), plain and len(_LETTERS.findall(last)[-1]) >= 3)
