"""A streaming reply: Markdown split into pieces, and their rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from errand.protocol.blocks import TextBlock, ThinkingBlock
from errand.protocol.conversations import Node
from errand.protocol.events import TextDelta
from errand.window.rows.row import ReplyRow, Row, ThinkingRow

_Kind: TypeAlias = Literal["plain", "list", "fence", "table"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)\n")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?=[ \t\n])")
# A list item that can interrupt a paragraph: it has text, and if numbered, the number is 1.
_FIRST_WHOLE = re.compile(r" {0,3}(?:[-*+]|1[.)]) {1,4}\S")
# The same in an incomplete line that may turn out to be a rule.
_FIRST = re.compile(r" {0,3}(?:[-*+]|1[.)]) {1,4}[^\s\-*+_]")
_MARGIN = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
# An incomplete line that may become a list item.
_MAYBE_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)]?)?\Z")
_RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}\n")
_DELIMITERS = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\n")


def split_markdown(text: str) -> tuple[str, ...]:
    """The pieces of a text; none for an empty one."""
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

    def begins_piece(self, line: str) -> bool:
        """True if `line`, which may be incomplete, can only belong to a new piece."""
        if self._fence or not self._lines or not line.strip():
            return False
        if self._is_closed:
            return True
        if self._is_blank:
            return not self._goes_on_after_blank(line)
        if _fence_of(line):
            return self._kind != "list" or not line.startswith(" ")
        return self._kind == "plain" and (self._begins_list(line) or self.length_before(line) > 0)

    def length_before(self, line: str) -> int:
        """Number of characters before `line` that belong to its piece: a table header that follows other text."""
        is_text = self._kind == "plain" and self._lines > 1 and not self._is_blank
        return len(self._last) if is_text and self._is_below_head(line) else 0

    def take(self, line: str) -> None:
        if not line.strip() and not self._fence:
            self._is_blank = self._lines > 0
            return
        if not self._lines:
            self._is_indented = line.startswith(("    ", "\t"))
            self._kind = "list" if _is_item(line) else "plain"
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
        if self._kind == "list":
            self._fence = _fence_of(_MARGIN.sub("", line))
        elif self._fence_opened(line):
            self._kind = "fence"
        elif self._lines == 1 and self._is_below_head(line):
            self._kind = "table"

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


def _fence_of(line: str) -> str:
    """The marks of a fence that a complete line opens, else empty."""
    found = _FENCE.fullmatch(line)
    if found is None or (found[1][0] == "`" and "`" in found[2]):
        return ""
    return found[1]


def _is_item(line: str) -> bool:
    return _ITEM.match(line) is not None and _RULE.fullmatch(line) is None


@dataclass(frozen=True, slots=True)
class RowTail:
    """The rows of a node, starting with number `first`."""

    first: int
    rows: Sequence[Row]


@dataclass(slots=True)
class _StreamingBlock:
    """A text or a thought. Unchanged `rows` stay the same objects."""

    is_thinking: bool
    text: str = ""
    pieces: MarkdownPieces = field(default_factory=MarkdownPieces)
    cut: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list[Row])


class StreamingRows:
    """The rows of a node with the status `streaming`. Tool calls are shown once the node is finished."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._blocks: dict[int, _StreamingBlock] = {}
        self._above = 0
        for index, block in enumerate(node.blocks):
            if isinstance(block, TextBlock | ThinkingBlock):
                pieces = MarkdownPieces()
                is_thinking = isinstance(block, ThinkingBlock)
                cut = () if is_thinking else pieces.append(block.text)
                self._blocks[index] = _StreamingBlock(is_thinking, block.text, pieces, cut)
        self._changed_tail(0)

    def add(self, delta: TextDelta) -> RowTail | None:
        """Add text and return the changed rows.

        A missed delta leaves a gap, and further text is ignored until the finished node arrives.
        """
        if delta.kind == "toolCall":
            return None
        newest = max(self._blocks, default=delta.block)
        if delta.offset == 0:
            self._forget_from(delta.block)
            self._blocks[delta.block] = _StreamingBlock(delta.kind == "thinking")
        block = self._blocks.get(delta.block)
        if block is None or delta.offset > len(block.text):
            return None
        text = delta.text
        if delta.offset < len(block.text):
            text = block.text[: delta.offset] + text
            block = self._blocks[delta.block] = _StreamingBlock(block.is_thinking)
        block.text += text
        if not block.is_thinking:
            block.cut = block.pieces.append(text)
        return self._changed_tail(min(newest, delta.block))  # the previously newest block no longer streams

    def rows(self, above: Sequence[Row]) -> list[Row]:
        """All rows, preceded by those of `above`, which count in the number of a tail."""
        self._above = len(above)
        own = (row for index in sorted(self._blocks) for row in self._blocks[index].rows)
        return [*above, *own]

    def _changed_tail(self, start: int) -> RowTail:
        """Update the rows of the blocks from `start` on. Of a text, only the last row can have changed."""
        first, step, rows = self._above, self.node.turn, list[Row]()
        newest = max(self._blocks, default=-1)
        for index in sorted(self._blocks):
            block = self._blocks[index]
            same, streams = len(block.rows), index == newest
            if index >= start and block.is_thinking and block.text.strip():
                same, key = 0, row_key(self.node, index)
                block.rows = [ThinkingRow(key, self.node, block.text, streaming=streams)]
            elif index >= start and (block.rows or block.text.strip()):
                same = max(0, same - 1)
                block.rows[same:] = text_rows(self.node, index, block.cut, first=same, step=step, streaming=streams)
            if block.rows and not block.is_thinking:
                step = 0
            first += 0 if rows else same
            rows += block.rows if rows else block.rows[same:]
        return RowTail(first, rows)

    def _forget_from(self, index: int) -> None:
        """A restarted text voids the later blocks."""
        self._blocks = {known: block for known, block in self._blocks.items() if known < index}


def row_key(node: Node, block: int) -> str:
    """The key of a block's row, the same while it streams and when it is finished."""
    return f"{node.id}/{block}"


def text_rows(
    node: Node, block: int, pieces: Sequence[str], *, first: int = 0, step: int, streaming: bool
) -> list[ReplyRow]:
    """The rows of a text, one per piece, starting with piece number `first`. Piece 0 shows `step`."""
    last = len(pieces) - 1
    return [
        ReplyRow(
            f"{row_key(node, block)}/{number}",
            node,
            pieces[number],
            streaming=streaming and number == last,
            step=0 if number else step,
        )
        for number in range(first, len(pieces))
    ]
