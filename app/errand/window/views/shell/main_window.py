"""The main window: sidebar and tabs, and what connects its parts. `actions.py` beside it lists what it can do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent
from PySide6.QtWidgets import QMainWindow, QWidget

from errand.text.translation import tr, trn
from errand.window.stores.task_commands import TaskControlStore, TourStore
from errand.window.stores.window_state import Grouping, WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.theme.tokens import DesignTokens
from errand.window.theme.zoom import rescale
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.conversation.keys import go_to_composer
from errand.window.views.shared.actions import Action, ShortcutStore, WindowActions
from errand.window.views.shell.dialogs import WindowDialogs
from errand.window.views.shell.open_conversation import OpenConversationFactory
from errand.window.views.shell.open_conversations import OpenConversations
from errand.window.views.shell.sidebar_splitter import SidebarSplitterView
from errand.window.views.shell.tabs import TabsView
from errand.window.views.sidebar.sidebar import SidebarView
from errand.window.widgets.accessibility import step_focus
from errand.window.widgets.banner import BannerTone
from errand.window.widgets.dialogs import ConfirmDialog, bring_to_front, resize_on_screen


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAction(Action):
    """An action with what it does to the window; the conversation in front is looked up when it runs."""

    run: Callable[["MainWindow"], None]


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
    """`window/main.py` creates its parts; `actions` are those of `actions.py`.

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
        actions: Sequence[WindowAction],
    ) -> None:
        super().__init__()
        self.has_tray = False  # closing hides the window if there is a tray that can show it again
        self.services = services = factory.services
        self.stores = services.stores
        self._control = control
        self.tour = tour
        self._factory = factory
        self.welcome = services.welcome
        self.theme = theme
        self._state = state
        self.sidebar = sidebar
        self.tabs = tabs
        self.conversations = conversations
        self.shortcuts = ShortcutStore(state, actions)
        self.dialogs = WindowDialogs(services.stores, services.models, theme, self.shortcuts, self)
        slots = {action.name: partial(action.run, self) for action in actions}
        self.commands = WindowActions(slots, self._go_to_tab, self.shortcuts)
        self.splitter = SidebarSplitterView(sidebar, tabs, state)
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

    def focus_search(self) -> None:
        """Go to the search of all conversations, with its text selected."""
        if self.sidebar.isHidden():
            self.splitter.toggle_sidebar()
        self.sidebar.search.setFocus()
        self.sidebar.search.selectAll()

    def focus_next_pane(self) -> None:
        """Go round the parts of the window that take the keyboard."""
        frame = (*self.sidebar.focus_panes(), self.tabs.bar) if self.conversations.active_window is None else ()
        panes = (*frame, *self.conversations.active.focus_panes())
        usable = [pane for pane in panes if pane.isVisible() and pane.focusPolicy() != Qt.FocusPolicy.NoFocus]
        here = next((number for number, pane in enumerate(usable) if pane.hasFocus()), -1)
        usable[(here + 1) % len(usable)].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _go_to_tab(self, number: int) -> None:
        self.conversations.in_main_window(partial(self.tabs.bar.go_to_number, number))

    def _lay_out(self) -> None:
        self.setCentralWidget(self.splitter)
        settings = self._state.settings
        resize_on_screen(self, settings.width, settings.height)
        self.splitter.fit(self.width())
        if settings.maximized:
            self.setWindowState(Qt.WindowState.WindowMaximized)

    def _connect(self) -> None:
        stores = self.stores
        for source in (stores.session, stores.asks, stores.conversations, self._control, self.tour, self._factory):
            source.failed.connect(self.show_error)
        self.sidebar.opened.connect(self.conversations.open)
        self.sidebar.opened_in_background.connect(partial(self.conversations.open, in_background=True))
        self.sidebar.hit_opened.connect(self._on_hit_opened)
        self.sidebar.new_task_requested.connect(self.conversations.new)
        self.sidebar.facts_requested.connect(partial(self.dialogs.open_memory, None, "facts"))
        self.sidebar.list.set_grouping(self._state.settings.sidebar_grouping)
        self.sidebar.list.grouping_chosen.connect(self._on_grouping_chosen)
        self.sidebar.list.other_folders_requested.connect(partial(self.dialogs.open_memory, page="state"))
        self.sidebar.foot.action_chosen.connect(self.commands.trigger)
        self.sidebar.foot.about_requested.connect(lambda: self.dialogs.settings.open_page("about"))
        self.sidebar.stop_requested.connect(self._control.stop)
        self.sidebar.resume_requested.connect(self._control.resume)
        self._factory.resume_requested.connect(self._control.resume)
        self._factory.providers_requested.connect(lambda: self.dialogs.settings.open_page("providers"))
        self._factory.source_requested.connect(self.conversations.open_at)
        self._factory.forget_requested.connect(self.dialogs.open_forget)
        self._factory.tour_requested.connect(self.tour.play)
        self._factory.real_tour_requested.connect(self.tour.play_for_real)
        self._factory.setup_requested.connect(lambda: self.dialogs.settings.add_provider())
        self._factory.local_model_requested.connect(lambda: self.dialogs.settings.open_page("local_models"))
        self._factory.folder_task_requested.connect(self._on_folder_task_requested)
        self.tour.started.connect(self._factory.services.welcome.set_toured)
        models = self._factory.services.models
        self.dialogs.settings_closed.connect(models.reload)
        self.dialogs.models_changed.connect(models.load)
        stores.local_models.available_changed.connect(models.load)
        self.dialogs.settings_closed.connect(self.stores.sandbox.reload)
        self.dialogs.source_requested.connect(self.conversations.open_at)
        self.conversations.active_changed.connect(self._on_active_changed)
        self.conversations.main_window_requested.connect(self._on_main_window_requested)
        self.conversations.window_made.connect(self.commands.add_to_conversation_window)
        self.tour.started.connect(self.conversations.open)
        self.theme.changed.connect(self._on_theme_changed)
        self.theme.rescaled.connect(self._on_rescaled)
        stores.conversations.reset.connect(self._on_active_changed)

    def _on_main_window_requested(self) -> None:
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        bring_to_front(self)

    def _on_folder_task_requested(self) -> None:
        self.conversations.new()
        self.conversations.active.input_panel.task_options.choose_folder()

    def _on_hit_opened(self, conversation_id: str, node_id: str, words: str) -> None:
        self.conversations.open_at(conversation_id, node_id)
        self.conversations.active.transcript.hits.highlight_words(words.replace('"', " ").split())

    def _on_active_changed(self) -> None:
        self.sidebar.list.select(self.conversations.active_id)

    def _on_grouping_chosen(self, grouping: Grouping) -> None:
        self._state.settings.sidebar_grouping = grouping
        self._state.save_soon()

    def _on_close_confirmed(self) -> None:
        self._state.settings.told_of_background = True
        self.close()

    def _on_rescaled(self, before: DesignTokens, after: DesignTokens) -> None:
        """Conversations have a theme of their own, and scale themselves."""
        for window in (self, *self.conversations.windows):
            rescale(window, before, after, ConversationView)

    def _on_theme_changed(self) -> None:
        settings, theme = self._state.settings, self.theme
        settings.theme, settings.motion = theme.mode, theme.wanted_motion
        settings.reading_family, settings.reading_size = theme.reading_family, theme.reading_size
        settings.zoom = theme.zoom
        self._state.save_soon()

    def _save_sizes(self) -> None:
        settings = self._state.settings
        settings.maximized = self.isMaximized()
        if not settings.maximized:
            settings.width, settings.height = self.width(), self.height()
        self.splitter.save_width()
        self._state.flush()
