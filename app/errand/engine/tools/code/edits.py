"""Replacement, nearest matches and unified diffs of texts."""

import difflib
import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from errand.engine.tools.code.line_ends import (
    Span,
    replaced,
    replaced_at,
    spans_of,
    spans_with_other_line_ends,
    with_line_ends_of,
)
from errand.engine.tools.code.line_matcher import LineMatcher
from errand.engine.tools.code.look_alikes import look_alike_hint, near_miss_hint, unusual_difference
from errand.engine.tools.code.loose_match import loose_places, quoted_as_in_file, reindented
from errand.engine.tools.results import ToolError
from errand.protocol.blocks import EditedLines, FileEdit

# Bounds for comparing texts: only their beginnings count, and difflib, which takes quadratic time, gets only the texts
# that share most pieces with the wanted one.
_MAX_COMPARED_LENGTH = 200
_MAX_TEXTS = 20_000
_MAX_PIECES = 40
_MAX_CANDIDATES = 8
_MIN_SIMILARITY = 0.6

_MAX_LINES = 20_000
_HINT_LINES = 12
_MAX_QUOTED_LENGTH = 2_000

_MAX_RESULT_LENGTH = 20_000_000

_CONTEXT = 3
_MAX_DIFF_TEXT_LENGTH = 20_000
_MAX_EDIT_LENGTH = 20_000
_MAX_EDIT_PARTS = 200


