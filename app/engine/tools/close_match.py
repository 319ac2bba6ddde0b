"""Which of many texts are most like one that was not found, in bounded time: for errors that help to try again."""

import difflib
import heapq
from collections.abc import Sequence

# Texts are likened by their beginnings, and difflib, which takes time with their square, gets only those that share
# most pieces with the one that was looked for.
_LONGEST = 200
_MOST_TEXTS = 20_000
_MOST_PIECES = 40
_MOST_COMPARED = 8
_ALIKE = 0.6


def close_matches(wanted: str, texts: Sequence[str], most: int) -> list[int]:
    """Indexes of the `most` texts that are much like `wanted`, the likest first."""
    wanted = wanted[:_LONGEST]
    begins = [text[:_LONGEST] for text in texts[:_MOST_TEXTS]]
    step = max(1, len(wanted) // _MOST_PIECES)
    pieces = [wanted[at : at + 3] for at in range(0, len(wanted) - 2, step)] or [wanted]
    shared = ((sum(piece in text for piece in pieces), -index) for index, text in enumerate(begins))
    likeliest = [-index for count, index in heapq.nlargest(_MOST_COMPARED, shared) if count]
    ratios = [(difflib.SequenceMatcher(None, begins[index], wanted).ratio(), -index) for index in likeliest]
    return [-index for ratio, index in heapq.nlargest(most, ratios) if ratio >= _ALIKE]
