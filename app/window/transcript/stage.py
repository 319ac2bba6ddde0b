"""The blocks that exist now: those of the rows in view and near it, by row number. It measures rows as well."""

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block, BlockType
from app.window.rows import Row
from app.window.theme.theme import Theme
from app.window.transcript.heights import Heights
from app.window.transcript.pool import Pool
from app.window.transcript.source import RowSource
from app.window.transcript.spacing import estimate, gap


class Stage(QObject):
    """Rows as blocks. A row's height includes the gap above it. `resized(index)`: a block changed by itself.

    `menu_opening` is that of the blocks.
    """

    resized = Signal(int)
    menu_opening = Signal(object)

    def __init__(self, rows: RowSource, theme: Theme, actions: BlockActions, parent: QWidget) -> None:
        super().__init__(parent)
        self.heights = Heights()
        self.width = theme.tokens.column
        self._rows = rows
        self._theme = theme
        self._pool = Pool(theme, actions, parent)
        self._blocks: dict[int, Block] = {}
        self._open: set[str] = set()
        self._wired: set[Block] = set()

    def reset(self) -> None:
        """All rows are new."""
        self._drop_all()
        self.heights.reset(self._estimates(0, self._rows.count()))

    def restyle(self) -> None:
        """Colours or fonts are new: blocks are made anew and measured again."""
        self._drop_all()
        self._pool.clear()
        self._wired.clear()
        self.heights.forget_all()

    def set_width(self, width: int) -> None:
        if width != self.width:
            self.width = width
            self.heights.forget_all()

    def inserted(self, first: int, count: int) -> None:
        self._move_from(first, count)
        self.heights.insert(first, self._estimates(first, count))
        self._gap_changed(first + count)

    def removed(self, first: int, count: int) -> None:
        for index in range(first, first + count):
            self._drop(index)
        self._move_from(first, -count)
        self.heights.remove(first, count)
        self._gap_changed(first)

    def changed(self, index: int) -> None:
        """The row is another one, maybe of another kind; its block shows it at once."""
        block = self._blocks.get(index)
        row = self._rows.row(index)
        if block is not None and type(block) is _type_for(row):
            block.set_row(row)
        else:
            self._drop(index)
        self.heights.forget(index)

    def measure(self, index: int) -> int:
        """The real height of a row, gap included."""
        if not self.heights.is_measured(index):
            self.heights.measure(index, self.gap(index) + self.block(index).height_for(self.width))
        return self.heights[index]

    def gap(self, index: int) -> int:
        above = self._rows.row(index - 1) if index else None
        return gap(above, self._rows.row(index), self._theme.tokens)

    def block(self, index: int) -> Block:
        """The block of a row, made ready if there is none."""
        block = self._blocks.get(index)
        if block is None:
            row = self._rows.row(index)
            block = self._pool.take(_type_for(row))
            self._wire(block)
            block.resize(self.width, block.height())  # texts are then laid out once, at their real width
            block.set_open(row.key in self._open)
            block.set_row(row)
            self._blocks[index] = block
        return block

    def is_open(self, index: int) -> bool:
        """Whether a person opened the card of this row."""
        return self._rows.row(index).key in self._open

    def open(self, index: int) -> None:
        """Open the card of this row, as a click on it would."""
        row = self._rows.row(index)
        if row.key not in self._open:
            self._open.add(row.key)
            block = self.block(index)
            block.set_open(True)
            block.set_row(row)
            self.heights.forget(index)

    def has_block(self, index: int) -> bool:
        return index in self._blocks

    def all_blocks(self) -> Iterator[tuple[int, Block]]:
        """Those in view and those that stand ready near it."""
        yield from self._blocks.items()

    def blocks(self, rows: range) -> Iterator[tuple[int, Block]]:
        """The blocks there are of these rows, from top to bottom."""
        for index in rows:
            if index in self._blocks:
                yield index, self._blocks[index]

    def keep(self, rows: range) -> list[Block]:
        """Give back the blocks of all other rows, but for one that has the keyboard; that one is returned."""
        kept: list[Block] = []
        for index in [index for index in self._blocks if index not in rows]:
            if _has_focus(self._blocks[index]):
                kept.append(self._blocks[index])
            else:
                self._drop(index)
        return kept

    def _wire(self, block: Block) -> None:
        if block not in self._wired:
            self._wired.add(block)
            block.destroyed.connect(lambda: self._wired.discard(block))
            block.resized.connect(partial(self._on_resized, block))
            block.opened.connect(partial(self._on_opened, block))
            block.menu_opening.connect(self.menu_opening)

    def _on_resized(self, block: Block) -> None:
        index = self._index_of(block)
        if index is not None:
            self.heights.forget(index)
            self.resized.emit(index)

    def _on_opened(self, block: Block, is_open: bool) -> None:
        index = self._index_of(block)
        if index is not None:
            key = self._rows.row(index).key
            (self._open.add if is_open else self._open.discard)(key)

    def _index_of(self, block: Block) -> int | None:
        return next((index for index, one in self._blocks.items() if one is block), None)

    def _gap_changed(self, index: int) -> None:
        """The row stands below another one now."""
        if index < len(self.heights):
            self.heights.forget(index)

    def _move_from(self, first: int, by: int) -> None:
        self._blocks = {index + by if index >= first else index: block for index, block in self._blocks.items()}

    def _drop(self, index: int) -> None:
        block = self._blocks.pop(index, None)
        if block is not None:
            self._pool.give(block)

    def _drop_all(self) -> None:
        for index in list(self._blocks):
            self._drop(index)

    def _estimates(self, first: int, count: int) -> list[int]:
        rows: list[Row] = [self._rows.row(index) for index in range(first, first + count)]
        return [estimate(row, self.width, self._theme.tokens) for row in rows]


def _has_focus(block: Block) -> bool:
    focused = QApplication.focusWidget()
    return focused is not None and (focused is block or block.isAncestorOf(focused))


def _type_for(row: Row) -> BlockType:
    from app.window.blocks.registry import block_type  # all kinds: 40 ms that the window's start does not need

    return block_type(row)
