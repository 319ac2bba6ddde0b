"""The tab bar and the conversation of the current tab. The content of a tab is `open_conversation`."""

import itertools
from collections.abc import Callable, Iterable
from functools import partial

from PySide6.QtCore import QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from errand.text.translation import tr
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.style import set_style
from errand.window.theme.theme import Theme
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.shell.open_conversation import OpenConversation, OpenConversationFactory
from errand.window.views.shell.tab_bar import TabBarView, TabMenu
from errand.window.widgets.boxes import fill, set_hbox, set_vbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.pulse import PulseTimer

# Tabs whose views are kept, those shown last. A view takes 1.5 MB, and more with its rows.
_MAX_LOADED_TABS = 8


class TabsView(QWidget):
    """Holds at least one page. `sidebar_button` is for a window whose sidebar is hidden.

    A page that was not shown for long has no view if nothing would be lost.

    Emits `active_changed` when another page is current, `changed` when `SavedTabs` must save.

    Emits `own_window_requested` with the page to move into a separate window, and the `QPoint` of the screen where it
    was dropped, or None.
    """

    active_changed = Signal()
    changed = Signal()
    own_window_requested = Signal(OpenConversation, object)

    def __init__(self, factory: OpenConversationFactory, theme: Theme, pulse: PulseTimer) -> None:
        super().__init__()
        self._factory = factory
        self._theme = theme
        self._numbers = itertools.count(1)
        self.pages: dict[str, OpenConversation] = {}
        self._recent: list[str] = []  # the pages with a view, the one shown last first
        self.bar = TabBarView(theme, pulse)
        self._stack = QStackedWidget()
        self._list = IconButton(theme, "chevron-down", tr("All tabs"))
        self.sidebar_button = IconButton(theme, "panel-left", tr("Show sidebar"))
        self.sidebar_button.hide()
        # Deferred: a widget shown during the bar's layout would get no space.
        self._save_timer = QTimer(self, singleShot=True, interval=0)
        self.saved = SavedTabs(self, factory.state)
        self._lay_out(theme)
        self._connect()

    @property
    def active(self) -> ConversationView:
        view = self._stack.currentWidget()
        assert isinstance(view, ConversationView)
        return view

    @property
    def active_id(self) -> str:
        """The id of the current conversation; "" for a new one."""
        page = self.pages.get(self.bar.current)
        return page.conversation_id if page else ""

    @property
    def open_ids(self) -> tuple[str, ...]:
        """Conversation ids of the tabs, from left to right."""
        ids = (self.pages[key].conversation_id for key in self.bar.keys if key in self.pages)
        return tuple(conversation_id for conversation_id in ids if conversation_id)

    @property
    def active_page(self) -> OpenConversation:
        return self.pages[self.bar.current]

    def new(self) -> None:
        """Show the page of a new conversation; there is at most one without text."""
        self.bar.go_to(self._blank() or self.put(self._factory.make("")))

    def open(self, conversation_id: str, *, in_background: bool = False) -> None:
        """Show a conversation in a tab; `in_background` does not activate it."""
        key = self._key_of(conversation_id) or self.put(self._factory.make(conversation_id))
        if in_background:
            return
        blank = self._blank()
        self.bar.go_to(key)
        if blank is not None:
            self.close_tab(blank)

    def put(self, page: OpenConversation) -> str:
        """Add a page in a tab at the end; returns the tab's key."""
        key = str(next(self._numbers))
        self.pages[key] = page
        page.changed.connect(self._on_states_changed)
        page.started.connect(self._on_started)
        self.bar.add(key, page.tab_state)
        self.changed.emit()
        return key

    def take(self, page: OpenConversation) -> None:
        """Release a page and remove its tab."""
        key = next(key for key, open_page in self.pages.items() if open_page is page)
        del self.pages[key]
        self.bar.remove(key)
        if page.is_shown:
            self._stack.removeWidget(page.view)
        page.changed.disconnect(self._on_states_changed)
        page.started.disconnect(self._on_started)
        if not self.pages:
            self.new()
        self.changed.emit()

    def close_tab(self, key: str) -> None:
        page = self.pages[key]
        self.take(page)
        page.close()

    def close_tabs(self, keys: Iterable[str]) -> None:
        """Close these tabs, except pinned ones."""
        for key in tuple(keys):
            if not self.pages[key].is_pinned:
                self.close_tab(key)

    def drop(self, conversation_id: str) -> None:
        """Close the tab of a deleted conversation, if there is one."""
        key = self._key_of(conversation_id)
        if key is not None:
            self.close_tab(key)

    def pin(self, key: str) -> None:
        """Pin or unpin a tab."""
        page = self.pages[key]
        page.is_pinned = not page.is_pinned
        self.bar.show_state(key, page.tab_state)
        self.changed.emit()

    def open_list(self) -> None:
        """Open the searchable list of tabs."""
        from errand.window.views.shared.picker import PickerDialog, PickerItem  # not needed at startup

        states = {key: self.pages[key].tab_state for key in self.bar.keys}
        choices = tuple(PickerItem(key, state.title, state.status_text) for key, state in states.items())
        picker = PickerDialog(self._theme, tr("Search open tabs"), choices, self)
        picker.chosen.connect(self.bar.go_to)
        picker.open_over(self)

    def _lay_out(self, theme: Theme) -> None:
        bar = QWidget()
        set_style(bar, "look", "panel")
        bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_hbox(bar, self.sidebar_button, fill(self.bar), self._list, spacing=0)
        self._list.hide()
        set_vbox(self, bar, fill(self._stack), spacing=0)

    def _connect(self) -> None:
        tabs = self.bar
        tabs.chosen.connect(self._on_chosen)
        tabs.close_requested.connect(self.close_tab)
        tabs.menu_requested.connect(self._on_menu_requested)
        tabs.own_window_requested.connect(self._on_own_window_requested)
        tabs.resized.connect(self._save_timer.start)
        self._save_timer.timeout.connect(self._on_tabs_settled)
        tabs.tabMoved.connect(self.changed)
        self._list.clicked.connect(self.open_list)
        self._factory.states.changed.connect(self._on_state_changed)
        self._factory.states.all_changed.connect(self._on_states_changed)

    def _on_chosen(self, key: str) -> None:
        page = self.pages[key]
        if self._stack.indexOf(page.view) < 0:
            self._stack.addWidget(page.view)
        self._stack.setCurrentWidget(page.view)
        page.mark_read()
        self.changed.emit()
        page.view.setFocus()
        self.active_changed.emit()
        self._unload_old(key)

    def _unload_old(self, shown: str) -> None:
        self._recent = [shown, *(key for key in self._recent if key != shown and key in self.pages)]
        for key in self._recent[_MAX_LOADED_TABS:]:
            page = self.pages[key]
            if page.can_unload:
                self._recent.remove(key)
                self._stack.removeWidget(page.view)
                page.unload()

    def _on_states_changed(self) -> None:
        for key, page in self.pages.items():
            self.bar.show_state(key, page.tab_state)

    def _on_state_changed(self, conversation_id: str) -> None:
        key = self._key_of(conversation_id)
        if key is not None:
            self.bar.show_state(key, self.pages[key].tab_state)

    def _on_started(self) -> None:
        self.active_page.mark_read()  # a task may end before its conversation is known
        self.changed.emit()
        self.active_changed.emit()

    def _on_menu_requested(self, key: str, place: QPoint) -> None:
        menu = TabMenu(self, is_pinned=self.pages[key].is_pinned)
        menu.pin_requested.connect(partial(self.pin, key))
        menu.own_window_requested.connect(lambda: self._on_own_window_requested(key))
        menu.close_requested.connect(partial(self.close_tab, key))
        keys = self.bar.keys
        menu.close_others_requested.connect(partial(self.close_tabs, [other for other in keys if other != key]))
        menu.close_right_requested.connect(partial(self.close_tabs, keys[keys.index(key) + 1 :]))
        menu.popup(place)

    def _on_own_window_requested(self, key: str, dropped_at: QPoint | None = None) -> None:
        self.own_window_requested.emit(self.pages[key], dropped_at)

    def _on_tabs_settled(self) -> None:
        """Show the button if the tabs do not fit beside it: otherwise it would appear and disappear in a loop."""
        self._list.setVisible(self.bar.overflows(self.width() - self._list.sizeHint().width()))

    def _blank(self) -> str | None:
        return next((key for key, page in self.pages.items() if page.is_blank), None)

    def _key_of(self, conversation_id: str) -> str | None:
        return next((key for key, page in self.pages.items() if page.conversation_id == conversation_id), None)


