"""All open conversations, in tabs and in separate windows, and the active one. The tab bar is `tabs`."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, QObject, QPoint, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication, QKeyEvent, QMoveEvent, QResizeEvent
from PySide6.QtWidgets import QMainWindow, QVBoxLayout, QWidget

from errand.window.theme.theme import Theme
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.conversation.keys import go_to_composer
from errand.window.views.shell.open_conversation import OpenConversation, OpenConversationFactory, TabStates
from errand.window.views.shell.tabs import TabsView
from errand.window.widgets.accessibility import step_focus
from errand.window.widgets.dialogs import resize_on_screen

_MAX_STORED_WINDOWS = 50


class ConversationWindow(QMainWindow):
    """Emits `activated` when it becomes active, `moved` when it has another place or size, and `close_requested` when
    the user closes it; its owner closes it.
    """

    activated = Signal()
    close_requested = Signal()
    moved = Signal()

    def __init__(self, page: OpenConversation, states: TabStates, theme: Theme) -> None:
        super().__init__()
        self._states = states
        self._theme = theme
        self.page = page
        content = QWidget()
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(page.view, 1)
        self.setCentralWidget(content)
        resize_on_screen(self, theme.tokens.column + 4 * theme.tokens.space_far, theme.tokens.column)
        page.view.show()
        page.changed.connect(self._on_title_changed)
        states.changed.connect(self._on_state_changed)
        states.all_changed.connect(self._on_title_changed)
        self._on_title_changed()

    def bring_to_front(self) -> None:
        self.show()
        self.raise_()
        self.activateWindow()
        self.activated.emit()

    def _on_state_changed(self, conversation_id: str) -> None:
        if conversation_id == self.page.conversation_id:
            self._on_title_changed()

    def _on_title_changed(self) -> None:
        """The window title has the conversation's title, the state of its task and the unread count."""
        self.setWindowTitle(f"{self.page.tab_state.accessible_text} — Errand")

    def move_below(self, point: QPoint) -> None:
        """Move it so that its title bar is at a point of the screen, and all of it is on that screen."""
        screen = QGuiApplication.screenAt(point) or self.screen()
        room, size = screen.availableGeometry(), self.frameGeometry().size()
        left = min(point.x() - size.width() // 4, room.right() - size.width())
        top = min(point.y() - self._theme.tokens.space_wide, room.bottom() - size.height())
        self.move(max(left, room.left()), max(top, room.top()))

    def release_page(self) -> OpenConversation:
        """Release the page for another window and close this one."""
        self.page.changed.disconnect(self._on_title_changed)
        self._states.changed.disconnect(self._on_state_changed)
        self._states.all_changed.disconnect(self._on_title_changed)
        self._column.removeWidget(self.page.view)
        self.page.view.setParent(None)
        self.hide()
        self.deleteLater()
        return self.page

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keys that its conversation does not handle: Esc goes to the composer, text is typed there."""
        if not go_to_composer(event, self.page.view.composer):
            super().keyPressEvent(event)

    def focusNextPrevChild(self, next: bool) -> bool:
        return step_focus(self, self.focusWidget(), forward=next)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.activated.emit()

    def moveEvent(self, event: QMoveEvent) -> None:
        super().moveEvent(event)
        self.moved.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.moved.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        event.ignore()
        self.close_requested.emit()


class OpenConversations(QObject):
    """A conversation is open only once: opening it again activates it.

    Emits `main_window_requested` to bring the main window to the front, and `window_made` for each additional window.
    """

    active_changed = Signal()
    main_window_requested = Signal()
    window_made = Signal(QWidget)

    def __init__(self, tabs: TabsView, factory: OpenConversationFactory, theme: Theme) -> None:
        super().__init__()
        self._tabs = tabs
        self._factory = factory
        self._theme = theme
        self._settings = factory.state.settings
        self._windows: list[ConversationWindow] = []
        self._active_window: ConversationWindow | None = None
        tabs.active_changed.connect(self.active_changed)
        tabs.own_window_requested.connect(self.move_to_window)
        factory.state.saving.connect(self._on_saving)
        factory.services.stores.conversations.dropped.connect(self._on_dropped)

    @property
    def windows(self) -> tuple[ConversationWindow, ...]:
        return tuple(self._windows)

    @property
    def active_window(self) -> ConversationWindow | None:
        """The active conversation window; None for the main window."""
        return self._active_window

    @property
    def active(self) -> ConversationView:
        return self._active_window.page.view if self._active_window is not None else self._tabs.active

    @property
    def active_id(self) -> str:
        """The id of the active conversation; "" for a new one."""
        return self._active_window.page.conversation_id if self._active_window is not None else self._tabs.active_id

    def activate_main_window(self) -> None:
        """The main window became active."""
        if self._active_window is not None:
            self._active_window = None
            self.active_changed.emit()

    def restore(self) -> None:
        """Open the conversation windows of the last session."""
        for conversation_id, geometry in tuple(self._settings.windows.items()):
            self._put(self._factory.make(conversation_id), geometry)

    def new(self) -> None:
        """Show a new conversation in the main window."""
        self._show_main()
        self._tabs.new()

    def open(self, conversation_id: str, *, in_background: bool = False) -> None:
        """Show a conversation in its window, or in a tab. `in_background` does not activate it."""
        window = self._window_of(conversation_id)
        if in_background and window is None:
            self._tabs.open(conversation_id, in_background=True)
        elif window is not None and not in_background:
            window.bring_to_front()
        elif window is None:
            self._show_main()
            self._tabs.open(conversation_id)

    def open_at(self, conversation_id: str, node_id: str) -> None:
        """Show a node of a conversation."""
        self.open(conversation_id)
        self.active.navigation.go_to(node_id)

    def go_to_next_ask(self) -> None:
        """Show the ask of the next conversation after the active one; wraps around."""
        waiting = [ask.conversation_id for ask in self._factory.services.stores.asks.waiting()]
        if not waiting:
            return
        here = self.active_id
        number = waiting.index(here) + 1 if here in waiting else 0
        self.open(waiting[number % len(waiting)])
        self.active.asks.go_to_next()

    def reopen(self) -> None:
        """Reopen the conversation that was closed last."""
        open_ids = {*self._tabs.open_ids, *(window.page.conversation_id for window in self._windows)}
        while self._settings.closed:
            conversation_id = self._settings.closed.pop()
            if conversation_id not in open_ids:
                self.open(conversation_id)
                return

    def close_active(self) -> None:
        """Close the current tab, or the active conversation window."""
        if self._active_window is not None:
            self._active_window.close()
        else:
            self._tabs.close_tab(self._tabs.bar.current)

    def in_main_window(self, action: Callable[[], None]) -> None:
        """Show the main window, then run an action on its tabs."""
        self._show_main()
        action()

    def move_active(self) -> None:
        """Move the active conversation into a separate window, or back to the main window."""
        if self._active_window is None:
            self.move_to_window(self._tabs.active_page)
        else:
            page = self._remove(self._active_window)
            key = self._tabs.put(page)
            self._show_main()
            self._tabs.bar.go_to(key)

    def move_to_window(self, page: OpenConversation, dropped_at: QPoint | None = None) -> None:
        """Move a conversation from its tab into a separate window: where it was before, or where it was dropped."""
        self._tabs.take(page)
        geometry = self._settings.window_places.get(page.conversation_id)
        window = self._put(page, geometry)
        if dropped_at is not None:
            window.move_below(dropped_at)
        window.bring_to_front()
        page.view.setFocus()

    def close_windows(self) -> None:
        """Close all conversation windows with the main window; the next start restores them."""
        self._on_saving()
        for window in self._windows:
            window.page.save_scroll_position()
            window.hide()
            window.deleteLater()
        self._windows.clear()
        self._active_window = None

    def _window_of(self, conversation_id: str) -> ConversationWindow | None:
        return next((window for window in self._windows if window.page.conversation_id == conversation_id), None)

    def _put(self, page: OpenConversation, geometry: bytes | None = None) -> ConversationWindow:
        """Qt moves a window whose screen is gone to one that is there."""
        window = ConversationWindow(page, self._factory.states, self._theme)
        self._windows.append(window)
        window.activated.connect(partial(self._on_activated, window))
        window.close_requested.connect(partial(self._on_close_requested, window))
        if geometry is not None:
            window.restoreGeometry(geometry)
        window.moved.connect(self._factory.state.save_soon)
        self.window_made.emit(window)
        window.show()
        return window

    def _remove(self, window: ConversationWindow) -> OpenConversation:
        self._windows.remove(window)
        self._remember_place(window)
        page = window.release_page()
        self.activate_main_window()
        self._factory.state.save_soon()
        return page

    def _remember_place(self, window: ConversationWindow) -> None:
        """Remember the position of a window for the next time, for the conversations moved last."""
        positions, conversation_id = self._settings.window_places, window.page.conversation_id
        positions.pop(conversation_id, None)
        if conversation_id:
            positions[conversation_id] = bytes(window.saveGeometry().data())
            for old in tuple(positions)[:-_MAX_STORED_WINDOWS]:
                del positions[old]

    def _show_main(self) -> None:
        self.main_window_requested.emit()
        self.activate_main_window()

    def _on_activated(self, window: ConversationWindow) -> None:
        window.page.mark_read()
        if self._active_window is not window:
            self._active_window = window
            self.active_changed.emit()

    def _on_close_requested(self, window: ConversationWindow) -> None:
        """Close it like a tab: its task keeps running, and it can be reopened."""
        self._remove(window).close()

    def _on_dropped(self, conversation_id: str) -> None:
        """The conversation was deleted: close it and forget its stored state."""
        window = self._window_of(conversation_id)
        if window is not None:
            self._remove(window).close()
        else:
            self._tabs.drop(conversation_id)
        self._settings.closed = [closed_id for closed_id in self._settings.closed if closed_id != conversation_id]
        for stored in (
            self._settings.drafts,
            self._settings.attached,
            self._settings.places,
            self._settings.trees,
            self._settings.agents,
            self._settings.window_places,
        ):
            stored.pop(conversation_id, None)
        self._factory.state.save_soon()

    def _on_saving(self) -> None:
        geometries = {window.page.conversation_id: bytes(window.saveGeometry().data()) for window in self._windows}
        geometries.pop("", None)
        for window in self._windows:
            window.page.save_scroll_position()
            self._settings.titles[window.page.conversation_id] = window.page.title
        self._settings.windows = geometries
