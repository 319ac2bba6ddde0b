"""The conversation list as a Qt model: groups with headings, and lines that show more of a group."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import assert_never

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, QTimer

from errand.client import number_format
from errand.protocol.conversations import Conversation
from errand.text.translation import tr, trn
from errand.window.stores.conversation_list import PagedListStore
from errand.window.stores.window_state import Grouping
from errand.window.theme.style import plain_tool_tip
from errand.window.views.shared.item_delegate import ACTION, COUNT, DETAIL, GROUP, HEADING, HINT, KEY, STATE
from errand.window.views.sidebar.conversation_marks import ConversationMarks
from errand.window.views.sidebar.grouping import GROUPED, ListRow, arrange, heading_of
from errand.window.widgets.status_dot import STATE_LABELS

_Index = QModelIndex | QPersistentModelIndex
_Role = Qt.ItemDataRole
_ROOT = QModelIndex()


def short_time(moment: datetime, now: datetime) -> str:
    """Return the time within the last week, otherwise the date."""
    local = moment.astimezone(now.tzinfo)
    return f"{local:%H:%M}" if local.date() > now.date() - timedelta(days=7) else number_format.short_day(local)


def short_day(moment: datetime, now: datetime) -> str:
    """Return the time of today, the day of the last week, otherwise the date: where no heading tells the day."""
    day = moment.astimezone(now.tzinfo).date()
    is_of_week = now.date() - timedelta(days=7) < day < now.date()
    return number_format.short_weekday(day) if is_of_week else short_time(moment, now)


class ConversationModel(QAbstractListModel):
    """The rows of `grouping.arrange`, then one for each older conversation; loads more when scrolled near its end.

    Without `marks`, as in the archive, nothing is folded and no states are shown. `now` returns the time with its zone.
    """

    def __init__(
        self, listing: PagedListStore, marks: ConversationMarks | None, parent: QObject, now: Callable[[], datetime]
    ) -> None:
        super().__init__(parent)
        self._listing = listing
        self._marks = marks
        self._now = now
        self._grouping: Grouping = "day"
        self._unfolded: set[str] = set()
        self._current = ""
        self._most = GROUPED
        self._head: list[ListRow] = []
        self._tail_start = 0
        self._count = 0
        self._midnight = QTimer(self)
        self._midnight.setSingleShot(True)
        self._midnight.timeout.connect(self._on_new_day)
        self._on_new_day()
        listing.reset.connect(self._on_reset)
        listing.inserted.connect(self._on_inserted)
        listing.removed.connect(self._on_removed)
        listing.moved.connect(self._on_moved)
        listing.updated.connect(self._on_updated)
        if marks is not None:
            marks.changed.connect(self._on_mark_changed)

    @property
    def grouping(self) -> Grouping:
        return self._grouping

    def set_grouping(self, grouping: Grouping) -> None:
        if grouping != self._grouping:
            self._grouping = grouping
            self._on_reset()

    def set_current(self, conversation_id: str) -> None:
        """It is shown, whatever is folded."""
        if conversation_id != self._current:
            self._current = conversation_id
            self._arrange()

    def at(self, index: _Index) -> Conversation | None:
        """Return the conversation of a row; None for the lines that show more or fewer."""
        if not index.isValid() or index.row() >= self._count:
            return None
        row = index.row()
        if row >= len(self._head):
            below = row - len(self._head) + self._tail_start
            # Qt asks about the last row while one is being removed, and the list is already shorter.
            return self._listing.at(below) if below < self._listing.count() else None
        line = self._head[row]
        return self._listing.get(line.key) if line.kind == "conversation" else None

    def row_of(self, conversation_id: str) -> int | None:
        """Return the row of a conversation, if it is loaded and not folded away."""
        index = self._listing.index_of(conversation_id)
        if index is not None and index >= self._tail_start:
            return index - self._tail_start + len(self._head)
        return next((row for row, line in enumerate(self._head) if line.key == conversation_id), None)

    def choose(self, index: _Index) -> None:
        """Show what a line that is no conversation offers."""
        line = self._line(index.row())
        if line is None or line.kind == "conversation":
            return
        if line.kind == "older":
            self._most += GROUPED // 2
            if self._listing.count() < self._most:
                self._listing.fetch_more()
            self._arrange()
        else:
            self._unfolded ^= {line.group}
            self._arrange()

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else self._count

    def flags(self, index: _Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        return flags if self.at(index) is None else flags | Qt.ItemFlag.ItemIsEditable

    def data(self, index: _Index, role: int = _Role.DisplayRole) -> object:
        conversation = self.at(index)
        if conversation is None:
            line = self._line(index.row())
            return None if line is None else self._line_data(line, role)
        if role in (_Role.DisplayRole, _Role.EditRole):
            return conversation.title
        if role == KEY:
            return conversation.id
        if role == HINT:
            return self._time(conversation)
        if role in (HEADING, GROUP):
            return self._heading(index.row(), role)
        if role == _Role.AccessibleTextRole:
            return self._spoken(conversation)
        return self._marks_data(conversation, role)

    def canFetchMore(self, parent: _Index) -> bool:
        is_closed = bool(self._head) and self._head[-1].kind == "older"
        return not parent.isValid() and self._listing.has_more and not is_closed

    def fetchMore(self, parent: _Index) -> None:
        self._listing.fetch_more()

    def _line(self, row: int) -> ListRow | None:
        return self._head[row] if 0 <= row < len(self._head) else None

    @staticmethod
    def _line_data(line: ListRow, role: int) -> object:
        if role == ACTION:
            return True
        if role == GROUP:
            return line.heading
        if role not in (_Role.DisplayRole, _Role.AccessibleTextRole):
            return None
        match line.kind:
            case "more":
                text = tr("Show {n} more").format(n=line.hidden)
            case "fewer":
                text = tr("Show fewer")
            case "older":
                return tr("Show older")
            case "conversation":
                return None
            case _:
                assert_never(line.kind)
        return text if role == _Role.DisplayRole else f"{text}: {line.heading}"

    def _marks_data(self, conversation: Conversation, role: int) -> object:
        folder = self._marks.folder(conversation) if self._marks is not None else ""
        if role == _Role.ToolTipRole:
            return plain_tool_tip(f"{conversation.title}\n{folder}" if folder else conversation.title)
        if role == DETAIL:
            return PurePath(folder).name if self._grouping == "day" or conversation.pinned else ""
        if self._marks is None:
            return None
        if role == STATE:
            return self._marks.state(conversation.id)
        return self._marks.unread(conversation.id) if role == COUNT else None

    def _spoken(self, conversation: Conversation) -> str:
        parts = [conversation.title, tr("pinned") if conversation.pinned else ""]
        if self._marks is not None:
            state, unread = self._marks.state(conversation.id), self._marks.unread(conversation.id)
            folder = PurePath(self._marks.folder(conversation)).name
            parts += [
                "" if state == "idle" else STATE_LABELS[state],
                trn("{n} unread", "{n} unread", unread) if unread else "",
                folder,
            ]
        return ", ".join(part for part in (*parts, self._time(conversation)) if part)

    def _time(self, conversation: Conversation) -> str:
        has_day = self._grouping == "day" and (self._marks is None or not conversation.pinned)
        return (short_time if has_day else short_day)(conversation.updated_at, self._now())

    def _heading(self, row: int, role: int) -> str:
        """HEADING is shown at the first row of a group, GROUP is in all of them."""
        heading = self._group(row)
        return "" if role == HEADING and row and self._group(row - 1) == heading else heading

    def _group(self, row: int) -> str:
        line = self._line(row)
        if line is not None:
            return line.heading
        below = row - len(self._head) + self._tail_start
        return heading_of(self._listing.at(below), self._now()) if below < self._listing.count() else ""

    def _on_reset(self) -> None:
        self.beginResetModel()
        self._head, self._tail_start = self._arranged()
        self._count = len(self._head) + self._listing.count() - self._tail_start
        self.endResetModel()

    def _arranged(self) -> tuple[list[ListRow], int]:
        if self._marks is None:
            return [], 0
        shown_state = (self._unfolded, self._current, self._most)
        return arrange(self._listing, self._marks, self._grouping, self._now(), *shown_state)

    def _on_inserted(self, first: int, count: int) -> None:
        head, self._tail_start = self._arranged()
        start = self._tail_start
        below = first + count - max(first, start)
        if below > 0:
            row = len(self._head) + max(first, start) - start
            self._insert(row, below)
        self._apply(head, start)
        self._emit_changed(len(self._head) + first + count - start)

    def _on_removed(self, index: int) -> None:
        if index >= self._tail_start:
            self._remove(index - self._tail_start + len(self._head))
        self._arrange()
        self._emit_changed(len(self._head) + index - self._tail_start)

    def _on_moved(self, old: int, new: int) -> None:
        """Within the rows below one moves; to or from the top it leaves there and appears here."""
        head, start = self._arranged()
        was_below, is_below = old >= self._tail_start, new >= start
        old_row, new_row = (len(self._head) + old - self._tail_start, len(self._head) + new - start)
        self._tail_start = start
        if was_below and is_below and old_row != new_row:
            root = QModelIndex()
            self.beginMoveRows(root, old_row, old_row, root, new_row if new_row < old_row else new_row + 1)
            self.endMoveRows()
        elif was_below and not is_below:
            self._remove(old_row)
        elif is_below and not was_below:
            self._insert(new_row, 1)
        self._apply(head, start)
        self._emit_changed(len(self._head), len(self._head) + max(old, new) - self._tail_start + 1)

    def _on_updated(self, index: int) -> None:
        self._arrange()
        row = self.row_of(self._listing.at(index).id)
        if row is not None:
            self._emit_changed(row, row + 1)

    def _on_mark_changed(self, conversation_id: str) -> None:
        index = self._listing.index_of(conversation_id)
        if index is not None:
            self._on_updated(index)

    def _on_new_day(self) -> None:
        now = self._now()
        midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=1, microsecond=0)
        self._midnight.start(int((midnight - now).total_seconds() * 1000))
        self._on_reset()

    def _arrange(self) -> None:
        self._apply(*self._arranged())

    def _apply(self, head: list[ListRow], tail_start: int) -> None:
        """Change the rows at the top one by one, so that selection and editor stay with their conversation."""
        self._tail_start = tail_start
        if self._count - len(self._head) != self._listing.count() - tail_start:
            self._on_reset()  # a day has ended, and its timer has not fired yet
        if head == self._head:
            return
        new_keys = {line.key for line in head}
        for row in range(len(self._head) - 1, -1, -1):
            if self._head[row].key not in new_keys:
                self.beginRemoveRows(QModelIndex(), row, row)
                del self._head[row]
                self._count -= 1
                self.endRemoveRows()
        old_keys = {line.key for line in self._head}
        for row, line in enumerate(head):
            if line.key not in old_keys:
                self.beginInsertRows(QModelIndex(), row, row)
                self._head.insert(row, line)
                self._count += 1
                self.endInsertRows()
            elif self._head[row].key != line.key:
                before = next(at for at in range(row, len(self._head)) if self._head[at].key == line.key)
                self.beginMoveRows(QModelIndex(), before, before, QModelIndex(), row)
                self._head.insert(row, self._head.pop(before))
                self.endMoveRows()
        self._head = head
        self._emit_changed(0, len(head) + 1)

    def _insert(self, row: int, count: int) -> None:
        self.beginInsertRows(QModelIndex(), row, row + count - 1)
        self._count += count
        self.endInsertRows()

    def _remove(self, row: int) -> None:
        self.beginRemoveRows(QModelIndex(), row, row)
        self._count -= 1
        self.endRemoveRows()

    def _emit_changed(self, first: int, last: int | None = None) -> None:
        """A change of conversations can change the headings, and the headings change the row heights."""
        first, last = max(first, 0), min(first if last is None else last, self._count - 1)
        if first <= last:
            self.dataChanged.emit(self.index(first, 0), self.index(last, 0))


def local_now() -> datetime:
    return datetime.now().astimezone()
