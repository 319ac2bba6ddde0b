"""A reply's Markdown as light terminal text, as it streams in: pure, it keeps what it holds back and writes nowhere.

Where there are no colours the text stays as it was written: marks are then the only way to see a heading or a code.
"""

import re

from app.cli.inline import styled, whole_words, without_marks
from app.cli.plain import columns, visible_columns
from app.cli.style import Style
from app.cli.table import table_lines

_MOST_HELD = 2_000  # a line without blanks is no prose
_WIDEST = 100  # longer lines are hard to read
_FENCE = re.compile(r" {0,3}(```|~~~)")
_HEADING = re.compile(r" {0,3}#{1,6} ++(.*+)")
_RULE = re.compile(r" {0,3}([-*_] *){3,}")
_ITEM = re.compile(r"( *+)([-*+]|\d{1,9}[.)]) +(?=\S)")
_QUOTE = re.compile(r" {0,3}> ?")
# What may still become one of the above, a table or a fence when more of the line comes.
_UNDECIDED = re.compile(r" *+(#{1,6}( .*)?|\|.*|`{1,2}|```.*|~.*|[-*_+ ]*|\d{1,9}[.)]? *|>)")


class Prose:
    """One reply. What `feed` and `end` give, joined, is the same however the text was cut into pieces."""

    def __init__(self, style: Style, width: int) -> None:
        self._style = style
        self._width = min(width, _WIDEST)
        self._raw = ""
        self._in_code = False
        self._begun = False
        self._column = self._hang = self._gap = 0
        self._table: list[str] = []

    def feed(self, text: str) -> str:
        """What can be shown of the text so far and was not shown yet."""
        if not self._style.colour:
            return text
        shown = ""
        *lines, self._raw = (self._raw + text).split("\n")
        for line in lines:
            shown += self._line(line)
        return shown + self._part()

    def end(self) -> str:
        """What was held back; the reply is over."""
        rest, self._raw = self._raw, ""
        shown = self._line(rest).removesuffix("\n") if rest or self._begun else ""
        return shown + self._end_of_table()

    def _line(self, line: str) -> str:
        """The rest of a line up to its end."""
        shown = self._flow(line) + "\n" if self._begun else self._whole(line)
        self._begun, self._column, self._hang, self._gap = False, 0, 0, 0
        return shown

    def _whole(self, line: str) -> str:
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
        sign, rest = self._lead(line)
        return before + sign + self._flow(rest) + "\n"

    def _part(self) -> str:
        """What can be shown of a line that goes on: its whole words up to a mark that is still open."""
        shown = ""
        if not self._begun:
            if self._in_code or _UNDECIDED.fullmatch(self._raw):
                return ""
            shown, self._raw = self._lead(self._raw)
            shown = self._end_of_table() + shown
        end = whole_words(self._raw) if len(self._raw) < _MOST_HELD else len(self._raw)
        ready, self._raw = self._raw[:end], self._raw[end:]
        return shown + self._flow(ready)

    def _lead(self, text: str) -> tuple[str, str]:
        """The beginning of a line (a list's sign, a quote's bar), below which what is broken goes on; and the rest."""
        self._begun = True
        rest = text.lstrip(" ")
        sign = text[: len(text) - len(rest)]
        if item := _ITEM.match(text):
            bullet = item[2] if item[2][0].isdigit() else self._style.sign("bullet")
            sign, rest = f"{item[1]}{bullet} ", text[item.end() :]
        elif quote := _QUOTE.match(text):
            sign, rest = f"{self._style.sign('bar')} ", text[quote.end() :]
        self._column = self._hang = columns(sign)
        return (self._style.dim(sign) if sign.strip() else sign), rest

    def _flow(self, text: str) -> str:
        """Words one after the other, broken at the width."""
        shown = ""
        for token in re.findall(r" +|[^ ]+", styled(text, self._style)):
            if token[0] == " ":
                self._gap += len(token)
                continue
            size = visible_columns(token)
            if self._column > self._hang and self._column + self._gap + size > self._width:
                shown += "\n" + " " * self._hang
                self._column = self._hang
            elif self._column > self._hang:
                shown += " " * self._gap
                self._column += self._gap
            self._gap = 0
            shown += token
            self._column += size
        return shown

    def _end_of_table(self) -> str:
        rows, self._table = self._table, []
        return "".join(f"{line}\n" for line in table_lines(rows, self._width, self._style))
