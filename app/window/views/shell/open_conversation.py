"""One open conversation: title, draft, scroll position, and its view, which is created when it is first shown."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QClipboard

from app.protocol.tasks import Task
from app.window.stores.catalog import ModelStore
from app.window.stores.stores import Stores
from app.window.stores.tasks import UnreadStore
from app.window.stores.window_state import WindowStateStore
from app.window.theme.theme import Theme
from app.window.views.composer.drop_payload import PastedFiles
from app.window.views.conversation.conversation_view import ConversationView
from app.window.views.shell.tab_bar import TabState
from app.window.widgets.status_dot import dot_state

_NEW = "New task"


class OpenConversation(QObject):
    """`conversation_id` is "" until the engine has stored the conversation.

    Emits `changed` when its tab changes, and `begun` when the engine has stored it.
    """

    changed = Signal()
    begun = Signal()

    def __init__(self, maker: "OpenConversationFactory", conversation_id: str) -> None:
        super().__init__()
        self._maker = maker
        self._view: ConversationView | None = None
        self.conversation_id = conversation_id
        self.is_pinned = conversation_id in maker.state.kept.pinned
        known = maker.stores.conversations.get(conversation_id)
        self.title = known.title if known else maker.state.kept.titles.get(conversation_id, _NEW)

    @property
    def is_shown(self) -> bool:
        """True once its view was created."""
        return self._view is not None

    @property
    def is_blank(self) -> bool:
        """True for a new conversation without any text."""
        return not self.conversation_id and (self._view is None or self._view.foot.is_blank)

    @property
    def view(self) -> ConversationView:
        if self._view is None:
            self._view = self._maker.make_view(self.conversation_id)
            self._connect(self._view)
        return self._view

    @property
    def look(self) -> TabState:
        if not self.conversation_id:
            return TabState(self.title, pinned=self.is_pinned)
        stores = self._maker.stores
        known = stores.conversations.get(self.conversation_id)
        if known is not None:
            self.title = known.title
        task = stores.tasks.of_conversation(self.conversation_id)
        return TabState(self.title, dot_state(task), self._maker.unread.count(self.conversation_id), self.is_pinned)

    def read(self) -> None:
        """Mark it as read."""
        if self.conversation_id:
            self._maker.unread.read(self.conversation_id)

    def keep_place(self) -> None:
        """Save the scroll position; keeps the last one if the view was not shown yet or is still scrolling to a row."""
        if self._view is None:
            return
        self._keep_tree(self._view.tree.open_width)
        self._keep_agent(self._view.store.agents.chosen_id)
        if not self._view.has_place:
            return
        places, place = self._maker.state.kept.places, self._view.place
        if place is None:
            places.pop(self.conversation_id, None)
        else:
            places[self.conversation_id] = place

    def _keep_tree(self, width: int) -> None:
        trees = self._maker.state.kept.trees
        trees.pop(self.conversation_id, None)
        if width and self.conversation_id:
            trees[self.conversation_id] = width

    def _keep_agent(self, agent_id: str | None) -> None:
        agents = self._maker.state.kept.agents
        agents.pop(self.conversation_id, None)
        if agent_id is not None and self.conversation_id:
            agents[self.conversation_id] = agent_id

    def close(self) -> None:
        """Close the view; its task keeps running."""
        self.keep_place()
        if self.conversation_id:
            self._maker.state.keep_closed(self.conversation_id)
        if self._view is not None:
            self._maker.stores.close(self._view.store)
            self._view.deleteLater()
        self.deleteLater()

    def _connect(self, view: ConversationView) -> None:
        view.draft_changed.connect(self._on_draft_changed)
        view.foot.files_changed.connect(self._on_files_changed)
        view.store.title_changed.connect(self._on_title_changed)
        view.store.requests.stored.connect(self._on_stored)

    def _on_draft_changed(self, text: str) -> None:
        self._maker.state.keep_draft(self.conversation_id, text)

    def _on_files_changed(self, paths: tuple[str, ...]) -> None:
        self._maker.state.keep_attached(self.conversation_id, paths)

    def _on_title_changed(self) -> None:
        self.title = self.view.store.title
        self.changed.emit()

    def _on_stored(self, conversation_id: str) -> None:
        """The engine has stored the new conversation."""
        self._maker.state.keep_draft("", "")
        self.conversation_id = conversation_id
        self._on_title_changed()
        self.begun.emit()


class TabStates(QObject):
    """Emits `changed` with the id of a conversation whose title, task or unread count changed.

    `all_changed` means any of them. Separate signals, because fifty running tasks send a thousand updates a second.
    """

    changed = Signal(str)
    all_changed = Signal()

    def __init__(self, stores: Stores, unread: UnreadStore) -> None:
        super().__init__()
        self._conversations = stores.conversations
        stores.tasks.taskUpdate.connect(self._on_task_update)
        stores.conversations.updated.connect(self._on_conversation_updated)
        stores.conversations.reset.connect(self.all_changed)
        stores.conversations.inserted.connect(self.all_changed)
        unread.changed.connect(self.all_changed)

    def _on_task_update(self, task: Task) -> None:
        self.changed.emit(task.conversation_id)

    def _on_conversation_updated(self, index: int) -> None:
        self.changed.emit(self._conversations.at(index).id)


class OpenConversationFactory(QObject):
    """Creates open conversations and their views. Its signals forward those of all views."""

    tour_requested = Signal()
    providers_requested = Signal()
    resume_requested = Signal(str)
    failed = Signal(str)

    def __init__(
        self,
        stores: Stores,
        unread: UnreadStore,
        models: ModelStore,
        state: WindowStateStore,
        theme: Theme,
        clipboard: QClipboard,
        pasted: PastedFiles,
    ) -> None:
        super().__init__()
        self.stores = stores
        self.unread = unread
        self.state = state
        self.states = TabStates(stores, unread)
        self.models = models
        self._theme = theme
        self.clipboard = clipboard
        self._pasted = pasted

    def make(self, conversation_id: str) -> OpenConversation:
        """An open conversation; a new one for ""."""
        return OpenConversation(self, conversation_id)

    def make_view(self, conversation_id: str) -> ConversationView:
        store = self.stores.open(conversation_id or None, self.state.kept.agents.get(conversation_id))
        view = ConversationView(store, self.stores, self.models, self._theme, self.clipboard, self._pasted)
        kept = self.state.kept
        if not conversation_id:
            view.foot.choose(kept.options)
        view.composer.set_text(kept.drafts.get(conversation_id, ""))
        view.composer.attachments.restore(kept.attached.get(conversation_id, []))
        if conversation_id in kept.places:
            view.return_to(kept.places[conversation_id])
        if conversation_id in kept.trees:
            view.tree.open(kept.trees[conversation_id])
        view.tree.changed.connect(self.state.save_soon)
        store.agents.turned.connect(self.state.save_soon)
        view.scrolled.connect(self.state.save_soon)
        view.options_changed.connect(self.state.keep_options)
        view.tour_requested.connect(self.tour_requested)
        view.foot.choices.providers_requested.connect(self.providers_requested)
        view.resume_requested.connect(self.resume_requested)
        store.failed.connect(self.failed)
        return view
