"""Reading with the mouse and copying: ties selection, drag, marks and menu to the blocks on the stage."""

from collections.abc import Iterator

from PySide6.QtCore import QObject, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QMouseEvent, QTextCursor
from PySide6.QtWidgets import QMenu, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.transcript.drag import Drag
from app.window.transcript.marks import Sought, is_plain, mark_block
from app.window.transcript.parts import part_at, position_at
from app.window.transcript.selection import Selection, Spot
from app.window.transcript.source import RowSource
from app.window.transcript.stage import Stage

_LEFT = Qt.MouseButton.LeftButton
_SHIFT = Qt.KeyboardModifier.ShiftModifier


class Reader(QObject):
    """Mouse events come in places of the viewport. `scrolled(pixels)` asks for that while dragging at an edge."""

    scrolled = Signal(int)

    def __init__(self, rows: RowSource, stage: Stage, actions: BlockActions, viewport: QWidget) -> None:
        super().__init__(viewport)
        self._rows = rows
        self._stage = stage
        self._actions = actions
        self._viewport = viewport
        self._shown = range(0)
        self._has_marks = False
        self._sought: Sought | None = None
        self._plain: list[Block] = []
        self.selection = Selection(rows)
        self._drag = Drag(self.selection, self._spot_at, viewport)
        self._drag.changed.connect(self._on_changed)
        self._drag.scrolled.connect(self.scrolled)
        stage.menu_opening.connect(self._on_menu_opening)

    def show_marks(self, shown: range) -> None:
        """Mark the blocks that are shown now."""
        self._shown = shown
        self._plain.clear()
        span = self.selection.span()
        if span is None and self._sought is None and not self._has_marks:
            return
        self._has_marks = span is not None or self._sought is not None
        for index, block in self._stage.all_blocks():
            key = self._rows.row(index).key
            mark_block(block, index, key, span, self._sought)
            if index in shown and is_plain(block, index, key, span, self._sought):
                self._plain.append(block)
        self._viewport.update()

    def seek(self, sought: Sought | None) -> None:
        """Mark what is searched for, or nothing more."""
        self._sought = sought
        self._on_changed()

    def plain_places(self) -> Iterator[QRect]:
        """Where rows stand that are selected or looked at and have no text to mark."""
        return (block.geometry() for block in self._plain)

    def press(self, event: QMouseEvent) -> None:
        if event.button() != _LEFT:
            event.ignore()
            return
        if self._sought is not None and self._sought.is_passing:
            self._sought = None
        point = event.position().toPoint()
        if self._drag.is_third(event.timestamp()):
            self._drag.take(self._unit_at(point, QTextCursor.SelectionType.BlockUnderCursor))
        else:
            self._drag.press(point, extends=bool(event.modifiers() & _SHIFT))

    def move(self, event: QMouseEvent) -> None:
        if event.buttons() & _LEFT:
            self._drag.move(event.position().toPoint())

    def release(self, event: QMouseEvent) -> None:
        if event.button() == _LEFT:
            self._drag.release()

    def double_click(self, event: QMouseEvent) -> None:
        if event.button() == _LEFT:
            self._drag.doubled(event.timestamp())
            self._drag.take(self._unit_at(event.position().toPoint(), QTextCursor.SelectionType.WordUnderCursor))

    def copy(self) -> None:
        """What is selected, if anything is: of one row as it is seen, of several as Markdown."""
        self._copy(is_markdown=False)

    def select_all(self) -> None:
        self.selection.take_all()
        self._on_changed()

    def clear(self) -> None:
        self.selection.clear()
        self._on_changed()

    def _copy(self, *, is_markdown: bool) -> None:
        from app.window.transcript.copying import Copying  # all blocks: the window's start does not need them

        span = self.selection.span()
        if span is not None:
            copying = Copying(self._rows, self._stage)
            self._actions.copy(copying.markdown(span) if is_markdown else copying.text(span))

    def _spot_at(self, point: QPoint) -> Spot | None:
        found = self._block_at(point)
        if found is None:
            return None
        index, block = found
        inside = block.mapFrom(self._viewport, point)
        part = part_at(block, inside)
        key = self._rows.row(index).key
        return Spot(key, 0, 0) if part is None else Spot(key, part[0], position_at(part[1], block, inside))

    def _block_at(self, point: QPoint) -> tuple[int, Block] | None:
        """The one whose place it is, gaps counted to the block below; at the edges the nearest."""
        found: tuple[int, Block] | None = None
        for index, block in self._stage.blocks(self._shown):
            found = index, block
            if point.y() < block.geometry().bottom():
                break
        return found

    def _unit_at(self, point: QPoint, unit: QTextCursor.SelectionType) -> tuple[Spot, Spot] | None:
        """The word or paragraph at a point, where a text is."""
        found = self._block_at(point)
        part = part_at(found[1], found[1].mapFrom(self._viewport, point)) if found is not None else None
        if found is None or part is None:
            return None
        number, view = part
        cursor = view.cursorForPosition(view.viewport().mapFrom(self._viewport, point))
        cursor.select(unit)
        key, start = self._rows.row(found[0]).key, cursor.selectionStart()
        if cursor.selectedText().startswith("\u2029"):
            start += 1  # the break before a paragraph comes with it
        return Spot(key, number, start), Spot(key, number, cursor.selectionEnd())

    def _on_changed(self) -> None:
        self.show_marks(self._shown)

    def _on_menu_opening(self, menu: QMenu) -> None:
        first = menu.actions()[0] if menu.actions() else None
        if self.selection.span() is None:
            return
        for title, is_markdown in (("Copy", False), ("Copy as Markdown", True)):
            entry = menu.addAction(title)
            entry.triggered.connect(lambda _=False, is_markdown=is_markdown: self._copy(is_markdown=is_markdown))
            if first is not None:
                menu.removeAction(entry)
                menu.insertAction(first, entry)
