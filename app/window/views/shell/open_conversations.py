"""All open conversations, in tabs and in separate windows, and the active one. The tab bar is `tabs`."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QMainWindow, QVBoxLayout, QWidget

from app.window.stores.session import EngineSession
from app.window.theme.theme import Theme
from app.window.views.conversation.conversation_view import ConversationView
from app.window.views.shell.banners import ConnectionBannerView, HealthBannerView
from app.window.views.shell.open_conversation import OpenConversation, OpenConversationFactory, TabStates
from app.window.views.shell.tabs import TabsView
from app.window.widgets.accessibility import step_focus
from app.window.widgets.banner import BannerView


class ConversationWindow(QMainWindow):
    """Emits `activated` when it becomes active, and `close_requested` when the user closes it; its owner closes it."""

    activated = Signal()
    close_requested = Signal()

    def __init__(self, page: OpenConversation, states: TabStates, session: EngineSession, theme: Theme) -> None:
        super().__init__()
        self._states = states
        self.page = page
        self.trouble = BannerView(theme)
        place = QWidget()
        self._column = QVBoxLayout(place)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(ConnectionBannerView(session, theme))
        self._column.addWidget(HealthBannerView(session, theme))
        self._column.addWidget(self.trouble)
        self._column.addWidget(page.view, 1)
        self.setCentralWidget(place)
        self.resize(theme.tokens.column + 4 * theme.tokens.space_far, theme.tokens.column)
        page.view.show()
        page.changed.connect(self._on_look_changed)
        states.changed.connect(self._on_state_changed)
        states.all_changed.connect(self._on_look_changed)
        self._on_look_changed()

    def bring_to_front(self) -> None:
        self.show()
        self.raise_()
        self.activateWindow()
        self.activated.emit()

    def _on_state_changed(self, conversation_id: str) -> None:
        if conversation_id == self.page.conversation_id:
            self._on_look_changed()

    def _on_look_changed(self) -> None:
        """The window title has the conversation's title, the state of its task and the unread count."""
        self.setWindowTitle(f"{self.page.look.words} — Errand")

    def give_page(self) -> OpenConversation:
        """Release the page for another window and close this one."""
        self.page.changed.disconnect(self._on_look_changed)
        self._states.changed.disconnect(self._on_state_changed)
        self._states.all_changed.disconnect(self._on_look_changed)
        self._column.removeWidget(self.page.view)
        self.page.view.setParent(None)
        self.hide()
        self.deleteLater()
        return self.page

    def focusNextPrevChild(self, next: bool) -> bool:
        return step_focus(self, self.focusWidget(), forward=next)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.activated.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        event.ignore()
        self.close_requested.emit()


