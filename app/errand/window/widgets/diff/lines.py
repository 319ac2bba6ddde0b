"""The lines of a unified diff with their numbers, for display: hidden characters escaped, long lines shortened."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import groupby, zip_longest
from typing import Literal

from errand.client.safe_text import escape_hidden
from errand.client.texts.tool_calls import without_file_names
from errand.text.translation import grouped, tr, trn

LineKind = Literal["context", "added", "removed", "fold", "end", "note"]

_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
# Word by word only lines are compared that are short and mostly the same.
_MAX_COMPARED_LENGTH = 600
_MIN_SIMILARITY = 0.4
_NEAR = 8


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`text` begins with the sign of the line. `old` and `new` are line numbers from 1, 0 for none.

    `hunk` counts the hunks from 0; it is -1 outside of them. A `fold` stands for unchanged lines that are not shown.
    `end` says that the last line has no newline, and a `note` what is left out.
    """

    kind: LineKind
    text: str
    old: int = 0
    new: int = 0
    hunk: int = -1


def diff_lines(diff: str, longest: int = 0) -> list[DiffLine]:
    """Return the lines of one file's diff, without its names, or of some of its hunks.

    Lines that do not belong to a hunk are notes, unless they have the sign of a change. A line is cut after `longest`
    characters; 0 cuts none.
    """
    return list(_lines(diff, longest))


def _lines(diff: str, longest: int) -> Iterator[DiffLine]:
    hunk, old, new = -1, 0, 0
    old_end = new_end = seen = 0
    diff = without_file_names(diff)
    lines = diff.removesuffix("\n").split("\n") if diff else []
    for line in lines:
        is_inside = old < old_end or new < new_end
        header = None if is_inside else _HEADER.match(line)
        if header is not None:
            hunk += 1
            old, old_end = _range(header.group(1), header.group(2))
            new, new_end = _range(header.group(3), header.group(4))
            if old - 1 > seen:
                yield DiffLine(
                    "fold", f"⋯ {trn('{n} unchanged line', '{n} unchanged lines', old - 1 - seen)}", hunk=hunk
                )
            continue
        text, sign = _shown(line, longest), line[:1]
        if sign == "+":
            yield DiffLine("added", text, new=new if is_inside else 0, hunk=hunk)
            new += 1
        elif sign == "-":
            yield DiffLine("removed", text, old=old if is_inside else 0, hunk=hunk)
            old += 1
        elif sign == "\\":
            yield DiffLine("end", tr("No newline at the end of the file"), hunk=hunk)
        elif is_inside and sign in ("", " "):
            yield DiffLine("context", text or " ", old, new, hunk)
            old, new = old + 1, new + 1
        else:
            yield DiffLine("note", text, hunk=hunk)
        seen = max(seen, old - 1)


def _range(first: str, length: str | None) -> tuple[int, int]:
    """Return the first line of a range and the line after its last; an empty range names the line before it."""
    size = 1 if length is None else int(length)
    start = int(first) if size else int(first) + 1
    return start, start + size


def _shown(line: str, longest: int) -> str:
    if not longest or len(line) <= longest:
        return escape_hidden(line)
    return tr("{line} … {more} more characters").format(
        line=escape_hidden(line[:longest]), more=grouped(len(line) - longest)
    )


def diff_name(diff: str) -> str:
    """Return the file that a diff names; empty if it names none."""
    first, _, rest = diff.partition("\n")
    return first.removeprefix("--- ") if first.startswith("--- ") and rest.startswith("+++ ") else ""


def is_complete(lines: Iterable[DiffLine]) -> bool:
    """Return True for a diff of which nothing is left out."""
    kinds = {line.kind for line in lines}
    return "note" not in kinds and not kinds.isdisjoint(("added", "removed"))


def line_counts(lines: Iterable[DiffLine]) -> tuple[int, int]:
    """Return the numbers of added and of removed lines."""
    kinds = [line.kind for line in lines]
    return kinds.count("added"), kinds.count("removed")


def paired(lines: Sequence[DiffLine | None], index: int) -> DiffLine | None:
    """Return the line that a removed or an added one became or was.

    It is that with the same place in the same change or, if more lines were added than removed, the most similar one.
    """
    line = lines[index]
    if line is None or line.kind not in ("added", "removed"):
        return None
    first, last = _edge(lines, index, -1), _edge(lines, index, 1)
    change = [candidate for candidate in lines[first : last + 1] if candidate is not None]
    same = [candidate for candidate in change if candidate.kind == line.kind]
    others = [candidate for candidate in change if candidate.kind != line.kind]
    position = next(at for at, candidate in enumerate(same) if candidate is line)
    if len(same) == len(others):
        return others[position]
    line_words = set(_WORD.findall(line.text[1 : _MAX_COMPARED_LENGTH + 1]))
    near = others[max(0, position - _NEAR) : position + _NEAR]
    return max(
        near,
        key=lambda one: len(line_words.intersection(_WORD.findall(one.text[1:_MAX_COMPARED_LENGTH]))),
        default=None,
    )


def _edge(lines: Sequence[DiffLine | None], index: int, by: int) -> int:
    """Return the first or the last line of a change.

    One of very many lines is a rewrite, in which no line became another.
    """
    for _ in range(_MAX_COMPARED_LENGTH):
        following = lines[index + by] if 0 <= index + by < len(lines) else None
        if following is None or following.kind not in ("added", "removed"):
            break
        index += by
    return index


@lru_cache(maxsize=512)
def changed_words(text: str, other: str) -> tuple[tuple[int, int], ...]:
    """Return the parts of `text` that are not in `other`, as half-open ranges; none if too little is the same.

    Both are lines with their signs, which are not compared.
    """
    if max(len(text), len(other)) > _MAX_COMPARED_LENGTH:
        return ()
    mine, theirs = _WORD.findall(text[1:]), _WORD.findall(other[1:])
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    same = sum(len(mine[at]) for block in matcher.get_matching_blocks() for at in range(block.a, block.a + block.size))
    if 2 * same < _MIN_SIMILARITY * (len(text) + len(other) - 2) or not same:
        return ()
    starts = [1]
    for word in mine:
        starts.append(starts[-1] + len(word))
    return tuple(
        (starts[at], starts[end]) for tag, at, end, _, _ in matcher.get_opcodes() if tag != "equal" and end > at
    )


def side_by_side(lines: Sequence[DiffLine]) -> tuple[list[DiffLine | None], list[DiffLine | None]]:
    """Return the lines of the old and of the new text, in rows; None where one side has no line."""
    left: list[DiffLine | None] = []
    right: list[DiffLine | None] = []
    for is_change, group in groupby(lines, lambda line: line.kind in ("added", "removed")):
        group_lines = list(group)
        if not is_change:
            left += group_lines
            right += group_lines
            continue
        removed = [line for line in group_lines if line.kind == "removed"]
        added = [line for line in group_lines if line.kind == "added"]
        for old, new in zip_longest(removed, added):
            left.append(old)
            right.append(new)
    return left, right
