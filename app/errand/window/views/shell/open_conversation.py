"""One open conversation: title, draft, scroll position, and its view, which is created when it is shown."""

from PySide6.QtCore import QObject, Signal

from errand.protocol.tasks.task import Task
from errand.text.translation import tr
from errand.window.stores.stores import Stores
from errand.window.stores.tasks import UnreadStore
from errand.window.stores.window_state import WindowStateStore
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.conversation.services import ViewServices
from errand.window.views.shell.tab_bar import TabState
from errand.window.widgets.status_dot import dot_state

_NEW = tr("New task")


class OpenConversation(QObject):
    """`conversation_id` is "" until the engine has stored the conversation.

    Emits `changed` when its tab changes, and `started` when the engine has stored it.
    """

    changed = Signal()
    started = Signal()

    def __init__(self, factory: "OpenConversationFactory", conversation_id: str) -> None:
        super().__init__()
        self._factory = factory
        self._view: ConversationView | None = None
        self._open_cards: dict[str, None] = {}
        self.conversation_id = conversation_id
        self.is_pinned = conversation_id in factory.state.settings.pinned
        conversation = factory.services.stores.conversations.get(conversation_id)
        self.title = conversation.title if conversation else factory.state.settings.titles.get(conversation_id, _NEW)

    @property
    def is_shown(self) -> bool:
        """True while it has a view."""
        return self._view is not None

    @property
    def is_blank(self) -> bool:
        """True for a new conversation without any text."""
        return not self.conversation_id and (self._view is None or self._view.input_panel.is_blank)

    @property
    def view(self) -> ConversationView:
        if self._view is None:
            self._view = self._factory.make_view(self.conversation_id)
            self._view.transcript.open_keys.update(self._open_cards)
            self._connect(self._view)
        return self._view

    @property
    def tab_state(self) -> TabState:
        if not self.conversation_id:
            return TabState(self.title, pinned=self.is_pinned)
        stores = self._factory.services.stores
        conversation = stores.conversations.get(self.conversation_id)
        if conversation is not None:
            self.title = conversation.title
        task = stores.tasks.of_conversation(self.conversation_id)
        return TabState(self.title, dot_state(task), self._factory.unread.count(self.conversation_id), self.is_pinned)

    def mark_read(self) -> None:
        """Mark it as read."""
        if self.conversation_id:
            self._factory.unread.mark_read(self.conversation_id)

    def save_scroll_position(self) -> None:
        """Save the scroll position; keeps the last one if the view was not shown yet or is still scrolling to a row."""
        if self._view is None:
            return
        self._save_widths(self._view)
        self._save_agent(self._view.store.agents.chosen_id)
        if not self._view.navigation.has_position:
            return
        positions, position = self._factory.state.settings.places, self._view.navigation.position
        if position is None:
            positions.pop(self.conversation_id, None)
        else:
            positions[self.conversation_id] = position

    def _save_widths(self, view: ConversationView) -> None:
        """Store the widths of the panels that are open."""
        settings = self._factory.state.settings
        for widths, panel in ((settings.trees, view.tree), (settings.reviews, view.review)):
            widths.pop(self.conversation_id, None)
            if panel.open_width and self.conversation_id:
                widths[self.conversation_id] = panel.open_width

    def _save_agent(self, agent_id: str | None) -> None:
        agents = self._factory.state.settings.agents
        agents.pop(self.conversation_id, None)
        if agent_id is not None and self.conversation_id:
            agents[self.conversation_id] = agent_id

    @property
    def can_unload(self) -> bool:
        """True if it has a view that can be made again as it is."""
        return self._view is not None and self._view.is_at_rest

    def unload(self) -> None:
        """Delete the view; it is made again when it is next asked for."""
        assert self._view is not None
        self.save_scroll_position()
        self._open_cards = dict(self._view.transcript.open_keys)
        self._factory.services.stores.close(self._view.store)
        self._view.deleteLater()
        self._view = None

    def close(self) -> None:
        """Close the view; its task keeps running."""
        self.save_scroll_position()
        if self.conversation_id:
            self._factory.state.add_closed(self.conversation_id)
        if self._view is not None:
            self._factory.services.stores.close(self._view.store)
            self._view.deleteLater()
        self.deleteLater()

    def _connect(self, view: ConversationView) -> None:
        view.draft_changed.connect(self._on_draft_changed)
        view.input_panel.files_changed.connect(self._on_files_changed)
        view.store.title_changed.connect(self._on_title_changed)
        view.store.commands.stored.connect(self._on_stored)

    def _on_draft_changed(self, text: str) -> None:
        self._factory.state.set_draft(self.conversation_id, text)

    def _on_files_changed(self, paths: tuple[str, ...]) -> None:
        self._factory.state.set_attached(self.conversation_id, paths)

    def _on_title_changed(self) -> None:
        self.title = self.view.store.title
        self.changed.emit()

    def _on_stored(self, conversation_id: str) -> None:
        """The engine has stored the new conversation."""
        self._factory.state.set_draft("", "")
        self.conversation_id = conversation_id
        self._on_title_changed()
        self.started.emit()


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
    setup_requested = Signal()
    local_model_requested = Signal()
    real_tour_requested = Signal()
    folder_task_requested = Signal()
    providers_requested = Signal()
    resume_requested = Signal(str)
    source_requested = Signal(str, str)
    forget_requested = Signal(str)
    failed = Signal(str)

    def __init__(self, services: ViewServices, unread: UnreadStore, state: WindowStateStore) -> None:
        super().__init__()
        self.services = services
        self.unread = unread
        self.state = state
        self.states = TabStates(services.stores, unread)

    def make(self, conversation_id: str) -> OpenConversation:
        """Return an open conversation; a new one for ""."""
        return OpenConversation(self, conversation_id)

    def make_view(self, conversation_id: str) -> ConversationView:
        store = self.services.stores.open(conversation_id or None, self.state.settings.agents.get(conversation_id))
        view = ConversationView(store, self.services)
        settings = self.state.settings
        if not conversation_id:
            view.input_panel.set_options(settings.options)
        view.input_panel.todo.set_open(not settings.todo_folded)
        view.input_panel.todo.opened.connect(self.state.set_todo_open)
        view.composer.set_text(settings.drafts.get(conversation_id, ""))
        view.composer.attachments.restore(settings.attached.get(conversation_id, []))
        if conversation_id in settings.places:
            view.navigation.restore(settings.places[conversation_id])
        for widths, panel in ((settings.trees, view.tree), (settings.reviews, view.review)):
            if conversation_id in widths:
                panel.open(widths[conversation_id])
        view.panels.set_side_by_side(settings.side_by_side)
        view.panels.layout_chosen.connect(self.state.set_side_by_side)
        self.state.diff_layout_changed.connect(view.panels.set_side_by_side)
        view.panels.changed.connect(self.state.save_soon)
        store.agents.selection_changed.connect(self.state.save_soon)
        view.navigation.scrolled.connect(self.state.save_soon)
        view.options_changed.connect(self.state.set_options)
        view.tour_requested.connect(self.tour_requested)
        view.setup_requested.connect(self.setup_requested)
        view.local_model_requested.connect(self.local_model_requested)
        view.task_notices.folder_task_requested.connect(self.folder_task_requested)
        view.task_notices.real_tour_requested.connect(self.real_tour_requested)
        view.input_panel.task_options.providers_requested.connect(self.providers_requested)
        view.task_notices.resume_requested.connect(self.resume_requested)
        store.source_requested.connect(self.source_requested)
        store.forget_requested.connect(self.forget_requested)
        store.providers_requested.connect(self.providers_requested)
        store.failed.connect(self.failed)
        return view
