"""Renders streaming Markdown as terminal text: blocks, inline marks, tables. Pure."""

import re

from errand.cli.terminal.style import Style
from errand.cli.terminal.text import columns, plain, visible_columns

# Lengths are bounded: a long line full of open marks must not take quadratic time.
_SPAN = re.compile(
    r"`(?P<code>[^`]{1,200})`"
    r"|\*\*(?=\S)(?P<bold>.{1,200}?)(?<=\S)\*\*"
    r"|(?<!\w)__(?=\S)(?P<bold_too>.{1,200}?)(?<=\S)__(?!\w)"
    r"|(?<![\w*])\*(?=[^\s*])(?P<italic>[^*]{0,200}[^\s*])\*(?![\w*])"
    r"|(?<!\w)_(?=[^\s_])(?P<italic_too>[^_]{0,200}[^\s_])_(?!\w)"
    r"|\[(?P<link>[^\]]{1,200})\]\((?P<address>[^)\s]{1,200})\)"
)
_OPENER = re.compile(
    r"`|\*\*(?=\S|$)|(?<![\w*])\*(?=\S|$)|(?<!\w)_(?=\S|$)|\[[^\]]{0,200}$|\[[^\]]{1,200}\](\([^)\s]{0,200})?$"
)
_MAX_MARK_LENGTH = 450  # a mark that stays open longer is literal

_GAP = "  "

_MAX_BUFFER_LENGTH = 2_000  # a line without blanks is not prose
_MAX_WIDTH = 100  # longer lines are hard to read
_FENCE = re.compile(r" {0,3}(```|~~~)")
_HEADING = re.compile(r" {0,3}#{1,6} ++(.*+)")
_RULE = re.compile(r" {0,3}([-*_] *){3,}")
_ITEM = re.compile(r"( *+)([-*+]|\d{1,9}[.)]) +(?=\S)")
_BOX = re.compile(r"\[([ xX])\] +(?=\S)")
_QUOTE = re.compile(r" {0,3}> ?")
# A beginning that may become one of the above, a table or a fence with more of the line.
_UNDECIDED = re.compile(r" *+(#{1,6}( .*)?|\|.*|`{1,2}|```.*|~.*|[-*_+ ]*|[-*+] +\[[ xX]?\]? *|\d{1,9}[.)]? *|>)")


def inline_markdown(text: str, style: Style) -> str:
    """Return the text with its marks as colors, applied per word so that a line can be wrapped between them."""
    return _SPAN.sub(lambda found: _painted(found, style), text)


def without_marks(text: str) -> str:
    return inline_markdown(text, Style(colour=False, unicode=True))


def whole_words_length(text: str) -> int:
    """Return how much of a text can be shown before the rest of its line arrives: up to a blank outside of marks."""
    end, position, length = len(text), 0, 0
    while position < end:
        span, opener = _SPAN.search(text, position), _OPENER.search(text, position)
        if opener and (span is None or opener.start() < span.start()):
            if len(text) - opener.start() < _MAX_MARK_LENGTH:
                end = opener.start()
                break
            span = opener
        if span is None:
            break
        length = max(length, text.rfind(" ", position, span.start()) + 1)
        position = span.end()
    return max(length, text.rfind(" ", position, end) + 1)


def _painted(found: re.Match[str], style: Style) -> str:
    kind, text = found.lastgroup, found[found.lastgroup or 0]
    if kind == "address":
        link = found["link"]
        return link if link == text else f"{_words('4', link, style)} {style.dim(f'({text})')}"
    code = {"code": "36", "bold": "1", "bold_too": "1"}.get(kind or "", "3")
    inner = text if kind == "code" else inline_markdown(text, style)
    return _words(code, inner, style)


def _words(code: str, text: str, style: Style) -> str:
    return " ".join(style.paint(code, word) for word in text.split(" "))


def table_lines(rows: list[str], width: int, style: Style) -> list[str]:
    cells = [_cells(row) for row in rows]
    if len(cells) < 2 or not all(re.fullmatch(r":?-+:?", cell) for cell in cells[1]):
        return rows
    body = [cells[0], *cells[2:]]
    count = max(len(row) for row in body)
    sizes = [max(_size(row[column]) if column < len(row) else 0 for row in body) for column in range(count)]
    if sum(sizes) + len(_GAP) * (count - 1) > width:
        return rows
    head = [f"**{without_marks(cell)}**" if cell else "" for cell in body[0]]
    sides = [(rule.startswith(":"), rule.endswith(":")) for rule in cells[1]]
    sides += [(False, False)] * (count - len(sides))
    lines = [_line(row, sizes, sides, style) for row in (head, *body[1:])]
    return [lines[0], style.dim(_GAP.join("-" * size for size in sizes)), *lines[1:]]


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _line(row: list[str], sizes: list[int], sides: list[tuple[bool, bool]], style: Style) -> str:
    """`sides` are the colons of the row of dashes: `:-` left, `-:` right, `:-:` in the middle."""
    cells = zip(row, sizes, sides, strict=False)
    return _GAP.join(_aligned(cell, size, side, style) for cell, size, side in cells).rstrip()


