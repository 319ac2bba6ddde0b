"""A reply while it streams: its blocks as far as they have come, and their rows, of which only the last one changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.protocol.blocks import TextBlock, ThinkingBlock
from app.protocol.conversations import Node
from app.protocol.events import TextDelta
from app.window.rows import Row, TextRow, ThinkingRow
from app.window.stores.markdown import Pieces


@dataclass(slots=True)
class _Growing:
    """One block. `rows` are those shown last: what did not change stays the same object."""

    is_thinking: bool
    text: str = ""
    pieces: Pieces = field(default_factory=Pieces)
    cut: tuple[str, ...] = ()
    rows: list[TextRow] = field(default_factory=list[TextRow])

    def add(self, text: str, offset: int) -> None:
        if offset < len(self.text):
            text = self.text[:offset] + text
            self.text, self.pieces = "", Pieces()
            self.rows.clear()
        self.text += text
        if not self.is_thinking:
            self.cut = self.pieces.append(text)

    def text_rows(self, node: Node, index: int, *, step: int, streaming: bool) -> list[TextRow]:
        """A row for each piece. Of those shown before only the last can be another one now."""
        first = max(0, len(self.rows) - 1)
        self.rows[first:] = text_rows(node, index, self.cut, first=first, step=step, streaming=streaming)
        return self.rows


class Draft:
    """Made of a node with the status `streaming`. Tool calls are shown once the node is finished."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._blocks: dict[int, _Growing] = {}
        for index, block in enumerate(node.blocks):
            if isinstance(block, TextBlock | ThinkingBlock):
                growing = self._blocks[index] = _Growing(isinstance(block, ThinkingBlock))
                growing.add(block.text, 0)

    def add(self, delta: TextDelta) -> None:
        """Take more text. What was missed before it leaves a gap, and then the finished node is waited for."""
        if delta.kind == "toolCall":
            return
        if delta.offset == 0:
            self._forget_from(delta.block)
            self._blocks[delta.block] = _Growing(delta.kind == "thinking")
        block = self._blocks.get(delta.block)
        if block is not None and delta.offset <= len(block.text):
            block.add(delta.text, delta.offset)

    def rows(self) -> list[Row]:
        rows: list[Row] = []
        newest = max(self._blocks, default=-1)
        step = self.node.turn
        for index in sorted(self._blocks):
            block = self._blocks[index]
            if not block.text.strip():
                continue
            if block.is_thinking:
                rows.append(ThinkingRow(key(self.node, index), self.node, block.text, streaming=index == newest))
                continue
            rows += block.text_rows(self.node, index, step=step, streaming=index == newest)
            step = 0
        return rows

    def _forget_from(self, index: int) -> None:
        """A text that starts anew makes the later blocks void."""
        self._blocks = {known: block for known, block in self._blocks.items() if known < index}


def key(node: Node, block: int) -> str:
    """The key of a block's row, the same while it streams and when it is finished."""
    return f"{node.id}/{block}"


def text_rows(
    node: Node, block: int, pieces: Sequence[str], *, first: int = 0, step: int, streaming: bool
) -> list[TextRow]:
    """The rows of a text, one a piece, from piece number `first` on. `step` is shown at piece 0."""
    last = len(pieces) - 1
    return [
        TextRow(
            f"{key(node, block)}/{number}",
            node,
            pieces[number],
            streaming=streaming and number == last,
            step=0 if number else step,
        )
        for number in range(first, len(pieces))
    ]
