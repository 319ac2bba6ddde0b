"""The main window: the sidebar, the pages, the banners, and a slot for every action."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QMainWindow, QSplitter, QVBoxLayout, QWidget

from app.window.control import TaskControl
from app.window.state import WindowState
from app.window.stores.stores import Stores
from app.window.theme.theme import Theme
from app.window.tour import TourStore
from app.window.views.actions import ACTIONS, Action, ActionName
from app.window.views.connection_banner import ConnectionBanner
from app.window.views.leave_dialog import LeaveDialog
from app.window.views.pages import PagesView
from app.window.views.picker import Choice, PickerDialog
from app.window.views.sheet import views_sheet
from app.window.views.shortcut_sheet import ShortcutDialog, native
from app.window.views.sidebar import SidebarView
from app.window.widgets.banner import Banner

if TYPE_CHECKING:
    from app.window.views.settings.dialog import PageName, SettingsDialog

_MOST_IN_PALETTE = 200


class MainWindow(QMainWindow):
    """Its parts are made by `window/main.py`. `closed` when it is gone from the screen for good."""

    closed = Signal()

    def __init__(
        self,
        stores: Stores,
        control: TaskControl,
        tour: TourStore,
        sidebar: SidebarView,
        pages: PagesView,
        theme: Theme,
        state: WindowState,
    ) -> None:
        super().__init__()
        self.stores = stores
        self._control = control
        self._tour = tour
        self._theme = theme
        self._state = state
        self.sidebar = sidebar
        self.pages = pages
        self.trouble = Banner(theme)
        self.connection = ConnectionBanner(stores.session, theme)
        self._settings: SettingsDialog | None = None
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self.setWindowTitle("Errand")
        self._lay_out()
        self._add_actions()
        self._connect()
        self._on_theme_changed()
        pages.restore()

    def closeEvent(self, event: QCloseEvent) -> None:
        running = len(self.stores.tasks.running())
        if running and not self._state.kept.told_of_background:
            event.ignore()
            dialog = LeaveDialog(running, self)
            dialog.accepted.connect(self._on_leave_accepted)
            dialog.open()
            return
        self._keep_sizes()
        super().closeEvent(event)
        self.closed.emit()

    def on_action(self, name: ActionName) -> None:
        """Do one of the actions of the table."""
        self._slots()[name]()

    def tell_trouble(self, text: str) -> None:
        """Something did not work: what, and what to do."""
        self.trouble.tell(text, "failed")

    def _lay_out(self) -> None:
        right = QWidget()
        column = QVBoxLayout(right)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.connection)
        column.addWidget(self.trouble)
        column.addWidget(self.pages, 1)
        self._splitter.addWidget(self.sidebar)
        self._splitter.addWidget(right)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setChildrenCollapsible(False)
        self.setCentralWidget(self._splitter)
        kept = self._state.kept
        self.resize(kept.width, kept.height)
        self._splitter.setSizes([kept.sidebar_width, kept.width - kept.sidebar_width])
        if kept.maximized:
            self.setWindowState(Qt.WindowState.WindowMaximized)

    def _add_actions(self) -> None:
        for action in ACTIONS:
            entry = QAction(action.text, self)
            entry.setShortcuts([QKeySequence(keys) for keys in action.shortcuts])
            entry.triggered.connect(self._slots()[action.name])
            self.addAction(entry)
        for number in range(1, 10):
            shortcut = QShortcut(QKeySequence(f"Ctrl+{number}"), self)
            shortcut.activated.connect(lambda number=number: self.pages.go_to_number(number))

    def _slots(self) -> dict[ActionName, Callable[[], None]]:
        return {
            "new_task": self._on_new_task,
            "stop": self._on_stop,
            "next_ask": self._on_next_ask,
            "allow_once": self._on_allow_once,
            "palette": self._on_palette,
            "search": self._on_search,
            "close_tab": self._on_close_tab,
            "reopen_tab": self._on_reopen_tab,
            "next_tab": self._on_next_tab,
            "previous_tab": self._on_previous_tab,
            "next_pane": self._on_next_pane,
            "tour": self._on_tour,
            "settings": self._on_settings,
            "theme": self._on_change_theme,
            "shortcuts": self._on_shortcuts,
        }

    def _connect(self) -> None:
        stores = self.stores
        for speaker in (stores.session, stores.asks, stores.conversations, self._control, self._tour, self.pages):
            speaker.failed.connect(self.tell_trouble)
        self.sidebar.opened.connect(self._on_opened)
        self.sidebar.hit_opened.connect(self.pages.open_at)
        self.sidebar.new_asked.connect(self._on_new_task)
        self.sidebar.stop_asked.connect(self._control.stop)
        self.pages.resume_asked.connect(self._control.resume)
        self.pages.providers_asked.connect(self._on_providers_asked)
        self.pages.tour_asked.connect(self._on_tour)
        self.pages.front_changed.connect(self._on_front_changed)
        self._tour.started.connect(self._on_tour_started)
        self._theme.changed.connect(self._on_theme_changed)
        stores.conversations.reset.connect(self._on_front_changed)

    def _on_opened(self, conversation_id: str) -> None:
        self.pages.open(conversation_id)

    def _on_tour_started(self, conversation_id: str) -> None:
        self.pages.open(conversation_id)

    def _on_front_changed(self) -> None:
        self.sidebar.list.mark(self.pages.front_id)

    def _on_new_task(self) -> None:
        self.pages.new()

    def _on_stop(self) -> None:
        self.pages.front.store.requests.stop()

    def _on_next_ask(self) -> None:
        """The one after that of the conversation in front, round at the end."""
        waiting = [ask.conversation_id for ask in self.stores.asks.waiting()]
        if not waiting:
            return
        here = self.pages.front_id
        place = waiting.index(here) + 1 if here in waiting else 0
        self.pages.open(waiting[place % len(waiting)])
        self.pages.front.go_to_ask()

    def _on_allow_once(self) -> None:
        self.pages.front.allow_once()

    def _on_palette(self) -> None:
        actions = [_choice(action) for action in ACTIONS if action.in_palette]
        store = self.stores.conversations
        shown = min(store.count(), _MOST_IN_PALETTE)
        chats = [Choice(f"open {store.at(index).id}", store.at(index).title, "conversation") for index in range(shown)]
        picker = PickerDialog(self._theme, "Find an action or a conversation", (*actions, *chats), self)
        picker.chosen.connect(self._on_picked)
        picker.open_over(self)

    def _on_picked(self, key: str) -> None:
        kind, _, name = key.partition(" ")
        if kind == "open":
            self.pages.open(name)
            return
        for action, slot in self._slots().items():
            if action == name:
                slot()

    def _on_search(self) -> None:
        self.sidebar.search.setFocus()
        self.sidebar.search.selectAll()

    def _on_close_tab(self) -> None:
        self.pages.close_front()

    def _on_reopen_tab(self) -> None:
        self.pages.reopen()

    def _on_next_tab(self) -> None:
        self.pages.step(1)

    def _on_previous_tab(self) -> None:
        self.pages.step(-1)

    def _on_next_pane(self) -> None:
        panes = (*self.sidebar.focus_panes(), self.pages.tabs, *self.pages.front.focus_panes())
        usable = [pane for pane in panes if pane.isVisible() and pane.focusPolicy() != Qt.FocusPolicy.NoFocus]
        here = next((place for place, pane in enumerate(usable) if pane.hasFocus()), -1)
        usable[(here + 1) % len(usable)].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _on_tour(self) -> None:
        self._tour.play()

    def _on_settings(self) -> None:
        self._open_settings("general")

    def _on_providers_asked(self) -> None:
        self._open_settings("providers")

    def _open_settings(self, page: "PageName") -> None:
        from app.window.views.settings.dialog import SettingsDialog  # 20 ms that the start does not need

        if self._settings is None:
            self._settings = SettingsDialog(self.stores.session, self._theme, self)
            self._settings.finished.connect(self.pages.look_for_models)
        self._settings.open_page(page)

    def _on_change_theme(self) -> None:
        self._theme.set_mode("light" if self._theme.tokens.dark else "dark")

    def _on_shortcuts(self) -> None:
        ShortcutDialog(self._theme, self).open()

    def _on_leave_accepted(self) -> None:
        self._state.kept.told_of_background = True
        self.close()

    def _on_theme_changed(self) -> None:
        self.setStyleSheet(views_sheet(self._theme.tokens))
        if self._state.kept.theme != self._theme.mode:
            self._state.kept.theme = self._theme.mode
            self._state.save_soon()

    def _keep_sizes(self) -> None:
        kept = self._state.kept
        kept.maximized = self.isMaximized()
        if not kept.maximized:
            kept.width, kept.height = self.width(), self.height()
        kept.sidebar_width = self._splitter.sizes()[0]
        self._state.flush()


def _choice(action: Action) -> Choice:
    return Choice(f"do {action.name}", action.text, native(action.shortcuts[0]) if action.shortcuts else "")