class OpenConversations(QObject):
    """A conversation is open only once: opening it again activates it.

    Emits `main_window_requested` to bring the main window to the front, and `window_made` for each additional window.
    """

    front_changed = Signal()
    main_window_requested = Signal()
    window_made = Signal(QWidget)

    def __init__(self, pages: TabsView, maker: OpenConversationFactory, theme: Theme) -> None:
        super().__init__()
        self._pages = pages
        self._maker = maker
        self._theme = theme
        self._kept = maker.state.kept
        self._windows: list[ConversationWindow] = []
        self._front: ConversationWindow | None = None
        pages.front_changed.connect(self.front_changed)
        pages.own_window_requested.connect(self.move_out)
        maker.state.saving.connect(self._on_saving)
        maker.stores.conversations.dropped.connect(self._on_dropped)

    @property
    def windows(self) -> tuple[ConversationWindow, ...]:
        return tuple(self._windows)

    @property
    def front_window(self) -> ConversationWindow | None:
        """The active conversation window; None for the main window."""
        return self._front

    @property
    def front(self) -> ConversationView:
        return self._front.page.view if self._front is not None else self._pages.front

    @property
    def front_id(self) -> str:
        """The id of the active conversation; "" for a new one."""
        return self._front.page.conversation_id if self._front is not None else self._pages.front_id

    def turn_to_main(self) -> None:
        """The main window became active."""
        if self._front is not None:
            self._front = None
            self.front_changed.emit()

    def restore(self) -> None:
        """Open the conversation windows of the last session."""
        for conversation_id, geometry in tuple(self._kept.windows.items()):
            self._put(self._maker.make(conversation_id)).restoreGeometry(geometry)

    def new(self) -> None:
        """Show a new conversation in the main window."""
        self._show_main()
        self._pages.new()

    def open(self, conversation_id: str, *, behind: bool = False) -> None:
        """Show a conversation in its window, or in a tab. `behind` opens it without activating it."""
        window = self._window_of(conversation_id)
        if behind and window is None:
            self._pages.open(conversation_id, behind=True)
        elif window is not None and not behind:
            window.bring_to_front()
        elif window is None:
            self._show_main()
            self._pages.open(conversation_id)

    def open_at(self, conversation_id: str, node_id: str) -> None:
        """Show a node of a conversation."""
        self.open(conversation_id)
        self.front.go_to(node_id)

    def go_to_next_ask(self) -> None:
        """Show the ask of the next conversation after the active one; wraps around."""
        waiting = [ask.conversation_id for ask in self._maker.stores.asks.waiting()]
        if not waiting:
            return
        here = self.front_id
        place = waiting.index(here) + 1 if here in waiting else 0
        self.open(waiting[place % len(waiting)])
        self.front.go_to_ask()

    def reopen(self) -> None:
        """Reopen the conversation that was closed last."""
        open_ids = {*self._pages.open_ids, *(window.page.conversation_id for window in self._windows)}
        while self._kept.closed:
            conversation_id = self._kept.closed.pop()
            if conversation_id not in open_ids:
                self.open(conversation_id)
                return

    def close_front(self) -> None:
        """Close the current tab, or the active conversation window."""
        if self._front is not None:
            self._front.close()
        else:
            self._pages.close_tab(self._pages.tabs.current)

    def in_main_window(self, action: Callable[[], None]) -> None:
        """Show the main window, then run an action on its tabs."""
        self._show_main()
        action()

    def move_front(self) -> None:
        """Move the active conversation into a separate window, or back to the main window."""
        if self._front is None:
            self.move_out(self._pages.front_page)
        else:
            page = self._drop(self._front)
            key = self._pages.put(page)
            self._show_main()
            self._pages.tabs.go_to(key)

    def move_out(self, page: OpenConversation) -> None:
        """Move a conversation from its tab into a separate window."""
        self._pages.take(page)
        self._put(page).bring_to_front()
        page.view.setFocus()

    def close_windows(self) -> None:
        """Close all conversation windows with the main window; the next start restores them."""
        self._on_saving()
        for window in self._windows:
            window.page.keep_place()
            window.hide()
            window.deleteLater()
        self._windows.clear()
        self._front = None

    def _window_of(self, conversation_id: str) -> ConversationWindow | None:
        return next((window for window in self._windows if window.page.conversation_id == conversation_id), None)

    def _put(self, page: OpenConversation) -> ConversationWindow:
        window = ConversationWindow(page, self._maker.states, self._maker.stores.session, self._theme)
        self._windows.append(window)
        window.activated.connect(partial(self._on_activated, window))
        window.close_requested.connect(partial(self._on_close_requested, window))
        self.window_made.emit(window)
        window.show()
        return window

    def _drop(self, window: ConversationWindow) -> OpenConversation:
        self._windows.remove(window)
        page = window.give_page()
        self.turn_to_main()
        self._maker.state.save_soon()
        return page

    def _show_main(self) -> None:
        self.main_window_requested.emit()
        self.turn_to_main()

    def _on_activated(self, window: ConversationWindow) -> None:
        window.page.read()
        if self._front is not window:
            self._front = window
            self.front_changed.emit()

    def _on_close_requested(self, window: ConversationWindow) -> None:
        """Close it like a tab: its task keeps running, and it can be reopened."""
        self._drop(window).close()

    def _on_dropped(self, conversation_id: str) -> None:
        """The conversation was deleted: close it and forget its stored state."""
        window = self._window_of(conversation_id)
        if window is not None:
            self._drop(window).close()
        else:
            self._pages.drop(conversation_id)
        self._kept.closed = [known for known in self._kept.closed if known != conversation_id]
        for kept in (self._kept.drafts, self._kept.attached, self._kept.places, self._kept.trees, self._kept.agents):
            kept.pop(conversation_id, None)
        self._maker.state.save_soon()

    def _on_saving(self) -> None:
        kept = {window.page.conversation_id: bytes(window.saveGeometry().data()) for window in self._windows}
        kept.pop("", None)
        for window in self._windows:
            window.page.keep_place()
            self._kept.titles[window.page.conversation_id] = window.page.title
        self._kept.windows = kept
