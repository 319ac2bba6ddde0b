"""Cleanup on the data page: orphaned and old archived conversations, counted before anything is deleted."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from errand.client.number_format import count, file_size
from errand.protocol.conversations import CONVERSATION_CHANGE, ConversationChangeParams
from errand.protocol.data import (
    CONVERSATION_DELETE,
    DATA_ORPHANS,
    DATA_PRUNE,
    ConversationDeleteParams,
    DataPruneParams,
    DataPruneResult,
    Orphan,
    OrphansParams,
    OrphansResult,
)
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls
from errand.window.widgets.combo_box import ComboBox
from errand.window.widgets.confirmation import ConfirmationView
from errand.window.widgets.labels import TextLabel

# The most that one request returns; repeat after deleting these.
_MAX_ORPHANS = 500
_SHOWN = 8

_AGES = {"7 days": 7, "30 days": 30, "90 days": 90, "half a year": 182, "a year": 365}


class OrphansView(QWidget):
    """`confirmation_shown` is emitted when a question is shown; `done` gives the result as a sentence."""

    confirmation_shown = Signal()
    done = Signal(str)

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__()
        self._calls = calls
        self._found: tuple[Orphan, ...] = ()
        self._list = push_button("List …")
        self._list.setAccessibleName("List conversations without an agent")
        self._archive = push_button("Archive them")
        self._delete = push_button("Delete for good", "danger")
        self._delete.setAccessibleName("Delete conversations without an agent for good")
        self._keep = push_button("Leave them")
        self._question = ConfirmationView(theme, self._archive, self._delete, self._keep)
        self._lay_out(theme)
        self._list.clicked.connect(self._on_listed)
        self._archive.clicked.connect(self._on_archived)
        self._delete.clicked.connect(self._on_deleted)
        self._keep.clicked.connect(self._question.hide)

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        first = QHBoxLayout()
        first.addWidget(self._list)
        first.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.space_close)
        column.addLayout(first)
        column.addWidget(self._question)

    async def _load(self) -> None:
        found = await self._calls.call(DATA_ORPHANS, OrphansParams(limit=_MAX_ORPHANS))
        self._found = found.orphans
        if found.count:
            self._question.ask(orphan_summary(found), self._keep)
        else:
            self._question.show_text(orphan_summary(found))
        self.confirmation_shown.emit()

    async def _archive_or_delete(self, *, delete: bool) -> None:
        """Archives first, because only archived conversations can be deleted."""
        gone, self._found = self._found, ()
        for orphan in gone:
            conversation_id = orphan.conversation.id
            params = ConversationChangeParams(conversation_id=conversation_id, archived=True)
            await self._calls.call(CONVERSATION_CHANGE, params)
            if delete:
                await self._calls.call(CONVERSATION_DELETE, ConversationDeleteParams(conversation_id=conversation_id))
        self._question.hide()
        self.done.emit(f"{count(len(gone), 'conversation')} {'deleted' if delete else 'archived'}.")

    def _on_listed(self) -> None:
        self._calls.spawn(self._load(), self._question.show_text)

    def _on_archived(self) -> None:
        self._begin("Archiving …", delete=False)

    def _on_deleted(self) -> None:
        self._begin("Deleting …", delete=True)

    def _begin(self, words: str, *, delete: bool) -> None:
        self._question.show_text(words)
        self._calls.spawn(self._archive_or_delete(delete=delete), self._question.show_text)


def orphan_summary(found: OrphansResult) -> str:
    """The number, the total size, and the largest by name."""
    if not found.count:
        return "Every conversation has an agent."
    lines = [f"{count(found.count, 'conversation')} without any agent, {file_size(found.bytes)} in all:"]
    for orphan in found.orphans[:_SHOWN]:
        archived = ", archived" if orphan.conversation.archived else ""
        facts = f"{count(orphan.nodes, 'message')}, {file_size(orphan.bytes)}{archived}"
        lines.append(f"“{' '.join(orphan.conversation.title.split())[:60]}” · {facts}")
    if found.count > _SHOWN:
        lines.append(f"and {found.count - _SHOWN:,} more")
    lines.append("Deleted, they are gone with the files Errand keeps for them. This cannot be undone.")
    return "\n".join(lines)


class PruneView(QWidget):
    """`confirmation_shown` is emitted when a question is shown; `pruned` gives the result as a sentence."""

    confirmation_shown = Signal()
    pruned = Signal(str)

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__()
        self._calls = calls
        self._age = ComboBox(tuple(_AGES))
        self._age.setCurrentText("90 days")
        self._age.setAccessibleName("How long without a change")
        self._count = push_button("Count …")
        self._count.setAccessibleName("Count what would be deleted")
        self._delete = push_button("Delete for good", "danger")
        self._keep = push_button("Keep them")
        self._question = ConfirmationView(theme, self._delete, self._keep)
        self._lay_out(theme)
        self._age.currentIndexChanged.connect(self._question.hide)
        self._count.clicked.connect(self._on_counted)
        self._delete.clicked.connect(self._on_deleted)
        self._keep.clicked.connect(self._question.hide)

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        ask = QHBoxLayout()
        ask.setSpacing(tokens.space_close)
        ask.addWidget(TextLabel(theme, "Archived and not changed for"))
        ask.addWidget(self._age)
        ask.addWidget(self._count)
        ask.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.space_close)
        column.addLayout(ask)
        column.addWidget(self._question)

    async def _count_matches(self, days: int) -> None:
        found = await self._calls.call(DATA_PRUNE, DataPruneParams(days=days))
        if days == _AGES[self._age.currentText()]:
            if found.conversations:
                self._question.ask(conversations_size_label(found), self._keep)
            else:
                self._question.show_text(conversations_size_label(found))
            self.confirmation_shown.emit()

    async def _prune(self, days: int) -> None:
        gone = await self._calls.call(DATA_PRUNE, DataPruneParams(days=days, dry_run=False))
        self._question.hide()
        self.pruned.emit(
            f"{count(gone.conversations, 'conversation')} deleted, {count(gone.nodes, 'message')} with them."
        )

    def _on_counted(self) -> None:
        self._calls.spawn(self._count_matches(_AGES[self._age.currentText()]), self._question.show_text)

    def _on_deleted(self) -> None:
        self._question.show_text("Deleting …")
        self._calls.spawn(self._prune(_AGES[self._age.currentText()]), self._question.show_text)


def conversations_size_label(found: DataPruneResult) -> str:
    """What would be deleted, shown before the deletion."""
    if not found.conversations:
        return "No archived conversation is that old."
    return (
        f"{count(found.conversations, 'conversation')} with {count(found.nodes, 'message')} "
        f"({file_size(found.bytes)}) would be deleted with the files Errand keeps for them. "
        "What the agents did in your folders stays. This cannot be undone; export them first if in doubt."
    )
