"""The main window: sidebar and tabs, and the slot of each action."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent
from PySide6.QtWidgets import QMainWindow, QSplitter, QWidget

from errand.protocol.conversations import Conversation
from errand.text.translation import tr, trn
from errand.window.stores.task_commands import TaskControlStore, TourStore
from errand.window.stores.window_state import Grouping, WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.theme.tokens import DesignTokens
from errand.window.theme.zoom import rescale
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.conversation.keys import go_to_composer
from errand.window.views.shared.actions import ACTIONS, ActionName, ShortcutStore, WindowActions
from errand.window.views.shell.dialogs import WindowDialogs
from errand.window.views.shell.open_conversation import OpenConversationFactory
from errand.window.views.shell.open_conversations import OpenConversations
from errand.window.views.shell.tabs import TabsView
from errand.window.views.sidebar.sidebar import SidebarView
from errand.window.widgets.accessibility import step_focus
from errand.window.widgets.banner import BannerTone
from errand.window.widgets.boxes import fill, set_vbox
from errand.window.widgets.dialogs import ConfirmDialog, resize_on_screen

if TYPE_CHECKING:
    from errand.window.views.shell.command_palette import CommandPalette


class KeepRunningDialog(ConfirmDialog):
    """`accepted` closes the window. Enter accepts, because nothing is lost."""

    def __init__(self, running: int, parent: QWidget) -> None:
        super().__init__(
            parent,
            tr("Errand keeps working"),
            trn("{n} task keeps running without the window.", "{n} tasks keep running without the window.", running),
            tr("Tasks continue in the background, and questions wait for you. Open Errand again to see them."),
            tr("Close window"),
            is_danger=False,
        )
        self.set_default(self.confirm)


class MainWindow(QMainWindow):
    """`window/main.py` creates its parts.

    Emits `closing` before it checks for a tray to hide in, and `closed` when it has been closed for good.
    """

    closing = Signal()
    closed = Signal()
    quick_task_requested = Signal()
    global_shortcut_requested = Signal()
    quit_requested = Signal()

    def __init__(
        self,
        control: TaskControlStore,
        tour: TourStore,
        sidebar: SidebarView,
        factory: OpenConversationFactory,
        tabs: TabsView,
        conversations: OpenConversations,
        theme: Theme,
        state: WindowStateStore,
    ) -> None:
        super().__init__()
        self.has_tray = False  # closing hides the window if there is a tray that can show it again
        services = factory.services
        self.stores = services.stores
        self._control = control
        self._tour = tour
        self._factory = factory
        self.welcome = services.welcome
        self._theme = theme
        self._state = state
        self.sidebar = sidebar
        self.tabs = tabs
        self.conversations = conversations
        self.shortcuts = ShortcutStore(state)
        self.dialogs = WindowDialogs(services.stores, services.models, theme, self.shortcuts, services.clipboard, self)
        self._palette: CommandPalette | None = None
        self.commands = WindowActions(self._slots(), self._go_to_tab, self.shortcuts)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self.setWindowTitle("Errand")
        self._lay_out()
        self.commands.add_to(self)
        self._connect()
        self._on_theme_changed()
        tabs.saved.restore(factory.make)

    def closeEvent(self, event: QCloseEvent) -> None:
        running = len(self.stores.tasks.running())
        if running and not self._state.settings.told_of_background:
            event.ignore()
            dialog = KeepRunningDialog(running, self)
            dialog.accepted.connect(self._on_close_confirmed)
            dialog.open()
            return
        self._save_sizes()
        self.closing.emit()
        if self.has_tray:
            event.ignore()
            self.hide()
            return
        self.conversations.close_windows()
        super().closeEvent(event)
        self.closed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keys that neither the sidebar nor the tabs handle: Esc goes to the composer, text is typed there."""
        if not go_to_composer(event, self.conversations.active.composer):
            super().keyPressEvent(event)

    def focusNextPrevChild(self, next: bool) -> bool:
        return step_focus(self, self.focusWidget(), forward=next)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.conversations.activate_main_window()

    def close_for_good(self) -> None:
        """Close the window even if there is a tray."""
        self._save_sizes()
        self.conversations.close_windows()
        self.hide()
        self.closed.emit()

    def show_error(self, text: str) -> None:
        """Show what failed and what to do, in the conversation in front."""
        self.conversations.active.notices.show_message(text, "failed")

    def show_message(self, text: str, tone: BannerTone = "info") -> None:
        """Show what did not fail: a hint, or what was done."""
        self.conversations.active.notices.show_message(text, tone)

    def _slots(self) -> dict[ActionName, Callable[[], None]]:
        """The slot of each action. The active conversation is looked up when the slot is called."""
        conversations, tab_bar = self.conversations, self.tabs.bar
        return {
            "new_task": conversations.new,
            "stop": lambda: conversations.active.store.commands.stop(),
            "stop_all": lambda: conversations.active.store.commands.stop_all(),
            "pause": lambda: conversations.active.pause_or_resume(),
            "next_ask": conversations.go_to_next_ask,
            "allow_once": lambda: conversations.active.allow_once(),
            "palette": self._on_palette,
            "search": self._on_search,
            "find": lambda: conversations.active.find_bar.open(),
            "find_next": lambda: conversations.active.find_next(forward=True),
            "find_previous": lambda: conversations.active.find_next(forward=False),
            "tree": lambda: conversations.active.tree.toggle(),
            "review": lambda: conversations.active.review.toggle(),
            "summarise": lambda: conversations.active.store.context.summarise(),
            "approvals": lambda: conversations.active.input_panel.approval_mode.open_panel(),
            "ask_models": lambda: conversations.active.dialogs.ask_models(),
            "compare": lambda: conversations.active.store.branches.compare_newest(),
            "add_agent": lambda: conversations.active.input_panel.agents.add_agent(),
            "export": lambda: conversations.active.dialogs.export(),
            "undo_archive": self.sidebar.undo.undo,
            "close_tab": conversations.close_active,
            "reopen_tab": conversations.reopen,
            "next_tab": partial(conversations.in_main_window, partial(tab_bar.step, 1)),
            "previous_tab": partial(conversations.in_main_window, partial(tab_bar.step, -1)),
            "move_tab_left": partial(tab_bar.shift, -1),
            "move_tab_right": partial(tab_bar.shift, 1),
            "pin_tab": lambda: self.tabs.pin(tab_bar.current),
            "all_tabs": partial(conversations.in_main_window, self.tabs.open_list),
            "own_window": conversations.move_active,
            "next_pane": self._on_next_pane,
            "sidebar": self._on_toggle_sidebar,
            "zoom_in": partial(self._theme.step_zoom, 1),
            "zoom_out": partial(self._theme.step_zoom, -1),
            "zoom_reset": partial(self._theme.step_zoom, 0),
            "tour": self._tour.play,
            "settings": lambda: self.dialogs.settings.open_page("general"),
            "settings_models": lambda: self.dialogs.settings.open_page("providers"),
            "settings_personalities": lambda: self.dialogs.settings.open_page("personalities"),
            "settings_permissions": lambda: self.dialogs.settings.open_page("permissions"),
            "settings_tools": lambda: self.dialogs.settings.open_page("tools"),
            "settings_skills": lambda: self.dialogs.settings.open_page("skills"),
            "settings_appearance": lambda: self.dialogs.settings.open_page("appearance"),
            "settings_data": lambda: self.dialogs.settings.open_page("data"),
            "usage": self.dialogs.open_usage,
            "memory": self._on_memory,
            "remember": partial(self._on_memory_switch, self.stores.conversations.switch_remembering),
            "recall": partial(self._on_memory_switch, self.stores.conversations.switch_recall),
            "theme": self._on_change_theme,
            "shortcuts": self.dialogs.open_shortcuts,
            "quick": self.quick_task_requested.emit,
            "quick_key": self.global_shortcut_requested.emit,
            "quit": self.quit_requested.emit,
        }

    def _go_to_tab(self, number: int) -> None:
        self.conversations.in_main_window(partial(self.tabs.bar.go_to_number, number))

    def _lay_out(self) -> None:
        right = QWidget()
        set_vbox(right, fill(self.tabs), spacing=0)
        self._splitter.addWidget(self.sidebar)
        self._splitter.addWidget(right)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setChildrenCollapsible(False)
        self.setCentralWidget(self._splitter)
        settings = self._state.settings
        resize_on_screen(self, settings.width, settings.height)
        self._splitter.setSizes([settings.sidebar_width, self.width() - settings.sidebar_width])
        self._show_sidebar(is_shown=not settings.sidebar_hidden)
        if settings.maximized:
            self.setWindowState(Qt.WindowState.WindowMaximized)

    def _connect(self) -> None:
        stores = self.stores
        for source in (stores.session, stores.asks, stores.conversations, self._control, self._tour, self._factory):
            source.failed.connect(self.show_error)
        self.sidebar.opened.connect(self.conversations.open)
        self.sidebar.opened_in_background.connect(partial(self.conversations.open, in_background=True))
        self.sidebar.hit_opened.connect(self._on_hit_opened)
        self.sidebar.new_task_requested.connect(self.conversations.new)
        self.sidebar.facts_requested.connect(partial(self.dialogs.open_memory, None, "facts"))
        self.sidebar.list.set_grouping(self._state.settings.sidebar_grouping)
        self.sidebar.list.grouping_chosen.connect(self._on_grouping_chosen)
        self.sidebar.foot.action_chosen.connect(self._on_action_chosen)
        self.sidebar.foot.about_requested.connect(lambda: self.dialogs.settings.open_page("about"))
        self.tabs.sidebar_button.clicked.connect(self._on_toggle_sidebar)
        self.sidebar.stop_requested.connect(self._control.stop)
        self.sidebar.resume_requested.connect(self._control.resume)
        self._factory.resume_requested.connect(self._control.resume)
        self._factory.providers_requested.connect(lambda: self.dialogs.settings.open_page("providers"))
        self._factory.source_requested.connect(self.conversations.open_at)
        self._factory.forget_requested.connect(self.dialogs.open_forget)
        self._factory.tour_requested.connect(self._tour.play)
        self._factory.setup_requested.connect(lambda: self.dialogs.settings.add_provider())
        self._factory.folder_task_requested.connect(self._on_folder_task_requested)
        self._tour.started.connect(self._factory.services.welcome.set_toured)
        models = self._factory.services.models
        self.dialogs.settings_closed.connect(models.reload)
        self.dialogs.models_changed.connect(models.load)
        self.dialogs.settings_closed.connect(self.stores.sandbox.reload)
        self.dialogs.conversation_requested.connect(self.conversations.open)
        self.dialogs.source_requested.connect(self.conversations.open_at)
        self.conversations.active_changed.connect(self._on_active_changed)
        self.conversations.main_window_requested.connect(self._on_main_window_requested)
        self.conversations.window_made.connect(self.commands.add_to_conversation_window)
        self._tour.started.connect(self.conversations.open)
        self._theme.changed.connect(self._on_theme_changed)
        self._theme.rescaled.connect(self._on_rescaled)
        stores.conversations.reset.connect(self._on_active_changed)

    def _on_main_window_requested(self) -> None:
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def _on_folder_task_requested(self) -> None:
        self.conversations.new()
        self.conversations.active.input_panel.task_options.choose_folder()

    def _on_hit_opened(self, conversation_id: str, node_id: str, words: str) -> None:
        self.conversations.open_at(conversation_id, node_id)
        self.conversations.active.transcript.hits.highlight_words(words.replace('"', " ").split())

    def _on_action_chosen(self, name: str) -> None:
        for action in ACTIONS:
            if action.name == name:
                self.commands.trigger(action.name)

    def _on_active_changed(self) -> None:
        self.sidebar.list.select(self.conversations.active_id)

    def _on_palette(self) -> None:
        if self._palette is None:
            self._palette = self._make_palette()
        self._palette.open_over(
            self.conversations.active_window or self, has_tabs=self.conversations.active_window is None
        )

    def _make_palette(self) -> "CommandPalette":
        from errand.window.views.shell.command_palette import CommandPalette  # not needed at startup

        palette = CommandPalette(self.stores.conversations, self.stores.session, self._theme, self.shortcuts)
        palette.conversation_chosen.connect(self.conversations.open)
        palette.setting_chosen.connect(self.dialogs.open_setting)
        palette.action_chosen.connect(self._on_action_chosen)
        return palette

    def _on_search(self) -> None:
        if self.sidebar.isHidden():
            self._on_toggle_sidebar()
        self.sidebar.search.setFocus()
        self.sidebar.search.selectAll()

    def _on_toggle_sidebar(self) -> None:
        self._state.settings.sidebar_hidden = not self._state.settings.sidebar_hidden
        self._show_sidebar(is_shown=not self._state.settings.sidebar_hidden)
        self._state.save_soon()

    def _on_grouping_chosen(self, grouping: Grouping) -> None:
        self._state.settings.sidebar_grouping = grouping
        self._state.save_soon()

    def _show_sidebar(self, *, is_shown: bool) -> None:
        self.sidebar.setVisible(is_shown)
        self.tabs.sidebar_button.setHidden(is_shown)

    def _on_next_pane(self) -> None:
        frame = (*self.sidebar.focus_panes(), self.tabs.bar) if self.conversations.active_window is None else ()
        panes = (*frame, *self.conversations.active.focus_panes())
        usable = [pane for pane in panes if pane.isVisible() and pane.focusPolicy() != Qt.FocusPolicy.NoFocus]
        here = next((number for number, pane in enumerate(usable) if pane.hasFocus()), -1)
        usable[(here + 1) % len(usable)].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _on_memory(self) -> None:
        self.dialogs.open_memory(self.conversations.active.store.conversation)

    def _on_memory_switch(self, switch: Callable[[Conversation], None]) -> None:
        conversation = self.conversations.active.store.conversation
        if conversation is None:
            self.show_message(tr("This conversation is still empty. Send a message first, or choose another one."))
        else:
            switch(conversation)

    def _on_change_theme(self) -> None:
        self._theme.set_mode("light" if self._theme.tokens.dark else "dark")

    def _on_close_confirmed(self) -> None:
        self._state.settings.told_of_background = True
        self.close()

    def _on_rescaled(self, before: DesignTokens, after: DesignTokens) -> None:
        """Conversations have a theme of their own, and scale themselves."""
        for window in (self, *self.conversations.windows):
            rescale(window, before, after, ConversationView)

    def _on_theme_changed(self) -> None:
        settings, theme = self._state.settings, self._theme
        settings.theme, settings.motion = theme.mode, theme.wanted_motion
        settings.reading_family, settings.reading_size = theme.reading_family, theme.reading_size
        settings.zoom = theme.zoom
        self._state.save_soon()

    def _save_sizes(self) -> None:
        settings = self._state.settings
        settings.maximized = self.isMaximized()
        if not settings.maximized:
            settings.width, settings.height = self.width(), self.height()
        if self.sidebar.isVisible():
            settings.sidebar_width = self._splitter.sizes()[0]
        self._state.flush()
