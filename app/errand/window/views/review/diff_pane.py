"""The diff of one file, unified or side by side, and the button that undoes the change under the pointer or cursor."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QCursor, QResizeEvent
from PySide6.QtWidgets import QApplication, QMenu, QSplitter, QWidget

from errand.protocol.changes import DiffHunk
from errand.text.translation import tr
from errand.window.theme.style import push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.review.diff_edit import DiffEdit, link_scrolling
from errand.window.widgets.boxes import set_hbox
from errand.window.widgets.diff.lines import DiffLine, diff_lines, side_by_side

# Nobody reads further, and Qt lays out a line as a whole.
_MAX_LINE_LENGTH = 2_000
_EDGE = 4


class DiffPane(QWidget):
    """`can_undo` says whether its hunks can be undone one by one.

    Emits `hunk_changed` when the cursor goes to another hunk, `undo_requested` with a hunk, and `menu_opening` with a
    menu that others may add to.
    """

    hunk_changed = Signal()
    undo_requested = Signal(object)
    menu_opening = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._path = ""
        self._hunks: tuple[DiffHunk, ...] = ()
        self._lines: list[DiffLine] = []
        self._can_undo = False
        self._hovered = -1
        self._is_linking = False
        self.is_side_by_side = False
        self.unified = DiffEdit(theme, tr("Changes of the file"))
        self._sides: tuple[DiffEdit, DiffEdit] | None = None
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._split.setChildrenCollapsible(False)
        self._split.hide()
        self._undo = push_button(tr("Undo change"))
        set_style(self._undo, "look", "small")
        self._undo.setFont(theme.font(theme.tokens.size_small))
        set_tool_tip(self._undo, tr("Undo this change alone (Del)"))
        self._undo.setParent(self)
        self._undo.hide()
        self._undo.installEventFilter(self)
        self._undo.clicked.connect(self._on_undo_clicked)
        set_hbox(self, self.unified, self._split)
        self.setFocusProxy(self.unified)
        self._connect(self.unified)

    @property
    def main(self) -> DiffEdit:
        """The text whose cursor is at the current hunk; side by side the new one."""
        return self._sides[1] if self.is_side_by_side and self._sides is not None else self.unified

    @property
    def hunk(self) -> DiffHunk | None:
        """The hunk at the cursor."""
        return self._hunks[self.main.current] if 0 <= self.main.current < len(self._hunks) else None

    @property
    def position(self) -> tuple[int, int]:
        """The number of the hunk at the cursor, from 1, and how many there are."""
        return self.main.current + 1, len(self._hunks)

    @property
    def line(self) -> int:
        """The number of the line at the cursor in the file as it is now, from 1."""
        line = self.main.line
        return (line.new or line.old) if line is not None else 0

    def show_hunks(self, path: str, hunks: Sequence[DiffHunk], *, keeps_place: bool, can_undo: bool) -> None:
        """The changes of the file `path`. With `keeps_place`, another version of the same diff: the same lines stay in
        sight."""
        self._can_undo = can_undo
        if (path, tuple(hunks)) != (self._path, self._hunks):
            self._path, self._hunks = path, tuple(hunks)
            self._lines = diff_lines("".join(f"{hunk.header}\n{hunk.text}" for hunk in hunks), _MAX_LINE_LENGTH)
            self._hovered = -1
            self._fill(keeps_place=keeps_place)
        elif not keeps_place:
            self.main.go_to(0)
        self._place_button()

    def set_side_by_side(self, is_side_by_side: bool) -> None:
        """Change the layout; the cursor stays at its hunk."""
        if is_side_by_side == self.is_side_by_side:
            return
        had_focus = self.main.hasFocus()
        hunk = self.main.current
        self.is_side_by_side = is_side_by_side
        self.unified.setHidden(is_side_by_side)
        self._split.setVisible(is_side_by_side)
        self._fill(keeps_place=False)
        self.setFocusProxy(self.main)
        self.main.go_to_hunk(hunk)
        if had_focus:
            self.main.setFocus()
        self._place_button()

    def step(self, by: int) -> bool:
        """Go to the next or previous hunk; False if there is none."""
        return self.go_to_hunk(self.main.current + by)

    def go_to_hunk(self, hunk: int) -> bool:
        """Go to a hunk by its number from 0, from the end if negative; False if there is none."""
        if not 0 <= hunk < len(self._hunks):
            return False
        self.main.go_to_hunk(hunk)
        return True

    def go_to_last(self) -> None:
        self.go_to_hunk(len(self._hunks) - 1)

    def undo_current(self) -> None:
        if self._can_undo and self.hunk is not None:
            self.undo_requested.emit(self.hunk)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The pointer leaves the button; the wheel on it scrolls the text."""
        if watched is self._undo and event.type() == QEvent.Type.Leave:
            self._on_hovered(self.main.hunk_under_pointer)
        if watched is self._undo and event.type() == QEvent.Type.Wheel:
            return QApplication.sendEvent(self.main.viewport(), event)
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_button()

    def _fill(self, *, keeps_place: bool) -> None:
        """Only the layout that is shown has the lines."""
        if not self.is_side_by_side:
            self.unified.show_lines(self._lines, None, self._path, keeps_place=keeps_place)
            return
        old, new = self._sides or self._make_sides()
        left, right = side_by_side(self._lines)
        old.show_lines(left, right, self._path, keeps_place=keeps_place)
        new.show_lines(right, left, self._path, keeps_place=keeps_place)

    def _make_sides(self) -> tuple[DiffEdit, DiffEdit]:
        old = DiffEdit(self._theme, tr("The file before"), "old")
        new = DiffEdit(self._theme, tr("The file now"), "new")
        self._sides = (old, new)
        old.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        link_scrolling(old, new)
        for edit, other in ((old, new), (new, old)):
            self._split.addWidget(edit)
            self._connect(edit)
            edit.cursorPositionChanged.connect(lambda edit=edit, other=other: self._link_cursor(edit, other))
        return self._sides

    def _link_cursor(self, edit: DiffEdit, other: DiffEdit) -> None:
        row = edit.textCursor().blockNumber()
        if not self._is_linking and other.textCursor().blockNumber() != row:
            self._is_linking = True
            other.go_to(row)
            self._is_linking = False

    def _connect(self, edit: DiffEdit) -> None:
        edit.hunk_changed.connect(self._on_hunk_changed)
        edit.hovered.connect(self._on_hovered)
        edit.menu_requested.connect(self._on_menu_requested)
        edit.updateRequest.connect(self._place_button)

    def _place_button(self) -> None:
        """Move the button to the hunk under the pointer or at the cursor; hide it if that is out of sight."""
        edit = self.main
        hunk_index = self._hovered if self._hovered >= 0 else edit.current
        top = edit.top_of(hunk_index) if self._can_undo and hunk_index >= 0 else None
        if top is None:
            self._undo.hide()
            return
        size, viewport = self._undo.sizeHint(), edit.viewport()
        right = viewport.mapTo(self, QPoint(viewport.width() - size.width() - _EDGE, round(top)))
        self._undo.setGeometry(QRect(right, size))
        self._undo.show()
        self._undo.raise_()

    def _on_hunk_changed(self) -> None:
        self._place_button()
        self.hunk_changed.emit()

    def _on_hovered(self, hunk: int) -> None:
        """The button stays while the pointer is on it."""
        if hunk < 0 and self._undo.isVisible() and self._undo.geometry().contains(self.mapFromGlobal(QCursor.pos())):
            return
        if hunk != self._hovered:
            self._hovered = hunk
            self._place_button()

    def _on_undo_clicked(self) -> None:
        hunk_index = self._hovered if self._hovered >= 0 else self.main.current
        if 0 <= hunk_index < len(self._hunks):
            self.undo_requested.emit(self._hunks[hunk_index])

    def _on_menu_requested(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        copy = menu.addAction(tr("Copy"))
        copy.setEnabled(self.main.textCursor().hasSelection())
        copy.triggered.connect(self.main.copy)
        if self._can_undo and self.hunk is not None:
            menu.addAction(self._theme.icon("undo-2"), tr("Undo change")).triggered.connect(self.undo_current)
        self.menu_opening.emit(menu)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(event.globalPos())
