"""The rows of a streaming reply."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from errand.client.conversation.markdown_pieces import MarkdownPieces
from errand.client.conversation.rows import ReplyRow, Row, ThinkingRow
from errand.protocol.blocks import TextBlock, ThinkingBlock
from errand.protocol.conversations import Node
from errand.protocol.events import TextDelta


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

    @property
    def has_rows(self) -> bool:
        """True once any text has come."""
        return any(block.rows for block in self._blocks.values())

    def rows(self, above: Sequence[Row]) -> list[Row]:
        """Return all rows, preceded by those of `above`, which count in the number of a tail."""
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
        self._blocks = {number: block for number, block in self._blocks.items() if number < index}


def row_key(node: Node, block: int) -> str:
    """Return the key of a block's row, the same while it streams and when it is finished."""
    return f"{node.id}/{block}"


def text_rows(
    node: Node, block: int, pieces: Sequence[str], *, first: int = 0, step: int, streaming: bool
) -> list[ReplyRow]:
    """Return the rows of a text, one per piece, starting with piece number `first`. Piece 0 shows `step`."""
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
