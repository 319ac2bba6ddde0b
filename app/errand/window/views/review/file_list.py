"""The list of changed files: what became of each, its name and folder, and the lines added and removed."""

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.client.texts.changes import file_state_text
from errand.protocol.changes import ChangedFile
from errand.text.translation import tr, trn
from errand.window.theme.style import plain_tool_tip
from errand.window.theme.theme import Theme

FILE = Qt.ItemDataRole.UserRole + 1
_MIN_HEIGHT_PX = 28
_MIN_NAME_LENGTH = 6  # characters of the name that the rest of its line leaves

_Index = QModelIndex | QPersistentModelIndex


class ChangedFileListView(QListWidget):
    """Emits `chosen` when another file is selected, and `activated` for Enter or a double click."""

    chosen = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setAccessibleName(tr("Changed files"))
        self.setItemDelegate(_FileDelegate(theme, self))
        self.setFrameShape(QListWidget.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setUniformItemSizes(True)
        self.setMinimumHeight(theme.pixels(_MIN_HEIGHT_PX))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.currentItemChanged.connect(self.chosen)
        theme.changed.connect(self.viewport().update)

    @property
    def file(self) -> ChangedFile | None:
        """The selected one."""
        return _file(self.currentIndex())

    def show_files(self, files: Sequence[ChangedFile], selected: str) -> None:
        """The selection stays on the file with the path `selected`, or goes to the first; emits nothing."""
        self.blockSignals(True)
        while self.count() > len(files):
            self.takeItem(self.count() - 1)
        for row, file in enumerate(files):
            item = self.item(row) if row < self.count() else QListWidgetItem(self)
            _fill(item, file)
        self.setCurrentRow(next((row for row, file in enumerate(files) if file.path == selected), 0))
        self.blockSignals(False)

    def select(self, name: str) -> None:
        """Select a file by its path or by its name as diffs have it."""
        files = [_file(self.model().index(row, 0)) for row in range(self.count())]
        for row, file in enumerate(files):
            if file is not None and (name in (file.path, file.name) or file.path.endswith(f"/{name}")):
                self.setCurrentRow(row)
                return

    def step(self, by: int) -> bool:
        """Select the next or previous file; False if there is none."""
        row = self.currentRow() + by
        if not 0 <= row < self.count():
            return False
        self.setCurrentRow(row)
        return True

    @property
    def wanted_height(self) -> int:
        """Return the height of all rows."""
        return self.count() * max(self.sizeHintForRow(0), 1) + 2 * self.frameWidth()


class _FileDelegate(QStyledItemDelegate):
    """`icon name folder … state +12 −3`, in one line; the folder shrinks first."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        tokens = self._theme.tokens
        return QSize(0, max(QFontMetrics(self._theme.font(tokens.size_base)).height(), tokens.icon_small) + 2 * 5)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        file = _file(index)
        if file is None:
            return
        tokens = self._theme.tokens
        painter.save()
        rect, state = _place(option), _state(option)
        self._paint_ground(painter, rect, state)
        line = rect.adjusted(tokens.space_close, 0, -tokens.space_close, 0)
        icon, tint = _ICONS[_mark(file)]
        self._theme.icon(icon, tint).paint(
            painter,
            QRect(line.left(), line.center().y() - tokens.icon_small // 2, tokens.icon_small, tokens.icon_small),
        )
        line.setLeft(line.left() + tokens.icon_small + tokens.space_close)
        self._paint_counts(painter, line, file)
        self._paint_name(painter, line, file)
        painter.restore()

    def _paint_ground(self, painter: QPainter, place: QRect, state: QStyle.StateFlag) -> None:
        tokens = self._theme.tokens
        selected, hovered = state & QStyle.StateFlag.State_Selected, state & QStyle.StateFlag.State_MouseOver
        ground = tokens.selected if selected else tokens.hover if hovered else ""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor(ground) if ground else Qt.BrushStyle.NoBrush)
        painter.setPen(QColor(tokens.focus) if state & QStyle.StateFlag.State_HasFocus else Qt.PenStyle.NoPen)
        painter.drawRoundedRect(place.adjusted(0, 0, -1, -1), tokens.radius_control, tokens.radius_control)

    def _paint_counts(self, painter: QPainter, line: QRect, file: ChangedFile) -> None:
        """Paint the counts from the right; `line` keeps the space that is left."""
        tokens = self._theme.tokens
        counts = [] if file.is_folder else [(file.removed, "−", tokens.failed), (file.added, "+", tokens.done)]
        for number, sign, colour in counts:
            if number:
                self._paint_right(painter, line, f"{sign}{number:,}", colour)
        state = file_state_text(file)
        metrics = QFontMetrics(self._theme.font(tokens.size_small))
        room = line.width() - _MIN_NAME_LENGTH * metrics.averageCharWidth() - tokens.space_close
        if state and room > 0:
            self._paint_right(
                painter, line, metrics.elidedText(state, Qt.TextElideMode.ElideRight, min(room, line.width() // 2)),
                tokens.waiting if file.state in ("changed_since", "not_kept") else tokens.muted,
            )  # fmt: skip

    def _paint_right(self, painter: QPainter, line: QRect, text: str, colour: str) -> None:
        tokens = self._theme.tokens
        font = self._theme.font(tokens.size_small)
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.drawText(line, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
        line.setRight(line.right() - QFontMetrics(font).horizontalAdvance(text) - tokens.space_close)

    def _paint_name(self, painter: QPainter, line: QRect, file: ChangedFile) -> None:
        tokens = self._theme.tokens
        folder, _, name = file.name.rpartition("/")
        font, small = self._theme.font(tokens.size_base), self._theme.font(tokens.size_small)
        if file.state == "undone" or file.is_deleted:
            font.setStrikeOut(file.is_deleted)
        metrics = QFontMetrics(font)
        elided_name = metrics.elidedText(escape_hidden_line(name), Qt.TextElideMode.ElideMiddle, line.width())
        painter.setFont(font)
        painter.setPen(QColor(tokens.muted if file.state == "undone" else tokens.text))
        sides = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(line, sides, elided_name)
        line.setLeft(line.left() + metrics.horizontalAdvance(elided_name) + tokens.space_close)
        if folder and line.width() > _MIN_NAME_LENGTH * metrics.averageCharWidth():
            painter.setFont(small)
            painter.setPen(QColor(tokens.muted))
            fitting = QFontMetrics(small).elidedText(
                escape_hidden_line(folder), Qt.TextElideMode.ElideMiddle, line.width()
            )
            painter.drawText(line, sides, fitting)


_ICONS = {
    "new": ("file-plus", "done_mark"),
    "deleted": ("file-minus", "failed_mark"),
    "folder": ("folder", "muted"),
    "binary": ("file", "muted"),
    "changed": ("file-pen", "muted"),
}


def _mark(file: ChangedFile) -> str:
    if file.is_folder:
        return "folder"
    if file.is_deleted:
        return "deleted"
    return "new" if file.is_new else "changed"


def _fill(item: QListWidgetItem, file: ChangedFile) -> None:
    state = file_state_text(file)
    name = escape_hidden_line(file.name)
    item.setText(name)
    item.setData(FILE, file)
    item.setToolTip(plain_tool_tip("\n".join(part for part in (name, state) if part)))
    added = trn("{n} line added", "{n} lines added", file.added)
    removed = trn("{n} line removed", "{n} lines removed", file.removed)
    lines = () if file.is_folder else (added, removed)
    item.setData(Qt.ItemDataRole.AccessibleTextRole, ", ".join(part for part in (name, *lines, state) if part))


def _file(index: _Index) -> ChangedFile | None:
    file: object = index.data(FILE)
    return file if isinstance(file, ChangedFile) else None


def _place(option: QStyleOptionViewItem) -> QRect:
    return QRect(option.rect)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType] -- PySide6's stubs leave out the fields of QStyleOption


def _state(option: QStyleOptionViewItem) -> QStyle.StateFlag:
    return option.state  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- PySide6's stubs leave out the fields of QStyleOption
