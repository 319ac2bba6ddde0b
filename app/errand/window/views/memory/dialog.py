"""The window of memory: entries, facts and state, as three pages."""

from functools import partial
from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QDialog, QStackedWidget, QTabBar, QWidget

from errand.text.translation import tr
from errand.window.stores.memory.entries import LeftOutStore, MemoryEntryStore, MemoryStateStore
from errand.window.stores.memory.shared_folders import SharedFoldersStore
from errand.window.stores.stores import Stores
from errand.window.theme.style import set_style
from errand.window.theme.theme import Theme
from errand.window.views.memory.entries_page import EntriesPageView
from errand.window.views.memory.facts_page import FactsPageView
from errand.window.views.memory.state_page import StatePageView
from errand.window.widgets.banner import BannerView
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_vbox, vbox
from errand.window.widgets.dialogs import bring_to_front, resize_on_screen
from errand.window.widgets.labels import TextLabel

MemoryPage = Literal["entries", "facts", "state"]
_PAGES: tuple[tuple[MemoryPage, str], ...] = (
    ("entries", tr("Entries")),
    ("facts", tr("Facts")),
    ("state", tr("Status")),
)
_WIDTH, _HEIGHT = 980, 640
_MAX_FOLDERS = 50  # conversations whose folders are offered as a filter


class MemoryDialog(QDialog):
    """Not modal. `source_requested` gives a conversation and a node to show."""

    source_requested = Signal(str, str)

    def __init__(self, stores: Stores, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._stores = stores
        self._theme = theme
        self._conversation_id = ""
        self._folder = ""
        self.setWindowTitle(tr("Memory"))
        resize_on_screen(self, theme.pixels(_WIDTH), theme.pixels(_HEIGHT))
        self._entry_store = MemoryEntryStore(stores.session, self)
        self._state = MemoryStateStore(stores.session, stores.tasks, self)
        left_out = LeftOutStore(stores.session, self)
        shared = SharedFoldersStore(stores.session, self)
        self.tabs = QTabBar()
        self.entries = EntriesPageView(theme, self._entry_store, stores.facts)
        self.facts = FactsPageView(theme, stores.facts)
        self.state = StatePageView(theme, self._state, left_out, shared)
        self.banner = BannerView(theme)
        self._stack = QStackedWidget()
        self._lay_out()
        for source in (self._entry_store, self._entry_store.forgetting, self._state, left_out, shared, stores.facts):
            source.failed.connect(self._on_failed)
        self._connect()

    def open_for(self, conversation_id: str, folder: str, page: MemoryPage = "entries") -> None:
        """Show a page of it; the filter offers the conversation in front and its folder, if there are any."""
        self._conversation_id, self._folder = conversation_id, folder
        bring_to_front(self)
        self._state.open()
        index = [name for name, _ in _PAGES].index(page)
        if self.tabs.currentIndex() == index:
            self._on_page_chosen(index)
        else:
            self.tabs.setCurrentIndex(index)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._state.close()

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.tabs.setAccessibleName(tr("Memory pages"))
        self.tabs.setExpanding(False)
        set_style(self.tabs, "look", "choice")
        for _, text in _PAGES:
            self.tabs.addTab(text)
        for page in (self.entries, self.facts, self.state):
            self._stack.addWidget(page)
        head = hbox(
            TextLabel(self._theme, tr("Memory"), size=tokens.size_heading, bold=True),
            tokens.space_wide,
            self.tabs,
            STRETCH,
            spacing=tokens.space_close,
        )
        inside = vbox(
            head,
            fill(self._stack),
            spacing=tokens.space_wide,
            margins=(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_far),
        )
        set_vbox(self, fill(inside), self.banner, spacing=0)

    def _connect(self) -> None:
        self._state.changed.connect(self._on_stats_changed)
        self.tabs.currentChanged.connect(self._on_page_chosen)
        self._stores.session.state_changed.connect(self._on_state_changed)
        for page in (self.entries, self.facts):
            page.source_requested.connect(self._on_source_requested)
        self.entries.notified.connect(self._show_notice)
        self.state.notified.connect(self._show_notice)
        self.facts.notified.connect(self._on_fact_notified)
        self.entries.pinned.connect(self._on_pinned)
        self.entries.state_requested.connect(partial(self.tabs.setCurrentIndex, len(_PAGES) - 1))
        self.banner.action_clicked.connect(self.facts.undo)

    def _on_page_chosen(self, index: int) -> None:
        self._stack.setCurrentIndex(index)
        self.banner.hide()
        if self.isVisible():
            self._load_page()

    def _load_page(self) -> None:
        page = self._stack.currentWidget()
        if page is self.entries:
            conversations = self._stores.conversations
            recent = map(conversations.at, range(min(conversations.count(), _MAX_FOLDERS)))
            self.entries.open(
                self._conversation_id, self._folder, tuple(conversation.workspace for conversation in recent)
            )
        elif page is self.facts:
            self.facts.open()
        else:
            self.state.open()

    def _on_stats_changed(self) -> None:
        if self._state.stats is not None and self.isVisible():
            self.entries.show_total(self._state.stats.entries)

    def _on_state_changed(self) -> None:
        """After a reconnect everything may be another. The focus stays where a person types."""
        if not self.isVisible() or self._stores.session.state != "ready":
            return
        self.banner.hide()
        if self._stack.currentWidget() is self.entries:
            self._entry_store.reload()
        else:
            self._load_page()

    def _on_source_requested(self, conversation_id: str, node_id: str) -> None:
        self.hide()
        self.source_requested.emit(conversation_id, node_id)

    def _on_pinned(self) -> None:
        self._show_notice(tr("Pinned as a fact. Applies to new tasks."))

    def _on_fact_notified(self, text: str, can_undo: bool) -> None:
        self.banner.show_message(text, "done", tr("Undo") if can_undo else "")

    def _show_notice(self, text: str) -> None:
        self.banner.show_message(text, "done")

    def _on_failed(self, text: str) -> None:
        if self.isVisible():
            self.banner.show_message(text, "failed")
