"""The page of entries: search and filters above, the list on the left, the selected entries on the right."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QSplitter, QStackedWidget, QWidget

from errand.client.safe_text import plain
from errand.protocol.memory import MemoryForgetResult, MemoryItem
from errand.text.translation import tr, trn
from errand.window.stores.memory.entries import MemoryEntryStore
from errand.window.stores.memory.facts import FactStore
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.views.memory.entry_list import EntryListView
from errand.window.views.memory.entry_view import MAX_MERGED_ENTRIES, EntryView
from errand.window.views.memory.filters import MemoryFilterView
from errand.window.views.memory.texts import forget_result
from errand.window.widgets.boxes import centred, fill, hbox, set_vbox
from errand.window.widgets.empty_state import EmptyStateView
from errand.window.widgets.forms.search_field import SearchField
from errand.window.widgets.labels import ElidedLabel

_EMPTY = tr("What you and your agents say and do is stored here, so you can find it weeks later.")
_NOT_FOUND = tr("Try other words or fewer filters.")
_SLOW_MS = 300
_LIST_WIDTH, _ENTRY_WIDTH = 420, 500


class EntriesPageView(QWidget):
    """Emits `source_requested` with a conversation and a node, `notified` with a sentence about what was done.

    `pinned` says that an entry became a fact, `state_requested` that a person wants to know why words alone count.
    """

    source_requested = Signal(str, str)
    notified = Signal(str)
    pinned = Signal()
    state_requested = Signal()

    def __init__(self, theme: Theme, store: MemoryEntryStore, facts: FactStore) -> None:
        super().__init__()
        self._store = store
        self.search = SearchField(theme, tr("Search memory"))
        self.filters = MemoryFilterView(theme)
        self.list = EntryListView(store, theme)
        self.entry = EntryView(theme, facts, store.forgetting)
        self._total = 0  # entries of the whole memory, as the engine said last
        self._loaded_total = 0  # the same when the list was loaded; 0 if it was not known then
        self._newer = push_button("", "quiet")
        set_style(self._newer, "tone", "link")
        self._newer.hide()
        self._note = ElidedLabel(theme, size=theme.tokens.size_small, tone="waiting")  # the state says it in full
        self._state = push_button(tr("Show status"), "quiet")
        set_style(self._state, "tone", "link")
        self._state.hide()
        self._empty = EmptyStateView(theme, "history", tr("Memory is empty"), _EMPTY)
        self._not_found = EmptyStateView(theme, "search", tr("No results"), _NOT_FOUND, tr("Clear search and filters"))
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._blank = QWidget()
        self._stack = QStackedWidget()
        self._slow = QTimer(self, singleShot=True, interval=_SLOW_MS)  # the model may have to be loaded first
        self._lay_out(theme)
        self._connect()
        self._show_state()

    def open(self, conversation_id: str, here: str, folders: tuple[str, ...]) -> None:
        """Load what fits the words and filters; `here` is the folder of the conversation in front."""
        self.filters.show_places(conversation_id, here, folders)
        self._search()
        self.search.setFocus()
        self.search.selectAll()

    def show_total(self, total: int) -> None:
        """Show what is new: at once in a list of which the newest entry is read, otherwise when a person wants it."""
        before, self._total = self._loaded_total, total
        is_whole = not self._store.has_more and not self._store.is_filtered
        is_current = self._store.count() == total if is_whole else before in (0, total)
        if is_current or self._store.is_searching:
            self._loaded_total = total
            self._newer.hide()
            return
        is_at_top = self.list.currentIndex().row() <= 0 and self.list.verticalScrollBar().value() == 0
        if not self._store.text and is_at_top and not self.entry.is_asking:
            self._store.reload()
        elif total > before:
            if self._store.text:
                text = trn("Search again: {n} new entry", "Search again: {n} new entries", total - before)
            else:
                text = trn("Show {n} new entry", "Show {n} new entries", total - before)
            self._newer.setText(text)
            self._newer.setAccessibleName(text)
            self._newer.show()

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        top = hbox(fill(self.search), self.filters, spacing=tokens.space_close)
        left = QWidget()
        set_vbox(
            left,
            fill(self.list),
            centred(self._newer),  # above, it would move what is read
            spacing=tokens.space_tight,
        )
        self._splitter.addWidget(left)
        self._splitter.addWidget(self.entry)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setSizes([_LIST_WIDTH, _ENTRY_WIDTH])
        self._splitter.setStretchFactor(1, 1)
        for page in (self._blank, self._splitter, self._empty, self._not_found):
            self._stack.addWidget(page)
        note = hbox(fill(self._note), self._state, spacing=tokens.space_close)
        set_vbox(self, top, note, fill(self._stack), spacing=tokens.space_close)

    def _connect(self) -> None:
        store = self._store
        self.search.searched.connect(self._search)
        self.search.down_pressed.connect(self._on_down_pressed)
        self._slow.timeout.connect(self._show_searching)
        self._newer.clicked.connect(self._on_newer_clicked)
        self._state.clicked.connect(self.state_requested)
        self.filters.changed.connect(self._search)
        self._not_found.action_clicked.connect(self._on_cleared)
        self.list.selected.connect(self._on_selected)
        self.list.loaded.connect(self._on_loaded)
        self.list.source_requested.connect(self._on_source_requested)
        self.list.forget_requested.connect(self.entry.ask_to_forget)
        self.list.back_requested.connect(self.search.setFocus)
        self.entry.source_requested.connect(self._on_source_requested)
        self.entry.pinned.connect(self.pinned)
        self.entry.settled.connect(self._on_settled)
        store.reset.connect(self._on_reset)
        store.removed.connect(self._show_state)
        store.opened.connect(self._on_opened)
        store.forgetting.forgotten.connect(self._on_forgotten)
        store.forgetting.replaced.connect(self._on_replaced)
        store.failed.connect(self._show_state)

    def _search(self) -> None:
        self._slow.start()
        self._store.search(self.search.text().strip(), self.filters.where)

    def _show_state(self) -> None:
        store = self._store
        if not store.is_searching:
            self._slow.stop()
        self._note.set_tone("waiting")
        self._note.set_text(plain(store.remark))
        self._note.setVisible(bool(store.remark))
        self._state.setVisible(bool(store.remark))
        if store.count() or self.entry.is_asking:  # what a person is about to pin or forget stays
            self._stack.setCurrentWidget(self._splitter)
        elif store.is_searching:
            self._stack.setCurrentWidget(self._blank)
        else:
            self._stack.setCurrentWidget(self._not_found if store.is_filtered else self._empty)

    def _show_searching(self) -> None:
        self._note.set_tone("muted")
        self._note.set_text(tr("Searching…"))
        self._note.show()
        self._state.hide()

    def _on_reset(self) -> None:
        self._loaded_total = self._total
        self._newer.hide()
        self._show_state()

    def _on_newer_clicked(self) -> None:
        self.list.setFocus()  # the button is about to be hidden
        self._search()

    def _on_down_pressed(self) -> None:
        if self._store.count():
            self.list.setFocus(Qt.FocusReason.TabFocusReason)

    def _on_cleared(self) -> None:
        self.search.clear()
        self.filters.clear()
        self._search()
        self.search.setFocus()

    def _on_loaded(self) -> None:
        """Show the first entry at once, so that a search answers without another key."""
        if not self.entry.is_asking:
            self.list.select(0)
        elif (item := self.entry.item) is not None:
            self.list.select_entry(item.number)

    def _on_settled(self) -> None:
        self._show_state()
        if self._store.count() and not self.list.selectedIndexes():
            self.list.select(0)

    def _on_selected(self, items: tuple[MemoryItem, ...]) -> None:
        if items:
            self.entry.show_entries(items)
            if len(items) <= MAX_MERGED_ENTRIES:
                self._store.open(self.entry.numbers)

    def _on_opened(self, items: tuple[MemoryItem, ...]) -> None:
        if self.entry.numbers == tuple(item.number for item in items):
            self.entry.show_whole(items)

    def _on_source_requested(self) -> None:
        if self.entry.item is not None:
            self.source_requested.emit(self.entry.item.conversation_id, self.entry.item.node_id)

    def _on_forgotten(self, node_ids: tuple[str, ...], gone: MemoryForgetResult) -> None:
        self.notified.emit(forget_result(gone))
        if self.entry.node_ids == node_ids:  # the list has another after it, or none
            self.entry.show_done()
        self.list.setFocus()

    def _on_replaced(self, node_ids: tuple[str, ...], gone: MemoryForgetResult) -> None:
        self.notified.emit("\n".join((tr("Pinned as a fact. Applies to new tasks."), forget_result(gone))))
