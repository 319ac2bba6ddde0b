"""The conversations that are open in tabs: the bar of tabs and the page of the one in front."""

import itertools
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.window.theme.theme import Theme
from app.window.views.conversation_view import ConversationView
from app.window.views.page import Page, PageMaker
from app.window.views.tabs import TabsView
from app.window.widgets.pulse import Pulse


class PagesView(QWidget):
    """Always has at least one page. `front_changed` when another one comes to the front."""

    front_changed = Signal()

    def __init__(self, maker: PageMaker, theme: Theme, pulse: Pulse) -> None:
        super().__init__()
        self._maker = maker
        self._state = maker.state
        self._numbers = itertools.count(1)
        self._pages: dict[str, Page] = {}
        self.tabs = TabsView(theme, pulse)
        self._stack = QStackedWidget()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.tabs)
        column.addWidget(self._stack, 1)
        self._connect()

    @property
    def front(self) -> ConversationView:
        view = self._stack.currentWidget()
        assert isinstance(view, ConversationView)
        return view

    @property
    def front_id(self) -> str:
        """The conversation in front; "" while it is a new one."""
        page = self._pages.get(self.tabs.current)
        return page.conversation_id if page else ""

    @property
    def open_ids(self) -> tuple[str, ...]:
        """The conversations in tabs, from left to right."""
        ids = (self._pages[key].conversation_id for key in self.tabs.keys if key in self._pages)
        return tuple(conversation_id for conversation_id in ids if conversation_id)

    def restore(self) -> None:
        """Open the tabs of the last time."""
        kept = self._state.kept
        current = kept.current
        for conversation_id in tuple(kept.tabs):
            self._add(conversation_id)
        if current in self.open_ids:
            self.open(current)
        if not self._pages:
            self.new()

    def new(self) -> None:
        """Go to the page of a conversation that has not begun; there is at most one without a word in it."""
        self.tabs.go_to(self._blank() or self._add(""))

    def open(self, conversation_id: str, *, behind: bool = False) -> None:
        """Go to a conversation, in a tab of its own; `behind` leaves the one in front where it is."""
        key = self._key_of(conversation_id) or self._add(conversation_id)
        if behind:
            return
        blank = self._blank()
        self.tabs.go_to(key)
        if blank is not None:
            self._on_close_asked(blank)

    def open_at(self, conversation_id: str, node_id: str) -> None:
        """Go to a node of a conversation."""
        self.open(conversation_id)
        self.front.go_to(node_id)

    def close_front(self) -> None:
        self._on_close_asked(self.tabs.current)

    def reopen(self) -> None:
        """The tab that was closed last."""
        kept = self._state.kept
        while kept.closed:
            conversation_id = kept.closed.pop()
            if conversation_id not in self.open_ids:
                self.open(conversation_id)
                return

    def step(self, by: int) -> None:
        """Go to the next tab, round at the ends."""
        self.tabs.setCurrentIndex((self.tabs.currentIndex() + by) % self.tabs.count())

    def go_to_number(self, number: int) -> None:
        """From 1; 9 is the last one, as in browsers."""
        index = self.tabs.count() - 1 if number == 9 else number - 1
        if index < self.tabs.count():
            self.tabs.setCurrentIndex(index)

    def _connect(self) -> None:
        stores, tabs = self._maker.stores, self.tabs
        tabs.chosen.connect(self._on_chosen)
        tabs.close_asked.connect(self._on_close_asked)
        tabs.close_others_asked.connect(self._on_close_others_asked)
        tabs.tabMoved.connect(self._keep)
        stores.tasks.taskUpdate.connect(self._on_looks_changed)
        stores.conversations.reset.connect(self._on_looks_changed)
        stores.conversations.changed.connect(self._on_looks_changed)
        self._maker.unread.changed.connect(self._on_looks_changed)
        self._state.saving.connect(self._on_saving)

    def _add(self, conversation_id: str) -> str:
        key = str(next(self._numbers))
        page = self._pages[key] = self._maker.make(conversation_id)
        page.changed.connect(partial(self._on_look_changed, key))
        page.begun.connect(self._on_begun)
        self.tabs.add(key, page.look)
        self._keep()
        return key

    def _on_chosen(self, key: str) -> None:
        page = self._pages[key]
        if not page.is_shown:
            self._stack.addWidget(page.view)
        self._stack.setCurrentWidget(page.view)
        if page.conversation_id:
            self._maker.unread.read(page.conversation_id)
        self._keep()
        page.view.setFocus()
        self.front_changed.emit()

    def _on_look_changed(self, key: str) -> None:
        if key in self._pages:
            self.tabs.show_look(key, self._pages[key].look)

    def _on_looks_changed(self) -> None:
        for key, page in self._pages.items():
            self.tabs.show_look(key, page.look)

    def _on_begun(self) -> None:
        self._keep()
        self.front_changed.emit()

    def _on_close_asked(self, key: str) -> None:
        page = self._pages.pop(key)
        self.tabs.remove(key)
        if page.is_shown:
            self._stack.removeWidget(page.view)
        page.close()
        if not self._pages:
            self.new()
        self._keep()

    def _on_close_others_asked(self, kept_key: str) -> None:
        for key in self.tabs.keys:
            if key != kept_key:
                self._on_close_asked(key)

    def _on_saving(self) -> None:
        for page in self._pages.values():
            page.keep_place()
        places, wanted = self._state.kept.places, {*self.open_ids, *self._state.kept.closed}
        self._state.kept.places = {known: place for known, place in places.items() if known in wanted}

    def _blank(self) -> str | None:
        return next((key for key, page in self._pages.items() if page.is_blank), None)

    def _key_of(self, conversation_id: str) -> str | None:
        return next((key for key, page in self._pages.items() if page.conversation_id == conversation_id), None)

    def _keep(self) -> None:
        self._state.kept.tabs = list(self.open_ids)
        self._state.kept.current = self.front_id
        self._state.save_soon()