class SavedTabs(QObject):
    """Writes the open tabs into the window's state, and opens them again at the next start."""

    def __init__(self, tabs: TabsView, state: WindowStateStore) -> None:
        super().__init__(tabs)
        self._tabs = tabs
        self._state = state
        tabs.changed.connect(self._on_changed)
        state.saving.connect(self._on_saving)

    def restore(self, make: Callable[[str], OpenConversation]) -> None:
        """Open the tabs of the last session; a new conversation if there are none."""
        current = self._state.settings.current
        for conversation_id in tuple(self._state.settings.tabs):
            self._tabs.put(make(conversation_id))
        if current in self._tabs.open_ids:
            self._tabs.open(current)
        if not self._tabs.pages:
            self._tabs.new()

    def _on_changed(self) -> None:
        settings = self._state.settings
        settings.tabs = list(self._tabs.open_ids)
        settings.pinned = [page.conversation_id for page in self._tabs.pages.values() if page.is_pinned]
        settings.current = self._tabs.active_id
        self._state.save_soon()

    def _on_saving(self) -> None:
        settings = self._state.settings
        for page in self._tabs.pages.values():
            page.save_scroll_position()
        settings.titles = {page.conversation_id: page.title for page in self._tabs.pages.values()}
        kept_ids = {*self._tabs.open_ids, *settings.closed}
        settings.places = {
            conversation_id: position
            for conversation_id, position in settings.places.items()
            if conversation_id in kept_ids
        }
