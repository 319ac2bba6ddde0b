"""Cleanup on the data page: orphaned and old archived conversations, counted before anything is deleted."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from errand.client.number_format import file_size
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
from errand.text.translation import tr, trn
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls
from errand.window.widgets.boxes import STRETCH, hbox, set_vbox
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.forms.confirmation import ConfirmationView
from errand.window.widgets.labels import TextLabel

# The most that one request returns; repeat after deleting these.
_MAX_ORPHANS = 500
_SHOWN = 8

_AGES = {tr("7 days"): 7, tr("30 days"): 30, tr("90 days"): 90, tr("6 months"): 182, tr("1 year"): 365}


class OrphansView(QWidget):
    """`confirmation_shown` is emitted when a question is shown; `done` gives the result as a sentence."""

    confirmation_shown = Signal()
    done = Signal(str)

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__()
        self._calls = calls
        self._found: tuple[Orphan, ...] = ()
        self._list = push_button(tr("List…"), name=tr("List conversations without an agent"))
        self._archive = push_button(tr("Archive all"))
        self._delete = push_button(
            tr("Delete permanently"), "danger", name=tr("Delete conversations without an agent permanently")
        )
        self._question = ConfirmationView(theme, self._archive, self._delete)
        self._lay_out(theme)
        self._list.clicked.connect(self._on_listed)
        self._archive.clicked.connect(self._on_archived)
        self._delete.clicked.connect(self._on_deleted)

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        set_vbox(self, hbox(self._list, STRETCH), self._question, spacing=tokens.space_close)

    async def _load(self) -> None:
        orphans = await self._calls.call(DATA_ORPHANS, OrphansParams(limit=_MAX_ORPHANS))
        self._found = orphans.orphans
        if orphans.count:
            self._question.ask(orphan_summary(orphans))
        else:
            self._question.show_text(orphan_summary(orphans))
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
        self.done.emit(
            trn("{n} conversation deleted.", "{n} conversations deleted.", len(gone))
            if delete
            else trn("{n} conversation archived.", "{n} conversations archived.", len(gone))
        )

    def _on_listed(self) -> None:
        self._calls.spawn(self._load(), self._question.show_text)

    def _on_archived(self) -> None:
        self._begin(tr("Archiving…"), delete=False)

    def _on_deleted(self) -> None:
        self._begin(tr("Deleting…"), delete=True)

    def _begin(self, words: str, *, delete: bool) -> None:
        self._question.show_text(words)
        self._calls.spawn(self._archive_or_delete(delete=delete), self._question.show_text)


def orphan_summary(found: OrphansResult) -> str:
    """Return the number, the total size, and the largest by name."""
    if not found.count:
        return tr("Every conversation has an agent.")
    heading = trn(
        "{n} conversation without an agent, {size}:", "{n} conversations without an agent, {size}:", found.count
    )
    lines = [heading.format(size=file_size(found.bytes))]
    for orphan in found.orphans[:_SHOWN]:
        facts = [trn("{n} message", "{n} messages", orphan.nodes), file_size(orphan.bytes)]
        facts += [tr("archived")] if orphan.conversation.archived else []
        lines.append(f"{' '.join(orphan.conversation.title.split())[:60]} · {', '.join(facts)}")
    if found.count > _SHOWN:
        lines.append(trn("and {n} more", "and {n} more", found.count - _SHOWN))
    lines.append(tr("Deleting them also removes the files Errand stored for them. You can't undo this."))
    return "\n".join(lines)


class PruneView(QWidget):
    """`confirmation_shown` is emitted when a question is shown; `pruned` gives the result as a sentence."""

    confirmation_shown = Signal()
    pruned = Signal(str)

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__()
        self._calls = calls
        self._age = ComboBox(tuple(_AGES), name=tr("Unchanged for"))
        self._age.setCurrentText(tr("90 days"))
        self._count = push_button(tr("Count…"), name=tr("Count what would be deleted"))
        self._delete = push_button(tr("Delete permanently"), "danger")
        self._question = ConfirmationView(theme, self._delete)
        self._lay_out(theme)
        self._age.currentIndexChanged.connect(self._question.hide)
        self._count.clicked.connect(self._on_counted)
        self._delete.clicked.connect(self._on_deleted)

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        ask = hbox(
            TextLabel(theme, tr("Archived and unchanged for")),
            self._age,
            self._count,
            STRETCH,
            spacing=tokens.space_close,
        )
        set_vbox(self, ask, self._question, spacing=tokens.space_close)

    async def _count_matches(self, days: int) -> None:
        preview = await self._calls.call(DATA_PRUNE, DataPruneParams(days=days))
        if days == _AGES[self._age.currentText()]:
            if preview.conversations:
                self._question.ask(conversations_size_label(preview))
            else:
                self._question.show_text(conversations_size_label(preview))
            self.confirmation_shown.emit()

    async def _prune(self, days: int) -> None:
        gone = await self._calls.call(DATA_PRUNE, DataPruneParams(days=days, dry_run=False))
        self._question.hide()
        self.pruned.emit(
            tr("Deleted: {conversations}, {messages}.").format(
                conversations=trn("{n} conversation", "{n} conversations", gone.conversations),
                messages=trn("{n} message", "{n} messages", gone.nodes),
            )
        )

    def _on_counted(self) -> None:
        self._calls.spawn(self._count_matches(_AGES[self._age.currentText()]), self._question.show_text)

    def _on_deleted(self) -> None:
        self._question.show_text(tr("Deleting…"))
        self._calls.spawn(self._prune(_AGES[self._age.currentText()]), self._question.show_text)


def conversations_size_label(found: DataPruneResult) -> str:
    """Return what would be deleted, to show before the deletion."""
    if not found.conversations:
        return tr("No archived conversation is that old.")
    return tr(
        "This deletes {conversations}, {messages} and the files Errand stored for them ({size}). Files in your folders "
        "stay. You can't undo this; export them first if in doubt."
    ).format(
        conversations=trn("{n} conversation", "{n} conversations", found.conversations),
        messages=trn("{n} message", "{n} messages", found.nodes),
        size=file_size(found.bytes),
    )
