"""Replaces tags, footnotes and formulas of a Markdown text by marker characters, which Qt's parser leaves alone.

Everything that is not recognised here stays as it is written: no HTML is ever interpreted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

MarkKind: TypeAlias = Literal["sub", "sup", "kbd", "b", "i", "ref", "note"]

# Characters for private use. A text that has one of them itself is shown without marks.
_FIRST = 0xEE00
_KINDS: tuple[MarkKind, ...] = ("sub", "sup", "kbd", "b", "i", "ref", "note")
_FORMULA = _FIRST + 2 * len(_KINDS)
_MAX_FORMULAS = 200  # of one piece
_OWN = re.compile(f"[{chr(_FIRST)}-{chr(_FORMULA + _MAX_FORMULAS)}]")
_TAGS: dict[str, MarkKind] = {
    "sub": "sub",
    "sup": "sup",
    "kbd": "kbd",
    "b": "b",
    "strong": "b",
    "i": "i",
    "em": "i",
}
_BREAK = "\u2028"
NO_TEXT = "\u2060"
"""The text of an image that has none: without one, Qt's parser leaves it out."""
_MAX_LABEL = 40

# In the order of their precedence: code and addresses are left alone, as is what a backslash escapes.
_TOKEN = re.compile(
    r"(?P<fence>^[ \t]*(?:[-*+][ \t]+|\d{1,9}[.)][ \t]+)?(?P<mark>`{3,}|~{3,})[^\n]*\n"
    r"(?:.*?^[ \t]*(?P=mark)[`~]*[ \t]*$|.*))"
    r"|(?P<code>(?<!`)(?P<ticks>`+)(?!`).{1,2000}?(?<!`)(?P=ticks)(?!`))"
    r"|\\\((?P<round>(?:[^\n\\]|\\\\|\\[^(\\\n]){1,1000}?)\\\)"
    r"|\\\[(?P<square>(?:[^\n\\]|\\\\|\\[^\[\\]|\n(?![ \t]*\n)){1,2000}?)\\\]"
    r"|(?P<escape>\\[^\w\s])"
    r"|(?<!\$)\$\$(?!\$)(?P<display>(?:[^\n$]|\n(?![ \t]*\n)){1,2000}?)(?<!\\)\$\$"
    r"|(?<![\w$])\$(?![\s$])(?P<inline>(?:[^$\n\\`]|\\.){0,400}?(?:[^$\s\\`]|\\.))\$(?![\w$])"
    r"|!\[\]\((?P<image>[^()\s]{1,2000})"
    r"|(?P<address><[a-zA-Z][\w+.-]{1,30}:[^\s<>]*>|https?://[^\s<>)\]]+|\]\([^()\s]{1,2000})"
    r"|<(?P<close>/?)(?P<tag>sub|sup|kbd|b|strong|i|em)>"
    r"|(?P<br><br[ \t]*/?>\n?)"
    r"|^ {0,3}\[\^(?P<note>[^\]\s]{1,40})\]:[ \t]*"
    r"|\[\^(?P<ref>[^\]\s]{1,40})\]",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_HINTS = re.compile(r"[$<]|\\[(\[]|\[\^|!\[\]\(")
# An amount of money and words: "$5 for me, 6$ for you".
_PROSE = re.compile(r"\d[\d.,]*[ ]+[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula as it is written, with its delimiters, and its TeX."""

    source: str
    tex: str
    is_display: bool


@dataclass(frozen=True, slots=True)
class MarkedSource:
    """Markdown with marker characters; `formulas` by the number of their marker."""

    text: str
    formulas: tuple[Formula, ...] = ()
    has_marks: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """The meaning of a marker character: the begin or end of a range, or a formula."""

    kind: MarkKind | Literal["formula"]
    begins: bool = True
    number: int = 0


def mark_of(code: int) -> Mark | None:
    """Return the meaning of a UTF-16 code unit; None for any other character."""
    index = code - _FIRST
    if not 0 <= index < _FORMULA - _FIRST + _MAX_FORMULAS:
        return None
    if code >= _FORMULA:
        return Mark("formula", number=code - _FORMULA)
    return Mark(_KINDS[index // 2], begins=index % 2 == 0)


def mark_up(markdown: str) -> MarkedSource:
    """Return the text for Qt's parser. Costs little if there is nothing to mark."""
    if _HINTS.search(markdown) is None or _OWN.search(markdown) is not None:
        return MarkedSource(markdown)
    if markdown.startswith(("    ", "\t")):
        return MarkedSource(markdown)  # an indented block of code
    return _Marker(markdown).marked()


class _Marker:
    """Reads the text once. A tag without its other half stays text."""

    def __init__(self, markdown: str) -> None:
        self._markdown = markdown
        self._pieces: list[str] = []
        self._open: list[tuple[MarkKind, int]] = []
        self._formulas: list[Formula] = []
        self._has_marks = False

    def marked(self) -> MarkedSource:
        done = 0
        for match in _TOKEN.finditer(self._markdown):
            self._pieces.append(self._markdown[done : match.start()])
            self._take(match)
            done = match.end()
        self._pieces.append(self._markdown[done:])
        return MarkedSource("".join(self._pieces), tuple(self._formulas), self._has_marks)

    def _take(self, match: re.Match[str]) -> None:
        match match.lastgroup:
            case "round" | "square" | "display" | "inline" as kind:
                self._take_formula(match, kind)
            case "tag":
                self._take_tag(match)
            case "br":
                self._pieces.append(_BREAK)
            case "image":
                self._pieces.append(f"![{NO_TEXT}]({match['image']}")
            case "ref":
                self._put_range("ref", match["ref"])
            case "note":
                self._pieces.append("\n")
                self._put_range("note", match["note"])
                self._pieces.append(" ")
            case _:
                self._pieces.append(match.group())

    def _take_formula(self, match: re.Match[str], kind: str) -> None:
        tex = match[kind].strip()
        is_prose = kind == "inline" and _PROSE.match(tex) is not None and "\\" not in tex
        if not tex or is_prose or len(self._formulas) == _MAX_FORMULAS:
            self._pieces.append(match.group())
            return
        self._pieces.append(chr(_FORMULA + len(self._formulas)))
        self._formulas.append(Formula(match.group(), tex, is_display=kind in ("square", "display")))
        self._has_marks = True

    def _take_tag(self, match: re.Match[str]) -> None:
        kind = _TAGS[match["tag"].lower()]
        if not match["close"]:
            self._open.append((kind, len(self._pieces)))
            self._pieces.append(match.group())
            return
        if self._open and self._open[-1][0] == kind:
            _, index = self._open.pop()
            self._pieces[index] = _marker(kind, begins=True)
            self._pieces.append(_marker(kind, begins=False))
            self._has_marks = True
        else:
            self._pieces.append(match.group())

    def _put_range(self, kind: MarkKind, label: str) -> None:
        self._pieces.append(f"{_marker(kind, begins=True)}{_escaped(label)}{_marker(kind, begins=False)}")
        self._has_marks = True


def _marker(kind: MarkKind, *, begins: bool) -> str:
    return chr(_FIRST + 2 * _KINDS.index(kind) + (0 if begins else 1))


def _escaped(label: str) -> str:
    """Return a label with its Markdown escaped."""
    return re.sub(r"([^\w\s])", r"\\\1", label)


def markers(text: str) -> Iterator[tuple[int, Mark]]:
    """Yield the markers of a text by their position in UTF-16 code units."""
    if _OWN.search(text) is None:
        return
    units = memoryview(text.encode("utf-16-le")).cast("H")
    for position, code in enumerate(units):
        mark = mark_of(code)
        if mark is not None:
            yield position, mark