def _aligned(cell: str, size: int, side: tuple[bool, bool], style: Style) -> str:
    room = size - _size(cell)
    before = {(False, True): room, (True, True): room // 2}.get(side, 0)
    return " " * before + inline_markdown(cell, style) + " " * (room - before)


def _size(cell: str) -> int:
    return columns(plain(without_marks(cell)))


class MarkdownStream:
    """One reply. The joined results of `feed` and `end` do not depend on how the text was split."""

    def __init__(self, style: Style, width: int) -> None:
        self._style = style
        self._width = min(width, _MAX_WIDTH)
        self._raw = ""
        self._in_code = False
        self._is_line_started = False
        self._column = self._indent = self._gap = 0
        self._table: list[str] = []

    def feed(self, text: str) -> str:
        """Take a part of the reply; returns the text that can be shown now."""
        if not self._style.colour:
            return text
        output = ""
        *lines, self._raw = (self._raw + text).split("\n")
        for line in lines:
            output += self._line(line)
        return output + self._partial_line()

    def end(self) -> str:
        """Returns the held-back rest at the end of the reply."""
        rest, self._raw = self._raw, ""
        output = self._line(rest).removesuffix("\n") if rest or self._is_line_started else ""
        return output + self._end_of_table()

    def _line(self, line: str) -> str:
        """Return the rest of a line up to its end."""
        output = self._wrapped_words(line) + "\n" if self._is_line_started else self._complete_line(line)
        self._is_line_started, self._column, self._indent, self._gap = False, 0, 0, 0
        return output

    def _complete_line(self, line: str) -> str:
        if _FENCE.match(line):
            self._in_code = not self._in_code
            return self._end_of_table()
        if self._in_code:
            return self._style.paint("36", f"  {line}") + "\n" if line else "\n"
        if line.lstrip().startswith("|"):
            self._table.append(line)
            return ""
        before = self._end_of_table()
        if heading := _HEADING.fullmatch(line):
            return before + self._style.bold(without_marks(heading[1].rstrip(" #"))) + "\n"
        if _RULE.fullmatch(line):
            return before + self._style.dim("-" * min(20, self._width)) + "\n"
        sign, rest = self._line_prefix(line)
        return before + sign + self._wrapped_words(rest) + "\n"

    def _partial_line(self) -> str:
        """Return the part of an incomplete line that can be shown: its whole words up to an open mark."""
        output = ""
        if not self._is_line_started:
            if self._in_code or _UNDECIDED.fullmatch(self._raw):
                return ""
            output, self._raw = self._line_prefix(self._raw)
            output = self._end_of_table() + output
        end = whole_words_length(self._raw) if len(self._raw) < _MAX_BUFFER_LENGTH else len(self._raw)
        ready, self._raw = self._raw[:end], self._raw[end:]
        return output + self._wrapped_words(ready)

    def _line_prefix(self, text: str) -> tuple[str, str]:
        """Split off the prefix of a line (a list marker, a quote bar), the hanging indent of wrapped lines."""
        self._is_line_started = True
        rest = text.lstrip(" ")
        sign = text[: len(text) - len(rest)]
        if item := _ITEM.match(text):
            rest = text[item.end() :]
            bullet = item[2] if item[2][0].isdigit() else self._style.sign("bullet")
            if not item[2][0].isdigit() and (box := _BOX.match(rest)):
                bullet, rest = self._style.sign("open" if box[1] == " " else "tick"), rest[box.end() :]
            sign = f"{item[1]}{bullet} "
        elif quote := _QUOTE.match(text):
            sign, rest = f"{self._style.sign('bar')} ", text[quote.end() :]
        self._column = self._indent = columns(sign)
        return (self._style.dim(sign) if sign.strip() else sign), rest

    def _wrapped_words(self, text: str) -> str:
        """Words in sequence, wrapped at the width."""
        output = ""
        for token in re.findall(r" +|[^ ]+", inline_markdown(text, self._style)):
            if token[0] == " ":
                self._gap += len(token)
                continue
            size = visible_columns(token)
            if self._column > self._indent and self._column + self._gap + size > self._width:
                output += "\n" + " " * self._indent
                self._column = self._indent
            elif self._column > self._indent:
                output += " " * self._gap
                self._column += self._gap
            self._gap = 0
            output += token
            self._column += size
        return output

    def _end_of_table(self) -> str:
        rows, self._table = self._table, []
        return "".join(f"{line}\n" for line in table_lines(rows, self._width, self._style))
