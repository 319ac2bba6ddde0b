"""Syntax colours in a diff: of the lines that are seen, a few at a time, in the language of the file."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QColor, QTextBlock, QTextCharFormat, QTextCursor, QTextLayout

from errand.window.theme.theme import Theme
from errand.window.widgets.diff.lines import DiffLine
from errand.window.widgets.highlighting import MAX_LINE_LENGTH, HighlightedRun, TokenKind, highlight_once

_CODE = ("context", "added", "removed")
_SLICE_S = 0.008
# Lines that are highlighted together: what begins in one of them and ends in another is seen.
_TOGETHER = 100

_Run = tuple[int, int, TokenKind]


class DiffSyntax(QObject):
    """Colours the blocks of a document, whose lines are those of a diff, when there is time for it.

    `visible` yields the blocks in sight.
    """

    def __init__(self, theme: Theme, visible: Callable[[], Iterator[QTextBlock]], parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme
        self._visible = visible
        self._lines: Sequence[DiffLine | None] = ()
        self._language = ""
        self._sign = 1
        self._runs: dict[int, tuple[_Run, ...]] = {}
        self._coloured: set[int] = set()
        self._timer = QTimer(self, singleShot=True, interval=0)
        self._timer.timeout.connect(self._colour_some)
        theme.changed.connect(self._on_theme_changed)

    def show_lines(self, lines: Sequence[DiffLine | None], language: str, *, has_signs: bool) -> None:
        """The document has these lines, with or without their signs; for an empty language they stay as they are."""
        self._lines, self._language, self._sign = lines, language, 1 if has_signs else 0
        self._runs.clear()
        self._coloured.clear()
        if language:
            self._timer.start()

    def request(self, numbers: Iterable[int]) -> None:
        """Colour these lines soon, which are in sight. It is called whenever the text is painted."""
        if self._language and not self._timer.isActive() and any(map(self._is_open, numbers)):
            self._timer.start()

    def _is_open(self, number: int) -> bool:
        return number not in self._coloured and self._code(number) is not None

    def _colour_some(self) -> None:
        open_blocks = [block for block in self._visible() if self._is_open(block.blockNumber())]
        if not open_blocks:
            return
        end, cursor = time.perf_counter() + _SLICE_S, QTextCursor(open_blocks[0])
        cursor.beginEditBlock()  # the lines are laid out again together
        for block in open_blocks:
            if time.perf_counter() > end:
                self._timer.start()
                break
            self._colour(block)
        cursor.endEditBlock()

    def _colour(self, block: QTextBlock) -> None:
        number = block.blockNumber()
        if number not in self._runs:
            self._highlight_around(number)
        self._coloured.add(number)
        if self._runs[number]:
            block.layout().setFormats([self._range(run) for run in self._runs[number]])
            block.document().markContentsDirty(block.position(), block.length())  # as QSyntaxHighlighter does

    def _highlight_around(self, number: int) -> None:
        """Highlight the old and the new text of the lines around one, within their hunk."""
        first = last = number
        while first > 0 and number - first < _TOGETHER // 2 and self._belongs(first - 1, number):
            first -= 1
        while last - first < _TOGETHER and self._belongs(last + 1, number):
            last += 1
        for kinds in (("context", "added"), ("context", "removed")):
            chosen = [(at, code) for at in range(first, last + 1) if (code := self._code(at, kinds)) is not None]
            if any(at not in self._runs for at, _ in chosen):
                runs = highlight_once("\n".join(code for _, code in chosen), self._language)
                for (at, code), line_runs in zip(chosen, _by_line(runs), strict=False):
                    self._runs.setdefault(at, tuple(_units(code, line_runs)))
        for at in range(first, last + 1):
            self._runs.setdefault(at, ())

    def _belongs(self, number: int, to: int) -> bool:
        line, other = self._line(number), self._line(to)
        if line is None or other is None:
            return number < len(self._lines) and line is None  # an empty row beside a line of the other side
        return line.hunk == other.hunk and self._code(number) is not None

    def _code(self, number: int, kinds: Sequence[str] = _CODE) -> str | None:
        """Return the text of a line without its sign; None if it is no code, or too long."""
        line = self._line(number)
        if line is None or line.kind not in kinds or len(line.text) > MAX_LINE_LENGTH:
            return None
        return line.text[1:]

    def _line(self, number: int) -> DiffLine | None:
        return self._lines[number] if 0 <= number < len(self._lines) else None

    def _range(self, run: _Run) -> QTextLayout.FormatRange:
        start, length, kind = run
        char_format = QTextCharFormat()
        char_format.setForeground(QColor(self._theme.colour(f"syntax_{kind}")))
        part = QTextLayout.FormatRange()
        part.start, part.length, part.format = start + self._sign, length, char_format  # pyright: ignore[reportAttributeAccessIssue] -- PySide6's stubs omit the fields of FormatRange
        return part

    def _on_theme_changed(self) -> None:
        self._coloured.clear()
        if self._language:
            self._timer.start()


def _by_line(runs: Sequence[HighlightedRun]) -> Iterator[list[tuple[int, int, TokenKind]]]:
    """Yield the parts of each line that are not plain text: start, end, kind."""
    line: list[tuple[int, int, TokenKind]] = []
    offset = 0
    for run in runs:
        for number, text in enumerate(run.text.split("\n")):
            if number:
                yield line
                line, offset = [], 0
            if text and run.kind != "text":
                line.append((offset, offset + len(text), run.kind))
            offset += len(text)
    yield line


def _units(code: str, runs: Sequence[tuple[int, int, TokenKind]]) -> Iterator[_Run]:
    """Yield start and length of the runs in UTF-16 units, as Qt counts."""
    for start, end, kind in runs:
        if not code.isascii():
            start, end = (len(code[:at].encode("utf-16-le", "surrogatepass")) // 2 for at in (start, end))
        yield start, end - start, kind
