"""Takes one change of a text back while changes of other lines stay."""

from itertools import pairwise
from typing import TypeAlias

from app.engine.tools.code.edits import changed_ranges

# Longer texts are only restored as a whole.
_LARGEST = 5_000_000

# Lines of the base from and to, and the lines that replace them.
_Change: TypeAlias = tuple[int, int, tuple[str, ...]]


def merged(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """`base` with both changes, that to `ours` and that to `theirs`; None if they touch the same lines.

    Works on lines of bytes, so that encoding and line ends stay as they are. Equal changes count once. Binary and
    very long texts are not merged.
    """
    if max(len(base), len(ours), len(theirs)) > _LARGEST or _is_binary(base, ours, theirs):
        return None
    old = _lines(base)
    changes = sorted({*_changes(old, _lines(ours)), *_changes(old, _lines(theirs))})
    for before, after in pairwise(changes):
        if after[0] < before[1] or after[:2] == before[:2]:
            return None
    lines: list[str] = []
    at = 0
    for start, end, new in changes:
        lines += old[at:start]
        lines += new
        at = end
    return "".join((*lines, *old[at:])).encode("latin-1")


def _changes(old: list[str], new: list[str]) -> list[_Change]:
    return [
        (old_at, old_end, tuple(new[new_at:new_end])) for old_at, old_end, new_at, new_end in changed_ranges(old, new)
    ]


def _lines(text: bytes) -> list[str]:
    pieces = text.decode("latin-1").split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _is_binary(*texts: bytes) -> bool:
    return any(b"\0" in text for text in texts)
