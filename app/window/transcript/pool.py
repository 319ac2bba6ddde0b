"""Blocks that stand ready: making one costs more than giving it another row."""

from PySide6.QtWidgets import QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block, BlockType
from app.window.theme.theme import Theme

_MOST_OF_A_TYPE = 12


class Pool:
    """Gives blocks by type and takes them back."""

    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget) -> None:
        self._theme = theme
        self._actions = actions
        self._parent = parent
        self._free: dict[BlockType, list[Block]] = {}

    def take(self, kind: BlockType) -> Block:
        free = self._free.get(kind)
        return free.pop() if free else kind(self._theme, self._actions, self._parent)

    def give(self, block: Block) -> None:
        focused = block.window().focusWidget()
        if focused is not None and block.isAncestorOf(focused):  # pyright: ignore[reportUnnecessaryComparison] -- PySide6's stubs leave out that there may be none
            self._parent.setFocus()  # else Qt would send the keyboard anywhere
        block.hide()
        free = self._free.setdefault(type(block), [])
        if len(free) < _MOST_OF_A_TYPE:
            free.append(block)
        else:
            block.deleteLater()

    def clear(self) -> None:
        for free in self._free.values():
            for block in free:
                block.deleteLater()
        self._free.clear()
