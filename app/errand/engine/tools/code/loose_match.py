"""Finds text that differs from the wanted one in white space or in the kind of its quotes only, and adapts what
replaces it: indented as the file is, with the quotes of the file.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from errand.engine.tools.code.line_matcher import LineMatcher

# Above these sizes no such place is looked for, or lines that stay are indented like new ones.
_MAX_TEXT_LENGTH = 5_000_000
_TAB_WIDTH = 4

_INDENT = re.compile(r"[ \t]*")
_QUOTES = "\"'`"
# Makes all kinds of quotes one, for comparisons.
ONE_QUOTE = str.maketrans(dict.fromkeys(_QUOTES, "'"))


@dataclass(frozen=True, slots=True)
class LoosePlace:
    """A place in a text: its lines from `first` to `last` counted from 1, their characters, and what they are."""

    first: int
    last: int
    start: int
    end: int
    text: str


def loose_places(text: str, old: str) -> list[LoosePlace]:
    """Whole lines that equal those of `old` but for indentation, runs of blanks and tabs, and line ends.

    The last line end belongs to a place if `old` ends with one. Empty if `old` is blank or the text is too large.
    """
    old_lines = _normalised(_lines(old))
    if not any(old_lines) or len(text) + len(old) > _MAX_TEXT_LENGTH:
        return []
    lines = text.split("\n")
    haystack, needle = "\n".join(("", *_normalised(lines), "")), "\n".join(("", *old_lines, ""))
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    matches: list[LoosePlace] = []
    at, counted, index = haystack.find(needle), 0, 0
    while at >= 0:
        index += haystack.count("\n", counted, at)
        counted = at
        end = min(len(text), starts[index + len(old_lines)] - (0 if old.endswith("\n") else 1))
        matches.append(LoosePlace(index + 1, index + len(old_lines), starts[index], end, text[starts[index] : end]))
        at = haystack.find(needle, at + 1)
    return matches


def reindented(new: str, old: str, file_text: str) -> str:
    """Return the replacement `new` for `old` as it has to be at `place`, the text that was found for `old`.

    Lines that `new` has in common with `old` stay as they are in the file; others get the indentation of the file.
    """
    before, after, file_lines = _lines(old), _lines(new), _lines(file_text)
    indents = _Indents(before, file_lines)
    lines = [indents.indented(line) for line in after]
    for block in LineMatcher(before, after).get_matching_blocks():
        lines[block.b : block.b + block.size] = file_lines[block.a : block.a + block.size]
    ends = file_text.endswith("\n") and bool(after)
    return "\n".join(lines) + ("\n" if ends else "")


def quoted_as_in_file(text: str, old: str, new: str) -> tuple[int, str] | None:
    """Return where the only text is that equals `old` but for the kind of its quotes, and `new` with those of the file.

    None if there is no such place or are several, or if the kinds do not correspond one to one: then a quote of `new`
    could end a string.
    """
    if len(text) + len(old) > _MAX_TEXT_LENGTH or not any(quote in old for quote in _QUOTES):
        return None
    folded, folded_old = text.translate(ONE_QUOTE), old.translate(ONE_QUOTE)
    start = folded.find(folded_old)
    if start < 0 or folded.find(folded_old, start + 1) >= 0:
        return None
    pairs = {(quote, own) for quote, own in zip(old, text[start : start + len(old)], strict=True) if quote in _QUOTES}
    own_quotes = dict(pairs)
    is_one_to_one = len(pairs) == len(own_quotes) == len(set(own_quotes.values()))
    is_ambiguous = not is_one_to_one or any(quote in new and quote not in own_quotes for quote in _QUOTES)
    return None if is_ambiguous else (start, new.translate(str.maketrans(own_quotes)))


class _Indents:
    """Return how the indentation of given lines corresponds to that of the file."""

    def __init__(self, old_lines: Sequence[str], file_lines: Sequence[str]) -> None:
        seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for line, own in zip(old_lines, file_lines, strict=True):
            if line.strip():
                seen[_indent(line)][_indent(own)] += 1
        self._known = {indent: counts.most_common(1)[0][0] for indent, counts in seen.items()}
        self._uses_tabs = any("\t" in own for own in self._known.values())
        self._width = self._tab_width()

    def indented(self, line: str) -> str:
        indent = _indent(line)
        if not line.strip():
            return line
        if (own := self._known.get(indent)) is not None:
            return own + line[len(indent) :]
        outer = max(
            (known_indent for known_indent in self._known if indent.startswith(known_indent)), key=len, default=None
        )
        if outer is None:
            return self._less(indent) + line[len(indent) :]
        return self._known[outer] + self._converted(indent[len(outer) :]) + line[len(indent) :]

    def _less(self, indent: str) -> str:
        """Return the file's indentation for a line that is indented less than all known ones."""
        old_indent, own = min(self._known.items(), key=lambda pair: len(pair[0]))
        missing = self._converted(old_indent[len(indent) :]) if old_indent.startswith(indent) else ""
        return own[: len(own) - len(missing)] if own.endswith(missing) else self._converted(indent)

    def _converted(self, blanks: str) -> str:
        wide = blanks.expandtabs(self._width)
        if not self._uses_tabs:
            return wide
        return "\t" * (len(wide) // self._width) + " " * (len(wide) % self._width)

    def _tab_width(self) -> int:
        """Return the number of blanks that stand for a tab, from two lines that differ in depth, or one."""
        pairs = sorted(self._known.items(), key=lambda pair: (len(pair[0]), len(pair[1])))
        for (old_indent, own), (deeper, own_deeper) in pairwise([("", ""), *pairs]):
            more, own_more = deeper[len(old_indent) :], own_deeper[len(own) :]
            blanks, tabs = (more, own_more) if "\t" in own_more else (own_more, more)
            if tabs and set(tabs) == {"\t"} and blanks and set(blanks) == {" "} and len(blanks) % len(tabs) == 0:
                return len(blanks) // len(tabs)
        return _TAB_WIDTH


def _lines(text: str) -> list[str]:
    """Without the empty one after a last line end."""
    return text.removesuffix("\n").split("\n") if text else []


def _normalised(lines: Sequence[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


def _indent(line: str) -> str:
    indent = _INDENT.match(line)
    return indent[0] if indent else ""
