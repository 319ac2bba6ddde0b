"""The open conversations: the bar of tabs and the page of the one in front, made when it is first shown."""

import itertools
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QClipboard
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.window.models import ModelStore
from app.window.state import WindowState
from app.window.stores.stores import Stores
from app.window.theme.theme import Theme
from app.window.unread import UnreadStore
from app.window.views.conversation_view import ConversationView
from app.window.views.tabs import TabLook, TabsView
from app.window.widgets.pulse import Pulse
from app.window.widgets.state_dot import state_of

_NEW = "New task"


@dataclass(slots=True)
class _Page:
    """`conversation_id` is "" until the engine has stored the conversation; `view` is None until it is shown."""

    conversation_id: str
    title: str
    view: ConversationView | None = None


class PagesView(QWidget):
    """Always has at least one page. `front_changed` when another one comes to the front."""

    front_changed = Signal()
    tour_asked = Signal()
    providers_asked = Signal()
    resume_asked = Signal(str)
    failed = Signal(str)

    def __init__(
        self,
        stores: Stores,
        unread: UnreadStore,
        models: ModelStore,
        state: WindowState,
        theme: Theme,
        pulse: Pulse,
        clipboard: QClipboard,
    ) -> None:
        super().__init__()
        self._stores = stores
        self._unread = unread
        self._models = models
        self._state = state
        self._theme = theme
        self._clipboard = clipboard
        self._numbers = itertools.count(1)
        self._pages: dict[str, _Page] = {}
        self.tabs = TabsView(theme, pulse)
        self._stack = QStackedWidget()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.tabs)
        column.addWidget(self._stack, 1)
        self.tabs.chosen.connect(self._on_chosen)
        self.tabs.close_asked.connect(self._on_close_asked)
        self.tabs.close_others_asked.connect(self._on_close_others_asked)
        self.tabs.tabMoved.connect(self._keep)
        stores.tasks.taskUpdate.connect(self._on_looks_changed)
        stores.conversations.reset.connect(self._on_looks_changed)
        stores.conversations.changed.connect(self._on_looks_changed)
        unread.changed.connect(self._on_looks_changed)
        state.saving.connect(self._on_saving)

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

    def look_for_models(self) -> None:
        """A key may have been set, or a server started."""
        self._models.look_again()

    def step(self, by: int) -> None:
        """Go to the next tab, round at the ends."""
        self.tabs.setCurrentIndex((self.tabs.currentIndex() + by) % self.tabs.count())

    def go_to_number(self, number: int) -> None:
        """From 1; 9 is the last one, as in browsers."""
        index = self.tabs.count() - 1 if number == 9 else number - 1
        if index < self.tabs.count():
            self.tabs.setCurrentIndex(index)

    def _add(self, conversation_id: str) -> str:
        key = str(next(self._numbers))
        known = self._stores.conversations.get(conversation_id)
        self._pages[key] = _Page(conversation_id, known.title if known else _NEW)
        self.tabs.add(key, self._look(self._pages[key]))
        self._keep()
        return key

    def _on_chosen(self, key: str) -> None:
        page = self._pages[key]
        if page.view is None:
            page.view = self._make_view(key, page)
            self._stack.addWidget(page.view)
        self._stack.setCurrentWidget(page.view)
        if page.conversation_id:
            self._unread.read(page.conversation_id)
        self._keep()
        page.view.setFocus()
        self.front_changed.emit()

    def _make_view(self, key: str, page: _Page) -> ConversationView:
        store = self._stores.open(page.conversation_id or None)
        view = ConversationView(store, self._stores, self._models, self._theme, self._clipboard)
        kept = self._state.kept
        view.choose(kept.workspace, kept.model)
        view.composer.set_text(kept.drafts.get(page.conversation_id, ""))
        if page.conversation_id in kept.places:
            view.return_to(kept.places[page.conversation_id])
        view.draft_changed.connect(partial(self._on_draft_changed, key))
        view.scrolled.connect(self._state.save_soon)
        view.choices_changed.connect(self._on_choices_changed)
        view.tour_asked.connect(self.tour_asked)
        view.choices.providers_asked.connect(self.providers_asked)
        view.resume_asked.connect(self.resume_asked)
        store.failed.connect(self.failed)
        store.title_changed.connect(partial(self._on_title_changed, key))
        store.requests.stored.connect(partial(self._on_stored, key))
        return view

    def _on_draft_changed(self, key: str, text: str) -> None:
        self._state.keep_draft(self._pages[key].conversation_id, text)

    def _on_title_changed(self, key: str) -> None:
        page = self._pages.get(key)
        if page is not None and page.view is not None:
            page.title = page.view.store.title
            self.tabs.show_look(key, self._look(page))

    def _on_stored(self, key: str, conversation_id: str) -> None:
        """The new conversation has begun."""
        self._state.keep_draft("", "")
        self._pages[key].conversation_id = conversation_id
        self._keep()
        self._on_title_changed(key)
        self.front_changed.emit()

    def _on_close_asked(self, key: str) -> None:
        self._keep_place(self._pages[key])
        page = self._pages.pop(key)
        self.tabs.remove(key)
        if page.conversation_id:
            self._state.keep_closed(page.conversation_id)
        if page.view is not None:
            self._stack.removeWidget(page.view)
            self._stores.close(page.view.store)
            page.view.deleteLater()
        if not self._pages:
            self.new()
        self._keep()

    def _on_close_others_asked(self, kept_key: str) -> None:
        for key in self.tabs.keys:
            if key != kept_key:
                self._on_close_asked(key)

    def _on_choices_changed(self, workspace: str, model: str) -> None:
        self._state.kept.workspace, self._state.kept.model = workspace, model
        self._state.save_soon()

    def _on_looks_changed(self) -> None:
        for key, page in self._pages.items():
            known = self._stores.conversations.get(page.conversation_id)
            if known is not None:
                page.title = known.title
            self.tabs.show_look(key, self._look(page))

    def _on_saving(self) -> None:
        for page in self._pages.values():
            self._keep_place(page)
        places, wanted = self._state.kept.places, {*self.open_ids, *self._state.kept.closed}
        self._state.kept.places = {known: place for known, place in places.items() if known in wanted}

    def _keep_place(self, page: _Page) -> None:
        """Of a page that was not shown yet, or is on its way to a place, the place of the last time counts."""
        if page.view is None or not page.view.has_place:
            return
        place = page.view.place
        if place is None:
            self._state.kept.places.pop(page.conversation_id, None)
        else:
            self._state.kept.places[page.conversation_id] = place

    def _look(self, page: _Page) -> TabLook:
        if not page.conversation_id:
            return TabLook(page.title)
        task = self._stores.tasks.of_conversation(page.conversation_id)
        return TabLook(page.title, state_of(task), self._unread.count(page.conversation_id))

    def _blank(self) -> str | None:
        """A new conversation without a word in it."""
        views = ((key, page.view) for key, page in self._pages.items() if not page.conversation_id)
        return next((key for key, view in views if view is None or view.is_blank), None)

    def _key_of(self, conversation_id: str) -> str | None:
        return next((key for key, page in self._pages.items() if page.conversation_id == conversation_id), None)

    @property
    def open_ids(self) -> tuple[str, ...]:
        """The conversations in tabs, from left to right."""
        ids = (self._pages[key].conversation_id for key in self.tabs.keys if key in self._pages)
        return tuple(conversation_id for conversation_id in ids if conversation_id)

    def _keep(self) -> None:
        self._state.kept.tabs = list(self.open_ids)
        self._state.kept.current = self.front_id
        self._state.save_soon()
