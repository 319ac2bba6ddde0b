"""What a person sees of a change before it is allowed: its diff, or the beginning of a change that is too large."""

from collections.abc import Sequence
from dataclasses import dataclass

from errand.engine.tools.code.edits import Replacement, TextDiff, diff_texts, places
from errand.protocol.blocks import FileEdit

# Of the part that differs.
_MAX_COMPARED_LENGTH = 200_000
_MAX_EXCERPT_LENGTH = 20_000
_CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Preview:
    """`is_partial`: the text does not show everything that changes. It is empty if the call would fail.

    `edit` is the change as data, None if nothing changes or the call would fail.
    """

    text: str = ""
    is_partial: bool = False
    edit: FileEdit | None = None


def preview_diff(before: str, after: str, name: str) -> TextDiff | None:
    """Return the diff; None if the part that differs is too large to be compared."""
    start = _line_before(before, _common_prefix(before, after))
    end = _common_suffix(before[start:], after[start:])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(old), len(new)) > _MAX_COMPARED_LENGTH:
        return None
    return diff_texts(old, new, name, 3 * _MAX_COMPARED_LENGTH, lines_before=before.count("\n", 0, start))


def preview_edits(before: str, edits: Sequence[Replacement]) -> Preview:
    """Return the places and both texts, for changes that are too large to be compared."""
    parts: list[str] = []
    for edit in edits:
        count = before.count(edit.old)
        at = places(before, edit.old)
        where = f"at line {at}" if count == 1 else f"at {count:,} places, lines {at}"
        head = f"Too large to be compared: it replaces {len(edit.old):,} characters by {len(edit.new):,} {where}.\n"
        parts.append(f"{head}{_excerpt('-', edit.old)}{_excerpt('+', edit.new)}")
        before = edit.text
    return Preview("".join(parts), is_partial=True)


def preview_write(before: str, after: str) -> Preview:
    """Both sizes and the beginning, for a write that is too large to be compared."""
    size = f"{len(before):,} characters before, {len(after):,} after" if before else f"{len(after):,} characters"
    return Preview(f"Too large to be compared: {size}.\n{_excerpt('+', after)}", is_partial=True)


def _excerpt(sign: str, text: str) -> str:
    """Return the beginning as lines of a diff, and how much is left out: nothing in the text can look like such a
    note.
    """
    left_out = len(text) - _MAX_EXCERPT_LENGTH
    lines = "".join(f"{sign}{line}\n" for line in text[:_MAX_EXCERPT_LENGTH].split("\n")) if text else ""
    return f"{lines}… {left_out:,} more characters are left out\n" if left_out > 0 else lines


def _common_prefix(before: str, after: str) -> int:
    """Return its length, found by halves: comparing character by character takes a second for 20 MB."""
    equal, most = 0, min(len(before), len(after))
    while equal < most:
        middle = (equal + most + 1) // 2
        if before[equal:middle] == after[equal:middle]:
            equal = middle
        else:
            most = middle - 1
    return equal


def _common_suffix(before: str, after: str) -> int:
    """Return its length, without the line that it begins in and some lines of context."""
    equal, most = 0, min(len(before), len(after))
    while equal < most:
        middle = (equal + most + 1) // 2
        if before[len(before) - middle : len(before) - equal] == after[len(after) - middle : len(after) - equal]:
            equal = middle
        else:
            most = middle - 1
    at = len(before) - equal
    for _ in range(_CONTEXT + 1):
        at = before.find("\n", at) + 1 or len(before)
    return len(before) - at


def _line_before(text: str, at: int) -> int:
    """Return the start of the line some lines of context before this place."""
    start = text.rfind("\n", 0, at) + 1
    for _ in range(_CONTEXT):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1
    return start
