"""Splits a growing Markdown text into pieces, each of which is shown by a row of its own.

Very long paragraphs and lists are cut, so that no piece costs much while it grows.
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

_Kind: TypeAlias = Literal["plain", "list", "fence", "table", "details"]

# Characters of a paragraph or list after which it is cut at the next line or item: a paragraph of a real reply is
# shorter. A numbered list starts again with its next number.
_LONG = {"plain": 4_000, "list": 16_000}

# The quantifiers of lines are possessive: a line of marks alone costs as much as its length.
_FENCE = re.compile(r" {0,3}+(`{3,}+|~{3,}+)([^\n]*+)\n")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?=[ \t\n])")
# A list item that can interrupt a paragraph: it has text, and if numbered, the number is 1.
_FIRST_WHOLE = re.compile(r" {0,3}(?:[-*+]|1[.)]) {1,4}\S")
# The same in an incomplete line that may turn out to be a rule.
_FIRST = re.compile(r" {0,3}(?:[-*+]|1[.)]) {1,4}[^\s\-*+_]")
_MARGIN = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
# An incomplete line that may become a list item.
_MAYBE_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)]?)?\Z")
_RULE = re.compile(r" {0,3}+([-*_])[ \t]*+(?:\1[ \t]*+){2,}+\n")
_DELIMITERS = re.compile(r" {0,3}+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+\n")


_DETAILS = re.compile(r" {0,3}<details(?: open)?>", re.IGNORECASE)
_SUMMARY = re.compile(r"<summary>(.{0,500}?)</summary>", re.IGNORECASE | re.DOTALL)
_DETAILS_TAGS = re.compile(r"<(/?)details(?: open)?>", re.IGNORECASE)
# The first characters of lines that may begin another piece than a paragraph.
_STARTS = frozenset("`~-*+0123456789<")


@dataclass(frozen=True, slots=True)
class Details:
    """A part that is folded; `is_open`: it is not, unless a person folds it."""

    summary: str
    body: str
    is_open: bool


def parse_details(piece: str) -> Details | None:
    """Return the details if the piece is such, closed or still streaming; None for any other text."""
    opening = _DETAILS.match(piece)
    if opening is None:
        return None
    inside = piece[opening.end() :]
    summary = _SUMMARY.match(inside.lstrip())
    body = inside.lstrip()[summary.end() :] if summary is not None else inside
    if body.rstrip()[-10:].lower() == "</details>":
        body = body.rstrip()[:-10]
    return Details(summary[1] if summary is not None else "", body, is_open="open" in opening.group().lower())


def is_cut(piece: str) -> bool:
    """Return True if the next piece continues the paragraph or list."""
    if len(piece) < _LONG["plain"] or piece.endswith("\n\n"):
        return False
    return _fence_of(piece[: piece.find("\n") + 1]) == "" and _DETAILS.match(piece) is None


def split_markdown(text: str) -> tuple[str, ...]:
    """Return the pieces of a text; none for an empty one."""
    return MarkdownPieces().append(text)


class MarkdownPieces:
    """The pieces of a growing text."""

    def __init__(self) -> None:
        self._done: tuple[str, ...] = ()
        self._rest = ""
        self._read = 0
        self._scan = _Scan()

    def append(self, text: str) -> tuple[str, ...]:
        """Append `text` and return all pieces. Costs as much as the text and the last line."""
        self._rest += text
        while self._read < len(self._rest):
            end = self._rest.find("\n", self._read) + 1
            line = self._rest[self._read : end or len(self._rest)]
            if self._scan.begins_piece(line):
                self._cut(self._read - self._scan.length_before(line))
            elif self._scan.is_full(self._read, line):
                self._cut(self._read)
            elif self._scan.breaks(len(line)):
                self._cut(self._read + _word_end(line))
            elif end:
                self._scan.take(line)
                self._read = end
            else:
                break
        return (*self._done, self._rest) if self._rest else self._done

    def _cut(self, at: int) -> None:
        self._done = (*self._done, self._rest[:at])
        self._rest = self._rest[at:]
        self._read = 0
        self._scan = _Scan()


def _word_end(line: str) -> int:
    """Return the index at which a very long line is cut: the last blank that is not too far from its beginning."""
    length = 2 * _LONG["plain"]
    return line.rfind(" ", _LONG["plain"], length) + 1 or length


class _Scan:
    """Reads the complete lines of one piece and detects the line that starts the next."""

    def __init__(self) -> None:
        self._kind: _Kind = "plain"
        self._fence = ""  # the marks that opened the current fence
        self._is_closed = False
        self._is_indented = False
        self._is_blank = False
        self._lines = 0
        self._last = ""
        self._formula = ""  # what ends the formula of several lines that has begun
        self._depth = 0  # of details

    def is_full(self, length: int, line: str) -> bool:
        """Return True if the piece has become long, and `line` can begin another that continues it."""
        if self._kind == "list":
            return length >= _LONG["list"] and not self._fence and _ITEM.match(line) is not None
        return self._kind == "plain" and length >= _LONG["plain"] and not self._formula and not self._is_indented

    def breaks(self, length: int) -> bool:
        """Return True if a line of this length, which may be incomplete, has to be cut."""
        return self._kind == "plain" and length > 2 * _LONG["plain"] and not self._fence and not self._formula

    def begins_piece(self, line: str) -> bool:
        """Return True if `line`, which may be incomplete, can only belong to a new piece."""
        first = line.lstrip()[:1]
        if self._fence or self._formula or not self._lines or not first:
            return False
        if self._is_closed:
            return True
        if self._kind == "details":
            return False
        if self._is_blank:
            return not self._goes_on_after_blank(line)
        if first in _STARTS:
            if _fence_of(line):
                return self._kind != "list" or not line.startswith(" ")
            if _DETAILS.match(line) or (self._kind == "plain" and self._begins_list(line)):
                return True
        return self._kind == "plain" and "|" in line and self.length_before(line) > 0

    def length_before(self, line: str) -> int:
        """Number of characters before `line` that belong to its piece: a table header that follows other text."""
        is_text = self._kind == "plain" and self._lines > 1 and not self._is_blank
        return len(self._last) if is_text and self._is_below_head(line) else 0

    def take(self, line: str) -> None:
        if not line.strip() and not self._fence:
            self._is_blank = self._lines > 0
            self._formula = ""
            return
        if not self._lines:
            self._is_indented = line.startswith(("    ", "\t"))
            self._kind = "details" if _DETAILS.match(line) else "list" if _is_item(line) else "plain"
        if self._fence:
            self._take_fenced(line)
        else:
            self._take_text(line)
        self._lines += 1
        self._last = line

    def _take_fenced(self, line: str) -> None:
        marks = line.strip()
        if len(marks) >= len(self._fence) and set(marks) == {self._fence[0]}:
            self._fence = ""
            self._is_closed = self._kind == "fence"

    def _take_text(self, line: str) -> None:
        self._is_blank = False
        if self._kind == "details":
            self._take_details(line)
        elif self._kind == "list":
            self._fence = _fence_of(_MARGIN.sub("", line))
        elif line.lstrip()[:1] in ("`", "~") and self._fence_opened(line):
            self._kind = "fence"
        elif self._formula or "$$" in line or "\\[" in line:
            self._formula = _formula_after(line, self._formula)
        elif self._lines == 1 and self._is_below_head(line):
            self._kind = "table"

    def _take_details(self, line: str) -> None:
        self._fence = _fence_of(line)
        if not self._fence:
            for tag in _DETAILS_TAGS.finditer(line):
                self._depth += -1 if tag[1] else 1
            self._is_closed = self._depth <= 0

    def _fence_opened(self, line: str) -> bool:
        self._fence = _fence_of(line)
        return bool(self._fence)

    def _goes_on_after_blank(self, line: str) -> bool:
        if self._kind == "list":
            return line.startswith((" ", "\t")) or _is_item(line) or _MAYBE_ITEM.match(line) is not None
        return self._is_indented and line.startswith(("    ", "\t"))

    def _begins_list(self, line: str) -> bool:
        if self._is_indented:
            return False
        is_whole = line.endswith("\n") and _RULE.fullmatch(line) is None
        return (_FIRST_WHOLE if is_whole else _FIRST).match(line) is not None

    def _is_below_head(self, line: str) -> bool:
        return "|" in self._last and "|" in line and _DELIMITERS.fullmatch(line) is not None


def _formula_after(line: str, end: str) -> str:
    """Return the mark that ends the formula that is open after this line; empty without one."""
    if end:
        return "" if end in line else end
    start = line.strip()
    if start.startswith("$$") and start.count("$$") == 1:
        return "$$"
    return "\\]" if start.startswith("\\[") and "\\]" not in start else ""


def _fence_of(line: str) -> str:
    """Return the marks of a fence that a complete line opens, else empty."""
    fence = _FENCE.fullmatch(line)
    if fence is None or (fence[1][0] == "`" and "`" in fence[2]):
        return ""
    return fence[1]


def _is_item(line: str) -> bool:
    return _ITEM.match(line) is not None and _RULE.fullmatch(line) is None
