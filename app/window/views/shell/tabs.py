"""The tabs: the bar and the conversation of the tab in front. What a tab shows is `open_conversation`."""

import itertools
from functools import partial

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.protocol.tasks import Task
from app.window.theme.style import set_style
from app.window.theme.theme import Theme
from app.window.views.conversation.conversation_view import ConversationView
from app.window.views.shell.open_conversation import OpenConversation, OpenConversationFactory
from app.window.views.shell.tab_bar import TabBarView, TabMenu, TabState
from app.window.widgets.buttons import IconButton
from app.window.widgets.pulse import PulseTimer


class TabsView(QWidget):
    """Always has at least one page. `front_changed` when another one comes to the front.

    `own_window_asked` gives the page that shall leave.
    """

    front_changed = Signal()
    own_window_asked = Signal(OpenConversation)

    def __init__(self, maker: OpenConversationFactory, theme: Theme, pulse: PulseTimer) -> None:
        super().__init__()
        self._maker = maker
        self._theme = theme
        self._state = maker.state
        self._numbers = itertools.count(1)
        self._pages: dict[str, OpenConversation] = {}
        self.tabs = TabBarView(theme, pulse)
        self._stack = QStackedWidget()
        self._list = IconButton(theme, "chevron-down", "All tabs")
        # While the bar is laid out its neighbour cannot come: it would get no room.
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._lay_out(theme)
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

    @property
    def front_page(self) -> OpenConversation:
        return self._pages[self.tabs.current]

    def restore(self) -> None:
        """Open the tabs of the last time."""
        kept = self._state.kept
        current = kept.current
        for conversation_id in tuple(kept.tabs):
            self.put(self._maker.make(conversation_id))
        if current in self.open_ids:
            self.open(current)
        if not self._pages:
            self.new()

    def new(self) -> None:
        """Go to the page of a conversation that has not begun; there is at most one without a word in it."""
        self.tabs.go_to(self._blank() or self.put(self._maker.make("")))

    def open(self, conversation_id: str, *, behind: bool = False) -> None:
        """Go to a conversation, in a tab of its own; `behind` leaves the one in front where it is."""
        key = self._key_of(conversation_id) or self.put(self._maker.make(conversation_id))
        if behind:
            return
        blank = self._blank()
        self.tabs.go_to(key)
        if blank is not None:
            self.close_tab(blank)

    def open_at(self, conversation_id: str, node_id: str) -> None:
        """Go to a node of a conversation."""
        self.open(conversation_id)
        self.front.go_to(node_id)

    def put(self, page: OpenConversation) -> str:
        """Have a page in a tab, at the right end; gives the tab's key."""
        key = str(next(self._numbers))
        self._pages[key] = page
        page.changed.connect(self._on_looks_changed)
        page.begun.connect(self._on_begun)
        self.tabs.add(key, page.look)
        self._keep()
        return key

    def take(self, page: OpenConversation) -> None:
        """Give a page away; its tab goes."""
        key = next(key for key, known in self._pages.items() if known is page)
        del self._pages[key]
        self.tabs.remove(key)
        if page.is_shown:
            self._stack.removeWidget(page.view)
        page.changed.disconnect(self._on_looks_changed)
        page.begun.disconnect(self._on_begun)
        if not self._pages:
            self.new()
        self._keep()

    def go_to_page(self, page: OpenConversation) -> None:
        self.tabs.go_to(next(key for key, known in self._pages.items() if known is page))

    def close_front(self) -> None:
        self.close_tab(self.tabs.current)

    def close_tab(self, key: str) -> None:
        page = self._pages[key]
        self.take(page)
        page.close()

    def drop(self, conversation_id: str) -> None:
        """Close the tab of a conversation that is no more, if there is one."""
        key = self._key_of(conversation_id)
        if key is not None:
            self.close_tab(key)

    def close_others(self, kept_key: str) -> None:
        """Pinned ones stay."""
        self._close_all([key for key in self.tabs.keys if key != kept_key])

    def pin(self, key: str) -> None:
        """Pin a tab, or let a pinned one go."""
        page = self._pages[key]
        page.is_pinned = not page.is_pinned
        self.tabs.show_look(key, page.look)
        self._keep()

    def pin_front(self) -> None:
        self.pin(self.tabs.current)

    def open_list(self) -> None:
        """All tabs, to find one by typing."""
        from app.window.views.shared.picker import PickerDialog, PickerItem  # the start does not need it

        looks = {key: self._pages[key].look for key in self.tabs.keys}
        choices = tuple(PickerItem(key, look.title, _hint(look)) for key, look in looks.items())
        picker = PickerDialog(self._theme, "Find an open tab", choices, self)
        picker.chosen.connect(self.tabs.go_to)
        picker.open_over(self)

    def step(self, by: int) -> None:
        """Go to the next tab, round at the ends."""
        self.tabs.setCurrentIndex((self.tabs.currentIndex() + by) % self.tabs.count())

    def go_to_number(self, number: int) -> None:
        """From 1; 9 is the last one, as in browsers."""
        index = self.tabs.count() - 1 if number == 9 else number - 1
        if index < self.tabs.count():
            self.tabs.setCurrentIndex(index)

    def _lay_out(self, theme: Theme) -> None:
        bar = QWidget()
        set_style(bar, "look", "panel")
        bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        row = QHBoxLayout(bar)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.tabs, 1)
        row.addWidget(self._list)
        self._list.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(bar)
        column.addWidget(self._stack, 1)

    def _connect(self) -> None:
        stores, tabs = self._maker.stores, self.tabs
        tabs.chosen.connect(self._on_chosen)
        tabs.close_asked.connect(self.close_tab)
        tabs.menu_asked.connect(self._on_menu_asked)
        tabs.out_asked.connect(self._on_out_asked)
        tabs.resized.connect(self._soon.start)
        self._soon.timeout.connect(self._on_tabs_settled)
        tabs.tabMoved.connect(self._keep)
        self._list.clicked.connect(self.open_list)
        stores.tasks.taskUpdate.connect(self._on_task_update)
        stores.conversations.reset.connect(self._on_looks_changed)
        stores.conversations.inserted.connect(self._on_looks_changed)
        stores.conversations.updated.connect(self._on_conversation_updated)
        self._maker.unread.changed.connect(self._on_looks_changed)
        self._state.saving.connect(self._on_saving)

    def _on_chosen(self, key: str) -> None:
        page = self._pages[key]
        if self._stack.indexOf(page.view) < 0:
            self._stack.addWidget(page.view)
        self._stack.setCurrentWidget(page.view)
        page.read()
        self._keep()
        page.view.setFocus()
        self.front_changed.emit()

    def _on_looks_changed(self) -> None:
        for key, page in self._pages.items():
            self.tabs.show_look(key, page.look)

    def _on_task_update(self, task: Task) -> None:
        """Only this one: fifty tasks at work tell of themselves a thousand times a second."""
        self._show_look_of(task.conversation_id)

    def _on_conversation_updated(self, index: int) -> None:
        self._show_look_of(self._maker.stores.conversations.at(index).id)

    def _show_look_of(self, conversation_id: str) -> None:
        key = self._key_of(conversation_id)
        if key is not None:
            self.tabs.show_look(key, self._pages[key].look)

    def _on_begun(self) -> None:
        self.front_page.read()  # a task may end before it is known whose it is
        self._keep()
        self.front_changed.emit()

    def _on_menu_asked(self, key: str, place: QPoint) -> None:
        menu = TabMenu(self, is_pinned=self._pages[key].is_pinned)
        menu.pin_asked.connect(partial(self.pin, key))
        menu.out_asked.connect(partial(self._on_out_asked, key))
        menu.close_asked.connect(partial(self.close_tab, key))
        menu.close_others_asked.connect(partial(self.close_others, key))
        menu.close_right_asked.connect(partial(self._on_close_right_asked, key))
        menu.popup(place)

    def _on_out_asked(self, key: str) -> None:
        self.own_window_asked.emit(self._pages[key])

    def _on_tabs_settled(self) -> None:
        """The room of the button counts as taken in any case: else it would come and go without end."""
        self._list.setVisible(self.tabs.overflow(self.width() - self._list.sizeHint().width()))

    def _on_close_right_asked(self, kept_key: str) -> None:
        keys = self.tabs.keys
        self._close_all(list(keys[keys.index(kept_key) + 1 :]))

    def _close_all(self, keys: list[str]) -> None:
        for key in keys:
            if not self._pages[key].is_pinned:
                self.close_tab(key)

    def _on_saving(self) -> None:
        for page in self._pages.values():
            page.keep_place()
        self._state.kept.titles = {page.conversation_id: page.title for page in self._pages.values()}
        places, wanted = self._state.kept.places, {*self.open_ids, *self._state.kept.closed}
        self._state.kept.places = {known: place for known, place in places.items() if known in wanted}

    def _blank(self) -> str | None:
        return next((key for key, page in self._pages.items() if page.is_blank), None)

    def _key_of(self, conversation_id: str) -> str | None:
        return next((key for key, page in self._pages.items() if page.conversation_id == conversation_id), None)

    def _keep(self) -> None:
        self._state.kept.tabs = list(self.open_ids)
        self._state.kept.pinned = [page.conversation_id for page in self._pages.values() if page.is_pinned]
        self._state.kept.current = self.front_id
        self._state.save_soon()


def _hint(look: TabState) -> str:
    return look.words.removeprefix(look.title).removeprefix(" · ")
