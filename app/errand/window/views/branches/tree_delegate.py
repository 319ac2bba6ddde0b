"""Paints one line of the tree panel (lanes, mark, text) and provides its accessible text."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from errand.client.conversation.rows import Speaker
from errand.client.conversation.tree_layout import TreeLine
from errand.client.number_format import money
from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage
from errand.text.translation import tr, trn
from errand.window.theme.theme import Theme
from errand.window.widgets.agent_dot import paint_agent_dot
from errand.window.widgets.labels import markdown_line
from errand.window.widgets.status_dot import STATE_LABELS, DotState, dot_state

LINE = Qt.ItemDataRole.UserRole + 1
_MAX_TITLE_LENGTH = 300  # characters


def line_title(line: TreeLine) -> str:
    text = markdown_line(line.text, _MAX_TITLE_LENGTH) if line.role == "assistant" else line.text
    return text or (tr("Writing…") if line.status == "streaming" else tr("(no text)"))


def line_detail(line: TreeLine) -> str:
    """Return the position in a fork, the author, the number of turns, and the cost of the tasks that started here."""
    return " · ".join(_details(line))


def _details(line: TreeLine) -> tuple[str, ...]:
    position = tr("{number} of {count}").format(number=line.number, count=line.count) if line.count else ""
    who = tr("You") if line.role == "user" else tr("Agent")
    if line.task_from:
        who = tr("Task from {agent}").format(agent=line.task_from)
    return tuple(part for part in (position, who, _turns(line), _money(line)) if part)


def accessible_text(line: TreeLine) -> str:
    states = [STATE_LABELS[dot_state(line.tasks[-1])]] if line.tasks else []
    heads = [tr("{agent} stands here").format(agent=speaker.name) for speaker in line.heads]
    where = tr("here now") if line.is_head else tr("in front") if line.is_in_front else tr("in another branch")
    return ", ".join((line_title(line), *_details(line), *states, *heads, where))


def _turns(line: TreeLine) -> str:
    """Empty for a single reply: the line itself shows it."""
    if line.role == "assistant" and line.turns == 1:
        return ""
    return trn("{n} turn", "{n} turns", line.turns) if line.turns else ""


def _money(line: TreeLine) -> str:
    costs = [task.progress.usage.cost_usd for task in line.tasks if task.progress.usage.cost_usd is not None]
    return money(Usage(cost_usd=sum(costs))) if costs else ""


"""The `TreeLine` of an entry."""

_MAX_LANES = 8  # deeper forks show only the nearest lanes, to leave space for the text
_MARK = 4.0
_TONES: dict[DotState, str] = {"waiting": "waiting", "done": "done", "failed": "failed", "working": "link"}

_Index = QModelIndex | QPersistentModelIndex


class TreeDelegate(QStyledItemDelegate):
    """All lines have the same height: with thousands of lines anything else is slow."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        tokens = self._theme.tokens
        return QSize(
            0, self._line_height(tokens.size_base) + self._line_height(tokens.size_small) + 2 * tokens.space_tight
        )

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        line: object = index.data(LINE)
        if not isinstance(line, TreeLine):
            return
        rect = _rect(option)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_background(painter, rect, _state(option))
        left = self._paint_lanes(painter, rect, line)
        self._paint_text(painter, rect.adjusted(left, 0, -self._theme.tokens.space_close, 0), line)
        painter.restore()

    def _paint_background(self, painter: QPainter, place: QRect, state: QStyle.StateFlag) -> None:
        tokens = self._theme.tokens
        selected, hovered = state & QStyle.StateFlag.State_Selected, state & QStyle.StateFlag.State_MouseOver
        if selected or hovered:
            has_focus = selected and state & QStyle.StateFlag.State_HasFocus
            painter.setBrush(QColor(tokens.selected if selected else tokens.hover))
            painter.setPen(QColor(tokens.focus) if has_focus else Qt.PenStyle.NoPen)
            inner = QRectF(place).adjusted(0.5, 0.5, -0.5, -0.5)
            painter.drawRoundedRect(inner, tokens.radius_control, tokens.radius_control)

    def _paint_lanes(self, painter: QPainter, place: QRect, line: TreeLine) -> int:
        """Paint the branch lines and the mark; returns the x offset of the text."""
        tokens = self._theme.tokens
        lane_count = min(line.depth, _MAX_LANES)
        lanes = line.lanes[line.depth - lane_count :]
        middle = place.top() + tokens.space_tight + self._line_height(tokens.size_base) / 2
        top = middle if line.is_first else float(place.top())
        own = self._lane_x(place, lane_count)
        turn = (self._lane_x(place, lane_count - 1), own, top, middle)
        if line.is_side and not line.is_in_front:
            self._paint_bend(painter, *turn, in_front=False)
        for step, in_front in enumerate(lanes):
            if in_front is not None:
                self._stroke(painter, in_front, QPointF(self._lane_x(place, step), top), place.bottom() + 1.0)
        if line.is_side and line.is_in_front:  # the active branch is painted over the others
            self._paint_bend(painter, *turn, in_front=True)
        if not (line.is_side or line.is_first):
            self._stroke(painter, line.is_in_front, QPointF(own, top), middle)
        if line.goes_on:
            self._stroke(painter, line.goes_on_in_front, QPointF(own, middle), place.bottom() + 1.0)
        self._paint_mark(painter, QPointF(own, middle), line)
        return int(own - place.left()) + tokens.space_normal

    def _paint_bend(
        self, painter: QPainter, left: float, own: float, top: float, middle: float, *, in_front: bool
    ) -> None:
        """Paint the curve at which a branch leaves the lane to its left."""
        path = QPainterPath(QPointF(left, top))
        path.quadTo(QPointF(left, middle), QPointF(own, middle))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(self._pen(in_front))
        painter.drawPath(path)

    def _paint_mark(self, painter: QPainter, centre: QPointF, line: TreeLine) -> None:
        tokens = self._theme.tokens
        colour = QColor(tokens.accent if line.is_in_front else tokens.muted)
        painter.setPen(QPen(colour, 2))
        painter.setBrush(colour if line.role == "user" else QColor(tokens.panel))
        painter.drawEllipse(centre, _MARK, _MARK)
        if line.is_head:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(centre, 2 * _MARK - 1, 2 * _MARK - 1)

    def _paint_text(self, painter: QPainter, place: QRect, line: TreeLine) -> None:
        tokens = self._theme.tokens
        high, low = self._line_height(tokens.size_base), self._line_height(tokens.size_small)
        first = QRect(place.left(), place.top() + tokens.space_tight, place.width(), high)
        second = QRect(place.left(), first.bottom() + 1, place.width(), low)
        if line.heads:
            first.setRight(first.right() - self._paint_heads(painter, first, line.heads))
        if line.tasks:
            second.setRight(second.right() - self._paint_state(painter, second, line.tasks[-1]))
        colour = tokens.text if line.is_in_front else tokens.muted
        _draw_text(painter, first, self._theme.font(tokens.size_base, bold=line.is_head), colour, line_title(line))
        _draw_text(painter, second, self._theme.font(tokens.size_small), tokens.muted, line_detail(line))

    def _paint_state(self, painter: QPainter, place: QRect, task: Task) -> int:
        """Paint the state of the newest task, right-aligned; returns its width."""
        state = dot_state(task)
        font = self._theme.font(self._theme.tokens.size_small)
        _draw_text(
            painter,
            place,
            font,
            self._theme.colour(_TONES.get(state, "muted")),
            STATE_LABELS[state],
            Qt.AlignmentFlag.AlignRight,
        )
        return QFontMetrics(font).horizontalAdvance(STATE_LABELS[state]) + self._theme.tokens.space_close

    def _paint_heads(self, painter: QPainter, place: QRect, heads: tuple[Speaker, ...]) -> int:
        """Paint the agents whose heads are here, right-aligned, in at most half of the width; returns their width."""
        tokens, font = self._theme.tokens, self._theme.font(self._theme.tokens.size_small)
        metrics, right, left = QFontMetrics(font), place.right(), place.center().x()
        for number, speaker in enumerate(heads):
            wide = min(metrics.horizontalAdvance(speaker.name), right - left - tokens.space_wide)
            if wide < tokens.space_far:
                wide = metrics.horizontalAdvance(f"+{len(heads) - number}")
                room = QRect(right - wide, place.top(), wide, place.height())
                _draw_text(painter, room, font, tokens.muted, f"+{len(heads) - number}")
                right -= wide + tokens.space_close
                break
            room = QRect(right - wide, place.top(), wide + 1, place.height())
            _draw_text(painter, room, font, self._theme.person(speaker.color), speaker.name)
            square = QRectF(room.left() - tokens.space_wide, place.top(), tokens.space_normal, place.height())
            paint_agent_dot(painter, square, speaker.color, self._theme)
            right = room.left() - tokens.space_wide - tokens.space_tight
        return place.right() - right

    def _stroke(self, painter: QPainter, in_front: bool, start: QPointF, bottom: float) -> None:
        painter.setPen(self._pen(in_front))
        painter.drawLine(start, QPointF(start.x(), bottom))

    def _pen(self, in_front: bool) -> QPen:
        tokens = self._theme.tokens
        return QPen(QColor(tokens.accent if in_front else tokens.outline), 2)

    def _lane_x(self, place: QRect, step: int) -> float:
        return place.left() + self._theme.tokens.space_wide * (step + 1.0)

    def _line_height(self, size: int) -> int:
        return QFontMetrics(self._theme.font(size)).height() + self._theme.tokens.space_tight // 2


def _draw_text(
    painter: QPainter,
    rect: QRect,
    font: QFont,
    colour: str,
    text: str,
    side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
) -> None:
    painter.setFont(font)
    painter.setPen(QColor(colour))
    fitting = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
    painter.drawText(rect, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, fitting)


def _rect(option: QStyleOptionViewItem) -> QRect:
    return option.rect  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- PySide6's stubs leave out the fields of QStyleOption


def _state(option: QStyleOptionViewItem) -> QStyle.StateFlag:
    return option.state  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- PySide6's stubs leave out the fields of QStyleOption