def close_matches(searched: str, texts: Sequence[str], most: int) -> list[int]:
    """Return the indexes of at most `most` texts similar to `searched` in any case, most similar first."""
    searched = searched[:_MAX_COMPARED_LENGTH].lower()
    begins = [text[:_MAX_COMPARED_LENGTH].lower() for text in texts[:_MAX_TEXTS]]
    step = max(1, len(searched) // _MAX_PIECES)
    pieces = [searched[at : at + 3] for at in range(0, len(searched) - 2, step)] or [searched]
    shared = ((sum(piece in text for piece in pieces), -index) for index, text in enumerate(begins))
    likeliest = [-index for count, index in heapq.nlargest(_MAX_CANDIDATES, shared) if count]
    ratios = [(difflib.SequenceMatcher(None, begins[index], searched).ratio(), -index) for index in likeliest]
    return [-index for ratio, index in heapq.nlargest(most, ratios) if ratio >= _MIN_SIMILARITY]


@dataclass(frozen=True, slots=True)
class Replacement:
    """`text` is the whole new text, in which `new` stands for `old` as they were used.

    `lines` is set if the place was found ignoring white space, or the kind of quotes: its first and last line.
    """

    text: str
    old: str
    new: str
    lines: tuple[int, int] | None = None
    ignoring: Literal["white space", "the kind of quotes"] = "white space"

    @property
    def note(self) -> str:
        if self.lines is None:
            return ""
        first, last = self.lines
        return f"matched ignoring {self.ignoring}; {f'lines {first}–{last}' if last > first else f'line {first}'}"


def replace_text(text: str, old: str, new: str, replace_all: bool, name: str) -> Replacement:
    """Replace `old` in the text, or the lines that differ from it in white space only if there is one such place.

    Raises ToolError unless it occurs exactly once, or `replace_all` is set.
    """
    if not old:
        raise ToolError("The text to replace is empty: give it, or write the whole file.")
    if old == new:
        raise ToolError("The text to replace and the new text are the same: there is nothing to change.")
    count = text.count(old)
    others = spans_with_other_line_ends(text, old) if count == 0 else []
    if count == 0 and not others:
        return _replace_loosely(text, old, new, name)
    count = count or len(others)
    if count > 1 and not replace_all:
        lines = _line_numbers(text, others or spans_of(text, old))
        raise ToolError(
            f"The text to replace was found {count} times in {name}, at lines {lines}. Give more of the lines around "
            "the place you mean, or set replace_all.",
            f"text to replace found {count} times",
        )
    length = len(text) + count * (len(new) - len(old))
    if length > max(_MAX_RESULT_LENGTH, len(text)):
        raise ToolError(f"{name} would get {length:,} characters; at most {_MAX_RESULT_LENGTH:,} are written here.")
    if others:  # the kind of its line ends was mistaken
        new_text = replaced_at(text, others, old.replace("\r\n", "\n"), new.replace("\r\n", "\n"))
    else:
        new_text = replaced(text, old, new, count)
    start, end = others[0] if others else (0, 0)
    return Replacement(new_text, text[start:end] or old, new)


def _replace_loosely(text: str, old: str, new: str, name: str) -> Replacement:
    matches = loose_places(text, old)
    if not matches and (quoted := quoted_as_in_file(text, old, new)) is not None:
        return _replace_quoted(text, old, *quoted)
    if not matches:
        hint = look_alike_hint(text, old) or near_miss_hint(text, old) or _position_hint(text, old)
        raise ToolError(f"The text to replace was not found in {name}. {hint}", "text to replace not found")
    if len(matches) > 1:
        lines = ", ".join(str(match.first) for match in matches[:10]) + (", …" if len(matches) > 10 else "")
        raise ToolError(
            f"The text to replace was not found in {name}. Ignoring white space it is there {len(matches)} times, at "
            f"lines {lines}. Copy the text exactly, blanks and all, with more of the lines around the place you mean.",
            f"text to replace found {len(matches)} times ignoring white space",
        )
    (only_match,) = matches
    own = with_line_ends_of(only_match.text, reindented(new, old, only_match.text))
    if own == only_match.text:
        lines = _cut_lines(only_match.text.split("\n")[:_HINT_LINES])
        raise ToolError(
            f"The new text differs from the text to replace in white space only, and that is not in {name} as it "
            f"stands. Lines {only_match.first}–{only_match.last} are:\n{lines}",
            "nothing to change",
        )
    if len(text) + len(own) > max(_MAX_RESULT_LENGTH, len(text)):
        raise ToolError(f"{name} would get too large; at most {_MAX_RESULT_LENGTH:,} characters are written here.")
    new_text = text[: only_match.start] + own + text[only_match.end :]
    return Replacement(new_text, only_match.text, own, (only_match.first, only_match.last))


def _replace_quoted(text: str, old: str, start: int, new: str) -> Replacement:
    """Replace the text at `start`, which has other quotes than `old`. `new` has those of the file."""
    own = text[start : start + len(old)]
    if own == new:
        raise ToolError(
            "The new text differs from the text to replace in its quotes only, and the file has those of the new text.",
            "nothing to change",
        )
    first = text.count("\n", 0, start) + 1
    lines = (first, first + own.removesuffix("\n").count("\n"))
    new_text = replaced_at(text, [(start, start + len(own))], own, new)
    return Replacement(new_text, own, new, lines, "the kind of quotes")


def places(text: str, old: str) -> str:
    """Return the numbers of the first ten lines where `old` begins."""
    return _line_numbers(text, spans_of(text, old))


def _line_numbers(text: str, spans: Iterable[Span]) -> str:
    lines = [str(text.count("\n", 0, start) + 1) for start, _ in islice(spans, 11)]
    return ", ".join(lines[:10]) + (", …" if len(lines) > 10 else "")


def _position_hint(text: str, old: str) -> str:
    """Return a hint to the probable position: the line most similar to the first line of `old` that is not blank."""
    old_lines = old.split("\n")
    lead = next((index for index, line in enumerate(old_lines) if line.strip()), 0)
    lines = text.split("\n", _MAX_LINES)[:_MAX_LINES]
    close = close_matches(old_lines[lead].strip(), [line.strip() for line in lines], 1)
    if not close:
        return "Nothing there is like it: read the file again."
    first = max(0, close[0] - lead)
    nearest_lines = lines[first : first + min(len(old_lines), _HINT_LINES)]
    difference = unusual_difference(old_lines[lead].strip(), lines[close[0]].strip())
    head = f"Copy the text exactly, blanks and all. The nearest place is line {first + 1}{difference}:"
    return f"{head}\n{_cut_lines(nearest_lines)}"


def _cut_lines(lines: Sequence[str]) -> str:
    return "\n".join(line if len(line) <= _MAX_QUOTED_LENGTH else f"{line[:_MAX_QUOTED_LENGTH]}…" for line in lines)


@dataclass(frozen=True, slots=True)
class TextDiff:
    """`diff` is truncated if long, then `is_cut`; the counts cover all lines."""

    diff: str
    added: int
    removed: int
    is_cut: bool = False
    hunks: "tuple[Hunk, ...]" = ()

    @property
    def summary(self) -> str:
        return f"+{self.added} −{self.removed}"


def diff_texts(
    before: str, after: str, name: str, longest: int = _MAX_DIFF_TEXT_LENGTH, lines_before: int = 0
) -> TextDiff:
    """`lines_before` is the number of lines of the file before these parts of it."""
    hunks = text_hunks(before, after, lines_before)
    added, removed = sum(hunk.added for hunk in hunks), sum(hunk.removed for hunk in hunks)
    text = "".join(f"{hunk.header}\n{hunk.text}" for hunk in hunks)
    is_cut = len(text) > longest
    if is_cut:
        text = text[:longest].rpartition("\n")[0] + "\n… the rest of the diff is left out\n"
    return TextDiff(f"--- {name}\n+++ {name}\n{text}" if hunks else "", added, removed, is_cut, tuple(hunks))


def file_edit(path: str, hunks: Sequence["Hunk"], *, is_new: bool) -> FileEdit:
    """Return the change of a file as data, without the parts that would make it too large."""
    parts: list[EditedLines] = []
    length = 0
    for hunk in hunks:
        length += len(hunk.old_text) + len(hunk.new_text)
        if length > _MAX_EDIT_LENGTH or len(parts) == _MAX_EDIT_PARTS:
            return FileEdit(path=path, is_new=is_new, parts=tuple(parts), is_cut=True)
        parts.append(EditedLines(line=hunk.line, old_text=hunk.old_text, new_text=hunk.new_text))
    return FileEdit(path=path, is_new=is_new, parts=tuple(parts))


@dataclass(frozen=True, slots=True)
class Hunk:
    """A piece of a unified diff: lines `old_at` to `old_end` of one text became `new_at` to `new_end` of the other.

    Without the lines of context, and counted from 0. `text` has the lines below the `header`; `old_text`, which begins
    at `line` counted from 1, and `new_text` are what it says of both texts, with the lines of context.
    """

    header: str
    text: str
    added: int
    removed: int
    old_at: int
    old_end: int
    new_at: int
    new_end: int
    line: int
    old_text: str
    new_text: str


def text_hunks(before: str, after: str, lines_before: int = 0) -> list[Hunk]:
    old, new = text_lines(before), text_lines(after)
    hunks: list[Hunk] = []
    for group in LineMatcher(old, new).get_grouped_opcodes(_CONTEXT):
        first_old, last_old, first_new, last_new = group[0][1], group[-1][2], group[0][3], group[-1][4]
        old_range = _range(lines_before + first_old, lines_before + last_old)
        header = f"@@ -{old_range} +{_range(lines_before + first_new, lines_before + last_new)} @@"
        lines: list[str] = []
        added = removed = 0
        for tag, at, end, new_at, new_end in group:
            if tag == "equal":
                lines += (f" {line}" for line in old[at:end])
                continue
            lines += (f"-{line}" for line in old[at:end])
            lines += (f"+{line}" for line in new[new_at:new_end])
            added, removed = added + new_end - new_at, removed + end - at
        text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
        changed = [opcode for opcode in group if opcode[0] != "equal"]
        first, last = changed[0], changed[-1]
        line = lines_before + first_old + 1
        old_text, new_text = "".join(old[first_old:last_old]), "".join(new[first_new:last_new])
        hunks.append(Hunk(header, text, added, removed, first[1], last[2], first[3], last[4], line, old_text, new_text))
    return hunks


def text_lines(text: str) -> list[str]:
    """Return the lines as diffs and editors count them, with their ends: a form feed ends none."""
    *lines, last = text.split("\n")
    return [*(f"{line}\n" for line in lines), *((last,) if last else ())]


def changed_ranges(old: list[str], new: list[str]) -> list[tuple[int, int, int, int]]:
    """Lines of the old text, from and to, and what they became, from and to."""
    return [opcode[1:] for opcode in LineMatcher(old, new).get_opcodes() if opcode[0] != "equal"]


def _range(first: int, end: int) -> str:
    """Return a range as in unified diffs: from 1, and an empty range begins at the line before it."""
    length = end - first
    if length == 1:
        return f"{first + 1}"
    return f"{first + 1 if length else first},{length}"
