"""The conversation list as a Qt model with date headings."""

from collections.abc import Callable
from datetime import datetime, timedelta

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, QTimer

from errand.protocol.conversations import Conversation
from errand.window.stores.conversation_list import PagedListStore
from errand.window.theme.style import plain_tool_tip
from errand.window.views.shared.item_delegate import HEADING, HINT, KEY

PINNED = "Pinned"

_Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


def day_heading(moment: datetime, now: datetime) -> str:
    """Converts both to the time zone of `now`."""
    day, today = moment.astimezone(now.tzinfo).date(), now.date()
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - timedelta(days=7):
        return f"{day:%A}"
    return f"{day:%B %Y}"


def short_time(moment: datetime, now: datetime) -> str:
    """The time within the last week, otherwise the date."""
    local = moment.astimezone(now.tzinfo)
    return f"{local:%H:%M}" if local.date() > now.date() - timedelta(days=7) else f"{local.day} {local:%b}"


class ConversationModel(QAbstractListModel):
    """Pinned conversations have a separate heading, the others one per day; loads more when scrolled near its end.

    `now` returns the time with its zone.
    """

    def __init__(self, listing: PagedListStore, parent: QObject, now: Callable[[], datetime]) -> None:
        super().__init__(parent)
        self._listing = listing
        self._now = now
        self._count = listing.count()
        self._midnight = QTimer(self)
        self._midnight.setSingleShot(True)
        self._midnight.timeout.connect(self._on_new_day)
        self._await_midnight()
        listing.reset.connect(self._on_reset)
        listing.inserted.connect(self._on_inserted)
        listing.removed.connect(self._on_removed)
        listing.moved.connect(self._on_moved)
        listing.updated.connect(self._on_updated)

    def at(self, index: _Index) -> Conversation | None:
        is_there = index.isValid() and index.row() < self._listing.count()
        return self._listing.at(index.row()) if is_there else None

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else self._count

    def flags(self, index: _Index) -> Qt.ItemFlag:
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        conversation = self.at(index)
        if conversation is None:
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return conversation.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tool_tip(conversation.title)
        if role == KEY:
            return conversation.id
        if role == HEADING:
            return self._heading(index.row(), conversation)
        if role not in (HINT, Qt.ItemDataRole.AccessibleTextRole):
            return None
        time = short_time(conversation.updated_at, self._now())
        if role == HINT:
            return time
        return f"{conversation.title}, {'pinned, ' if conversation.pinned else ''}{time}"

    def canFetchMore(self, parent: _Index) -> bool:
        return not parent.isValid() and self._listing.has_more

    def fetchMore(self, parent: _Index) -> None:
        self._listing.fetch_more()

    def _heading(self, row: int, conversation: Conversation) -> str:
        """Shown at the first conversation of a day, and at the first pinned one."""
        now = self._now()
        heading = _heading_of(conversation, now)
        if row and _heading_of(self._listing.at(row - 1), now) == heading:
            return ""
        return heading

    def _on_reset(self) -> None:
        self.beginResetModel()
        self._count = self._listing.count()
        self.endResetModel()

    def _on_inserted(self, first: int, count: int) -> None:
        self.beginInsertRows(QModelIndex(), first, first + count - 1)
        self._count += count
        self.endInsertRows()
        self._emit_changed(first + count)

    def _on_removed(self, index: int) -> None:
        self.beginRemoveRows(QModelIndex(), index, index)
        self._count -= 1
        self.endRemoveRows()
        self._emit_changed(index)

    def _on_moved(self, old: int, new: int) -> None:
        self.beginMoveRows(QModelIndex(), old, old, QModelIndex(), new if new < old else new + 1)
        self.endMoveRows()
        self._emit_changed(min(old, new), max(old, new) + 1)

    def _on_updated(self, index: int) -> None:
        self._emit_changed(index, index + 1)

    def _on_new_day(self) -> None:
        self._await_midnight()
        self._emit_changed(0, self._count - 1)

    def _emit_changed(self, first: int, last: int | None = None) -> None:
        """A change of conversations can change the headings, and the headings change the row heights."""
        last = min(first if last is None else last, self._count - 1)
        if first <= last:
            self.dataChanged.emit(self.index(first, 0), self.index(last, 0))

    def _await_midnight(self) -> None:
        now = self._now()
        midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=1, microsecond=0)
        self._midnight.start(int((midnight - now).total_seconds() * 1000))


def local_now() -> datetime:
    return datetime.now().astimezone()


def _heading_of(conversation: Conversation, now: datetime) -> str:
    if conversation.pinned and not conversation.archived:
        return PINNED
    return day_heading(conversation.updated_at, now)
