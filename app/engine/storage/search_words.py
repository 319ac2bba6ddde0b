"""What a person typed into the search box, taken apart: words and phrases, the last one perhaps unfinished."""

import re
from dataclasses import dataclass

# More or longer pieces than this only cost time.
_MOST = 16
_LONGEST = 200
_PIECE = re.compile(r'"([^"]*)(?:"|$)|([^\s"]+)')
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class SearchWords:
    """`phrases` must all occur. With `is_open` the last word of the last one may go on.

    `unfinished` is the same where that word is long enough for what it may become to be few.
    """

    phrases: tuple[str, ...]
    is_open: bool
    unfinished: bool


def parse(text: str) -> SearchWords:
    """Words by spaces, phrases by "quotes" (the last may be left open); pieces without letter or digit are left out."""
    pieces = [" ".join((match[1] or match[2] or "").split()) for match in _PIECE.finditer(text.replace("\0", " "))]
    phrases = tuple(piece[:_LONGEST] for piece in pieces if _WORD.search(piece))[:_MOST]
    if not phrases:
        return SearchWords((), False, False)
    closed = text.rstrip().endswith('"') and text.count('"') % 2 == 0
    return SearchWords(phrases, not closed, not closed and len(_WORD.findall(phrases[-1])[-1]) >= 3)
